//! Whether the log still has what was copied from it: it may have lost its end, or have been made anew.

use std::sync::TryLockError;
use std::time::Instant;

use super::put_back::{Found, find};
use crate::log::SequencedPosition;
use crate::replica::{Copies, Replica, ReplicaError, State, lock};
use crate::store::StoreError;

impl<D: Copies> Replica<D> {
    /// Looks whether the log still has what the owner has written, and has grown by others, unless an append is under way, which
    /// shows it, too.
    ///
    /// # Errors
    /// See [`follow`](Replica::follow).
    pub(crate) fn look(&self) -> Result<(), ReplicaError> {
        let looked = self.look_at_end();
        if looked.as_ref().is_err_and(ReplicaError::is_final) {
            self.end_ownership();
        }
        looked
    }

    fn look_at_end(&self) -> Result<(), ReplicaError> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        // Only its end comes of a leader that is known to lead: a read may be answered by one that is cut off.
        let asked = Instant::now();
        let end = self.log.end()?;
        let is_ahead = state.chain.seen() > end;
        self.ensure(&mut state)?;
        // What is behind the last record is read again each time, and may be nothing that counts.
        while self.read_more(&mut state)? && state.chain.seen() < end {}
        if state.chain.seen() >= end && !is_ahead && !state.is_doubtful {
            self.note_contact(asked);
            self.note_complete(asked);
        }
        Ok(())
    }

    /// Ensures that the log has what was copied from it: it may have lost its tail since, or have been made anew. What is behind
    /// the last record is read again, for that may be lost alone.
    pub(in crate::replica) fn verify(&self, state: &mut State) -> Result<(), ReplicaError> {
        let (range, sent) = (self.range, Instant::now());
        let (position, at) = (state.chain.last(), state.chain.last_at().0);
        match find(&*self.log, self.id, SequencedPosition { position, sequence: at })? {
            Found::It => {
                state.verified = state.verified.max(state.chain.seen());
                state.chain.rewind();
                (state.is_doubtful, state.lost_since, state.verified_at) = (false, None, Some(sent));
                Ok(())
            }
            Found::Another => {
                self.end_ownership();
                state.is_doubtful = true;
                Err(ReplicaError::Contradicts { range, at })
            }
            Found::Nothing => {
                // Its word is none that allows to answer.
                *lock(&self.contact) = None;
                state.is_doubtful = true;
                Err(ReplicaError::LostTail { range, copied: at, end: self.log.end()?.0 })
            }
        }
    }

    /// The same, but what the log has lost is put back once it has shown for a while that it is lost. An owner is none any more
    /// then: the take-over of another may have been lost as well, and one that has more may put it back.
    pub(in crate::replica) fn mend(&self, state: &mut State) -> Result<(), ReplicaError> {
        match self.verify(state) {
            Err(lost @ ReplicaError::LostTail { .. }) => {
                let since = *state.lost_since.get_or_insert_with(Instant::now);
                if since.elapsed() < self.limits.lost {
                    return Err(lost);
                }
                self.put_back(state)?;
                self.verify(state)?;
                if state.own.take().is_some() {
                    self.end_ownership();
                }
                Ok(())
            }
            other => other,
        }
    }

    /// The same for an owner.
    pub(in crate::replica) fn ensure(&self, state: &mut State) -> Result<(), ReplicaError> {
        let owns = state.own.is_some();
        self.mend(state)?;
        if owns && state.own.is_none() {
            return Err(StoreError::Deposed(self.range).into());
        }
        Ok(())
    }
}
