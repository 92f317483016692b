//! Rows that were asked for lately, in front of a store.
//!
//! sled serves no read while it applies a batch, so without this a question about a page would wait for the batch under
//! way. Rows that are asked for again come from memory here.
//!
//! Invariant: what was read before a row was forgotten is not kept after it. So whoever writes a row and then forgets it
//! here leaves no reader with the row before.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::{Cache, GuardResult};

use super::{Store, StoreError};

/// Bytes of keys and rows that are kept, of all stores together.
const BYTES: u64 = 32 << 20;

/// About as many rows are expected in that, for the size of its tables.
const ROWS: usize = 64_000;

/// A row; none where there is no such row.
type Row = Option<Arc<[u8]>>;

/// What was lately read from a store.
pub(crate) struct Recent {
    rows: Cache<Vec<u8>, Row, Bytes>,
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
    pub(crate) fn new(stores: u16) -> Self {
        let stores = stores.max(1);
        let (rows, bytes) = (ROWS / usize::from(stores), BYTES / u64::from(stores));
        Self { rows: Cache::with_weighter(rows, bytes, Bytes) }
    }

    /// The row of a key, from memory or from the store.
    ///
    /// # Errors
    /// When the store fails.
    pub(crate) fn get(&self, store: &dyn Store, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        match self.rows.get_value_or_guard(key, None) {
            GuardResult::Value(row) => Ok(row.map(|row| row.to_vec())),
            GuardResult::Guard(place) => {
                let row = store.get(key)?;
                // The place is gone when the row was forgotten meanwhile; then this is not kept.
                let _ = place.insert(row.as_deref().map(Arc::from));
                Ok(row)
            }
            // Without a limit it does not happen.
            GuardResult::Timeout => store.get(key),
        }
    }

    /// A row is another one now.
    pub(crate) fn forget(&self, key: &[u8]) {
        self.rows.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread;

    use super::*;
    use crate::store::{Memory, Write};

    fn row(key: u8, value: Option<u64>) -> Write {
        (vec![key], value.map(|value| value.to_be_bytes().to_vec()))
    }

    fn value(recent: &Recent, store: &Memory, key: u8) -> u64 {
        recent.get(store, &[key]).unwrap().map_or(0, |bytes| u64::from_be_bytes(bytes.try_into().unwrap()))
    }

    #[test]
    fn rows_are_as_they_were_left() {
        let (recent, store) = (Recent::new(1), Memory::default());
        assert_eq!(recent.get(&store, &[1]).unwrap(), None);
        for turn in 1..20 {
            store.commit(vec![row(1, Some(turn)), row(2, (turn % 2 == 0).then_some(turn))]).unwrap();
            (1..=2).for_each(|key| recent.forget(&[key]));
            assert_eq!(value(&recent, &store, 1), turn);
            assert_eq!(recent.get(&store, &[2]).unwrap().is_some(), turn % 2 == 0);
        }
        store.commit(vec![row(1, Some(99))]).unwrap();
        assert_eq!(value(&recent, &store, 1), 19, "it comes from memory");
    }

    #[test]
    fn a_reader_never_goes_back() {
        let (recent, store) = (Recent::new(1), Memory::default());
        let done = AtomicBool::new(false);
        thread::scope(|scope| {
            for _ in 0..4 {
                let (recent, store, done) = (&recent, &store, &done);
                scope.spawn(move || {
                    let mut seen = 0;
                    while !done.load(Ordering::Relaxed) {
                        let now = value(recent, store, 0);
                        assert!(now >= seen, "{now} after {seen}");
                        seen = now;
                    }
                });
            }
            for turn in 1..20_000 {
                store.commit(vec![row(0, Some(turn))]).unwrap();
                recent.forget(&[0]);
                assert_eq!(value(&recent, &store, 0), turn);
            }
            done.store(true, Ordering::Relaxed);
        });
    }
}
