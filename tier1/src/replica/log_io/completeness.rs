//! Since when a replica has everything that was acknowledged: what a question of a caller may be answered by.

use std::time::Instant;

use crate::replica::{Copies, Replica, ReplicaError, lock};

impl<D: Copies> Replica<D> {
    /// A moment before which nothing was acknowledged that is not here: the log was asked for its end then, and that was reached.
    pub(crate) fn complete(&self) -> Option<Instant> {
        *lock(&self.complete)
    }

    /// Copies what the log has behind up to the end that it has at present, over as many calls as that takes; false when it is
    /// reached. Where the log ends before what is here, it lags behind or has lost something, and nothing is known to be complete.
    ///
    /// # Errors
    /// See [`follow`](Replica::follow).
    pub(crate) fn catch_up(&self) -> Result<bool, ReplicaError> {
        let state = &mut lock(&self.state);
        self.go_on()?;
        let (asked, end) = match state.goal.take() {
            Some(goal) => goal,
            None => (Instant::now(), self.log.end()?),
        };
        let is_ahead = state.chain.seen() > end;
        let goes_on = self.follow_on(state)?;
        if state.chain.seen() < end {
            state.goal = goes_on.then_some((asked, end));
            return Ok(goes_on);
        }
        if !is_ahead && !state.is_doubtful {
            self.note_complete(asked);
        }
        // There may be more by now.
        Ok(false)
    }

    pub(in crate::replica) fn note_complete(&self, asked: Instant) {
        let mut complete = lock(&self.complete);
        *complete = (*complete).max(Some(asked));
    }
}
