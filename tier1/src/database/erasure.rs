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
use crate::record::{PageRecord, State, decode};
use crate::store::{StoreError, Write};

/// The least time from an erasure to the next.
const PAUSE: Duration = Duration::from_secs(60);

/// All segments with unused bytes are written anew, so an erasure may take long. The next waits so many times as long.
const REST: u32 = 10;

/// A purge of another node is carried out so much later. A shared log that has lost its last minutes with the power of its
/// servers gets them back from a replica that has all signatures of these minutes, also those that no row names any more, so
/// the replicas do not erase within the same ones. (nats-server writes to its disk every two minutes at least.)
const LATER: Duration = Duration::from_secs(180);

/// What is to be erased.
pub(super) struct Erasure {
    /// Purges whose rows may not be gone yet.
    under_way: u32,
    /// The position says that an erasure is owed.
    noted: bool,
    /// Rows have gone since the last erasure began: the next is to begin then.
    owed: Option<Instant>,
    /// Before that it may not.
    next: Option<Instant>,
}

impl Erasure {
    /// At a start. A replica may have lost its power together with the servers of its log, which get from it what they have lost.
    pub(super) fn new(noted: bool, is_replica: bool) -> Self {
        let begin = Instant::now() + if is_replica { LATER } else { Duration::ZERO };
        Self { under_way: 0, noted, owed: noted.then_some(begin), next: None }
    }

    /// The next may begin at once.
    #[cfg(test)]
    pub(super) fn forget_pause(&mut self) {
        self.next = None;
        self.owed = self.owed.map(|_| Instant::now());
    }

    /// It is left to the next start.
    pub(super) fn wait(&mut self) {
        self.owed = None;
    }
}

/// A purge; when it ends, an erasure is owed.
pub(super) struct Purge<'i> {
    inner: &'i Inner,
    /// The time from then to the erasure.
    pause: Duration,
}

impl Drop for Purge<'_> {
    fn drop(&mut self) {
        let begin = Instant::now() + self.pause;
        let mut erasure = lock(&self.inner.erasure);
        erasure.under_way -= 1;
        erasure.owed = Some(erasure.owed.map_or(begin, |owed| owed.min(begin)));
    }
}

/// Whether a row is that of a page that was purged. One that is damaged is found to be so by whoever needs it.
fn is_purged(key: &[u8], row: Option<&[u8]>) -> bool {
    let record = row.and_then(|row| decode::<PageRecord>(key, row).ok());
    record.is_some_and(|record| record.state == State::Purged)
}

impl Database {
    /// Removes rows by `work`. Signatures that are not used after it leave the files within some minutes, also if the
    /// process is killed.
    ///
    /// # Errors
    /// When it cannot be noted that they have to. Nothing is done then.
    pub(crate) fn purge<T>(&self, work: impl FnOnce() -> T) -> Result<T, StoreError> {
        let _purge = self.inner.begin_purge()?;
        Ok(work())
    }
}

impl Inner {
    pub(super) fn begin_purge(&self) -> Result<Purge<'_>, StoreError> {
        self.begin_purge_of(Duration::ZERO)
    }

    /// The same where these rows, which another node may have written, purge a page.
    pub(super) fn begin_copied_purge(&self, rows: &[Write]) -> Result<Option<Purge<'_>>, StoreError> {
        for (key, row) in rows.iter().filter(|(key, _)| Kind::Page.is_of(key)) {
            // It stays purged when its row is written again.
            if is_purged(key, row.as_deref()) && !is_purged(key, self.row(key, false)?.as_deref()) {
                return self.begin_purge_of(LATER).map(Some);
            }
        }
        Ok(None)
    }

    fn begin_purge_of(&self, pause: Duration) -> Result<Purge<'_>, StoreError> {
        let is_noted = {
            let mut erasure = lock(&self.erasure);
            erasure.under_way += 1;
            erasure.noted
        };
        let purge = Purge { inner: self, pause };
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
            let is_due = erasure.owed.is_some_and(|owed| begin >= owed);
            if !is_due || erasure.next.is_some_and(|next| begin < next) {
                return Ok(());
            }
            erasure.owed = None;
        }
        let erased = self.erase();
        let mut erasure = lock(&self.erasure);
        erasure.next = Some(Instant::now() + PAUSE.max(begin.elapsed() * REST));
        if erased.is_err() {
            erasure.owed = Some(begin);
        }
        erased?;
        if erasure.owed.is_some() || erasure.under_way > 0 {
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
