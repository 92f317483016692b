//! A store of rows that loses commits as sled does. Flushed commits survive a crash. Of the later commits,
//! the first ones may survive.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use doppel_model::Random;

use crate::storage::store::{Memory, Store, StoreError, Write};

/// A store of rows in memory, with the commits that a crash may lose.
#[derive(Default)]
pub(in crate::storage::database) struct Volatile {
    now: Memory,
    flushed: Memory,
    /// Commits since the last flush.
    since: Mutex<Vec<Vec<Write>>>,
    /// Key of every row that was ever written.
    written: Mutex<Vec<Vec<u8>>>,
    /// Commits wait while a test has this locked.
    pub(in crate::storage::database) gate: Mutex<()>,
    /// Number of commits that have arrived.
    pub(in crate::storage::database) came: AtomicUsize,
}

impl Volatile {
    /// Returns the store after a crash: the flushed commits and the first of the later ones.
    pub(in crate::storage::database) fn crash(&self, random: &mut Random) -> Self {
        let left = Self::default();
        let since = self.since.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = random.below(since.len() as u64 + 1) as usize;
        let mut rows = Vec::new();
        self.flushed
            .range(&[], &[0xff; 16], &mut |key, row| {
                rows.push((key.to_vec(), Some(row.to_vec())));
                true
            })
            .expect("rows in memory can be read");
        for writes in [vec![rows], since[..kept].to_vec()].concat() {
            for rows in [&left.now, &left.flushed] {
                rows.commit(writes.clone()).expect("rows in memory can be written");
            }
        }
        left
    }

    /// Returns how often rows with such keys were written.
    #[cfg(test)]
    pub(in crate::storage::database) fn writes(&self, of: impl Fn(&[u8]) -> bool) -> usize {
        self.written.lock().unwrap_or_else(PoisonError::into_inner).iter().filter(|key| of(key)).count()
    }
}

impl Store for Volatile {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.now.get(key)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.now.range(from, to, each)
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.came.fetch_add(1, Ordering::SeqCst);
        let _passed = self.gate.lock().unwrap_or_else(PoisonError::into_inner);
        self.written
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(writes.iter().map(|(key, _)| key.clone()));
        self.since.lock().unwrap_or_else(PoisonError::into_inner).push(writes.clone());
        self.now.commit(writes)
    }

    fn flush(&self) -> Result<(), StoreError> {
        for writes in self.since.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            self.flushed.commit(writes)?;
        }
        Ok(())
    }
}
