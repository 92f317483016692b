//! The temporary directory of a command that keeps no data. The directory is removed when the command ends,
//! even if a signal interrupts the command.

use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;

use crate::interrupt;

/// A temporary directory that is removed with this value, or when a signal ends the process.
pub struct Scratch(TempDir);

impl Scratch {
    /// Creates the directory, and registers it for removal.
    ///
    /// # Errors
    /// If the directory cannot be created, or the process cannot handle signals.
    pub fn new() -> anyhow::Result<Self> {
        let dir = interrupt::create_removable(|| tempfile::Builder::new().prefix("doppel-").tempdir());
        Ok(Self(dir.context("cannot make a temporary directory")?))
    }

    /// Path of the temporary directory.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
