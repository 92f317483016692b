//! Directories and files of the file system.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doppel_snapshot::create_directories;

use super::{Directory, File};
use crate::storage::store::StoreError;

/// An existing directory.
#[derive(Debug)]
pub(crate) struct OnDisk {
    path: PathBuf,
}

impl OnDisk {
    /// Opens the directory, and creates it if it does not exist.
    pub(crate) fn new(path: PathBuf) -> io::Result<Self> {
        create_directories(&path)?;
        Ok(Self { path })
    }
}

/// Syncs a directory. Returns when the names in it are on disk.
pub(crate) fn sync_directory(path: &Path) -> Result<(), StoreError> {
    let synced = fs::File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|error| StoreError::of_file("sync a directory", path, &error))
}

impl Directory for OnDisk {
    fn path(&self) -> &Path {
        &self.path
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(&self.path)? {
            names.extend(entry?.file_name().into_string());
        }
        Ok(names)
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        Ok(Arc::new(options.open(self.path.join(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Arc<dyn File>> {
        Ok(Arc::new(OpenOptions::new().read(true).write(true).open(self.path.join(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    fn sync(&self) -> io::Result<()> {
        fs::File::open(&self.path)?.sync_all()
    }
}

impl File for fs::File {
    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.read_exact_at(buffer, offset)
    }

    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn cut(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}
