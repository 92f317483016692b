//! Erasure: removing unused signatures from the files soon after a purge, and not only when space is needed.
//!
//! A purge removes rows. Afterwards no row names the page's signature, and no row named those of its earlier
//! contents. These may be in any segment, so an erasure rewrites every segment that has unused signatures. A
//! replica that follows a shared log notices a purge by the page's row.
//!
//! Invariant: from before the rows are deleted until the signatures have left the files, the checkpoint says
//! that an erasure is owed. A start continues an owed erasure.

use std::time::{Duration, Instant};

use super::checkpoint::Checkpoint;
use super::{Database, Inner, lock};
use crate::rows::key::RowKind;
use crate::rows::record::is_purged_page;
use crate::storage::store::{StoreError, Write};

/// Minimum time between two erasures.
const PAUSE_MIN: Duration = Duration::from_secs(60);

/// Minimum time until the next erasure, as a multiple of the time that the last one took. An erasure may take
/// long, because it rewrites all segments with unused signatures.
const PAUSE_FACTOR: u32 = 10;

/// Time from the last copied purge to the erasure on this replica.
///
/// The shared log may lose its last minutes when its servers lose power. Then it gets these records back from
/// a replica, which needs all their signatures, including those that no row names any more. So the replicas
/// must not erase within the same minutes. nats-server writes to its disk at least every two minutes. If the
/// erasures of an owner take so long that it pauses longer than this time, the guarantee does not hold.
const COPIED_DELAY: Duration = Duration::from_secs(180);

/// Maximum time from the first copied purge to the erasure. If pages are purged all the time, a replica may
/// erase together with the owner once in this time.
const COPIED_DELAY_MAX: Duration = Duration::from_secs(3_600);

/// State of the erasure of a database.
pub(super) struct Erasure {
    /// Number of purges whose rows may not all be deleted yet.
    purges_under_way: u32,
    /// Whether the checkpoint says that an erasure is owed.
    noted: bool,
    /// Whether a purge of this node has deleted rows since the last erasure began.
    owed: bool,
    /// Times of the first and the last copied purge since the last erasure began.
    copied: Option<(Instant, Instant)>,
    /// Earliest time of the next erasure.
    next: Option<Instant>,
}

impl Erasure {
    /// Creates the state at a start. A replica owes the erasure as for a copied purge: it may have lost power
    /// together with the servers of the log, which may need its signatures.
    pub(super) fn new(noted: bool, is_replica: bool) -> Self {
        let mut this = Self { purges_under_way: 0, noted, owed: false, copied: None, next: None };
        if noted {
            this.note_purged_rows(Instant::now(), is_replica);
        }
        this
    }

    fn note_purged_rows(&mut self, now: Instant, are_copied: bool) {
        if are_copied {
            self.copied = Some((self.copied.map_or(now, |(first, _)| first), now));
        } else {
            self.owed = true;
        }
    }

    /// Returns whether an erasure should begin now.
    fn is_due(&self, now: Instant) -> bool {
        let is_late =
            |(first, last): (Instant, Instant)| now >= (last + COPIED_DELAY).min(first + COPIED_DELAY_MAX);
        let may_begin = self.next.is_none_or(|next| now >= next);
        may_begin && (self.owed || self.copied.is_some_and(is_late))
    }

    /// Ends the pause before the next erasure.
    #[cfg(test)]
    pub(super) fn end_pause(&mut self) {
        self.next = None;
        self.owed |= self.copied.take().is_some();
    }

    /// Leaves the erasure to the next start.
    pub(super) fn leave_to_next_start(&mut self) {
        (self.owed, self.copied) = (false, None);
    }
}

/// A purge that is under way. Dropping this makes an erasure owed.
pub(super) struct Purge<'i> {
    inner: &'i Inner,
    /// Whether another node made the purge.
    is_copied: bool,
}

impl Drop for Purge<'_> {
    fn drop(&mut self) {
        let mut erasure = lock(&self.inner.erasure);
        erasure.purges_under_way -= 1;
        erasure.note_purged_rows(Instant::now(), self.is_copied);
    }
}

/// Returns whether a row is the record of a purged page. A damaged row counts as not purged; a reader that
/// needs the row reports the damage.
fn is_purged(key: &[u8], row: Option<&[u8]>) -> bool {
    row.is_some_and(|row| is_purged_page(key, row))
}

