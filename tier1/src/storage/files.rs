//! Interface to directories and files, for the log and the signatures.
//!
//! [`OnDisk`] is the file system. `SimulatedDirectory` is a directory in memory, for tests and the
//! simulation. It distinguishes synced data from other data, can fail at any call, and loses at a crash what
//! a disk would lose.

mod on_disk;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod simulated;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub(crate) use on_disk::{OnDisk, sync_directory};

/// A directory. Created, renamed and removed names survive a crash after [`sync`](Self::sync).
pub(crate) trait Directory: Send + Sync {
    /// Returns the path of the directory, for messages.
    fn path(&self) -> &Path;

    /// Returns the names of all files, in no particular order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Creates an empty file. An existing file of that name is emptied.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens an existing file.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Renames a file. An existing file of the new name is replaced.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when all names are on disk.
    fn sync(&self) -> io::Result<()>;
}

/// An open file.
pub(crate) trait File: Send + Sync {
    /// Returns the length of the file in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// Returns `UnexpectedEof` if the file ends before `buffer` is full.
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Sets the length of the file.
    fn cut(&self, length: u64) -> io::Result<()>;

    /// Returns when the content is on disk.
    fn sync(&self) -> io::Result<()>;
}
