//! Following by what writers tell of their entries. The log is asked for what is not told, and for its end.
//!
//! Invariant: an entry that was told is copied only where it continues the chain, which names the hash of all before it. So it is
//! the one that was acknowledged there, whatever was lost, late, or told twice.

use std::time::{Duration, Instant};

use crate::replica::{Replica, ReplicaError, lock};
use crate::store::StoreError;

impl Replica {
    /// Copies what is told until `limit` is over, or nothing is told for a while, or what is told does not go on from here: then
    /// [`follow`](Self::follow) shows what there is.
    ///
    /// # Errors
    /// When the database fails.
    pub(crate) fn hear(&self, limit: Duration) -> Result<(), ReplicaError> {
        let until = Instant::now() + limit;
        loop {
            let seen = lock(&self.state).chain.seen();
            self.log.wait(seen, until.saturating_duration_since(Instant::now()));
            if !self.take_told()? || Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Copies what was told; false where that was nothing.
    pub(in crate::replica) fn take_told(&self) -> Result<bool, ReplicaError> {
        self.go_on()?;
        let mut state = lock(&self.state);
        if state.failed {
            return Err(StoreError::Engine("nothing is copied after a failure".to_owned()).into());
        }
        let told = self.log.told(state.chain.seen());
        for entry in &told {
            let Some(folded) = state.chain.take_told(entry) else {
                self.report(&mut state);
                return Ok(false);
            };
            self.copy(&mut state, folded)?;
        }
        if !told.is_empty() {
            self.report(&mut state);
        }
        Ok(!told.is_empty())
    }
}
