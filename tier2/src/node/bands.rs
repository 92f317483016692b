//! The candidate tables of a partition: band key to bucket.
//!
//! A band and its key are hashed to 32 bits and found by those alone. Two keys of one hash share a
//! bucket, which proposes a candidate in vain and no more: whether two contents have a band in common is
//! asked of their signatures.

mod ordered_table;

use std::io;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::stable_hash64_seeded;
use doppel_snapshot::{Reader, Unreadable, Writer};
use smallvec::SmallVec;

use super::buckets::{Buckets, List};
use super::columns::Columns;
use crate::seed::BandSeed;
use ordered_table::OrderedTable;

/// Tables per partition. A table grows by a seventh; tables of growing shares of the band keys grow one after the other,
/// so memory grows with the entries and not in jumps, and no pass waits for all of them.
const TABLES: usize = 16;

/// Where the shares of the tables begin, but for the first: the share of table i is proportional to (8/7)^(i / TABLES).
/// Written out, because a snapshot may be read where logarithms are rounded otherwise.
const SHARES: [u32; TABLES - 1] = [
    0x0f04_a204,
    0x1e29_7c78,
    0x2d6e_d47d,
    0x3cd4_efc8,
    0x4c5c_14a3,
    0x5c04_89ef,
    0x6bce_9726,
    0x7bba_845a,
    0x8bc8_9a39,
    0x9bf9_220b,
    0xac4c_65b7,
    0xbcc2_afc2,
    0xcd5c_4b51,
    0xde19_842a,
    0xeefa_a6b5,
];

/// A hashed band key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BandKey {
    hash: u32,
    table: u8,
}

/// The hashed band keys of one signature; 16 at tau 0.8.
pub(crate) type BandKeys = SmallVec<[BandKey; 16]>;

/// Hashes the keys of a signature. Keyed, so that nobody can choose pages that crowd a table.
pub(crate) fn band_keys(policy: Policy, seed: BandSeed, signature: &Signature) -> BandKeys {
    let mut band_keys = BandKeys::new();
    policy.keys(signature, |key| {
        band_keys.push(BandKey::of(stable_hash64_seeded(&key.to_le_bytes(), seed.0)));
    });
    band_keys
}

impl BandKey {
    fn of(hash: u64) -> Self {
        let part = (hash >> 32) as u32;
        Self { hash: hash as u32, table: SHARES.iter().filter(|share| **share <= part).count() as u8 }
    }
}

/// Band keys to entries. No bucket is the value that a table's items cannot have: it would be of a kind that there is not.
#[derive(Debug)]
pub(crate) struct BandTables {
    tables: [OrderedTable; TABLES],
    buckets: Buckets,
}

impl BandTables {
    pub(crate) fn new() -> Self {
        Self { tables: std::array::from_fn(|_| OrderedTable::default()), buckets: Buckets::default() }
    }

    /// Loads what [`lists`](Self::lists) looks at first for these band keys: they are anywhere in memory.
    #[inline]
    pub(crate) fn prefetch(&self, band_keys: &BandKeys) {
        band_keys
            .iter()
            .for_each(|band_key| self.tables[usize::from(band_key.table)].prefetch(band_key.hash));
    }

    /// Calls `each` for the lists of the bucket of a band key.
    #[inline]
    pub(crate) fn lists<'b>(&'b self, band_key: BandKey, each: impl FnMut(List<'b>)) {
        if let Some(bucket) = self.find(band_key) {
            self.buckets.lists(bucket, each);
        }
    }

    /// Adds an entry that is younger than all others.
    pub(crate) fn insert(&mut self, band_keys: &BandKeys, slot: u32) {
        self.prefetch(band_keys);
        for band_key in band_keys {
            let table = &mut self.tables[usize::from(band_key.table)];
            table.upsert(band_key.hash, slot, |bucket| self.buckets.push(bucket, slot));
        }
    }

    /// Takes an entry out; `columns` still has it.
    pub(crate) fn remove(&mut self, band_keys: &BandKeys, slot: u32, columns: &Columns) {
        self.prefetch(band_keys);
        for band_key in band_keys {
            let table = &mut self.tables[usize::from(band_key.table)];
            table.update(band_key.hash, |bucket| self.buckets.remove(bucket, slot, columns));
        }
    }