impl Database {
    /// Runs `work`, which deletes rows. Signatures that are unused afterwards leave the files within some
    /// minutes, even if the process is killed.
    ///
    /// # Errors
    /// Fails without running `work` if the owed erasure cannot be recorded.
    pub(crate) fn purge<T>(&self, work: impl FnOnce() -> T) -> Result<T, StoreError> {
        let current = self.current()?;
        let _purge = current.inner.begin_purge()?;
        Ok(work())
    }
}

impl Inner {
    pub(super) fn begin_purge(&self) -> Result<Purge<'_>, StoreError> {
        self.begin_purge_of(false)
    }

    /// Like [`begin_purge`](Self::begin_purge), but only if these rows purge a page. Another node may have
    /// written the rows.
    pub(super) fn begin_copied_purge(&self, rows: &[Write]) -> Result<Option<Purge<'_>>, StoreError> {
        for (key, row) in rows.iter().filter(|(key, _)| RowKind::Page.is_of(key)) {
            // A row that was already purged needs no other erasure.
            if is_purged(key, row.as_deref()) && !is_purged(key, self.row(key, false)?.as_deref()) {
                return self.begin_purge_of(true).map(Some);
            }
        }
        Ok(None)
    }

    fn begin_purge_of(&self, is_copied: bool) -> Result<Purge<'_>, StoreError> {
        let is_noted = {
            let mut erasure = lock(&self.erasure);
            erasure.purges_under_way += 1;
            erasure.noted
        };
        let purge = Purge { inner: self, is_copied };
        // The record stays while a purge is under way.
        if !is_noted {
            self.note_erasure(true)?;
            lock(&self.erasure).noted = true;
        }
        Ok(purge)
    }

    /// Erases unused signatures if an erasure is owed and the pause is over.
    pub(super) fn erase_if_owed(&self) -> Result<(), StoreError> {
        let begin = Instant::now();
        {
            let mut erasure = lock(&self.erasure);
            if !erasure.is_due(begin) {
                return Ok(());
            }
            (erasure.owed, erasure.copied) = (false, None);
        }
        let erased = self.erase();
        let mut erasure = lock(&self.erasure);
        erasure.next = Some(Instant::now() + PAUSE_MIN.max(begin.elapsed() * PAUSE_FACTOR));
        if erased.is_err() {
            erasure.owed = true;
        }
        erased?;
        if erasure.owed || erasure.copied.is_some() || erasure.purges_under_way > 0 {
            return Ok(());
        }
        // A purge that begins now waits for this lock, and records the erasure again.
        erasure.noted = false;
        self.note_erasure(false)
    }

    fn erase(&self) -> Result<(), StoreError> {
        // Start a new segment only if needed. Otherwise there would be many small segments.
        if self.compact(100)? {
            {
                let _commits = lock(&self.commits);
                self.signatures.begin_segment()?;
            }
            self.compact(100)?;
        }
        self.signatures.sync_removed()?;
        if lock(&self.moving).replaced.is_empty() {
            return Ok(());
        }
        Err(StoreError::Engine("cannot remove replaced files of signatures".to_owned()))
    }

    /// Records in the checkpoint whether an erasure is owed. The change is on disk on return.
    fn note_erasure(&self, erasing: bool) -> Result<(), StoreError> {
        let mut moving = lock(&self.moving);
        if moving.checkpoint.erasing != erasing {
            let checkpoint = Checkpoint { erasing, ..moving.checkpoint.clone() };
            self.rows.commit(vec![checkpoint.write()?])?;
            self.rows.flush()?;
            moving.checkpoint = checkpoint;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_erase_some_minutes_after_the_last_purge_of_the_owner() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let none = || Erasure::new(false, true);
        let mut erasure = none();
        erasure.note_purged_rows(at(0), true);
        erasure.note_purged_rows(at(179), true);
        // At this time the owner erases what the second purge has left.
        assert!(!erasure.is_due(at(180)) && !erasure.is_due(at(358)));
        assert!(erasure.is_due(at(359)));
        // If purges never stop, the erasure waits for an hour.
        let mut erasure = none();
        let purges = (0..).step_by(100).take_while(|second| !erasure_after(&mut erasure, at(*second)));
        assert_eq!(purges.count(), 36);
        // A purge of this node does not wait.
        let mut erasure = none();
        erasure.note_purged_rows(at(0), true);
        erasure.note_purged_rows(at(1), false);
        erasure.note_purged_rows(at(2), true);
        assert!(erasure.is_due(at(2)));
    }

    /// Records another copied purge. Returns whether an erasure is due.
    fn erasure_after(erasure: &mut Erasure, now: Instant) -> bool {
        erasure.note_purged_rows(now, true);
        erasure.is_due(now)
    }
}
