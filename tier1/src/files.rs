//! Directories of files, as the log and the signatures use them.
//!
//! [`OnDisk`] is the file system. The simulated directory of tests and of the simulation keeps apart what was synced from what was not, fails
//! at any call, and loses at a crash what a disk would lose.

mod on_disk;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod simulated;

use std::io;
use std::path::Path;
use std::sync::Arc;

pub(crate) use on_disk::{OnDisk, sync_directory};

/// A directory. What was created, renamed or removed in it survives a crash after [`sync`](Self::sync).
pub(crate) trait Directory: Send + Sync {
    /// Where it is, for messages.
    fn path(&self) -> &Path;

    /// The names in it, in no order.
    fn list(&self) -> io::Result<Vec<String>>;

    /// Makes an empty file; one of that name is emptied.
    fn create(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Opens a file that is there.
    fn open(&self, name: &str) -> io::Result<Arc<dyn File>>;

    /// Gives a file another name; one that had it goes.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;

    /// Removes a file.
    fn remove(&self, name: &str) -> io::Result<()>;

    /// Returns when its names are on disk.
    fn sync(&self) -> io::Result<()>;
}

/// An open file.
pub(crate) trait File: Send + Sync {
    /// Its length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Fills `buffer` from `offset` on.
    ///
    /// # Errors
    /// `UnexpectedEof` when the file ends before.
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes` at `offset`.
    fn write(&self, bytes: &[u8], offset: u64) -> io::Result<()>;

    /// Cuts the file.
    fn cut(&self, length: u64) -> io::Result<()>;

    /// Returns when its content is on disk.
    fn sync(&self) -> io::Result<()>;
}