    /// An entry no longer has the center it had, or is a center now.
    pub(crate) fn loosen(&mut self, band_keys: &BandKeys, slot: u32, columns: &Columns) {
        for band_key in band_keys {
            if let Some(bucket) = self.find(*band_key).copied() {
                self.buckets.loosen(bucket, slot, columns);
            }
        }
    }

    /// Many entries of a band key's bucket have another center now.
    pub(crate) fn recut(&mut self, band_key: BandKey, columns: &Columns) {
        if let Some(bucket) = self.find(band_key).copied() {
            self.buckets.recut(bucket, columns);
        }
    }

    /// A search passed `steps` members of the counted list of a band key's bucket.
    pub(crate) fn passed(&mut self, band_key: BandKey, steps: u32, columns: &Columns) {
        if let Some(bucket) = self.find(band_key).copied() {
            self.buckets.passed(bucket, steps, columns);
        }
    }

    pub(crate) fn write(&self, out: &mut Writer) -> io::Result<()> {
        for table in &self.tables {
            // In the order of the table, so that reading goes through it from one end to the other.
            out.items(table.len(), table.iter().map(|(band_key, _)| band_key))?;
            out.items(table.len(), table.iter().map(|(_, bucket)| bucket))?;
        }
        self.buckets.write(out)
    }

    pub(crate) fn read(input: &mut Reader) -> Result<Self, Unreadable> {
        let mut bands = Self::new();
        for table in &mut bands.tables {
            let (keys, buckets) = (input.column::<u32>()?, input.column::<u32>()?);
            if keys.len() != buckets.len() {
                return Err(Unreadable::Damaged);
            }
            let items = OrderedTable::from_sorted(keys.into_iter().zip(buckets));
            *table = items.ok_or(Unreadable::Damaged)?;
        }
        bands.buckets = Buckets::read(input)?;
        Ok(bands)
    }

    fn find(&self, band_key: BandKey) -> Option<&u32> {
        self.tables[usize::from(band_key.table)].get(band_key.hash)
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.tables.iter().map(OrderedTable::bytes).sum::<usize>() + self.buckets.bytes()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use doppel_model::stable_hash64;

    use super::*;

    /// The tables that are read where `write` has written.
    fn read(write: impl FnOnce(&mut Writer)) -> Result<BandTables, Unreadable> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut writer = Writer::new(File::create(&path).unwrap(), b"tables", &()).unwrap();
        write(&mut writer);
        writer.finish().unwrap();
        let (mut reader, ()) = Reader::open(&path, b"tables")?;
        let tables = BandTables::read(&mut reader)?;
        reader.finish()?;
        Ok(tables)
    }

    #[test]
    fn tables_are_read_as_they_were_written() {
        let mut tables = BandTables::new();
        let keys_of = |slot: u32| -> BandKeys {
            let hash = |band: u32| stable_hash64(&(slot / 3 * 16 + band).to_le_bytes());
            (0..16).map(|band| BandKey::of(hash(band))).collect()
        };
        (0..600).for_each(|slot| tables.insert(&keys_of(slot), slot));
        let read = read(|out| tables.write(out).unwrap()).unwrap();
        for band_key in (0..900).flat_map(keys_of) {
            let slots = |tables: &BandTables| {
                let mut slots = Vec::new();
                tables.lists(band_key, |list| slots.extend_from_slice(list.slots));
                slots
            };
            assert_eq!(slots(&read), slots(&tables));
        }
    }

    #[test]
    fn tables_that_nobody_has_written_are_not_read() {
        let cases: [(&[u32], &[u32]); 5] =
            [(&[1, 2], &[5]), (&[1], &[5, 6]), (&[2, 1], &[5, 6]), (&[1, 1], &[5, 6]), (&[1], &[u32::MAX])];
        for (keys, buckets) in cases {
            let read = read(|out| {
                out.column(keys).unwrap();
                out.column(buckets).unwrap();
            });
            assert!(matches!(read, Err(Unreadable::Damaged)), "{keys:?} {buckets:?}");
        }
    }
}
