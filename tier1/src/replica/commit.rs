//! The commit of an owner. It appends the parts of one record to the shared log, in steps that do not wait.

use doppel_model::Epoch;
use doppel_shared_log::LogError;

use super::entry::{EncodedRecord, RecordBody, encode};
use super::replica_store::ReplicaStore;
use super::{Replica, ReplicaError, ReplicaState};
use crate::storage::log::Position;
use crate::storage::store::{StoreError, Write};

/// A commit that is not yet known to count.
pub(crate) struct CommitInProgress {
    epoch: Epoch,
    encoded: EncodedRecord,
}

impl CommitInProgress {
    /// Position of the commit's record, if the record counts.
    pub(crate) fn position(&self) -> Position {
        self.encoded.position
    }
}

#[cfg(test)]
impl CommitInProgress {
    /// The entry of one part, counted from 0.
    pub(crate) fn part(&self, number: usize) -> bytes::Bytes {
        self.encoded.parts[number].clone()
    }
}

impl<D: ReplicaStore> Replica<D> {
    /// Starts a commit as the owner of `epoch`. Appends nothing yet.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] if this process does not own the range under `epoch`, and
    /// [`StoreError::Unencodable`] if the commit is too long.
    pub(super) fn start_commit(
        &self,
        state: &ReplicaState,
        epoch: Epoch,
        writes: Vec<Write>,
    ) -> Result<CommitInProgress, StoreError> {
        let begun = state.chain.last();
        if begun.epoch != epoch.0 || state.own_last != Some(begun) {
            return Err(StoreError::Deposed(self.range));
        }
        let encoded = encode(self.id, (begun, epoch.0), &RecordBody::Rows(writes), self.limits.part_bytes);
        let encoded = encoded.map_err(|reason| StoreError::Unencodable(reason.to_owned()))?;
        Ok(CommitInProgress { epoch, encoded })
    }

    /// Appends the remaining parts of a commit. `Ok(None)` means that the commit counts and is in the
    /// database. `Ok(Some(error))` means that a transient error interrupted the call. The caller repeats the
    /// call later, whether or not the log has taken the last part.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] if another node has taken over. The commit may then count or not.
    pub(super) fn advance_commit(
        &self,
        state: &mut ReplicaState,
        commit: &mut CommitInProgress,
    ) -> Result<Option<ReplicaError>, StoreError> {
        let CommitInProgress { epoch, encoded } = commit;
        loop {
            let last = state.chain.last();
            if last.epoch != epoch.0 || state.own_last.is_none() {
                return Err(StoreError::Deposed(self.range));
            }
            if last == encoded.position {
                state.own_last = Some(encoded.position);
                return Ok(None);
            }
            // The log may have lost parts that it had taken, so the chain determines the next part.
            let begun = state.chain.parts_read(&encoded.parts);
            let Some(part) = encoded.parts.get(begun).filter(|_| last.index < encoded.position.index) else {
                break;
            };
            let before = state.chain.unfinished_parts();
            let appended = self.append(state, part).map_err(|error| error.into_store(self.range))?;
            match appended {
                // The entry is in the log, but is void.
                Ok(()) if (state.chain.last(), state.chain.unfinished_parts()) == (last, before) => break,
                Ok(()) => {}
                // The replica read the whole record before the error.
                Err(_) if state.chain.last() != last => {}
                Err(error @ ReplicaError::Log(LogError::TooLong { .. })) => {
                    return Err(StoreError::Unencodable(error.to_string()));
                }
                Err(error) => return Ok(Some(error)),
            }
        }
        state.database_failed = true;
        Err(StoreError::Engine(format!(
            "record {} of range {} is in the log, but does not count",
            encoded.position.index, self.range
        )))
    }
}

/// The steps of a commit as separate calls. The simulation makes no other call to the replica between two
/// steps.
#[cfg(feature = "simulation")]
impl<D: ReplicaStore> Replica<D> {
    pub(crate) fn begin_commit(
        &self,
        epoch: Epoch,
        writes: Vec<Write>,
    ) -> Result<CommitInProgress, StoreError> {
        self.start_commit(&super::lock(&self.state), epoch, writes)
    }

    pub(crate) fn try_commit(
        &self,
        commit: &mut CommitInProgress,
    ) -> Result<Option<ReplicaError>, StoreError> {
        self.advance_commit(&mut super::lock(&self.state), commit)
    }

    pub(crate) fn is_settled_now(&self, position: Position) -> bool {
        self.is_settled(position, std::time::Duration::ZERO)
    }

    /// Whether the last record that this process wrote as the owner is settled.
    pub(crate) fn is_own_last_settled_now(&self) -> bool {
        super::lock(&self.state).own_last.is_some_and(|own| self.is_settled_now(own))
    }
}
