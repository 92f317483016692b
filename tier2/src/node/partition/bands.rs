//! The candidate tables of a partition: they map a band key to the bucket of entries that share it.
//!
//! Bands and their keys are hashed to 32 bits, and only the hashes are stored. Two keys with the same hash
//! share a bucket. This can only propose a candidate in vain, because the search checks the signatures for a
//! common band.

mod ordered_table;

use std::io;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::stable_hash64_seeded;
use doppel_snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};
use smallvec::SmallVec;

use super::buckets::{Buckets, CandidateList};
use super::columns::Columns;
use crate::seed::BandSeed;
use ordered_table::OrderedTable;

/// Number of tables per partition. A table grows by a seventh of its size. The tables have shares of the band
/// keys of different sizes, so they grow one after the other. Memory therefore grows evenly with the entries,
/// and no pass waits for all tables to grow.
const TABLES: usize = 16;

/// Hash values at which the shares of all tables but the first begin. The share of table i is proportional to
/// (8/7)^(i / TABLES). The values are constants, because another machine that reads a snapshot may round
/// logarithms differently.
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

/// Hash of a band key, and the table that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BandKey {
    hash: u32,
    table: u8,
}

/// The hashed band keys of one signature. There are 16 at tau 0.8.
pub(crate) type SignatureBandKeys = SmallVec<[BandKey; 16]>;

/// Hashes the band keys of a signature. The hash has a secret seed, so nobody can prepare pages that overload
/// a table.
pub(crate) fn band_keys(policy: Policy, seed: BandSeed, signature: &Signature) -> SignatureBandKeys {
    let mut band_keys = SignatureBandKeys::new();
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

/// Map from band keys to entries. No bucket equals the value that a table excludes, because the value would
/// be a bucket of an unknown kind.
#[derive(Debug)]
pub(crate) struct BandTables {
    tables: [OrderedTable; TABLES],
    buckets: Buckets,
}

impl BandTables {
    pub(crate) fn new() -> Self {
        Self { tables: std::array::from_fn(|_| OrderedTable::default()), buckets: Buckets::default() }
    }

    /// Loads into the cache what [`lists`](Self::lists) reads first for these band keys, which are scattered
    /// in memory.
    #[inline]
    pub(crate) fn prefetch(&self, band_keys: &SignatureBandKeys) {
        band_keys
            .iter()
            .for_each(|band_key| self.tables[usize::from(band_key.table)].prefetch(band_key.hash));
    }

    /// Calls `each` for the lists of the bucket of a band key.
    #[inline]
    pub(crate) fn lists<'b>(&'b self, band_key: BandKey, each: impl FnMut(CandidateList<'b>)) {
        if let Some(bucket) = self.find(band_key) {
            self.buckets.lists(bucket, each);
        }
    }

    /// Adds an entry that is younger than all others.
    pub(crate) fn insert(&mut self, band_keys: &SignatureBandKeys, slot: u32) {
        self.prefetch(band_keys);
        for band_key in band_keys {
            let table = &mut self.tables[usize::from(band_key.table)];
            table.upsert(band_key.hash, slot, |bucket| self.buckets.push(bucket, slot));
        }
    }

    /// Removes an entry. Must be called while `columns` still has it.
    pub(crate) fn remove(&mut self, band_keys: &SignatureBandKeys, slot: u32, columns: &Columns) {
        self.prefetch(band_keys);
        for band_key in band_keys {
            let table = &mut self.tables[usize::from(band_key.table)];
            table.update(band_key.hash, |bucket| self.buckets.remove(bucket, slot, columns));
        }
    }

    /// Takes an entry out of its run. Its center changes, or it becomes a center itself.
    pub(crate) fn leave_run(&mut self, band_keys: &SignatureBandKeys, slot: u32, columns: &Columns) {
        for band_key in band_keys {
            if let Some(bucket) = self.find(*band_key).copied() {
                self.buckets.leave_run(bucket, slot, columns);
            }
        }
    }

    /// Cuts the bucket of a band key into runs again. Called after many of its entries got another center.
    pub(crate) fn rebuild_runs(&mut self, band_key: BandKey, columns: &Columns) {
        if let Some(bucket) = self.find(band_key).copied() {
            self.buckets.rebuild_runs(bucket, columns);
        }
    }

    /// Notes that a search visited `steps` members of the counted list of a band key's bucket.
    pub(crate) fn add_visits(&mut self, band_key: BandKey, steps: u32, columns: &Columns) {
        if let Some(bucket) = self.find(band_key).copied() {
            self.buckets.add_visits(bucket, steps, columns);
        }
    }

    pub(crate) fn write(&self, out: &mut SnapshotWriter) -> io::Result<()> {
        for table in &self.tables {
            // Written in the order of the table, so that the table can be read sequentially.
            out.items(table.len(), table.iter().map(|(band_key, _)| band_key))?;
            out.items(table.len(), table.iter().map(|(_, bucket)| bucket))?;
        }
        self.buckets.write(out)
    }

    pub(crate) fn read(input: &mut SnapshotReader) -> Result<Self, SnapshotError> {
        let mut bands = Self::new();
        for table in &mut bands.tables {
            let (keys, buckets) = (input.column::<u32>()?, input.column::<u32>()?);
            if keys.len() != buckets.len() {
                return Err(SnapshotError::Damaged);
            }
            let items = OrderedTable::from_sorted(keys.into_iter().zip(buckets));
            *table = items.ok_or(SnapshotError::Damaged)?;
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

    /// Reads tables from the bytes that `write` produces.
    fn read(write: impl FnOnce(&mut SnapshotWriter)) -> Result<BandTables, SnapshotError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut writer = SnapshotWriter::new(File::create(&path).unwrap(), b"tables", &()).unwrap();
        write(&mut writer);
        writer.finish().unwrap();
        let (mut reader, ()) = SnapshotReader::open(&path, b"tables")?;
        let tables = BandTables::read(&mut reader)?;
        reader.finish()?;
        Ok(tables)
    }

    #[test]
    fn tables_are_read_as_they_were_written() {
        let mut tables = BandTables::new();
        let keys_of = |slot: u32| -> SignatureBandKeys {
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
    fn invalid_tables_are_not_read() {
        let cases: [(&[u32], &[u32]); 5] =
            [(&[1, 2], &[5]), (&[1], &[5, 6]), (&[2, 1], &[5, 6]), (&[1, 1], &[5, 6]), (&[1], &[u32::MAX])];
        for (keys, buckets) in cases {
            let read = read(|out| {
                out.column(keys).unwrap();
                out.column(buckets).unwrap();
            });
            assert!(matches!(read, Err(SnapshotError::Damaged)), "{keys:?} {buckets:?}");
        }
    }
}
