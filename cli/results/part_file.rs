//! A file that is written under another name in its directory, and gets its own when it is whole and on disk.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::destination::directory_of;
use crate::interrupt;

/// The other name. One file of a directory is written at a time.
const PART: &str = ".doppel.part";

/// A file that is being written. Unless it is finished, nothing of it stays.
#[derive(Debug)]
pub(super) struct PartFile {
    file: File,
    part: PathBuf,
    path: PathBuf,
    written: Arc<AtomicU64>,
    is_finished: bool,
}

impl PartFile {
    /// Begins a file. What an earlier run left of one is replaced.
    pub(super) fn begin(path: &Path) -> io::Result<Self> {
        let dir = directory_of(path);
        fs::create_dir_all(dir)?;
        let part = dir.join(PART);
        match fs::remove_file(&part) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            removed => removed?,
        }
        let mut file = None;
        interrupt::removable(|| {
            file = Some(File::options().write(true).create_new(true).open(&part)?);
            Ok(&part)
        })?;
        let file = file.ok_or(io::ErrorKind::NotFound)?;
        Ok(Self { file, part, path: path.to_owned(), written: Arc::default(), is_finished: false })
    }

    /// How many bytes are written, also when this is elsewhere.
    pub(super) fn written(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.written)
    }

    /// Gives the file its name.
    pub(super) fn finish(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.part, &self.path)?;
        self.is_finished = true;
        File::open(directory_of(&self.path))?.sync_all()
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
        if !self.is_finished {
            // What cannot be removed is replaced by the next run.
            let _ = fs::remove_file(&self.part);
        }
        interrupt::forget(&self.part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_as_a_whole_or_not_at_all() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a/b/file");
        let mut file = PartFile::begin(&path).unwrap();
        file.write_all(b"one").unwrap();
        assert_eq!(file.written().load(Ordering::Relaxed), 3);
        drop(file);
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 0);
        fs::write(path.with_file_name(PART), b"left by a run that was killed").unwrap();
        let mut file = PartFile::begin(&path).unwrap();
        file.write_all(b"two").unwrap();
        assert!(!path.exists());
        file.finish().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
