//! Rows that were asked for lately, in front of a store.
//!
//! sled serves no read while it applies a batch, so without this a question about a page would wait for the commit
//! under way. Rows that are asked for again come from memory here, and so do those that are being written.
//!
//! Invariants:
//! - a reader that has seen one row of a commit sees all of them (a range of rows is read from the store itself);
//! - a row is kept only as the last commit left it: what was read before a commit is not kept after it.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};

use quick_cache::Weighter;
use quick_cache::sync::{Cache, GuardResult};

use super::{Store, StoreError, Write};

/// Bytes of keys and rows that are kept, of all stores together.
const BYTES: u64 = 32 << 20;

/// About as many rows are expected in that, for the size of its tables.
const ROWS: usize = 64_000;

/// A row; none where there is no such row.
type Row = Option<Arc<[u8]>>;

/// Rows by key.
type Rows = HashMap<Vec<u8>, Row>;

/// A store and what was lately read from it.
pub(crate) struct Recent {
    store: Arc<dyn Store>,
    rows: Cache<Vec<u8>, Row, Bytes>,
    /// The rows of the commit that is being applied.
    under_way: RwLock<Option<Arc<Rows>>>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Vec<u8>, Row> for Bytes {
    fn weight(&self, key: &Vec<u8>, row: &Row) -> u64 {
        (key.len() + row.as_ref().map_or(0, |row| row.len()) + size_of::<(Vec<u8>, Row)>()) as u64
    }
}

impl Recent {
    /// One of so many that share the memory there is for this.
    pub(crate) fn new(store: Arc<dyn Store>, stores: u16) -> Self {
        let stores = stores.max(1);
        let (rows, bytes) = (ROWS / usize::from(stores), BYTES / u64::from(stores));
        Self { store, rows: Cache::with_weighter(rows, bytes, Bytes), under_way: RwLock::new(None) }
    }

    fn set_under_way(&self, rows: Option<Arc<Rows>>) {
        *self.under_way.write().unwrap_or_else(PoisonError::into_inner) = rows;
    }
}

impl Store for Recent {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let under_way = self.under_way.read().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(row) = under_way.as_ref().and_then(|rows| rows.get(key)) {
            return Ok(row.as_ref().map(|row| row.to_vec()));
        }
        match self.rows.get_value_or_guard(key, None) {
            GuardResult::Value(row) => Ok(row.map(|row| row.to_vec())),
            GuardResult::Guard(place) => {
                let row = self.store.get(key)?;
                // The place is gone when the row was written meanwhile; then this is not kept.
                let _ = place.insert(row.as_deref().map(Arc::from));
                Ok(row)
            }
            // Without a limit it does not happen.
            GuardResult::Timeout => self.store.get(key),
        }
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.store.range(from, to, each)
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let rows: Rows =
            writes.iter().map(|(key, row)| (key.clone(), row.as_deref().map(Arc::from))).collect();
        let rows = Arc::new(rows);
        self.set_under_way(Some(Arc::clone(&rows)));
        let committed = self.store.commit(writes);
        if committed.is_err() {
            // Some of them may be there, or none; nothing more is written.
            self.rows.clear();
            self.set_under_way(None);
            return committed;
        }
        for (key, row) in &*rows {
            // Rows that are asked for stay; a reader on its way is kept from leaving what it has read.
            if self.rows.peek(key).is_some() {
                self.rows.insert(key.clone(), row.clone());
            } else {
                self.rows.remove(key);
            }
        }
        self.set_under_way(None);
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.store.flush()
    }

    fn bytes_on_disk(&self) -> u64 {
        self.store.bytes_on_disk()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use crate::store::{Intercept, Intercepted, Memory};

    fn row(key: u8, value: Option<u64>) -> Write {
        (vec![key], value.map(|value| value.to_be_bytes().to_vec()))
    }

    fn value(store: &dyn Store, key: u8) -> u64 {
        store.get(&[key]).unwrap().map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
    }

    #[test]
    fn rows_are_as_the_last_commit_left_them() {
        let recent = Recent::new(Arc::new(Memory::default()), 1);
        assert_eq!(recent.get(&[1]).unwrap(), None);
        for turn in 1..20 {
            recent.commit(vec![row(1, Some(turn)), row(2, (turn % 2 == 0).then_some(turn))]).unwrap();
            assert_eq!(value(&recent, 1), turn);
            assert_eq!(recent.get(&[2]).unwrap().is_some(), turn % 2 == 0);
        }
    }

    #[test]
    fn a_reader_never_goes_back() {
        let recent = Recent::new(Arc::new(Memory::default()), 1);
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for first in 0..4u8 {
                let (recent, done) = (&recent, &done);
                scope.spawn(move || {
                    let mut seen = 0;
                    while !done.load(Ordering::Relaxed) {
                        // All rows have the number of their commit.
                        for key in (0..8).map(|n| (first + n) % 8) {
                            let now = value(recent, key);
                            assert!(now >= seen, "row {key}: {now} after {seen}");
                            seen = now;
                        }
                    }
                });
            }
            for turn in 1..20_000 {
                recent.commit((0..8).map(|key| row(key, Some(turn))).collect()).unwrap();
            }
            done.store(true, Ordering::Relaxed);
        });
        assert_eq!(value(&recent, 3), 19_999);
    }

    /// Commits fail after a while.
    impl Intercept for AtomicBool {
        fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
            if self.load(Ordering::Relaxed) { Err(StoreError::DiskFull) } else { rows.commit(writes) }
        }
    }

    #[test]
    fn a_failed_commit_is_reported() {
        let store = Arc::new(Intercepted::new(AtomicBool::new(false)));
        let recent = Recent::new(Arc::clone(&store) as Arc<dyn Store>, 1);
        recent.commit(vec![row(1, Some(1))]).unwrap();
        store.by.store(true, Ordering::Relaxed);
        assert!(matches!(recent.commit(vec![row(1, Some(2))]), Err(StoreError::DiskFull)));
        assert_eq!(value(&recent, 1), 1);
    }
}
