//! The tables of one node: its partitions, and which content is where.
//!
//! Invariants:
//! - a content is in at most one slot of a serving partition, at the home of its length vector, and in at most one
//!   of an incoming partition;
//! - a comparable entry is in the bucket of each of its band keys, and every list of a bucket is in
//!   order of insertion;
//! - all members of a run have the run's center, and none is a center itself.

mod outgoing;
mod stored;

pub(crate) use stored::Numbers;

use std::hash::BuildHasher;
use std::sync::Arc;

use doppel_model::pairwise::Policy;
use doppel_model::parity;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, InsertSeq, PageId, PartitionId};
use doppel_partitioning::{BoundingSpace, LengthVector, Lexicon};
use doppel_protocol::index_node::{HostedPartition, Hosting};
use hashbrown::{HashMap, HashSet, HashTable};

use super::bands::{self, BandKeys};
use super::columns::{Center, Entry, FIRST_INSERT_SEQ, Record};
use super::local_index::LocalIndex;
use super::partition::{Partition, State};
use crate::seed::{BandSeed, Seeded};

/// Insertion sequences and query orders are numbered anew above this; what one pass adds is far less than what is left.
const NUMBERS_MAX: u32 = u32::MAX - (1 << 28);

/// Query orders start here; 0 is that of entries that were never searched for, 1 of those searched for before the
/// tables were made.
const FIRST_QUERY_ORDER: u32 = 2;

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryRef {
    pub(crate) partition: LocalIndex,
    pub(crate) slot: u32,
}

/// All partitions of a node.
pub(crate) struct Tables {
    pub(crate) policy: Policy,
    lexicon: Arc<Lexicon>,
    /// The place here of each partition that serves.
    local: HashMap<PartitionId, LocalIndex, Seeded>,
    pub(crate) partitions: Vec<Partition>,
    /// Where each content is.
    pub(crate) contents: HashTable<EntryRef>,
    /// Insertion sequences of the entries that are centers.
    centers: HashSet<InsertSeq, Seeded>,
    hasher: Seeded,
    band_seed: BandSeed,
    next_insert_seq: InsertSeq,
    pub(super) next_query_order: u32,
    /// An entry could not be taken out of the bands.
    unclean: bool,
    /// Scratch: the bitmap of what is inserted.
    bitmap: Vec<u64>,
}

impl Tables {
    /// No partitions.
    pub(crate) fn new(policy: Policy, lexicon: Arc<Lexicon>) -> Self {
        Self {
            policy,
            lexicon,
            local: HashMap::default(),
            partitions: Vec::new(),
            contents: HashTable::new(),
            centers: HashSet::default(),
            hasher: Seeded::default(),
            band_seed: BandSeed::new(),
            next_insert_seq: FIRST_INSERT_SEQ,
            next_query_order: FIRST_QUERY_ORDER,
            unclean: false,
            bitmap: Vec::new(),
        }
    }

    /// Empty partitions in the place of these that serve, for tables that are made anew.
    pub(crate) fn anew(&self) -> Self {
        let mut new = Self::new(self.policy, Arc::clone(&self.lexicon));
        let dimensions = self.lexicon.dimensions();
        for partition in self.serving() {
            let hosted = HostedPartition { id: partition.id, bounds: partition.bounds };
            let at = new.add_partition(hosted, State::Serving, dimensions);
            let count = &mut new.partitions[at.index()];
            (count.received, count.comparisons) = (partition.received, partition.comparisons);
        }
        new.find_partitions();
        new
    }

    /// Words to sub-dictionaries.
    pub(crate) fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    fn add_partition(&mut self, hosted: HostedPartition, state: State, dimensions: usize) -> LocalIndex {
        let new = Partition::new(hosted, state, dimensions);
        match self.partitions.iter().position(|partition| partition.state == State::Free) {
            Some(free) => {
                self.partitions[free] = new;
                free.into()
            }
            None => {
                self.partitions.push(new);
                (self.partitions.len() - 1).into()
            }
        }
    }

    /// Has these partitions and no others: what is missing is added empty, what was filled for this plan serves, and the
    /// rest goes. Nothing is noted as changed any more.
    pub(crate) fn host(&mut self, hosting: &Hosting, anew: bool) {
        let among =
            |hosted: &[HostedPartition], id: PartitionId| hosted.iter().any(|partition| partition.id == id);
        let mut there: HashSet<PartitionId, Seeded> = HashSet::default();
        for partition in &mut self.partitions {
            let (serves, comes) =
                (among(&hosting.serving, partition.id), among(&hosting.incoming, partition.id));
            partition.state = match partition.state {
                State::Serving | State::Incoming if serves => State::Serving,
                State::Incoming if comes => State::Incoming,
                State::Serving | State::Incoming => State::Outgoing,
                other => other,
            };
            if matches!(partition.state, State::Serving | State::Incoming) {
                there.insert(partition.id);
            }
            partition.changed = None;
            if anew {
                (partition.received, partition.comparisons) = (0, 0);
            }
        }
        let dimensions = hosting.lexicon.dimensions();
        for hosted in hosting.serving.iter().filter(|hosted| !there.contains(&hosted.id)) {
            self.add_partition(*hosted, State::Serving, dimensions);
        }
        for hosted in hosting.incoming.iter().filter(|hosted| !there.contains(&hosted.id)) {
            self.add_partition(*hosted, State::Incoming, hosting.incoming_dimensions);
        }
        self.lexicon = Arc::clone(&hosting.lexicon);
        self.find_partitions();
    }

