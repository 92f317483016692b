//! Files of a data directory that appear complete or not at all.
//!
//! A file is written under a temporary name, flushed to disk, and renamed. Then its directory is flushed. A
//! process that is killed in between leaves the temporary file behind. The next process that opens the data
//! directory removes the temporary file with [`remove_temporary_files`]. All files have the permissions of
//! any new file.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Mode of a new file before the umask applies.
const PERMISSIONS: u32 = 0o666;

/// What [`write()`] does if a file already exists at the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    /// Replace the existing file.
    Replace,
    /// Keep the existing file and fail.
    Keep,
}

/// Writes `bytes` to the file at `path`, which appears complete or not at all. The name of the temporary file
/// begins with `aside`.
///
/// # Errors
/// If the file cannot be written, or if it exists and `existing` is [`ExistingFile::Keep`].
pub fn write(path: &Path, aside: &str, bytes: &[u8], existing: ExistingFile) -> io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut named = tempfile::Builder::new();
    named.prefix(aside).permissions(Permissions::from_mode(PERMISSIONS));
    let mut file = named.tempfile_in(dir)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    match existing {
        ExistingFile::Replace => file.persist(path)?,
        ExistingFile::Keep => file.persist_noclobber(path)?,
    };
    File::open(dir)?.sync_all()
}

/// Removes the temporary files that interrupted writes left in `dir`. `is_aside` recognises the names of
/// temporary files. The caller must make sure that no other process writes to `dir`, because this function
/// would remove the temporary files of that process, too. A file that cannot be removed is logged and does no
/// harm.
pub fn remove_temporary_files(dir: &Path, is_aside: impl Fn(&OsStr) -> bool) {
    let Ok(entries) = fs::read_dir(dir) else { return };
    for entry in entries.flatten().filter(|entry| is_aside(&entry.file_name())) {
        if let Err(error) = fs::remove_file(entry.path()) {
            tracing::warn!(file = %entry.path().display(), %error, "cannot remove a temporary file of an interrupted process; remove it by hand");
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
        for (bytes, existing) in [(b"one", ExistingFile::Keep), (b"two", ExistingFile::Replace)] {
            write(&path, "file.new", bytes, existing).unwrap();
            assert_eq!(fs::read(&path).unwrap(), bytes);
            let mode = |path| fs::metadata(path).unwrap().permissions().mode();
            assert_eq!(mode(&path), mode(&usual));
        }
        let error = write(&path, "file.new", b"three", ExistingFile::Keep).unwrap_err();
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
        remove_temporary_files(home.path(), |name| name.as_encoded_bytes().starts_with(b"file.new"));
        let names = fs::read_dir(home.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["file", "other.newAbCdEf"]);
    }
}
