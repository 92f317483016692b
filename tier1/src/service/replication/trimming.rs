//! Decides which entries of its log the owner of a range trims.
//!
//! An entry may go when two replicas, and all others that are heard of, have it on their disks. It stays for
//! a window all the same, so that a node that was away reads on instead of copying the range. The window
//! shrinks as the log fills.

use std::time::{Duration, Instant};

use doppel_protocol::beats::{DEAD_AFTER, ReportedReplica};
use doppel_shared_log::{Extent, LogError, Sequence};

use super::history::ValueHistory;
use super::{KeeperState, KeptReplica, ReplicatedRange, lock};
use crate::replica::Replica;

/// Time between two checks.
const PAUSE: Duration = Duration::from_secs(5);

/// How long the log is kept for a node that copies the range, after its last beat.
const COPIES: Duration = Duration::from_secs(60);

/// How far another replica is.
#[derive(Debug, Clone, Copy)]
pub(super) struct OtherReplica {
    /// Sequence up to which the replica has the log on its disk.
    pub(super) has: u64,
    /// Sequence after which the replica will read the log.
    pub(super) needs: u64,
}

/// When the log was trimmed last, and the end of the log over time.
#[derive(Debug, Default)]
pub(super) struct Trimming {
    marks: ValueHistory<Sequence>,
    looked: Option<Instant>,
}

impl Trimming {
    /// Records the present end of the log.
    pub(super) fn mark(&mut self, now: Instant, window: Duration, end: Sequence) {
        self.marks.record(now, window, end);
    }

    /// Trims the log of an owner, if the last check was some time ago. `others` are the replicas that are
    /// heard of.
    pub(super) fn trim(
        &mut self,
        now: Instant,
        window: Duration,
        replica: &Replica,
        others: impl FnOnce() -> Vec<OtherReplica>,
    ) -> Result<(), LogError> {
        if self.looked.is_some_and(|looked| now.saturating_duration_since(looked) < PAUSE) {
            return Ok(());
        }
        self.looked = Some(now);
        let before = self.marks.before(now, window);
        let (own, extent) = (replica.sequence(), replica.extent()?);
        match trim_through(extent, own, &others(), before) {
            Some(through) => {
                tracing::debug!(
                    range = replica.range().0,
                    through = through.0,
                    bytes = extent.bytes,
                    "trimming the log"
                );
                replica.trim(through)
            }
            None => Ok(()),
        }
    }
}

/// The last entry to trim. `before` is the end of the log before the window.
fn trim_through(
    extent: Extent,
    own: Sequence,
    others: &[OtherReplica],
    before: Option<Sequence>,
) -> Option<Sequence> {
    let second = others.iter().map(|other| other.has).max()?.min(own.0);
    // A replica whose next entry is gone already cannot read on, whatever the log keeps.
    let needs = others.iter().map(|other| other.needs).filter(|needs| *needs >= extent.trimmed.0);
    let last = needs.min().unwrap_or(own.0).min(second);
    let is_filled = |quarters| extent.bytes_max.is_some_and(|max| extent.bytes >= max / 4 * quarters);
    let through = match before {
        _ if is_filled(3) => second,
        _ if is_filled(2) => last,
        Some(before) => last.min(before.0),
        None => return None,
    };
    // The last entry of each replica stays. It shows the replica that this is the log that it has copied.
    let through = through.saturating_sub(1);
    (through > extent.trimmed.0).then_some(Sequence(through))
}

impl KeeperState {
    /// Trims the log of a range that this node owns.
    pub(super) fn trim(&self, replicated: &ReplicatedRange, kept: &KeptReplica, replica: &Replica) {
        let (now, window) = (Instant::now(), self.replication.log_window);
        // A copy that is under way is not lost because one beat is.
        let is_there = |other: &ReportedReplica| {
            other.age < if other.claim.sequence < other.claim.needs { COPIES } else { DEAD_AFTER }
        };
        let others = || {
            let heard = self.replication.membership.replicas(replicated.range, now);
            let others = heard.into_iter().filter(|other| other.node != self.replication.node);
            others
                .filter(is_there)
                .map(|other| OtherReplica { has: other.claim.sequence, needs: other.claim.needs })
                .collect()
        };
        if let Err(error) = lock(&kept.trimming).trim(now, window, replica, others) {
            tracing::debug!(%error, range = replicated.range.0, "cannot trim the log");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(trimmed: u64, bytes: u64) -> Extent {
        let (trimmed, end) = (Sequence(trimmed), Sequence(100));
        Extent { trimmed, end, bytes, bytes_max: Some(1_000) }
    }

    #[test]
    fn entries_are_trimmed_after_the_window_once_all_live_replicas_and_two_have_them() {
        let at = |extent, others: &[u64], before: Option<u64>| {
            let others: Vec<OtherReplica> =
                others.iter().map(|at| OtherReplica { has: *at, needs: *at }).collect();
            trim_through(extent, Sequence(90), &others, before.map(Sequence)).map(|through| through.0 + 1)
        };
        assert_eq!(at(extent(10, 100), &[80, 70], Some(50)), Some(50));
        assert_eq!(at(extent(10, 100), &[80, 40], Some(50)), Some(40));
        assert_eq!(at(extent(10, 100), &[80, 70], None), None, "the window has not passed");
        assert_eq!(at(extent(10, 100), &[80, 70], Some(10)), None, "the entries are trimmed already");
        // Without another replica there is no second copy.
        assert_eq!(at(extent(10, 100), &[], Some(50)), None);
        assert_eq!(at(extent(10, 999), &[], Some(50)), None);
        // A replica that has to copy the range anyway delays nothing, but it is no second copy.
        assert_eq!(at(extent(10, 100), &[80, 9], Some(50)), Some(50));
        assert_eq!(at(extent(10, 999), &[9], Some(50)), None);
        // A replica that copies is no second copy, and the entries that it will read stay.
        let copying = |needs| OtherReplica { has: 0, needs };
        let with = |others: &[OtherReplica], bytes| {
            trim_through(extent(10, bytes), Sequence(90), others, Some(Sequence(50)))
                .map(|through| through.0 + 1)
        };
        assert_eq!(with(&[copying(80)], 999), None);
        assert_eq!(with(&[copying(40), OtherReplica { has: 70, needs: 70 }], 100), Some(40));
        assert_eq!(with(&[copying(85), OtherReplica { has: 80, needs: 80 }], 999), Some(80));
        // The fuller the log, the less it keeps for late replicas.
        assert_eq!(at(extent(10, 500), &[80, 70], Some(50)), Some(70));
        assert_eq!(at(extent(10, 750), &[80, 70], None), Some(80));
        assert_eq!(at(extent(10, 750), &[95, 70], None), Some(90));
        let unlimited = Extent { bytes_max: None, ..extent(10, u64::MAX) };
        assert_eq!(at(unlimited, &[80, 70], Some(50)), Some(50));
    }
}