    fn find_partitions(&mut self) {
        let serving = (0..).zip(&self.partitions).filter(|(_, one)| one.state == State::Serving);
        self.local = serving.map(|(index, partition)| (partition.id, LocalIndex(index))).collect();
    }

    /// The place here of a partition that serves.
    #[inline]
    pub(crate) fn local(&self, id: PartitionId) -> Option<LocalIndex> {
        self.local.get(&id).copied()
    }

    /// The place here of a partition that is being filled.
    pub(crate) fn incoming(&self, id: PartitionId) -> Option<LocalIndex> {
        let comes = |partition: &Partition| partition.id == id && partition.state == State::Incoming;
        self.partitions.iter().position(comes).map(LocalIndex::from)
    }

    /// The serving partition whose box has these lengths.
    pub(crate) fn home(&self, lengths: &LengthVector) -> Option<LocalIndex> {
        let has =
            |partition: &Partition| partition.state == State::Serving && partition.bounds.contains(lengths);
        self.partitions.iter().position(has).map(LocalIndex::from)
    }

    /// The serving partitions that can have a near-duplicate.
    pub(crate) fn probed(&self, space: &BoundingSpace) -> impl Iterator<Item = LocalIndex> {
        let meets =
            |partition: &Partition| partition.state == State::Serving && space.meets(&partition.bounds);
        (0..)
            .zip(&self.partitions)
            .filter(move |(_, partition)| meets(partition))
            .map(|(index, _)| LocalIndex(index))
    }

    /// Whether partitions come or go.
    pub(crate) fn is_changing(&self) -> bool {
        let rests = |partition: &Partition| matches!(partition.state, State::Serving | State::Free);
        !self.partitions.iter().all(|partition| rests(partition) && partition.changed.is_none())
    }

