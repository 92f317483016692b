//! The stores of the ranges: in memory, atomic, and whatever was not flushed is gone after a crash.

use std::sync::{Arc, Mutex};

use doppel_tier1::simulation::shard_of_row;
use doppel_tier1::{Memory, RangeMap, Store, StoreError, Write};

/// The store of one range. It flushes at every commit, unless it is lazy.
#[derive(Debug, Default)]
pub(crate) struct RangeStore {
    memory: Memory,
    /// What each commit since the last flush has overwritten.
    unflushed: Mutex<Vec<Vec<Write>>>,
    /// Commits to one flush.
    lazy: Option<usize>,
}

impl RangeStore {
    pub(crate) fn new(lazy: Option<usize>) -> Self {
        Self { lazy, ..Self::default() }
    }

    /// The machine stops: commits that were not flushed are gone.
    pub(crate) fn crash(&self) {
        for overwritten in self.unflushed.lock().unwrap().drain(..).rev() {
            self.memory.commit(overwritten).unwrap();
        }
    }
}

impl Store for RangeStore {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.memory.get(key)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.memory.range(from, to, each)
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        if let Some(every) = self.lazy {
            let before = writes.iter().map(|(key, _)| Ok((key.clone(), self.memory.get(key)?)));
            let mut unflushed = self.unflushed.lock().unwrap();
            unflushed.push(before.collect::<Result<_, StoreError>>()?);
            if unflushed.len() >= every {
                unflushed.clear();
            }
        }
        self.memory.commit(writes)
    }

    fn bytes_on_disk(&self) -> u64 {
        0
    }
}

/// All stores as one, to read: each row at the range that has its shard.
pub(crate) struct AllStores {
    pub(crate) map: RangeMap,
    pub(crate) stores: Vec<Arc<RangeStore>>,
}

impl AllStores {
    fn of(&self, key: &[u8]) -> &RangeStore {
        let shard = shard_of_row(key).expect("a key names its shard");
        &self.stores[usize::from(self.map.of_shard(shard).0)]
    }
}

impl Store for AllStores {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.of(key).get(key)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.of(from).range(from, to, each)
    }

    fn commit(&self, _: Vec<Write>) -> Result<(), StoreError> {
        Err(StoreError::Engine("the reading side writes nothing".to_owned()))
    }

    fn bytes_on_disk(&self) -> u64 {
        0
    }
}
