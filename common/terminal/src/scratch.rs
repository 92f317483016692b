//! The temporary directory of a run that keeps nothing: removed at the end, and when the run is
//! interrupted.

use std::path::Path;

use anyhow::Context;
use tempfile::TempDir;

use crate::interrupt;

/// A directory that is removed when the process ends.
pub struct Scratch(TempDir);

impl Scratch {
    /// Makes the directory.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn new() -> anyhow::Result<Self> {
        let dir = interrupt::removable(|| tempfile::Builder::new().prefix("doppel-").tempdir());
        Ok(Self(dir.context("cannot make a temporary directory")?))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}
