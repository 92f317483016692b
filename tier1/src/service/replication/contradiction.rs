//! Replicas whose files contradict their log.
//!
//! If the contradicting records were never settled, the files make way for a copy. Otherwise they may be the
//! only copy of what the log has lost, and they stay.
//!
//! A note in the directory says so. The log shows the contradiction only until it is trimmed past that point.
//! Without the note, the next process would think that the directory is only behind, and replace it by a
//! copy. The note disappears with the directory, or when the log and the directory agree again.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use doppel_protocol::Settlement;

use super::{KeeperState, KeptReplica, ReplicaState, ReplicatedRange, lock};
use crate::replica::ReplicaError;
use crate::service::open::Error;
use crate::storage::files::sync_directory;
use crate::storage::store::StoreError;

const NAME: &str = "contradicts-its-log";

/// Path of the note in the directory of a replica.
pub(super) struct Contradiction(PathBuf);

impl Contradiction {
    /// The note of the replica in `dir`.
    pub(super) fn in_directory(dir: &Path) -> Self {
        Self(dir.join(NAME))
    }

    /// Whether the note exists.
    pub(super) fn is_noted(&self) -> Result<bool, StoreError> {
        self.0.try_exists().map_err(|error| self.failed("look for", &error))
    }

    /// Writes the note with the reason, for the operator who finds it.
    pub(super) fn note(&self, why: &ReplicaError) -> Result<(), StoreError> {
        let write = || {
            let mut file = File::create(&self.0)?;
            writeln!(file, "{why}")?;
            file.sync_all()
        };
        write().map_err(|error| self.failed("write", &error))?;
        self.sync()
    }

    /// Removes the note, if it exists.
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

impl KeeperState {
    /// Whether the files contradict the log without harm. Records that were never settled may go, because two
    /// replicas have every settled record.
    pub(super) fn is_void(&self, state: &ReplicaState) -> bool {
        state.contradicts && !state.is_noted && self.replication.settlement == Settlement::Standby
    }

    /// Handles a log that continues otherwise than the files here. Copies the range if that does no harm, and
    /// fails otherwise.
    pub(super) fn handle_contradiction(
        &self,
        replicated: &ReplicatedRange,
        kept: &KeptReplica,
        error: ReplicaError,
    ) -> Result<(), Error> {
        let is_void = {
            let mut state = lock(&kept.state);
            state.contradicts = true;
            self.is_void(&state)
        };
        self.end_ownership(replicated, kept);
        if is_void {
            tracing::warn!(range = replicated.range.0, %error, "the records here contradict the log and were never settled; a copy replaces them");
            return self.transfer(replicated, kept);
        }
        if !lock(&kept.state).is_noted {
            Contradiction::in_directory(&self.dir(replicated.range)).note(&error)?;
            lock(&kept.state).is_noted = true;
        }
        Err(error.into())
    }

    /// Notes that the log and the files agree, as a turn has just shown.
    pub(super) fn note_agreement(
        &self,
        replicated: &ReplicatedRange,
        kept: &KeptReplica,
    ) -> Result<(), Error> {
        if lock(&kept.state).contradicts {
            Contradiction::in_directory(&self.dir(replicated.range)).end()?;
            let mut state = lock(&kept.state);
            (state.contradicts, state.is_noted) = (false, false);
        }
        Ok(())
    }
}
