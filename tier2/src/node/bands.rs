//! The candidate tables of a partition: band key to bucket.
//!
//! A band and its key are hashed to 32 bits and found by those alone. Two keys of one hash share a
//! bucket, which proposes a candidate in vain and no more: whether two contents have a band in common is
//! asked of their signatures.

use std::hash::BuildHasher;

use crate::seed::Seeded;
use doppel_model::pairwise::Bands;
use doppel_model::signature::Signature;
use hashbrown::HashTable;
use smallvec::SmallVec;

use super::buckets::{Buckets, List};
use super::columns::Columns;

/// Tables per partition. A table doubles when it is 7/8 full; tables of growing shares of the band keys
/// double one after the other, so memory grows with the entries and not in jumps.
const TABLES: usize = 16;

/// A hashed band key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BandKey {
    hash: u32,
    table: u8,
}

/// The hashed band keys of one signature; 16 at tau 0.8.
pub(crate) type BandKeys = SmallVec<[BandKey; 16]>;

/// Hashes the band keys of a signature. Keyed, so that nobody can choose pages that crowd a table.
pub(crate) fn band_keys(bands: Bands, hasher: &Seeded, signature: &Signature) -> BandKeys {
    bands
        .keys(signature.sketch())
        .enumerate()
        .map(|band_key| BandKey::of(hasher.hash_one(band_key)))
        .collect()
}

impl BandKey {
    /// The share of table i is proportional to 2^(i / TABLES).
    fn of(hash: u64) -> Self {
        let part = (hash >> 32) as f64 / f64::from(u32::MAX);
        let table = ((1.0 + part).log2() * TABLES as f64) as usize;
        Self { hash: hash as u32, table: table.min(TABLES - 1) as u8 }
    }

    fn spread(self) -> u64 {
        spread(self.hash)
    }
}

#[derive(Debug)]
struct Item {
    band_key: u32,
    bucket: u32,
}

/// Band keys to entries.
#[derive(Debug)]
pub(crate) struct BandTables {
    tables: [HashTable<Item>; TABLES],
    buckets: Buckets,
}

impl BandTables {
    pub(crate) fn new() -> Self {
        Self { tables: std::array::from_fn(|_| HashTable::new()), buckets: Buckets::default() }
    }

    /// Calls `each` for the lists of the bucket of a band key.
    #[inline]
    pub(crate) fn lists<'b>(&'b self, band_key: BandKey, each: impl FnMut(List<'b>)) {
        if let Some(item) = self.find(band_key) {
            self.buckets.lists(&item.bucket, each);
        }
    }

    /// Adds an entry that is younger than all others.
    pub(crate) fn insert(&mut self, band_keys: &BandKeys, slot: u32) {
        for band_key in band_keys {
            let is_same = |item: &Item| item.band_key == band_key.hash;
            let entry = self.tables[usize::from(band_key.table)]
                .entry(band_key.spread(), is_same, |item| spread(item.band_key));
            entry
                .and_modify(|item| item.bucket = self.buckets.push(item.bucket, slot))
                .or_insert(Item { band_key: band_key.hash, bucket: slot });
        }
    }

    /// Takes an entry out; `columns` still has it.
    pub(crate) fn remove(&mut self, band_keys: &BandKeys, slot: u32, columns: &Columns) {
        for band_key in band_keys {
            let table = &mut self.tables[usize::from(band_key.table)];
            let Ok(mut found) = table.find_entry(band_key.spread(), |item| item.band_key == band_key.hash)
            else {
                continue;
            };
            match self.buckets.remove(found.get().bucket, slot, columns) {
                Some(bucket) => found.get_mut().bucket = bucket,
                None => drop(found.remove()),
            }
        }
    }

    /// An entry no longer has the center it had, or is a center now.
    pub(crate) fn loosen(&mut self, band_keys: &BandKeys, slot: u32, columns: &Columns) {
        for band_key in band_keys {
            if let Some(bucket) = self.find(*band_key).map(|item| item.bucket) {
                self.buckets.loosen(bucket, slot, columns);
            }
        }
    }

    /// Many entries of a band key's bucket have another center now.
    pub(crate) fn recut(&mut self, band_key: BandKey, columns: &Columns) {
        if let Some(bucket) = self.find(band_key).map(|item| item.bucket) {
            self.buckets.recut(bucket, columns);
        }
    }

    /// A search passed `steps` members of the counted list of a band key's bucket.
    pub(crate) fn passed(&mut self, band_key: BandKey, steps: u32, columns: &Columns) {
        if let Some(bucket) = self.find(band_key).map(|item| item.bucket) {
            self.buckets.passed(bucket, steps, columns);
        }
    }

    fn find(&self, band_key: BandKey) -> Option<&Item> {
        self.tables[usize::from(band_key.table)]
            .find(band_key.spread(), |item| item.band_key == band_key.hash)
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.tables.iter().map(HashTable::allocation_size).sum::<usize>() + self.buckets.bytes()
    }
}

/// The hash of a band key within its table: it fills the low bits, which choose the slot, and the top ones.
fn spread(band_key: u32) -> u64 {
    u64::from(band_key).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
