//! A replica that cannot go on from what it has: it copies the range from its owner.

use std::time::{Duration, Instant};

use super::{Kept, ReplicatedRange, Shared, lock};
use crate::database::Database;
use crate::replica::{Found, Source, TransferError, find, log_id, settle, transfer};
use crate::service::open::Error;
use crate::store::StoreError;

/// The pause before a copy that has filled the disk is begun again.
const FULL_PAUSE: Duration = Duration::from_secs(60);

fn is_full(error: &Error) -> bool {
    matches!(
        error,
        Error::Store(StoreError::DiskFull) | Error::Transfer(TransferError::Store(StoreError::DiskFull))
    )
}

impl Shared {
    /// Copies the range from its owner, for the log does not reach back to what is here, or has gone on in another way.
    /// One for which there is no room goes from the disk at once, and is begun again after a while: it may be large.
    pub(super) fn transfer(&self, of: &ReplicatedRange, kept: &Kept) -> Result<(), Error> {
        let copied = self.copy(of, kept);
        if copied.as_ref().is_err_and(is_full) {
            {
                let mut state = lock(&kept.state);
                (state.needs_room, state.room_from) = (true, Some(Instant::now() + FULL_PAUSE));
            }
            settle(&self.dir(of.range))?;
        }
        copied
    }

    fn copy(&self, of: &ReplicatedRange, kept: &Kept) -> Result<(), Error> {
        self.end(of, kept);
        // It is closed without the lock, for that takes time.
        let replica = lock(&kept.state).replica.take();
        drop(replica);
        let (range, dir) = (of.range, self.dir(of.range));
        let log = log_id(&self.replication.cluster, range);
        let is_void = {
            let mut state = lock(&kept.state);
            state.is_known = false;
            self.is_void(&state)
        };
        let (has, epoch) = {
            let database = Database::open_replica(&dir, log, self.share())?;
            // Nobody else has it any more: the files of another one will be in its place. What does not count says nothing
            // of how far an owner has to be.
            let here = database.last_copied().position;
            if is_void { (0, here.epoch) } else { (here.index, 0) }
        };
        let shared = (of.log)()?;
        let counts = |copied| Ok(find(&*shared, log, copied)? == Found::It);
        let owner = || self.tier1.ranges.other(range).ok();
        let mut progress = |so_far: Option<(u64, u64)>| {
            if self.is_stopping() {
                return Err(StoreError::Engine("the process stops".to_owned()));
            }
            let mut state = lock(&kept.state);
            state.trouble = Some(match so_far {
                Some((needs, rows)) => {
                    if std::mem::replace(&mut state.needs, needs) != needs {
                        self.tell_soon();
                    }
                    format!("it is copied from its owner; {rows} rows are here")
                }
                None => "it is to be copied from its owner, and waits for one".to_owned(),
            });
            Ok(())
        };
        tracing::info!(
            range = range.0,
            "the log does not go on from what is here: the range is copied from its owner"
        );
        let (share, counts, owner) = (self.share(), &counts, &owner);
        let source = Source { range, log, has, epoch, counts, owner, share };
        transfer(&source, &dir, &mut progress)?;
        tracing::info!(range = range.0, "the range was copied from its owner");
        settle(&dir)?;
        let mut state = lock(&kept.state);
        (state.contradicts, state.is_noted) = (false, false);
        Ok(())
    }
}
