//! Why tier 1 accepts no writes at present: for good, or while a disk is full.
//!
//! A failure other than a full disk holds until the process is restarted. A range whose disk was full
//! continues when there is room again ([`ensure_room`](crate::service::ownership::disk_space::ensure_room)).
//! If something else then keeps the range from continuing, callers are told that reason.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use doppel_model::RangeId;
use doppel_protocol::Tier1Error;

use crate::storage::store::{ErrorClass, StoreError};

/// The reasons why this process accepts no writes.
#[derive(Debug, Default)]
pub(in crate::service) struct Refusals {
    for_good: OnceLock<Tier1Error>,
    disks: Mutex<DiskStates>,
    /// Held by the range that is being opened anew.
    turn: Mutex<()>,
}

#[derive(Debug, Default)]
struct DiskStates {
    refusing: BTreeMap<RangeId, FullDisk>,
    /// How often each range has continued after its disk was full.
    recoveries: BTreeMap<RangeId, u64>,
}

/// A range whose disk was full and which has not continued yet.
#[derive(Debug)]
struct FullDisk {
    since: Instant,
    refused: Tier1Error,
}

impl Refusals {
    /// Fails while no writes are accepted, with the reason.
    pub(in crate::service) fn check(&self) -> Result<(), Tier1Error> {
        if let Some(refused) = self.for_good.get() {
            return Err(refused.clone());
        }
        // Most ranges share one disk, and their shards give each other work, so one full range stops all.
        self.disks().refusing.values().next().map_or(Ok(()), |refusing| Err(refusing.refused.clone()))
    }

    /// Refuses all writes from now on. Returns the reason that was given first.
    pub(in crate::service) fn refuse_for_good(&self, refused: Tier1Error) -> Tier1Error {
        self.for_good.get_or_init(|| refused).clone()
    }

    /// Notes that the disk of a range is full.
    pub(in crate::service) fn note_full_disk(&self, range: RangeId, refused: Tier1Error) {
        self.disks().refusing.insert(range, FullDisk { since: Instant::now(), refused });
    }

    /// Notes why a range whose disk was full cannot continue yet. Returns the reason for callers, if it is a
    /// new one.
    pub(in crate::service) fn note_refusal(&self, range: RangeId, error: &StoreError) -> Option<Tier1Error> {
        let mut disks = self.disks();
        let refusing = disks.refusing.get_mut(&range)?;
        let refused = match error {
            StoreError::Busy => Tier1Error::Unavailable(format!(
                "the disk has room again; range {range} waits for a long read or for rows that are being moved"
            )),
            StoreError::InUse => Tier1Error::Unavailable(format!(
                "the disk has room again; range {range} waits for another process that uses its files"
            )),
            error if matches!(error.class(), ErrorClass::DiskFull | ErrorClass::Damage) => {
                error.clone().into()
            }
            // The message of the operating system names files of the server, so callers do not get it.
            _ => Tier1Error::Unavailable(format!(
                "cannot reopen range {range} after its disk was full; the server tries again, and its log says why"
            )),
        };
        (refusing.refused != refused).then(|| {
            refusing.refused = refused.clone();
            refused
        })
    }

    /// Notes that a range continues. Returns how long it was stopped, or `None` if it was not.
    pub(in crate::service) fn note_recovery(&self, range: RangeId) -> Option<Duration> {
        let mut disks = self.disks();
        let refusing = disks.refusing.remove(&range)?;
        *disks.recoveries.entry(range).or_default() += 1;
        Some(refusing.since.elapsed())
    }

    /// Forgets a range that this process no longer owns.
    pub(in crate::service) fn forget(&self, range: RangeId) {
        self.disks().refusing.remove(&range);
    }

    /// Whether the disk of a range is full, and how often the range has continued after it was.
    pub(in crate::service) fn disk_state(&self, range: RangeId) -> (bool, u64) {
        let disks = self.disks();
        let is_full =
            disks.refusing.get(&range).is_some_and(|of| matches!(of.refused, Tier1Error::DiskFull(_)));
        (is_full, disks.recoveries.get(&range).copied().unwrap_or_default())
    }

    /// Takes the turn to open a range anew. `None` if another range has it.
    ///
    /// Ranges are opened one after another, so that each sees the room that the others have left. Most ranges
    /// share a file system.
    pub(in crate::service) fn try_reopening_turn(&self) -> Option<MutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn disks(&self) -> MutexGuard<'_, DiskStates> {
        self.disks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_accepted_again_when_every_range_recovers_but_never_after_another_failure() {
        let refusals = Refusals::default();
        let full = |why: &str| Tier1Error::DiskFull(why.to_owned());
        let (zero, one) = (RangeId(0), RangeId(1));
        refusals.note_full_disk(one, full("one"));
        refusals.note_full_disk(zero, full("zero"));
        assert_eq!((refusals.disk_state(zero), refusals.check()), ((true, 0), Err(full("zero"))));
        assert!(refusals.note_recovery(zero).is_some());
        assert_eq!((refusals.disk_state(zero), refusals.check()), ((false, 1), Err(full("one"))));
        assert!(refusals.note_recovery(one).is_some() && refusals.note_recovery(one).is_none());
        assert_eq!((refusals.check(), refusals.disk_state(one)), (Ok(()), (false, 1)));
        let failed = Tier1Error::ReadOnly("broken".to_owned());
        assert_eq!(refusals.refuse_for_good(failed.clone()), failed);
        assert_eq!(refusals.refuse_for_good(full("later")), failed);
        assert_eq!(refusals.check(), Err(failed));
    }

    #[test]
    fn callers_get_the_present_reason_why_a_range_cannot_continue() {
        let (refusals, range) = (Refusals::default(), RangeId(3));
        let engine = || StoreError::Engine("cannot read /somewhere".to_owned());
        assert_eq!(refusals.note_refusal(range, &engine()), None, "the disk of the range was not full");
        refusals.note_full_disk(range, Tier1Error::DiskFull("no room".to_owned()));
        for (error, waits) in [(StoreError::Busy, "a long read"), (StoreError::InUse, "another process")] {
            assert!(matches!(refusals.note_refusal(range, &error), Some(Tier1Error::Unavailable(why))
                if why.contains("range 3") && why.contains(waits)));
            assert_eq!(refusals.note_refusal(range, &error), None, "the reason is not new");
        }
        assert!(matches!(refusals.note_refusal(range, &engine()), Some(Tier1Error::Unavailable(why))
            if why.contains("range 3") && !why.contains("somewhere")));
        assert_eq!(refusals.note_refusal(range, &engine()), None, "the reason is not new");
        assert!(!refusals.disk_state(range).0 && matches!(refusals.check(), Err(Tier1Error::Unavailable(_))));
        let damaged = StoreError::Damaged { key: "00".to_owned(), reason: "it is short" };
        assert!(matches!(refusals.note_refusal(range, &damaged), Some(Tier1Error::Damaged(_))));
        assert!(matches!(refusals.note_refusal(range, &StoreError::DiskFull), Some(Tier1Error::DiskFull(_))));
        assert!(refusals.disk_state(range).0 && refusals.note_recovery(range).is_some());
    }

    #[test]
    fn one_range_is_reopened_at_a_time() {
        let refusals = Refusals::default();
        let turn = refusals.try_reopening_turn();
        assert!(turn.is_some() && refusals.try_reopening_turn().is_none());
        drop(turn);
        assert!(refusals.try_reopening_turn().is_some());
    }
}
