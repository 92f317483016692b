//! A cache of rows that were read recently.
//!
//! sled serves no read while it applies a batch. Without the cache, a question about a page would wait for
//! the batch under way.
//!
//! Invariant: the cache never keeps a row that was read before the row was forgotten. So if a writer first
//! writes a row and then forgets it here, no later reader gets the old row.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::{Cache, GuardResult};

use super::{Store, StoreError};

/// Maximum size of the cached keys and rows in bytes, over all stores of a process.
const BYTES: u64 = 32 << 20;

/// Expected number of rows in all caches, from which the sizes of the tables follow.
const ROWS: usize = 64_000;

/// A cached row. `None` means that the store has no such row.
type CachedRow = Option<Arc<[u8]>>;

/// Rows that were recently read from a store.
pub(crate) struct RowCache {
    rows: Cache<Vec<u8>, CachedRow, RowWeigher>,
}

#[derive(Clone)]
struct RowWeigher;

impl Weighter<Vec<u8>, CachedRow> for RowWeigher {
    fn weight(&self, key: &Vec<u8>, row: &CachedRow) -> u64 {
        (key.len() + row.as_ref().map_or(0, |row| row.len()) + size_of::<(Vec<u8>, CachedRow)>()) as u64
    }
}

impl RowCache {
    /// Creates one of `stores` caches that share a memory budget.
    pub(crate) fn new(stores: u16) -> Self {
        let stores = stores.max(1);
        let (rows, bytes) = (ROWS / usize::from(stores), BYTES / u64::from(stores));
        Self { rows: Cache::with_weighter(rows, bytes, RowWeigher) }
    }

    /// Returns the row of a key, from the cache or from the store.
    ///
    /// # Errors
    /// Fails if the store fails.
    pub(crate) fn get(&self, store: &dyn Store, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.rows.get_value_or_guard(key, None) {
            GuardResult::Value(row) => Ok(row.map(|row| row.to_vec())),
            GuardResult::Guard(placeholder) => {
                let row = store.get(key)?;
                // If the row was forgotten meanwhile, its placeholder is gone, and the cache does not keep
                // the row.
                let _ = placeholder.insert(row.as_deref().map(Arc::from));
                Ok(row)
            }
            // Cannot occur, because the call has no time limit.
            GuardResult::Timeout => store.get(key),
        }
    }

    /// Forgets a row, because the store has another one now.
    pub(crate) fn forget(&self, key: &[u8]) {
        self.rows.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use crate::storage::store::{Memory, Write};

    fn row(key: u8, value: Option<u64>) -> Write {
        (vec![key], value.map(|value| value.to_be_bytes().to_vec()))
    }

    fn value(cache: &RowCache, store: &Memory, key: u8) -> u64 {
        cache.get(store, &[key]).unwrap().map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
    }

    #[test]
    fn a_forgotten_row_is_read_from_the_store_again() {
        let (cache, store) = (RowCache::new(1), Memory::default());
        assert_eq!(cache.get(&store, &[1]).unwrap(), None);
        for turn in 1..20 {
            store.commit(vec![row(1, Some(turn)), row(2, (turn % 2 == 0).then_some(turn))]).unwrap();
            (1..=2).for_each(|key| cache.forget(&[key]));
            assert_eq!(value(&cache, &store, 1), turn);
            assert_eq!(cache.get(&store, &[2]).unwrap().is_some(), turn % 2 == 0);
        }
        store.commit(vec![row(1, Some(99))]).unwrap();
        assert_eq!(value(&cache, &store, 1), 19, "a row that was not forgotten comes from the cache");
    }

    #[test]
    fn a_reader_never_gets_an_older_row_than_before() {
        let (cache, store) = (RowCache::new(1), Memory::default());
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                let (cache, store, done) = (&cache, &store, &done);
                scope.spawn(move || {
                    let mut seen = 0;
                    while !done.load(Ordering::Relaxed) {
                        let now = value(cache, store, 0);
                        assert!(now >= seen, "{now} after {seen}");
                        seen = now;
                    }
                });
            }
            for turn in 1..20_000 {
                store.commit(vec![row(0, Some(turn))]).unwrap();
                cache.forget(&[0]);
                assert_eq!(value(&cache, &store, 0), turn);
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
