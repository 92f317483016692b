//! A commit on its way into the shared log, in steps that do not wait.

use doppel_model::Epoch;
use doppel_shared_log::LogError;

use super::entry::{Encoded, Said, encode};
use super::replica_store::Copies;
use super::{Replica, ReplicaError, State};
use crate::log::Position;
use crate::store::{StoreError, Write};

/// A commit that is not known to count yet.
pub(crate) struct UnderWay {
    epoch: Epoch,
    encoded: Encoded,
}

impl UnderWay {
    /// The position that it has if it counts.
    pub(crate) fn position(&self) -> Position {
        self.encoded.position
    }
}

#[cfg(test)]
impl UnderWay {
    /// One of its parts.
    pub(crate) fn part(&self, number: usize) -> bytes::Bytes {
        self.encoded.parts[number].clone()
    }
}

impl<D: Copies> Replica<D> {
    /// Begins a commit as the owner of an epoch. Nothing is appended yet.
    pub(super) fn begin(
        &self,
        state: &State,
        epoch: Epoch,
        writes: Vec<Write>,
    ) -> Result<UnderWay, StoreError> {
        let begun = state.chain.last();
        if begun.epoch != epoch.0 || state.own != Some(begun) {
            return Err(StoreError::Deposed(self.range));
        }
        let encoded = encode(self.id, (begun, epoch.0), &Said::Rows(writes), self.limits.part_bytes);
        let encoded = encoded.map_err(|reason| StoreError::Unencodable(reason.to_owned()))?;
        Ok(UnderWay { epoch, encoded })
    }

    /// Goes on with a commit. Without an error it counts, and the database has it; with an error that may pass it is
    /// to be gone on with later, whatever has become of the part that was last sent.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] when another node has taken over. Whether the commit counts is not known then.
    pub(super) fn go_on_with(
        &self,
        state: &mut State,
        commit: &mut UnderWay,
    ) -> Result<Option<ReplicaError>, StoreError> {
        let UnderWay { epoch, encoded } = commit;
        loop {
            let last = state.chain.last();
            if last.epoch != epoch.0 || state.own.is_none() {
                return Err(StoreError::Deposed(self.range));
            }
            if last == encoded.position {
                state.own = Some(encoded.position);
                return Ok(None);
            }
            // Parts that the log had may be lost, so it is the chain that says where it goes on.
            let begun = state.chain.begun(&encoded.parts);
            let Some(part) = encoded.parts.get(begun).filter(|_| last.index < encoded.position.index) else {
                break;
            };
            let before = state.chain.unfinished();
            let appended = self.append(state, part).map_err(|error| error.into_store(self.range))?;
            match appended {
                // It is there, and neither counts nor is a part of what does.
                Ok(()) if (state.chain.last(), state.chain.unfinished()) == (last, before) => break,
                Ok(()) => {}
                // All of it may have been read before an error.
                Err(_) if state.chain.last() != last => {}
                Err(error @ ReplicaError::Log(LogError::TooLong { .. })) => {
                    return Err(StoreError::Unencodable(error.to_string()));
                }
                Err(error) => return Ok(Some(error)),
            }
        }
        state.failed = true;
        Err(StoreError::Engine(format!(
            "record {} of range {} does not count",
            encoded.position.index, self.range
        )))
    }
}

/// The steps one by one. Between them nothing else is asked of the replica.
#[cfg(feature = "simulation")]
impl<D: Copies> Replica<D> {
    pub(crate) fn begin_commit(&self, epoch: Epoch, writes: Vec<Write>) -> Result<UnderWay, StoreError> {
        self.begin(&super::lock(&self.state), epoch, writes)
    }

    pub(crate) fn try_commit(&self, commit: &mut UnderWay) -> Result<Option<ReplicaError>, StoreError> {
        self.go_on_with(&mut super::lock(&self.state), commit)
    }

    pub(crate) fn is_settled_now(&self, position: Position) -> bool {
        self.is_settled(position, std::time::Duration::ZERO)
    }

    /// Whether the last record of this owner is settled.
    pub(crate) fn has_begun_now(&self) -> bool {
        super::lock(&self.state).own.is_some_and(|own| self.is_settled_now(own))
    }
}
