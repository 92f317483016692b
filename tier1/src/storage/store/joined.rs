//! The databases of all ranges as one store, for tools that work while no server runs. Each row goes to the
//! database of its shard's range.

use doppel_model::RangeId;
use doppel_protocol::RangeMap;

use super::{Store, StoreError, Write};
use crate::rows::key;

/// The databases of all ranges as one store. Ranges have consecutive shards, so rows come in the order of
/// their keys.
pub struct JoinedStore<'s> {
    map: RangeMap,
    stores: Vec<&'s dyn Store>,
}

impl<'s> JoinedStore<'s> {
    /// Joins the stores, one for each range, in the order of the ranges.
    pub fn new<S: Store + 's>(map: RangeMap, stores: impl IntoIterator<Item = &'s S>) -> Self {
        let stores: Vec<&dyn Store> = stores.into_iter().map(|store| store as &dyn Store).collect();
        debug_assert_eq!(stores.len(), map.count());
        Self { map, stores }
    }

    /// Returns the map of ranges to shards.
    #[must_use]
    pub fn map(&self) -> RangeMap {
        self.map
    }

    /// Iterates over the ranges and their databases.
    pub(crate) fn databases(&self) -> impl Iterator<Item = (RangeId, &'s dyn Store)> + use<'_, 's> {
        self.map.ranges().zip(self.stores.iter().copied())
    }

    fn of(&self, key: &[u8]) -> Result<&'s dyn Store, StoreError> {
        let range = key::range_of(self.map, key);
        let store = self.stores.get(usize::from(range.0)).copied();
        store.ok_or_else(|| StoreError::Engine(format!("range {range} has no database here")))
    }
}

impl Store for JoinedStore<'_> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.of(key)?.get(key)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        // A key that is shorter than a shard number comes before all keys of that shard.
        let first = if from.len() < 2 { RangeId(0) } else { key::range_of(self.map, from) };
        let last = key::range_of(self.map, to);
        let mut continues = true;
        for (range, store) in self.databases().filter(|(range, _)| (first..=last).contains(range)) {
            if continues {
                store.range(from, to, &mut |key, value| {
                    // Skip a row that lies in the database of another range.
                    continues = key::range_of(self.map, key) != range || each(key, value);
                    continues
                })?;
            }
        }
        Ok(())
    }

    /// Commits to each database. The commit is atomic in each database, but not across databases.
    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let mut of_ranges: Vec<Vec<Write>> = self.stores.iter().map(|_| Vec::new()).collect();
        for write in writes {
            let range = key::range_of(self.map, &write.0);
            if let Some(of_range) = of_ranges.get_mut(usize::from(range.0)) {
                of_range.push(write);
            }
        }
        for (store, writes) in self.stores.iter().zip(of_ranges) {
            if !writes.is_empty() {
                store.commit(writes)?;
            }
        }
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.stores.iter().try_for_each(|store| store.flush())
    }

    fn bytes_on_disk(&self) -> u64 {
        self.stores.iter().map(|store| store.bytes_on_disk()).sum()
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::ShardId;

    use super::*;
    use crate::rows::key;
    use crate::storage::store::Memory;

    #[test]
    fn rows_go_to_their_range_and_are_read_in_key_order() {
        let stores: Vec<Memory> = (0..3).map(|_| Memory::default()).collect();
        let joined = JoinedStore::new(RangeMap::new(8, 3).unwrap(), &stores);
        let keys: Vec<Vec<u8>> = (0..8).map(|shard| key::feed(ShardId(shard), 5)).collect();
        joined.commit(keys.iter().rev().map(|key| (key.clone(), Some(key.clone()))).collect()).unwrap();
        // A row in the database of another range is not returned.
        stores[0].commit(vec![(key::feed(ShardId(7), 6), Some(vec![1]))]).unwrap();
        let mut found = Vec::new();
        joined
            .range(&[], &[0xff; 4], &mut |key, value| {
                assert_eq!(key, value);
                found.push(key.to_vec());
                found.len() < 7
            })
            .unwrap();
        assert_eq!(found, keys[..7]);
        assert_eq!(joined.get(&keys[7]).unwrap().as_ref(), Some(&keys[7]));
        assert!(
            stores
                .iter()
                .all(|store| store.get(&keys[0]).unwrap().is_some() == std::ptr::eq(store, &stores[0]))
        );
    }
}
