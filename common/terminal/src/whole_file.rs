//! Files of a data directory that are there as a whole or not at all.
//!
//! They are written under another name, flushed, and renamed, and the directory is flushed. A process that is killed meanwhile leaves the
//! other name behind; who holds the directory next removes it. All have the permissions of any new file.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What files are created with, less the umask.
const PERMISSIONS: u32 = 0o666;

/// What becomes of a file that is there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Earlier {
    /// It is replaced.
    Replaced,
    /// It stays, and writing fails.
    Stays,
}

/// Writes a file; other names begin with `aside` meanwhile.
///
/// # Errors
/// When it cannot be written, or is there and stays.
pub fn write(path: &Path, aside: &str, bytes: &[u8], earlier: Earlier) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut named = tempfile::Builder::new();
    named.prefix(aside).permissions(Permissions::from_mode(PERMISSIONS));
    let mut file = named.tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    match earlier {
        Earlier::Replaced => file.persist(path)?,
        Earlier::Stays => file.persist_noclobber(path)?,
    };
    File::open(dir)?.sync_all()
}

/// Removes what was left of files whose writing was interrupted. Only for the process that holds the directory: another one may
/// be writing. What cannot be removed does no harm.
pub fn remove_left(dir: &Path, is_aside: impl Fn(&OsStr) -> bool) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|entry| is_aside(&entry.file_name())) {
        if let Err(error) = fs::remove_file(entry.path()) {
            tracing::warn!(file = %entry.path().display(), %error, "what an interrupted process left cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_as_any_new_one_and_stays_or_is_replaced_as_a_whole() {
        let home = tempfile::tempdir().unwrap();
        let (path, usual) = (home.path().join("file"), home.path().join("usual"));
        fs::write(&usual, b"").unwrap();
        for (bytes, earlier) in [(b"one", Earlier::Stays), (b"two", Earlier::Replaced)] {
            write(&path, "file.new", bytes, earlier).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
            let mode = |path| fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode(&path), mode(&usual));
        }
        let error = write(&path, "file.new", b"three", Earlier::Stays).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(home.path()).unwrap().count(), 2);
    }

    #[test]
    fn what_was_left_is_removed_and_nothing_else() {
        let home = tempfile::tempdir().unwrap();
        for name in ["file", "file.newAbCdEf", "file.newGhIjKl", "other.newAbCdEf"] {
            fs::write(home.path().join(name), b"").unwrap();
        }
        remove_left(home.path(), |name| name.as_encoded_bytes().starts_with(b"file.new"));
        let names = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["file", "other.newAbCdEf"]);
    }
}
