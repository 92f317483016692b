//! Why tier 1 takes no writes at present: for good, or while a disk is full.
//!
//! What refuses writes for good holds until the process is restarted. A range whose disk was full goes on when there is room
//! again ([`ensure_room`](super::free_room::ensure_room)). What keeps it from going on then may be something else, and is said as
//! that.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use doppel_model::RangeId;
use doppel_protocol::Tier1Error;

use crate::store::{ErrorClass, StoreError};

/// The reasons why this process accepts no writes.
#[derive(Debug, Default)]
pub(super) struct Refusals {
    for_good: OnceLock<Tier1Error>,
    ranges: Mutex<Ranges>,
    /// Held by the range that is being opened anew.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct Ranges {
    refusing: BTreeMap<RangeId, Refusing>,
    /// How often each range has continued after its disk was full.
    recoveries: BTreeMap<RangeId, u64>,
}

/// A range whose disk was full and which has not continued yet.
#[derive(Debug)]
struct Refusing {
    since: Instant,
    refused: Tier1Error,
}

impl Refusals {
    /// Fails while no writes are accepted, with the reason.
    pub(super) fn check(&self) -> Result<(), Tier1Error> {
        if let Some(refused) = self.for_good.get() {
            return Err(refused.clone());
        }
        // Most ranges share one disk, and their shards give each other work, so one full range stops all.
        self.ranges().refusing.values().next().map_or(Ok(()), |refusing| Err(refusing.refused.clone()))
    }

    /// Refuses all writes from now on. Returns the reason that was given first.
    pub(super) fn refuse_for_good(&self, refused: Tier1Error) -> Tier1Error {
        self.for_good.get_or_init(|| refused).clone()
    }

    /// Notes that the disk of a range is full.
    pub(super) fn disk_is_full(&self, range: RangeId, refused: Tier1Error) {
        self.ranges().refusing.insert(range, Refusing { since: Instant::now(), refused });
    }

    /// Notes why a range whose disk was full cannot continue yet. Returns the reason for callers, if it is a
    /// new one.
    pub(super) fn still_refuses(&self, range: RangeId, error: &StoreError) -> Option<Tier1Error> {
        let mut ranges = self.ranges();
        let refusing = ranges.refusing.get_mut(&range)?;
        let refused = match error {
            StoreError::Busy => Tier1Error::Unavailable(format!(
                "there is room again, and range {range} waits until nobody reads it for long and no rows are moved"
            )),
            StoreError::InUse => Tier1Error::Unavailable(format!(
                "there is room again, and range {range} waits for another process that uses its files"
            )),
            error if matches!(error.class(), ErrorClass::DiskFull | ErrorClass::Damage) => {
                error.clone().into()
            }
            // The message of the operating system names files of the server, so callers do not get it.
            _ => Tier1Error::Unavailable(format!(
                "range {range} could not be opened anew after its disk was full, which is tried again: see the server's log"
            )),
        };
        (refusing.refused != refused).then(|| {
            refusing.refused = refused.clone();
            refused
        })
    }

    /// Notes that a range continues. Returns how long it was stopped, or `None` if it was not.
    pub(super) fn goes_on(&self, range: RangeId) -> Option<Duration> {
        let mut ranges = self.ranges();
        let refusing = ranges.refusing.remove(&range)?;
        *ranges.recoveries.entry(range).or_default() += 1;
        Some(refusing.since.elapsed())
    }

    /// Forgets a range that this process no longer owns.
    pub(super) fn forget(&self, range: RangeId) {
        self.ranges().refusing.remove(&range);
    }

    /// Whether the disk of a range is full, and how often the range has continued after it was.
    pub(super) fn disk_of(&self, range: RangeId) -> (bool, u64) {
        let ranges = self.ranges();
        let is_full =
            ranges.refusing.get(&range).is_some_and(|of| matches!(of.refused, Tier1Error::DiskFull(_)));
        (is_full, ranges.recoveries.get(&range).copied().unwrap_or_default())
    }

    /// Takes the turn to open a range anew. `None` if another range has it.
    ///
    /// Ranges are opened one after another, so that each sees the room that the others have left. Most ranges
    /// share a file system.
    pub(super) fn try_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn ranges(&self) -> MutexGuard<'_, Ranges> {
        self.ranges.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_taken_again_when_every_range_goes_on_and_never_after_another_failure() {
        let refusals = Refusals::default();
        let full = |why: &str| Tier1Error::DiskFull(why.to_owned());
        let (zero, one) = (RangeId(0), RangeId(1));
        refusals.disk_is_full(one, full("one"));
        refusals.disk_is_full(zero, full("zero"));
        assert_eq!((refusals.disk_of(zero), refusals.check()), ((true, 0), Err(full("zero"))));
        assert!(refusals.goes_on(zero).is_some());
        assert_eq!((refusals.disk_of(zero), refusals.check()), ((false, 1), Err(full("one"))));
        assert!(refusals.goes_on(one).is_some() && refusals.goes_on(one).is_none());
        assert_eq!((refusals.check(), refusals.disk_of(one)), (Ok(()), (false, 1)));
        let failed = Tier1Error::ReadOnly("broken".to_owned());
        assert_eq!(refusals.refuse_for_good(failed.clone()), failed);
        assert_eq!(refusals.refuse_for_good(full("later")), failed);
        assert_eq!(refusals.check(), Err(failed));
    }

    #[test]
    fn what_keeps_a_range_from_going_on_is_said_as_what_it_is() {
        let (refusals, range) = (Refusals::default(), RangeId(3));
        let engine = || StoreError::Engine("cannot read /somewhere".to_owned());
        assert_eq!(refusals.still_refuses(range, &engine()), None, "its disk was not full");
        refusals.disk_is_full(range, Tier1Error::DiskFull("no room".to_owned()));
        for (error, waits) in [(StoreError::Busy, "reads it"), (StoreError::InUse, "another process")] {
            assert!(matches!(refusals.still_refuses(range, &error), Some(Tier1Error::Unavailable(why))
                if why.contains("range 3") && why.contains(waits)));
            assert_eq!(refusals.still_refuses(range, &error), None, "it was said");
        }
        assert!(matches!(refusals.still_refuses(range, &engine()), Some(Tier1Error::Unavailable(why))
            if why.contains("range 3") && !why.contains("somewhere")));
        assert_eq!(refusals.still_refuses(range, &engine()), None, "it was said");
        assert!(!refusals.disk_of(range).0 && matches!(refusals.check(), Err(Tier1Error::Unavailable(_))));
        let damaged = StoreError::Damaged { key: "00".to_owned(), reason: "it is short" };
        assert!(matches!(refusals.still_refuses(range, &damaged), Some(Tier1Error::Damaged(_))));
        assert!(matches!(
            refusals.still_refuses(range, &StoreError::DiskFull),
            Some(Tier1Error::DiskFull(_))
        ));
        assert!(refusals.disk_of(range).0 && refusals.goes_on(range).is_some());
    }

    #[test]
    fn one_range_goes_on_at_a_time() {
        let refusals = Refusals::default();
        let turn = refusals.try_turn();
        assert!(turn.is_some() && refusals.try_turn().is_none());
        drop(turn);
        assert!(refusals.try_turn().is_some());
    }
}
