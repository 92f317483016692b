//! Checks whether the log still has the records that a replica has copied. The log may have lost its tail, or
//! an operator may have created it anew.

use std::sync::TryLockError;
use std::time::Instant;

use super::put_back::{RecordLookup, look_up_record};
use crate::replica::{Replica, ReplicaError, ReplicaState, ReplicaStore, lock};
use crate::storage::log::SequencedPosition;
use crate::storage::store::StoreError;

impl<D: ReplicaStore> Replica<D> {
    /// Verifies that the log still has the owner's records, and reads entries that other nodes have appended.
    /// Does nothing while an append is under way, because the append verifies the log as well.
    ///
    /// # Errors
    /// Fails as [`follow`](Replica::follow) does. A final error also ends the ownership of this process.
    pub(crate) fn check_log(&self) -> Result<(), ReplicaError> {
        let checked = self.check_log_end();
        if checked.as_ref().is_err_and(ReplicaError::is_final) {
            self.end_ownership();
        }
        checked
    }

    fn check_log_end(&self) -> Result<(), ReplicaError> {
        let mut state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Ok(()),
        };
        // Only a leader that reaches most of the log's copies reports the end. A leader that is cut off may
        // still answer a read, so a read proves nothing.
        let asked = Instant::now();
        let end = self.log.end()?;
        let is_ahead = state.chain.last_read() > end;
        self.ensure_intact(&mut state)?;
        // `ensure_intact` rewinds the chain, so the entries after the last record are read again. They may
        // all be void.
        while self.read_more(&mut state)? && state.chain.last_read() < end {}
        if state.chain.last_read() >= end && !is_ahead && !state.is_doubtful {
            self.note_contact(asked);
            self.note_complete_as_of(asked);
        }
        Ok(())
    }

    /// Verifies that the log has the last copied record. Then rewinds the chain to that record, because the
    /// log may have lost only the entries after it.
    ///
    /// # Errors
    /// [`ReplicaError::Contradiction`] if the log has another entry at that position, and
    /// [`ReplicaError::LostTail`] if the log ends before it.
    pub(in crate::replica) fn verify(&self, state: &mut ReplicaState) -> Result<(), ReplicaError> {
        let (range, sent) = (self.range, Instant::now());
        let (position, at) = (state.chain.last(), state.chain.last_sequence().0);
        match look_up_record(&*self.log, self.id, SequencedPosition { position, sequence: at })? {
            RecordLookup::Same => {
                state.verified_through = state.verified_through.max(state.chain.last_read());
                state.chain.rewind();
                (state.is_doubtful, state.lost_since, state.verified_at) = (false, None, Some(sent));
                Ok(())
            }
            RecordLookup::Different => {
                self.end_ownership();
                state.is_doubtful = true;
                Err(ReplicaError::Contradiction { range, at })
            }
            RecordLookup::PastEnd => {
                // The owner must not answer questions on the word of this log.
                *lock(&self.last_contact) = None;
                state.is_doubtful = true;
                Err(ReplicaError::LostTail { range, copied: at, end: self.log.end()?.0 })
            }
        }
    }

    /// Like [`verify`](Self::verify), but puts the tail back if the log has appeared to lack it for
    /// [`tail_loss_grace`](super::super::ReplicaLimits::tail_loss_grace). Putting the tail back ends the
    /// ownership of this process. The log may also have lost the take-over of another node, and a replica
    /// that has copied it may put it back.
    pub(in crate::replica) fn verify_or_put_back(
        &self,
        state: &mut ReplicaState,
    ) -> Result<(), ReplicaError> {
        match self.verify(state) {
            Err(lost @ ReplicaError::LostTail { .. }) => {
                let since = *state.lost_since.get_or_insert_with(Instant::now);
                if since.elapsed() < self.limits.tail_loss_grace {
                    return Err(lost);
                }
                self.put_back(state)?;
                self.verify(state)?;
                if state.own_last.take().is_some() {
                    self.end_ownership();
                }
                Ok(())
            }
            other => other,
        }
    }

    /// Like [`verify_or_put_back`](Self::verify_or_put_back), but also fails if putting the tail back has
    /// ended the ownership of this process.
    ///
    /// # Errors
    /// [`StoreError::Deposed`] in that case.
    pub(in crate::replica) fn ensure_intact(&self, state: &mut ReplicaState) -> Result<(), ReplicaError> {
        let owns = state.own_last.is_some();
        self.verify_or_put_back(state)?;
        if owns && state.own_last.is_none() {
            return Err(StoreError::Deposed(self.range).into());
        }
        Ok(())
    }
}
