//! A store of rows whose commits survive a crash when they were flushed, and some of the later ones otherwise: as sled's.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use doppel_model::Random;

use crate::store::{Memory, Store, StoreError, Write};

/// The store.
#[derive(Default)]
pub(super) struct Volatile {
    now: Memory,
    flushed: Memory,
    /// Commits since the last flush.
    since: Mutex<Vec<Vec<Write>>>,
    /// Every row that was ever written.
    written: Mutex<Vec<Vec<u8>>>,
    /// Commits wait while somebody has it, and how many have come.
    pub(super) gate: Mutex<()>,
    pub(super) came: AtomicUsize,
}

impl Volatile {
    /// What is left after a crash: what was flushed and the first of the commits since.
    pub(super) fn crash(&self, random: &mut Random) -> Self {
        let left = Self::default();
        let since = self.since.lock().unwrap();
        let kept = random.below(since.len() as u64 + 1) as usize;
        let mut rows = Vec::new();
        self.flushed
            .range(&[], &[0xff; 16], &mut |key, row| {
                rows.push((key.to_vec(), Some(row.to_vec())));
                true
            })
            .unwrap();
        for writes in [vec![rows], since[..kept].to_vec()].concat() {
            left.now.commit(writes.clone()).unwrap();
            left.flushed.commit(writes).unwrap();
        }
        left
    }

    /// How often rows of such keys were written.
    pub(super) fn writes(&self, of: impl Fn(&[u8]) -> bool) -> usize {
        self.written.lock().unwrap().iter().filter(|key| of(key)).count()
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
        let _passed = self.gate.lock().unwrap();
        self.written.lock().unwrap().extend(writes.iter().map(|(key, _)| key.clone()));
        self.since.lock().unwrap().push(writes.clone());
        self.now.commit(writes)
    }

    fn flush(&self) -> Result<(), StoreError> {
        for writes in self.since.lock().unwrap().drain(..) {
            self.flushed.commit(writes)?;
        }
        Ok(())
    }
}
