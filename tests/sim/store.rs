//! The stores of the ranges: in memory and atomic. What was not flushed is gone after a crash.

use std::sync::{Arc, Mutex};

use doppel_tier1::simulation::{Intercept, Intercepted};
use doppel_tier1::{Joined, Memory, RangeMap, Store, StoreError, Write};

/// The store of one range.
pub(crate) type RangeStore = Intercepted<Flushes>;

/// Flushes at every commit, unless it is lazy.
#[derive(Debug, Default)]
pub(crate) struct Flushes {
    /// What each commit since the last flush has overwritten.
    unflushed: Mutex<Vec<Vec<Write>>>,
    /// Commits to one flush.
    lazy: Option<usize>,
}

impl Flushes {
    pub(crate) fn new(lazy: Option<usize>) -> Self {
        Self { lazy, ..Self::default() }
    }

    /// The range dies: commits that were not flushed are gone.
    pub(crate) fn crash(&self, rows: &Memory) {
        for overwritten in self.unflushed.lock().unwrap().drain(..).rev() {
            rows.commit(overwritten).unwrap();
        }
    }
}

impl Intercept for Flushes {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        if let Some(every) = self.lazy {
            let before = writes.iter().map(|(key, _)| Ok((key.clone(), rows.get(key)?)));
            let mut unflushed = self.unflushed.lock().unwrap();
            unflushed.push(before.collect::<Result<_, StoreError>>()?);
            if unflushed.len() >= every {
                unflushed.clear();
            }
        }
        rows.commit(writes)
    }
}

/// The stores of all ranges.
pub(crate) struct AllStores {
    pub(crate) map: RangeMap,
    pub(crate) stores: Vec<Arc<RangeStore>>,
}

impl AllStores {
    /// As one, to read.
    pub(crate) fn joined(&self) -> Joined<'_> {
        Joined::new(self.map, self.stores.iter().map(|store| &**store))
    }
}
