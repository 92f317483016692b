//! Erasure: signatures that nobody uses any more leave the files soon, and not only when room is needed.
//!
//! A purge removes rows. Then no row names the page's signature, nor did one name those of its earlier contents, which may
//! be in any segment. So all segments are written anew that have anything unused.
//!
//! Invariant: from before the rows go until the signatures have left the files, the position says that an erasure is owed;
//! a start goes on with it.

use std::time::{Duration, Instant};

use super::position::Applied;
use super::{Database, Inner, lock};
use crate::store::StoreError;

/// The least time from an erasure to the next.
const PAUSE: Duration = Duration::from_secs(60);

/// All segments with unused bytes are written anew, so an erasure may take long. The next waits so many times as long.
const REST: u32 = 10;

/// What is to be erased.
pub(super) struct Erasure {
    /// Purges whose rows may not be gone yet.
    under_way: u32,
    /// Rows have gone since the last erasure began.
    owed: bool,
    /// When the next may begin.
    next: Option<Instant>,
}

impl Erasure {
    /// At a start.
    pub(super) fn new(owed: bool) -> Self {
        Self { under_way: 0, owed, next: None }
    }

    /// The next may begin at once.
    #[cfg(test)]
    pub(super) fn forget_pause(&mut self) {
        self.next = None;
    }

    /// It is left to the next start.
    pub(super) fn wait(&mut self) {
        self.owed = false;
    }
}

/// A purge; when it ends, an erasure is owed.
pub(super) struct Purge<'i>(&'i Inner);

impl Drop for Purge<'_> {
    fn drop(&mut self) {
        let mut erasure = lock(&self.0.erasure);
        erasure.under_way -= 1;
        erasure.owed = true;
    }
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
        lock(&self.erasure).under_way += 1;
        let purge = Purge(self);
        self.note_erasure(true)?;
        Ok(purge)
    }

    /// Erases if it is owed, and the last time was long enough ago.
    pub(super) fn erase_if_owed(&self) -> Result<(), StoreError> {
        let begin = Instant::now();
        {
            let mut erasure = lock(&self.erasure);
            if !erasure.owed || erasure.next.is_some_and(|next| begin < next) {
                return Ok(());
            }
            erasure.owed = false;
        }
        let erased = self.erase();
        let mut erasure = lock(&self.erasure);
        erasure.next = Some(Instant::now() + PAUSE.max(begin.elapsed() * REST));
        erasure.owed |= erased.is_err();
        erased?;
        // A purge that begins now waits here, and notes it again.
        if erasure.owed || erasure.under_way > 0 { Ok(()) } else { self.note_erasure(false) }
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
