//! A file that is written under a temporary name in its directory, and gets its final name when it is
//! complete and on disk. Until then it is called a *part file*.
//!
//! Invariants:
//! - Two processes never write to one part file: each part file has a unique name and is locked by its
//!   process.
//! - A file gets its final name only if the name of the part file still leads to the written file.
//! - Part files of killed processes are removed, and part files of running processes are not.

use std::collections::HashSet;
use std::ffi::OsStr;
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use doppel_snapshot::{create_directories, sync_directory};
use doppel_terminal::destination::{directory_of, is_same_file};
use doppel_terminal::interrupt;

/// Prefix of the names of part files. Random letters and digits follow, then [`SUFFIX`].
const PREFIX: &str = ".doppel-result-";
/// Suffix of the names of part files.
const SUFFIX: &str = ".part";

/// Largest number of attempts to create a part file that no other process removes before it is locked.
const TRIES: usize = 8;

/// The directories that a run has prepared for its part files.
#[derive(Debug, Default)]
pub(super) struct Prepared(HashSet<PathBuf>);

impl Prepared {
    /// Creates a directory below `root`, and returns when its name and the names of all directories between
    /// are on disk. Removes the part files of killed processes in the directory. A second call for the same
    /// directory does nothing.
    pub(super) fn prepare(&mut self, root: &Path, dir: &Path) -> io::Result<()> {
        if self.0.contains(dir) {
            return Ok(());
        }
        create_directories(dir)?;
        // A killed run may have created some of these directories without syncing their names.
        if dir == root {
            match sync_directory(directory_of(root)) {
                // If this user may not list the directory above, another user has created `root` in it.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                synced => synced?,
            }
        }
        for below in dir.ancestors().take_while(|below| *below != root && below.starts_with(root)) {
            if self.0.contains(below) {
                break;
            }
            sync_directory(directory_of(below))?;
        }
        remove_left(dir)?;
        self.0.insert(dir.to_owned());
        Ok(())
    }
}

/// A file that is being written. Unless it is finished, it is removed on drop.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    part: PathBuf,
    path: PathBuf,
    written: Arc<AtomicU64>,
    is_finished: bool,
}

impl PartFile {
    /// Begins a file in an existing directory.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let dir = directory_of(path);
        for _ in 0..TRIES {
            let mut named = tempfile::Builder::new();
            named.prefix(PREFIX).suffix(SUFFIX);
            let create = |part: &Path| File::options().write(true).create_new(true).open(part);
            let made = interrupt::create_removable(|| named.make_in(dir, create))?;
            let (file, part) = made.keep().map_err(|error| error.error)?;
            let this =
                Self { file, part, path: path.to_owned(), written: Arc::default(), is_finished: false };
            // Another run that removes old part files may have come between creation and lock. On a file
            // system without locks, no run removes part files.
            let is_locked = !matches!(this.file.try_lock(), Err(TryLockError::WouldBlock));
            if is_locked && is_at(&this.file, &this.part)? {
                return Ok(this);
            }
        }
        let why = format!("other processes remove the files {PREFIX}*{SUFFIX} beside it; end them");
        Err(io::Error::new(io::ErrorKind::ResourceBusy, why))
    }

    /// Shared counter of the written bytes, which can be read after the file was moved away.
    pub(super) fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
    }

    /// Syncs the file and gives it its final name. `before` is called between, with the metadata of the
    /// synced file.
    ///
    /// # Errors
    /// The error of `before`; or if the file cannot be synced or renamed, or another process has replaced it.
    pub(super) fn finish(mut self, before: impl FnOnce(&Metadata) -> io::Result<()>) -> io::Result<()> {
        self.file.sync_all()?;
        self.check(&self.part)?;
        before(&self.file.metadata()?)?;
        fs::rename(&self.part, &self.path)?;
        self.is_finished = true;
        sync_directory(directory_of(&self.path))?;
        self.check(&self.path)
    }

    /// Ensures that a path leads to this file.
    fn check(&self, name: &Path) -> io::Result<()> {
        if is_at(&self.file, name)? {
            return Ok(());
        }
        let why = format!(
            "another process has removed or replaced {}; end it, and run the command again",
            name.display()
        );
        Err(io::Error::other(why))
    }
}

impl Write for PartFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written.fetch_add(written as u64, Ordering::Relaxed);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for PartFile {
    fn drop(&mut self) {
        // If another process has replaced the file, its file is not removed.
        if !self.is_finished && is_at(&self.file, &self.part).unwrap_or(false) {
            // The next run removes the file if this fails.
            let _ = fs::remove_file(&self.part);
        }
        interrupt::forget(&self.part);
    }
}

