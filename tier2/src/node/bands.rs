//! The candidate tables of a partition: band key to bucket.
//!
//! A band and its key are hashed to 32 bits and found by those alone. Two keys of one hash share a
//! bucket, which proposes a candidate in vain and no more: whether two contents have a band in common is
//! asked of their signatures.

use std::io;

use doppel_model::pairwise::Bands;
use doppel_model::signature::Signature;
use doppel_model::stable_hash64_seeded;
use doppel_snapshot::{Reader, Unreadable, Writer};
use hashbrown::HashTable;
use smallvec::SmallVec;

use super::buckets::{Buckets, List};
use super::columns::Columns;
use crate::seed::BandSeed;

/// Tables per partition. A table doubles when it is 7/8 full; tables of growing shares of the band keys
/// double one after the other, so memory grows with the entries and not in jumps.
const TABLES: usize = 16;

/// Where the shares of the tables begin, but for the first: the share of table i is proportional to 2^(i / TABLES).
/// Written out, because a snapshot may be read where logarithms are rounded otherwise.
const SHARES: [u32; TABLES - 1] = [
    0x0b55_86cf,
    0x172b_83c7,
    0x2387_a6e7,
    0x306f_e0a3,
    0x3dea_64c1,
    0x4bfd_ad53,
    0x5ab0_7dd4,
    0x6a09_e667,
    0x7a11_473e,
    0x8ace_5422,
    0x9c49_182a,
    0xae89_f995,
    0xc199_bdd8,
    0xd581_8dcf,
    0xea4a_fa2a,
];

/// A hashed band key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BandKey {
    hash: u32,
    table: u8,
}

/// The hashed band keys of one signature; 16 at tau 0.8.
pub(crate) type BandKeys = SmallVec<[BandKey; 16]>;

/// Hashes the band keys of a signature. Keyed, so that nobody can choose pages that crowd a table.
pub(crate) fn band_keys(bands: Bands, seed: BandSeed, signature: &Signature) -> BandKeys {
    bands
        .keys(signature.sketch())
        .enumerate()
        .map(|(band, key)| {
            let bytes = (u64::from(key) << 8 | band as u64).to_le_bytes();
            BandKey::of(stable_hash64_seeded(&bytes, seed.0))
        })
        .collect()
}

impl BandKey {
    fn of(hash: u64) -> Self {
        let part = (hash >> 32) as u32;
        Self { hash: hash as u32, table: SHARES.iter().filter(|share| **share <= part).count() as u8 }
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

    pub(crate) fn write(&self, out: &mut Writer) -> io::Result<()> {
        for table in &self.tables {
            // In the order of the table, so that reading goes through it from one end to the other.
            out.items(table.len(), table.iter().map(|item| item.band_key))?;
            out.items(table.len(), table.iter().map(|item| item.bucket))?;
        }
        self.buckets.write(out)
    }

    pub(crate) fn read(input: &mut Reader) -> Result<Self, Unreadable> {
        let mut bands = Self::new();
        for table in &mut bands.tables {
            let (keys, buckets) = (input.column::<u32>()?, input.column::<u32>()?);
            table.reserve(keys.len(), |item| spread(item.band_key));
            for (band_key, bucket) in keys.into_iter().zip(buckets) {
                table
                    .insert_unique(spread(band_key), Item { band_key, bucket }, |item| spread(item.band_key));
            }
        }
        bands.buckets = Buckets::read(input)?;
        Ok(bands)
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
