//! The candidate tables of a partition: they map a key to the bucket of entries that share it. A key is that of
//! a band, or that of a list of a family ([`families`](super::families)).
//!
//! Keys are hashed to 36 bits, and only the hashes are stored. Two keys with the same hash share a bucket. This
//! can only propose a candidate in vain, because the search checks the signatures for a common band.

mod filling;
mod ordered_table;

use std::io;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::stable_hash64_seeded;
use doppel_snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};
use smallvec::SmallVec;

use super::buckets::{BucketVisits, Buckets, CandidateList, CrowdingLimits};
use super::columns::Columns;
use crate::seed::BandSeed;
use ordered_table::OrderedTable;

/// Number of tables per partition. A table grows by a seventh of its size. The tables have shares of the keys
/// of different sizes, so they grow one after the other. Memory therefore grows evenly with the entries,
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

/// Hash of a key, and the table that contains it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TableKey {
    hash: u32,
    table: u8,
}

/// The keys of one entry. At tau 0.8, an entry has 16 bands.
pub(crate) type EntryKeys = SmallVec<[TableKey; 16]>;

/// Hashes the band keys of a signature. The hash has a secret seed, so nobody can prepare pages that overload
/// a table.
pub(crate) fn band_keys(policy: Policy, seed: BandSeed, signature: &Signature) -> EntryKeys {
    let mut keys = EntryKeys::new();
    policy.keys(signature, |key| {
        keys.push(TableKey::of(stable_hash64_seeded(&key.to_le_bytes(), seed.0)));
    });
    keys
}

impl TableKey {
    /// The form of a key in the tables. `hash` is a hash of the key.
    pub(super) fn of(hash: u64) -> Self {
        let part = (hash >> 32) as u32;
        Self { hash: hash as u32, table: SHARES.iter().filter(|share| **share <= part).count() as u8 }
    }

    /// The key as a number of 36 bits.
    pub(super) fn number(self) -> u64 {
        u64::from(self.table) << 32 | u64::from(self.hash)
    }

    /// The key with this [number](Self::number), if there is one.
    pub(super) fn of_number(number: u64) -> Option<Self> {
        let table = u8::try_from(number >> 32).ok().filter(|table| usize::from(*table) < TABLES)?;
        Some(Self { hash: number as u32, table })
    }
}

/// How the keys of an entry change.
#[derive(Debug, Default)]
pub(crate) struct KeyChange {
    pub(crate) removed: EntryKeys,
    pub(crate) added: EntryKeys,
}

impl KeyChange {
    /// The change from one set of keys to another.
    pub(crate) fn new(before: &EntryKeys, after: &EntryKeys) -> Self {
        let sorted = |keys: &EntryKeys| {
            let mut keys = keys.clone();
            keys.sort_unstable();
            keys.dedup();
            keys
        };
        let (before, after) = (sorted(before), sorted(after));
        let without = |keys: &EntryKeys, others: &EntryKeys| {
            keys.iter().filter(|key| others.binary_search(key).is_err()).copied().collect()
        };
        Self { removed: without(&before, &after), added: without(&after, &before) }
    }

    /// Whether no key changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.removed.is_empty() && self.added.is_empty()
    }
}

/// A list that searches often visit in vain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CrowdedList {
    pub(crate) key: TableKey,
    /// Whether the list is that of a family, and not of a band.
    pub(crate) is_of_family: bool,
}

/// Map from keys to entries. No bucket equals the value that a table excludes, because the value would
/// be a bucket of an unknown kind.
#[derive(Debug)]
pub(crate) struct CandidateTables {
    tables: [OrderedTable; TABLES],
    buckets: Buckets,
    /// Lists that have become crowded.
    crowded: Vec<CrowdedList>,
    /// Hashes and slots of all keys so far, by table, while the tables are [filled](Self::begin_filling).
    collected: Option<[Vec<u64>; TABLES]>,
}

impl CandidateTables {
    pub(crate) fn new() -> Self {
        Self {
            tables: std::array::from_fn(|_| OrderedTable::default()),
            buckets: Buckets::default(),
            crowded: Vec::new(),
            collected: None,
        }
    }

    /// Loads into the cache what [`lists`](Self::lists) reads first for these keys, which are scattered in
    /// memory.
    #[inline]
    pub(crate) fn prefetch(&self, keys: &EntryKeys) {
        keys.iter().for_each(|key| self.tables[usize::from(key.table)].prefetch(key.hash));
    }

    /// Calls `each` for the lists of the bucket of a key.
    #[inline]
    pub(crate) fn lists<'b>(&'b self, key: TableKey, each: impl FnMut(CandidateList<'b>)) {
        if let Some(bucket) = self.find(key) {
            self.buckets.lists(bucket, each);
        }
    }

    /// Adds an entry that is younger than all others.
    pub(crate) fn insert(&mut self, keys: &EntryKeys, slot: u32) {
        if let Some(collected) = &mut self.collected {
            for key in keys {
                collected[usize::from(key.table)].push(u64::from(key.hash) << 32 | u64::from(slot));
            }
            return;
        }
        self.prefetch(keys);
        for key in keys {
            let table = &mut self.tables[usize::from(key.table)];
            table.upsert(key.hash, slot, |bucket| self.buckets.push(bucket, slot));
        }
    }

    /// Removes an entry. Must be called while `columns` still has it.
    pub(crate) fn remove(&mut self, keys: &EntryKeys, slot: u32, columns: &Columns) {
        self.prefetch(keys);
        for key in keys {
            let table = &mut self.tables[usize::from(key.table)];
            table.update(key.hash, |bucket| self.buckets.remove(bucket, slot, columns));
        }
    }

