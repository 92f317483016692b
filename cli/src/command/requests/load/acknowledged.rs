//! Writes the list of pages that a server has acknowledged.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

/// File of acknowledged pages, one JSON line each. All lanes share it.
#[derive(Debug)]
pub(super) struct AcknowledgedList {
    file: File,
    /// Whether a write has failed. The file may then end with a partial line, so nothing more is appended.
    has_failed: bool,
}

impl AcknowledgedList {
    /// Opens the file for appending, and creates it if necessary.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().create(true).append(true).open(path)?;
        Ok(Self { file, has_failed: false })
    }

    /// Appends lines. After a failed write, every further write fails, too.
    ///
    /// # Errors
    /// If the lines cannot be written, or an earlier write has failed.
    pub(super) fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.has_failed {
            return Err(io::Error::other("an earlier line could not be written"));
        }
        self.file.write_all(lines).inspect_err(|_| self.has_failed = true)
    }

    /// Syncs the file to disk.
    ///
    /// # Errors
    /// If the file cannot be synced.
    pub(super) fn sync(&self) -> io::Result<()> {
        // Pipes and devices cannot be synced.
        let is_file = self.file.metadata().is_ok_and(|metadata| metadata.is_file());
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
        // Now writes would succeed, but the file already ends with a partial line.
        list.file = open("/dev/null");
        assert!(list.write(b"{}\n").is_err());
        list.has_failed = false;
        list.write(b"{}\n").unwrap();
    }
}
