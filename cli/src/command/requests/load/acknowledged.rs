//! The list of the pages that a server has taken.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// The list of the pages that were taken, which all lanes write to.
#[derive(Debug)]
pub(super) struct AcknowledgedList {
    file: File,
    /// A write has failed, and may have left a part of a line: nothing follows it.
    has_failed: bool,
}

impl AcknowledgedList {
    /// Opens a file, to which lines are added.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file, has_failed: false })
    }

    /// Adds lines in one call.
    ///
    /// # Errors
    /// When they cannot be written, or earlier ones could not.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("an earlier line could not be written"));
        }
        self.file.write_all(lines).inspect_err(|_| self.has_failed = true)
    }

    /// Returns when the lines are on disk.
    ///
    /// # Errors
    /// When the file cannot be synced.
    pub(super) fn sync(&self) -> io::Result<()> {
        // A pipe or a device has no disk.
        let is_file = self.file.metadata().is_ok_and(|there| there.is_file());
        if is_file { self.file.sync_all() } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_follows_a_line_that_could_not_be_written() {
        let open = |path: &str| File::options().write(true).open(path).unwrap();
        let mut list = AcknowledgedList { file: open("/dev/full"), has_failed: false };
        assert_eq!(list.write(b"{}\n").unwrap_err().kind(), io::ErrorKind::StorageFull);
        // There is room again, behind a part of a line.
        list.file = open("/dev/null");
        assert!(list.write(b"{}\n").is_err());
        list.has_failed = false;
        list.write(b"{}\n").unwrap();
    }
}