    /// The partitions that serve.
    pub(crate) fn serving(&self) -> impl Iterator<Item = &Partition> + '_ {
        self.partitions.iter().filter(|partition| partition.state == State::Serving)
    }

    /// Every content of the serving partitions.
    pub(crate) fn entries(&self) -> impl Iterator<Item = EntryRef> + '_ {
        let serves = |entry: &&EntryRef| self.partition(**entry).state == State::Serving;
        self.contents.iter().filter(serves).copied()
    }

    /// Contents of the serving partitions.
    pub(crate) fn len(&self) -> usize {
        self.serving().map(|partition| partition.columns.len()).sum()
    }

    /// Stores a content that is not stored yet in a partition of this node, as the youngest entry.
    pub(crate) fn insert(
        &mut self,
        (partition, lengths): (LocalIndex, LengthVector),
        page: PageId,
        signature: &Signature,
        record: Record,
    ) -> EntryRef {
        let mut bitmap = std::mem::take(&mut self.bitmap);
        bitmap.clear();
        parity::append(signature, &mut bitmap);
        let entry = Entry {
            content: signature.content(),
            lengths,
            bitmap: &bitmap,
            record,
            insert_seq: self.take_insert_seq(),
            page,
            comparable: self.policy.comparable(signature),
        };
        let band_keys = if entry.comparable { self.band_keys(signature) } else { BandKeys::new() };
        let slot = self.partitions[partition.index()].insert(&entry, &band_keys);
        self.bitmap = bitmap;
        let entry = EntryRef { partition, slot };
        self.note_content(entry);
        entry
    }

    /// An entry is to be found by its content.
    fn note_content(&mut self, entry: EntryRef) {
        let (hasher, partitions) = (&self.hasher, &self.partitions);
        let hash = |entry: &EntryRef| {
            hasher.hash_one(partitions[entry.partition.index()].columns.content(entry.slot))
        };
        self.contents.insert_unique(hash(&entry), entry, hash);
    }

    /// The entry begins anew with another first page: what was said about it was said of the page that
    /// leaves.
    pub(crate) fn renew(&mut self, entry: EntryRef, band_keys: &BandKeys, page: PageId) {
        self.centers.remove(&self.insert_seq(entry));
        let insert_seq = self.take_insert_seq();
        let partition = self.partition_mut(entry);
        partition.bands.remove(band_keys, entry.slot, &partition.columns);
        partition.columns.renew(entry.slot, insert_seq, page);
        partition.bands.insert(band_keys, entry.slot);
        partition.note(entry.slot);
    }

    /// The entry goes.
    pub(crate) fn remove(&mut self, entry: EntryRef, band_keys: &BandKeys) {
        self.forget(entry);
        let partition = self.partition_mut(entry);
        partition.bands.remove(band_keys, entry.slot, &partition.columns);
        partition.columns.remove(entry.slot);
    }

    /// The entry goes, and nobody knows its band keys any more: its slot stays behind, unseen, until the tables
    /// are made anew.
    pub(crate) fn abandon(&mut self, entry: EntryRef) {
        self.forget(entry);
        self.partition_mut(entry).columns.bury(entry.slot);
        self.unclean = true;
    }

    fn forget(&mut self, entry: EntryRef) {
        self.partition_mut(entry).note(entry.slot);
        self.centers.remove(&self.insert_seq(entry));
        let content = self.partition(entry).columns.content(entry.slot);
        if let Ok(found) = self.contents.find_entry(self.hasher.hash_one(content), |p| *p == entry) {
            found.remove();
        }
    }

    /// Where a content is.
    pub(crate) fn find(&self, content: ContentHash) -> Option<EntryRef> {
        self.find_in(State::Serving, content)
    }

    /// Where a content is among the partitions of a state.
    pub(crate) fn find_in(&self, state: State, content: ContentHash) -> Option<EntryRef> {
        let same = |entry: &EntryRef| {
            let partition = self.partition(*entry);
            partition.columns.content(entry.slot) == content && partition.state == state
        };
        self.contents.find(self.hasher.hash_one(content), same).copied()
    }

    fn take_insert_seq(&mut self) -> InsertSeq {
        let next = InsertSeq(self.next_insert_seq.0 + 1);
        std::mem::replace(&mut self.next_insert_seq, next)
    }

    pub(crate) fn set_centers(
        &mut self,
        entry: EntryRef,
        [center, second]: [Center; 2],
        band_keys: &BandKeys,
    ) {
        let partition = self.partition_mut(entry);
        let old = partition.columns.center(entry.slot);
        if old.is_entry() && old.insert_seq != center.insert_seq {
            partition.bands.loosen(band_keys, entry.slot, &partition.columns);
        }
        partition.columns.set_center(entry.slot, center);
        partition.columns.set_second_center(entry.slot, second);
        partition.note(entry.slot);
    }

    /// The entry is somebody's center from now on.
    pub(crate) fn set_is_center(&mut self, entry: EntryRef, band_keys: &BandKeys) {
        let partition = self.partition_mut(entry);
        partition.bands.loosen(band_keys, entry.slot, &partition.columns);
        self.keep_center(entry);
    }

    /// The entry is somebody's center, and in no run.
    pub(crate) fn keep_center(&mut self, entry: EntryRef) {
        self.centers.insert(self.insert_seq(entry));
        let partition = self.partition_mut(entry);
        partition.columns.set_is_center(entry.slot);
        partition.note(entry.slot);
    }

    /// Whether there was a center, and it has left.
    #[inline]
    pub(crate) fn has_left(&self, center: Center) -> bool {
        center.is_entry() && !self.centers.contains(&center.insert_seq)
    }

    pub(crate) fn insert_seq(&self, entry: EntryRef) -> InsertSeq {
        self.partition(entry).columns.insert_seq(entry.slot)
    }

    /// Whether the entry of that insertion sequence is still in a place.
    pub(crate) fn is_alive(&self, entry: EntryRef, insert_seq: InsertSeq) -> bool {
        let partition = self.partitions.get(entry.partition.index());
        partition
            .is_some_and(|p| p.state == State::Serving && p.columns.has_insert_seq(entry.slot, insert_seq))
    }

    /// Whether the numbers run out or slots were left behind.
    pub(crate) fn want_renewal(&self) -> bool {
        self.unclean || self.next_insert_seq.0 > NUMBERS_MAX || self.next_query_order > NUMBERS_MAX
    }

    pub(crate) fn band_keys(&self, signature: &Signature) -> BandKeys {
        bands::band_keys(self.policy, self.band_seed, signature)
    }

    #[inline]
    pub(crate) fn partition(&self, entry: EntryRef) -> &Partition {
        &self.partitions[entry.partition.index()]
    }

    /// No entry has a center any more, as if none had been searched for.
    pub(crate) fn forget_centers(&mut self) {
        let entries: Vec<EntryRef> = self.entries().collect();
        for entry in entries {
            let columns = &mut self.partition_mut(entry).columns;
            columns.set_center(entry.slot, Center::UNKNOWN);
            columns.set_second_center(entry.slot, Center::NONE);
        }
    }

    pub(crate) fn partition_mut(&mut self, entry: EntryRef) -> &mut Partition {
        &mut self.partitions[entry.partition.index()]
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.contents.allocation_size()
            + self.centers.allocation_size()
            + self.partitions.iter().map(Partition::bytes).sum::<usize>()
    }
}