    /// Lists an entry that may be older than others under further keys.
    pub(crate) fn insert_by_age(&mut self, keys: &EntryKeys, slot: u32, columns: &Columns) {
        for key in keys {
            let table = &mut self.tables[usize::from(key.table)];
            table.upsert(key.hash, slot, |bucket| self.buckets.insert(bucket, slot, columns));
        }
    }

    /// Takes many entries out of the bucket of a key. `slots` must ascend.
    pub(crate) fn remove_all(&mut self, key: TableKey, slots: &[u32], columns: &Columns) {
        let table = &mut self.tables[usize::from(key.table)];
        table.update(key.hash, |bucket| self.buckets.remove_all(bucket, slots, columns));
    }

    /// Number of members of all buckets together.
    #[cfg(test)]
    pub(crate) fn members_of_all(&self) -> usize {
        let mut members = 0;
        for (_, bucket) in self.tables.iter().flat_map(OrderedTable::iter) {
            self.buckets.lists(&bucket, |list| members += list.slots.len());
        }
        members
    }

    /// The members of the bucket of a key.
    pub(crate) fn members(&self, key: TableKey) -> Vec<u32> {
        let mut members = Vec::new();
        self.lists(key, |list| members.extend_from_slice(list.slots));
        members
    }

    /// Takes an entry out of its run. Its center changes, or it becomes a center itself.
    pub(crate) fn leave_run(&mut self, keys: &EntryKeys, slot: u32, columns: &Columns) {
        for key in keys {
            if let Some(bucket) = self.find(*key).copied() {
                self.buckets.leave_run(bucket, slot, columns);
            }
        }
    }

    /// Cuts the bucket of a key into runs again. Called after many of its entries got another center.
    pub(crate) fn rebuild_runs(&mut self, key: TableKey, columns: &Columns) {
        if let Some(bucket) = self.find(key).copied() {
            self.buckets.rebuild_runs(bucket, columns);
        }
    }

    /// Notes the visits of a search in a large bucket. The bucket may have become crowded.
    pub(crate) fn add_visits(
        &mut self,
        list: CrowdedList,
        visits: BucketVisits,
        limits: CrowdingLimits,
        columns: &Columns,
    ) {
        if let Some(bucket) = self.find(list.key).copied()
            && self.buckets.add_visits(bucket, visits, limits, columns)
        {
            self.crowded.push(list);
        }
    }

    /// Whether a list has become crowded.
    pub(crate) fn has_crowded(&self) -> bool {
        !self.crowded.is_empty()
    }

    /// Removes and returns up to `count` of the lists that have become crowded.
    pub(crate) fn take_crowded(&mut self, count: usize) -> Vec<CrowdedList> {
        self.crowded.split_off(self.crowded.len().saturating_sub(count))
    }

    pub(crate) fn write(&self, out: &mut SnapshotWriter) -> io::Result<()> {
        for table in &self.tables {
            // Written in the order of the table, so that the table can be read sequentially.
            out.items(table.len(), table.iter().map(|(key, _)| key))?;
            out.items(table.len(), table.iter().map(|(_, bucket)| bucket))?;
        }
        self.buckets.write(out)
    }

    pub(crate) fn read(input: &mut SnapshotReader) -> Result<Self, SnapshotError> {
        let mut candidates = Self::new();
        for table in &mut candidates.tables {
            let (keys, buckets) = (input.column::<u32>()?, input.column::<u32>()?);
            if keys.len() != buckets.len() {
                return Err(SnapshotError::Damaged);
            }
            let items = OrderedTable::from_sorted(keys.into_iter().zip(buckets));
            *table = items.ok_or(SnapshotError::Damaged)?;
        }
        candidates.buckets = Buckets::read(input)?;
        Ok(candidates)
    }

    fn find(&self, key: TableKey) -> Option<&u32> {
        self.tables[usize::from(key.table)].get(key.hash)
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.tables.iter().map(OrderedTable::bytes).sum::<usize>()
            + self.buckets.bytes()
            + self.crowded.capacity() * size_of::<CrowdedList>()
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use doppel_model::stable_hash64;

    use super::*;

    /// Reads tables from the bytes that `write` produces.
    fn read(write: impl FnOnce(&mut SnapshotWriter)) -> Result<CandidateTables, SnapshotError> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mut writer = SnapshotWriter::new(File::create(&path).unwrap(), b"tables", &()).unwrap();
        write(&mut writer);
        writer.finish().unwrap();
        let (mut reader, ()) = SnapshotReader::open(&path, b"tables")?;
        let tables = CandidateTables::read(&mut reader)?;
        reader.finish()?;
        Ok(tables)
    }

    #[test]
    fn tables_are_read_as_they_were_written() {
        let mut tables = CandidateTables::new();
        let keys_of = |slot: u32| -> EntryKeys {
            let hash = |band: u32| stable_hash64(&(slot / 3 * 16 + band).to_le_bytes());
            (0..16).map(|band| TableKey::of(hash(band))).collect()
        };
        (0..600).for_each(|slot| tables.insert(&keys_of(slot), slot));
        let read = read(|out| tables.write(out).unwrap()).unwrap();
        for key in (0..900).flat_map(keys_of) {
            let slots = |tables: &CandidateTables| {
                let mut slots = Vec::new();
                tables.lists(key, |list| slots.extend_from_slice(list.slots));
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
