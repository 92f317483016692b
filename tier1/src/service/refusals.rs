//! Why tier 1 takes no writes at present: for good, or while a disk is full.
//!
//! What refuses writes for good holds until the process is restarted. A range whose disk was full goes on when there is room
//! again. Between the two moments there is a distance, so that it does not stop again at once: it stops when a write fails, with
//! nothing free, and goes on with [`room_to_go_on`].

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use doppel_model::RangeId;
use doppel_protocol::Tier1Error;

use crate::store::StoreError;

/// Bytes that are to be free before a range goes on: what the engine may write while it opens a database and takes in what the
/// log has, and then some.
const ROOM_BYTES: u64 = 256 << 20;

/// On a small file system this share of it, if that is less: one in so many bytes.
const ROOM_SHARE: u64 = 10;

/// Why no writes are taken.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    for_good: OnceLock<Tier1Error>,
    full: Mutex<BTreeMap<RangeId, Full>>,
    recoveries: AtomicU64,
}

/// A range whose disk is full.
#[derive(Debug)]
struct Full {
    since: Instant,
    refused: Tier1Error,
}

impl Refusals {
    /// Why nothing is taken.
    pub(super) fn check(&self) -> Result<(), Tier1Error> {
        if let Some(refused) = self.for_good.get() {
            return Err(refused.clone());
        }
        // Ranges are mostly on one disk, and their shards give each other work.
        self.full().values().next().map_or(Ok(()), |full| Err(full.refused.clone()))
    }

    /// From now on nothing is taken. Why, which is what was said first.
    pub(super) fn refuse_for_good(&self, refused: Tier1Error) -> Tier1Error {
        self.for_good.get_or_init(|| refused).clone()
    }

    /// The disk of a range is full, or it is for this reason that the range does not go on.
    pub(super) fn disk_is_full(&self, range: RangeId, refused: Tier1Error) {
        let mut full = self.full();
        let since = full.get(&range).map_or_else(Instant::now, |full| full.since);
        full.insert(range, Full { since, refused });
    }

    /// The range goes on. How long it did not.
    pub(super) fn goes_on(&self, range: RangeId) -> Option<Duration> {
        let full = self.full().remove(&range)?;
        self.recoveries.fetch_add(1, Ordering::Relaxed);
        Some(full.since.elapsed())
    }

    /// The range is not of this process any more.
    pub(super) fn forget(&self, range: RangeId) {
        self.full().remove(&range);
    }

    /// Ranges whose disk is full.
    pub(super) fn full_ranges(&self) -> u64 {
        self.full().len() as u64
    }

    /// How often a range went on after its disk was full.
    pub(super) fn recoveries(&self) -> u64 {
        self.recoveries.load(Ordering::Relaxed)
    }

    fn full(&self) -> MutexGuard<'_, BTreeMap<RangeId, Full>> {
        self.full.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Ensures that the file system of a directory has room for a range that goes on.
///
/// # Errors
/// [`StoreError::DiskFull`] when it has not. One that does not say how much is free is taken to have room.
pub(super) fn room_to_go_on(dir: &Path) -> Result<(), StoreError> {
    let Ok(system) = rustix::fs::statvfs(dir) else { return Ok(()) };
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let all = system.f_blocks.saturating_mul(system.f_frsize);
    if free >= ROOM_BYTES.min(all / ROOM_SHARE) { Ok(()) } else { Err(StoreError::DiskFull) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_taken_again_when_every_range_goes_on_and_never_after_another_failure() {
        let refusals = Refusals::default();
        let full = |why: &str| Tier1Error::DiskFull(why.to_owned());
        refusals.disk_is_full(RangeId(1), full("one"));
        refusals.disk_is_full(RangeId(0), full("zero"));
        refusals.disk_is_full(RangeId(1), full("one, again"));
        assert_eq!((refusals.full_ranges(), refusals.check()), (2, Err(full("zero"))));
        assert!(refusals.goes_on(RangeId(0)).is_some());
        assert_eq!(refusals.check(), Err(full("one, again")));
        assert!(refusals.goes_on(RangeId(1)).is_some() && refusals.goes_on(RangeId(1)).is_none());
        assert_eq!((refusals.check(), refusals.full_ranges(), refusals.recoveries()), (Ok(()), 0, 2));
        let failed = Tier1Error::ReadOnly("broken".to_owned());
        assert_eq!(refusals.refuse_for_good(failed.clone()), failed);
        assert_eq!(refusals.refuse_for_good(full("later")), failed);
        assert_eq!(refusals.check(), Err(failed));
    }
}