/// Whether a path names an open file.
fn is_at(file: &File, path: &Path) -> io::Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(there) => Ok(is_same_file(&there, &file.metadata()?)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

fn is_part(name: &OsStr) -> bool {
    let name = name.as_encoded_bytes();
    name.starts_with(PREFIX.as_bytes()) && name.ends_with(SUFFIX.as_bytes())
}

/// Removes part files that no process has locked, because the processes that wrote them have ended. On a file
/// system without locks, all part files stay.
fn remove_left(dir: &Path) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if !is_part(&entry.file_name()) || !entry.file_type()?.is_file() {
            continue;
        }
        let path = entry.path();
        // A part file that has gone or cannot be opened does not prevent this run from writing its own.
        let Ok(file) = File::open(&path) else { continue };
        if file.try_lock().is_ok() && is_at(&file, &path)? {
            let _ = fs::remove_file(&path);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(dir: &Path) -> Vec<String> {
        let names = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    fn finish(file: PartFile) -> io::Result<()> {
        file.finish(|_| Ok(()))
    }

    #[test]
    fn a_file_is_complete_or_does_not_exist() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let mut file = PartFile::begin(&path).unwrap();
        file.write_all(b"one").unwrap();
        assert_eq!(file.written().load(Ordering::Relaxed), 3);
        drop(file);
        assert_eq!(names(home.path()), [""; 0]);
        let mut file = PartFile::begin(&path).unwrap();
        file.write_all(b"two").unwrap();
        assert!(!path.exists());
        finish(file).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(home.path()), ["file"]);
    }

    #[test]
    fn a_failure_before_the_rename_leaves_no_file() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        let mut file = PartFile::begin(&path).unwrap();
        file.write_all(b"whole").unwrap();
        let error = file.finish(|written| {
            assert_eq!(written.len(), 5);
            assert!(!path.exists());
            Err(io::ErrorKind::StorageFull.into())
        });
        assert_eq!(error.unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert_eq!(names(home.path()), [""; 0]);
    }

    #[test]
    fn two_writers_in_one_directory_have_their_own_files() {
        let home = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| home.path().join(name));
        let (mut first, mut second) = (PartFile::begin(&one).unwrap(), PartFile::begin(&two).unwrap());
        first.write_all(b"of the first").unwrap();
        second.write_all(b"of the second").unwrap();
        finish(first).unwrap();
        finish(second).unwrap();
        assert_eq!(fs::read(&one).unwrap(), b"of the first");
        assert_eq!(fs::read(&two).unwrap(), b"of the second");
    }

    #[test]
    fn a_file_of_another_process_never_gets_the_final_name() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("file");
        fs::write(&path, "of an earlier run").unwrap();
        for replaced in [false, true] {
            let mut file = PartFile::begin(&path).unwrap();
            file.write_all(b"ours").unwrap();
            let part = file.part.clone();
            fs::remove_file(&part).unwrap();
            if replaced {
                fs::write(&part, "of another process").unwrap();
            }
            let error = finish(file).unwrap_err().to_string();
            assert!(error.contains("another process has removed or replaced"), "{error}");
            assert!(error.contains(part.to_str().unwrap()), "{error}");
            assert_eq!(fs::read(&path).unwrap(), b"of an earlier run");
            assert_eq!(part.exists(), replaced, "the file of the other process stays");
        }
    }

    #[test]
    fn only_part_files_of_killed_processes_are_removed() {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("a/b");
        fs::create_dir_all(&dir).unwrap();
        let left = format!("{PREFIX}killed{SUFFIX}");
        for name in [&left, "file", ".doppel-aB3xYz.part", ".doppel-result-other"] {
            fs::write(dir.join(name), "").unwrap();
        }
        fs::create_dir(dir.join(format!("{PREFIX}dir{SUFFIX}"))).unwrap();
        let mut live = PartFile::begin(&dir.join("live")).unwrap();
        let mut prepared = Prepared::default();
        prepared.prepare(home.path(), &dir).unwrap();
        assert!(!dir.join(&left).exists());
        assert_eq!(names(&dir).len(), 5, "{:?}", names(&dir));
        live.write_all(b"whole").unwrap();
        finish(live).unwrap();
        assert_eq!(fs::read(dir.join("live")).unwrap(), b"whole");
        // A directory is prepared only once.
        fs::write(dir.join(&left), "").unwrap();
        prepared.prepare(home.path(), &dir).unwrap();
        assert!(dir.join(&left).exists());
    }
}
