//! A replica that has something else than its log. Where it was never settled it makes way for a copy; elsewhere it may be the
//! only copy of what the log has lost, and stays.
//!
//! That it stays is noted in its directory. The log shows the contradiction only until it is trimmed up to there, and without the
//! note the next process would take the directory for one that is merely behind, and put a copy in its place. The note goes with
//! the directory, and when the log and the directory agree again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use doppel_protocol::Settlement;

use super::{Kept, KeptState, ReplicatedRange, Shared, lock};
use crate::files::sync_directory;
use crate::replica::ReplicaError;
use crate::service::open::Error;
use crate::store::StoreError;

const NAME: &str = "contradicts-its-log";

/// The note of a directory.
pub(super) struct Contradiction(PathBuf);

impl Contradiction {
    /// That of a directory.
    pub(super) fn in_directory(dir: &Path) -> Self {
        Self(dir.join(NAME))
    }

    /// Whether there is one.
    pub(super) fn is_noted(&self) -> Result<bool, StoreError> {
        self.0.try_exists().map_err(|error| self.failed("look for", &error))
    }

    /// Makes the note, with the reason for whoever finds it.
    pub(super) fn note(&self, why: &ReplicaError) -> Result<(), StoreError> {
        let write = || {
            let mut file = File::create(&self.0)?;
            writeln!(file, "{why}")?;
            file.sync_all()
        };
        write().map_err(|error| self.failed("write", &error))?;
        self.sync()
    }

    /// Takes it away.
    pub(super) fn end(&self) -> Result<(), StoreError> {
        match fs::remove_file(&self.0) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.failed("remove", &error)),
            _ => self.sync(),
        }
    }

    fn sync(&self) -> Result<(), StoreError> {
        self.0.parent().map_or(Ok(()), sync_directory)
    }

    fn failed(&self, what: &'static str, error: &io::Error) -> StoreError {
        StoreError::of_file(what, &self.0, error)
    }
}

impl Shared {
    /// Whether what is on the disk contradicts the log, where that happens without harm: it was never settled, for two replicas
    /// have what is.
    pub(super) fn is_void(&self, state: &KeptState) -> bool {
        state.contradicts && !state.is_noted && self.replication.settlement == Settlement::Standby
    }

    /// The log has gone on in another way than what is here.
    pub(super) fn contradicted(
        &self,
        of: &ReplicatedRange,
        kept: &Kept,
        error: ReplicaError,
    ) -> Result<(), Error> {
        let is_void = {
            let mut state = lock(&kept.state);
            state.contradicts = true;
            self.is_void(&state)
        };
        self.end(of, kept);
        if is_void {
            tracing::warn!(range = of.range.0, %error, "what is here was never settled, and goes");
            return self.transfer(of, kept);
        }
        if !lock(&kept.state).is_noted {
            Contradiction::in_directory(&self.dir(of.range)).note(&error)?;
            lock(&kept.state).is_noted = true;
        }
        Err(error.into())
    }

    /// The log and what is here agree, as a turn has just shown.
    pub(super) fn agrees(&self, of: &ReplicatedRange, kept: &Kept) -> Result<(), Error> {
        if lock(&kept.state).contradicts {
            Contradiction::in_directory(&self.dir(of.range)).end()?;
            let mut state = lock(&kept.state);
            (state.contradicts, state.is_noted) = (false, false);
        }
        Ok(())
    }
}
