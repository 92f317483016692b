//! Erasure: signatures that nobody uses any more leave the files soon, and not only when room is needed.
//!
//! A purge removes rows. Then no row names the page's signature, nor did one name those of its earlier contents, which may
//! be in any segment. So all segments are written anew that have anything unused. Whoever follows a shared log sees a purge by
//! the page's row.
//!
//! Invariant: from before the rows go until the signatures have left the files, the position says that an erasure is owed;
//! a start goes on with it.

use std::time::{Duration, Instant};

use super::position::Applied;
use super::{Database, Inner, lock};
use crate::key::Kind;
use crate::record::is_purged_page;
use crate::store::{StoreError, Write};

/// The least time from an erasure to the next.
const PAUSE: Duration = Duration::from_secs(60);

/// All segments with unused bytes are written anew, so an erasure may take long. The next waits so many times as long.
const REST: u32 = 10;

/// Purges of other nodes are carried out so much later than the last of them. A shared log that has lost its last minutes with
/// the power of its servers gets them back from a replica that has all signatures of these minutes, also those that no row names
/// any more, so the replicas do not erase within the same ones. (nats-server writes to its disk every two minutes at least.) It
/// does not hold where the erasures of an owner take so long that it rests until then before the next.
const LATER: Duration = Duration::from_secs(180);

/// But so much later than the first of them at most: where pages are purged all the time, a replica may erase together with the
/// owner once in so long.
const LATER_MAX: Duration = Duration::from_secs(3_600);

/// What is to be erased.
pub(super) struct Erasure {
    /// Purges whose rows may not be gone yet.
    under_way: u32,
    /// The position says that an erasure is owed.
    noted: bool,
    /// Rows have gone since the last erasure began.
    owed: bool,
    /// Copied rows have: when the first went, and the last.
    copied: Option<(Instant, Instant)>,
    /// Before that it may not.
    next: Option<Instant>,
}

impl Erasure {
    /// At a start. A replica may have lost its power together with the servers of its log, which get from it what they have lost.
    pub(super) fn new(noted: bool, is_replica: bool) -> Self {
        let mut this = Self { under_way: 0, noted, owed: false, copied: None, next: None };
        if noted {
            this.rows_have_gone(Instant::now(), is_replica);
        }
        this
    }

    fn rows_have_gone(&mut self, now: Instant, are_copied: bool) {
        if are_copied {
            self.copied = Some((self.copied.map_or(now, |(first, _)| first), now));
        } else {
            self.owed = true;
        }
    }

    /// Whether the next is to begin.
    fn is_due(&self, now: Instant) -> bool {
        let is_late = |(first, last): (Instant, Instant)| now >= (last + LATER).min(first + LATER_MAX);
        let may_begin = self.next.is_none_or(|next| now >= next);
        may_begin && (self.owed || self.copied.is_some_and(is_late))
    }

    /// The next may begin at once.
    #[cfg(test)]
    pub(super) fn forget_pause(&mut self) {
        self.next = None;
        self.owed |= self.copied.take().is_some();
    }

    /// It is left to the next start.
    pub(super) fn wait(&mut self) {
        (self.owed, self.copied) = (false, None);
    }
}

/// A purge; when it ends, an erasure is owed.
pub(super) struct Purge<'i> {
    inner: &'i Inner,
    /// Another node's.
    is_copied: bool,
}

impl Drop for Purge<'_> {
    fn drop(&mut self) {
        let mut erasure = lock(&self.inner.erasure);
        erasure.under_way -= 1;
        erasure.rows_have_gone(Instant::now(), self.is_copied);
    }
}

/// Whether a row is that of a page that was purged. One that is damaged is found to be so by whoever needs it.
fn is_purged(key: &[u8], row: Option<&[u8]>) -> bool {
    row.is_some_and(|row| is_purged_page(key, row))
}

impl Database {
    /// Removes rows by `work`. Signatures that are not used after it leave the files within some minutes, also if the
    /// process is killed.
    ///
    /// # Errors
    /// When it cannot be noted that they have to. Nothing is done then.
    pub(crate) fn purge<T>(&self, work: impl FnOnce() -> T) -> Result<T, StoreError> {
        let live = self.live()?;
        let _purge = live.inner.begin_purge()?;
        Ok(work())
    }
}

impl Inner {
    pub(super) fn begin_purge(&self) -> Result<Purge<'_>, StoreError> {
        self.begin_purge_of(false)
    }

    /// The same where these rows, which another node may have written, purge a page.
    pub(super) fn begin_copied_purge(&self, rows: &[Write]) -> Result<Option<Purge<'_>>, StoreError> {
        for (key, row) in rows.iter().filter(|(key, _)| Kind::Page.is_of(key)) {
            // It stays purged when its row is written again.
            if is_purged(key, row.as_deref()) && !is_purged(key, self.row(key, false)?.as_deref()) {
                return self.begin_purge_of(true).map(Some);
            }
        }
        Ok(None)
    }

    fn begin_purge_of(&self, is_copied: bool) -> Result<Purge<'_>, StoreError> {
        let is_noted = {
            let mut erasure = lock(&self.erasure);
            erasure.under_way += 1;
            erasure.noted
        };
        let purge = Purge { inner: self, is_copied };
        // As long as it is under way it stays noted.
        if !is_noted {
            self.note_erasure(true)?;
            lock(&self.erasure).noted = true;
        }
        Ok(purge)
    }

    /// Erases if it is owed, and the last time was long enough ago.
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
        erasure.next = Some(Instant::now() + PAUSE.max(begin.elapsed() * REST));
        if erased.is_err() {
            erasure.owed = true;
        }
        erased?;
        if erasure.owed || erasure.copied.is_some() || erasure.under_way > 0 {
            return Ok(());
        }
        // A purge that begins now waits here, and notes it again.
        erasure.noted = false;
        self.note_erasure(false)
    }

    fn erase(&self) -> Result<(), StoreError> {
        // Segments would be many and small if each erasure began one.
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
        Err(StoreError::Engine("files of signatures cannot be removed".to_owned()))
    }

    /// Does not return before it is on disk.
    fn note_erasure(&self, erasing: bool) -> Result<(), StoreError> {
        let mut moving = lock(&self.moving);
        if moving.applied.erasing != erasing {
            let applied = Applied { erasing, ..moving.applied.clone() };
            self.rows.commit(vec![applied.write()?])?;
            self.rows.flush()?;
            moving.applied = applied;
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
        erasure.rows_have_gone(at(0), true);
        erasure.rows_have_gone(at(179), true);
        // Now the owner erases what the second purge has left.
        assert!(!erasure.is_due(at(180)) && !erasure.is_due(at(358)));
        assert!(erasure.is_due(at(359)));
        // One that never comes to rest waits for an hour.
        let mut erasure = none();
        let purges = (0..).step_by(100).take_while(|second| !erasure_after(&mut erasure, at(*second)));
        assert_eq!(purges.count(), 36);
        // One of its own waits for no copies.
        let mut erasure = none();
        erasure.rows_have_gone(at(0), true);
        erasure.rows_have_gone(at(1), false);
        erasure.rows_have_gone(at(2), true);
        assert!(erasure.is_due(at(2)));
    }

    /// Whether it is due when other rows go.
    fn erasure_after(erasure: &mut Erasure, now: Instant) -> bool {
        erasure.rows_have_gone(now, true);
        erasure.is_due(now)
    }
}
