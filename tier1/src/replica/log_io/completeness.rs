//! The time as of which a replica is complete. A replica may answer questions of callers from its rows, with
//! this time as their age.

use std::time::Instant;

use crate::replica::{Replica, ReplicaError, ReplicaStore, lock};

impl<D: ReplicaStore> Replica<D> {
    /// The time as of which this replica has every acknowledged record. `None` if it has not yet reached the
    /// end of the log. The replica asked the log for its end at this time, and has copied up to that end
    /// since.
    pub(crate) fn complete_as_of(&self) -> Option<Instant> {
        *lock(&self.complete_as_of)
    }

    /// Copies new records up to the present end of the log. The caller repeats the call until it returns
    /// false, which means that the end is reached. A log that ends before the last entry that this replica
    /// has read lags behind or has lost entries, so its end proves nothing.
    ///
    /// # Errors
    /// Fails as [`follow`](Replica::follow) does.
    pub(crate) fn catch_up(&self) -> Result<bool, ReplicaError> {
        let state = &mut lock(&self.state);
        self.ensure_running()?;
        let (asked, end) = match state.catch_up_target.take() {
            Some(goal) => goal,
            None => (Instant::now(), self.log.end()?),
        };
        let is_ahead = state.chain.last_read() > end;
        let goes_on = self.follow_on(state)?;
        if state.chain.last_read() < end {
            state.catch_up_target = goes_on.then_some((asked, end));
            return Ok(goes_on);
        }
        if !is_ahead && !state.is_doubtful {
            self.note_complete_as_of(asked);
        }
        // The end was reached, although the log may have grown since.
        Ok(false)
    }

    pub(in crate::replica) fn note_complete_as_of(&self, asked: Instant) {
        let mut complete = lock(&self.complete_as_of);
        *complete = (*complete).max(Some(asked));
    }
}
