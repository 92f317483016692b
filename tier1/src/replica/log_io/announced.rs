//! Copying of entries that the owner announces. A standby asks the log only for entries that were not
//! announced, and for its end.
//!
//! Invariant: the replica copies an announced entry only if it continues the chain. The entry names the hash
//! of everything before it, so it is the entry that the log acknowledged at this position. Announcements may
//! be lost, late, or repeated.

use std::time::{Duration, Instant};

use crate::replica::{Replica, ReplicaError, lock};
use crate::storage::store::StoreError;

impl Replica {
    /// Copies announced entries for at most `limit`. Returns earlier if no entry was announced, or if an
    /// announced entry does not continue the chain. The caller then reads the log with
    /// [`follow`](Self::follow).
    ///
    /// # Errors
    /// If the database fails or this process stops.
    pub(crate) fn follow_announced(&self, limit: Duration) -> Result<(), ReplicaError> {
        let until = Instant::now() + limit;
        loop {
            let seen = lock(&self.state).chain.last_read();
            self.log.wait(seen, until.saturating_duration_since(Instant::now()));
            if !self.take_announced()? || Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Copies the entries that were announced so far. Returns false if there were none, or if one does not
    /// continue the chain.
    ///
    /// # Errors
    /// If the database fails or this process stops.
    pub(in crate::replica) fn take_announced(&self) -> Result<bool, ReplicaError> {
        self.ensure_running()?;
        let mut state = lock(&self.state);
        if state.database_failed {
            return Err(StoreError::Engine(
                "the replica copies no records after its database has failed".to_owned(),
            )
            .into());
        }
        let announced = self.log.told(state.chain.last_read());
        for entry in &announced {
            let Some(folded) = state.chain.fold_announced(entry) else {
                self.report(&mut state);
                return Ok(false);
            };
            self.copy(&mut state, folded)?;
        }
        if !announced.is_empty() {
            self.report(&mut state);
        }
        Ok(!announced.is_empty())
    }
}
