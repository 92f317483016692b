//! Copies a range from its owner, if the replica cannot continue from its own files.

use std::time::{Duration, Instant};

use super::{KeeperState, KeptReplica, ReplicatedRange, lock};
use crate::replica::tail_loss::{RecordLookup, look_up_record};
use crate::replica::{TransferError, TransferSource, install_transfer, log_id, transfer};
use crate::service::open::Error;
use crate::storage::database::Database;
use crate::storage::store::StoreError;

/// Pause after a copy has filled the disk, before the next copy begins.
const FULL_PAUSE: Duration = Duration::from_secs(60);

fn is_full(error: &Error) -> bool {
    matches!(
        error,
        Error::Store(StoreError::DiskFull) | Error::Transfer(TransferError::Store(StoreError::DiskFull))
    )
}

impl KeeperState {
    /// Copies the range from its owner, because the log does not reach back to the files here or has
    /// continued otherwise.
    ///
    /// A copy that fills the disk is deleted at once, because it may be large. The next copy begins after a
    /// pause.
    pub(super) fn transfer(&self, replicated: &ReplicatedRange, kept: &KeptReplica) -> Result<(), Error> {
        let copied = self.copy(replicated, kept);
        if copied.as_ref().is_err_and(is_full) {
            {
                let mut state = lock(&kept.state);
                (state.needs_room, state.room_from) = (true, Some(Instant::now() + FULL_PAUSE));
            }
            install_transfer(&self.dir(replicated.range))?;
        }
        copied
    }

    fn copy(&self, replicated: &ReplicatedRange, kept: &KeptReplica) -> Result<(), Error> {
        self.end_ownership(replicated, kept);
        // Closing takes time, so it happens without the lock.
        let replica = lock(&kept.state).replica.take();
        drop(replica);
        let (range, dir) = (replicated.range, self.dir(replicated.range));
        let log = log_id(&self.replication.cluster, range);
        let is_void = {
            let mut state = lock(&kept.state);
            state.is_known = false;
            self.is_void(&state)
        };
        let (last_index, contradicting_epoch) = {
            let database = Database::open_replica(&dir, log, self.share())?;
            // No other thread has the database open any more: the copy will take the place of its files.
            // Records that do not count say nothing about how far an owner must be.
            let here = database.last_copied().position;
            if is_void { (0, here.epoch) } else { (here.index, 0) }
        };
        let shared = (replicated.log)()?;
        let is_in_log = |copied| Ok(look_up_record(&*shared, log, copied)? == RecordLookup::Same);
        let owner = || self.ranges.remote_owner(range).ok();
        let mut progress = |so_far: Option<(u64, u64)>| {
            if self.is_stopping() {
                return Err(StoreError::Engine("the process stops".to_owned()));
            }
            let mut state = lock(&kept.state);
            state.trouble = Some(match so_far {
                Some((needs, rows)) => {
                    if std::mem::replace(&mut state.needs, needs) != needs {
                        self.beat_soon();
                    }
                    format!("copying the range from its owner; {rows} rows are here")
                }
                None => "the range has to be copied from its owner; waiting for an owner".to_owned(),
            });
            Ok(())
        };
        tracing::info!(
            range = range.0,
            "the log does not continue the records here; copying the range from its owner"
        );
        let (databases, is_in_log, owner) = (self.share(), &is_in_log, &owner);
        let source =
            TransferSource { range, log, last_index, contradicting_epoch, is_in_log, owner, databases };
        transfer(&source, &dir, &mut progress)?;
        tracing::info!(range = range.0, "the range was copied from its owner");
        install_transfer(&dir)?;
        let mut state = lock(&kept.state);
        (state.contradicts, state.is_noted) = (false, false);
        Ok(())
    }
}
