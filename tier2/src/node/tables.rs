//! The tables of one node: its partitions, and a directory of contents.
//!
//! Invariants:
//! - A content is in at most one slot of a serving partition, at the home of its length vector. It is in at
//!   most one slot of an incoming partition.
//! - A comparable entry is in the bucket of each of its keys, and in no other but during a refinement. Every list of a bucket is in order of
//!   insertion.
//! - All members of a run have the center of the run, and no member is a center.

mod keys;
mod partition_drop;
mod persistence;
pub(super) mod roles;

pub(crate) use persistence::TableNumbers;

use std::hash::BuildHasher;
use std::sync::Arc;

use doppel_model::pairwise::Policy;
use doppel_model::parity;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, InsertSeq, PageId, PartitionId};
use doppel_partitioning::{BoundingSpace, LengthVector, Lexicon};
use doppel_protocol::index_node::{HostedPartition, HostingPlan};
use hashbrown::{HashMap, HashSet, HashTable};

use super::partition::buckets::CrowdingLimits;
use super::partition::candidates::EntryKeys;
use super::partition::columns::{Center, ColumnEntry, FIRST_INSERT_SEQ, SignatureRecord};
use super::partition::families::Listing;
use super::partition::local_index::LocalIndex;
use super::partition::{Partition, PartitionState};
use crate::seed::{BandSeed, Seeded};

/// Above this, insertion sequences and query orders are numbered anew. A pass adds far less than what is
/// left.
const NUMBERS_MAX: u32 = u32::MAX - (1 << 28);

/// Smallest query order of a search. 0 is for entries without a search, 1 for entries that were searched for
/// before the tables were made.
const FIRST_QUERY_ORDER: u32 = 2;

/// The place of an entry on its node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryRef {
    pub(crate) partition: LocalIndex,
    pub(crate) slot: u32,
}

/// All partitions of a node.
pub(crate) struct IndexTables {
    pub(crate) policy: Policy,
    lexicon: Arc<Lexicon>,
    /// Index of each serving partition.
    local: HashMap<PartitionId, LocalIndex, Seeded>,
    pub(crate) partitions: Vec<Partition>,
    /// The directory: the entry of each content.
    pub(crate) contents: HashTable<EntryRef>,
    /// Insertion sequences of the entries that are centers.
    centers: HashSet<InsertSeq, Seeded>,
    hasher: Seeded,
    band_seed: BandSeed,
    pub(crate) crowding: CrowdingLimits,
    next_insert_seq: InsertSeq,
    pub(super) next_query_order: u32,
    /// Whether the candidate tables contain a removed entry.
    has_leftovers: bool,
    /// Scratch memory for the bitmap of an inserted content.
    bitmap: Vec<u64>,
}

impl IndexTables {
    /// Creates tables without partitions.
    pub(crate) fn new(policy: Policy, lexicon: Arc<Lexicon>, crowding: CrowdingLimits) -> Self {
        Self {
            policy,
            lexicon,
            local: HashMap::default(),
            partitions: Vec::new(),
            contents: HashTable::new(),
            centers: HashSet::default(),
            hasher: Seeded::default(),
            band_seed: BandSeed::new(),
            // Without a metric there are no families.
            crowding: if policy.metric().is_some() { crowding } else { CrowdingLimits::NEVER },
            next_insert_seq: FIRST_INSERT_SEQ,
            next_query_order: FIRST_QUERY_ORDER,
            has_leftovers: false,
            bitmap: Vec::new(),
        }
    }

    /// Creates empty partitions like the serving ones, for rebuilding the tables.
    pub(crate) fn empty_copy(&self) -> Self {
        let mut new = Self::new(self.policy, Arc::clone(&self.lexicon), self.crowding);
        new.band_seed = self.band_seed;
        let dimensions = self.lexicon.dimensions();
        for partition in self.serving() {
            let hosted = HostedPartition { id: partition.id, bounds: partition.bounds };
            let at = new.add_partition(hosted, PartitionState::Serving, dimensions);
            let copy = &mut new.partitions[at.index()];
            (copy.received, copy.comparisons) = (partition.received, partition.comparisons);
            // Families contain hashed keys, so the seed stays, too.
            copy.families = partition.families.clone();
        }
        new.index_partitions();
        new
    }

    /// The map from words to sub-dictionaries.
    pub(crate) fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    fn add_partition(
        &mut self,
        hosted: HostedPartition,
        state: PartitionState,
        dimensions: usize,
    ) -> LocalIndex {
        let new = Partition::new(hosted, state, dimensions);
        match self.partitions.iter().position(|partition| partition.state == PartitionState::Free) {
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

    /// Hosts these partitions and no others. Missing partitions are added empty, incoming ones may now serve,
    /// and all others become outgoing. No partition notes changes any more.
    pub(crate) fn host(&mut self, hosting: &HostingPlan, resets_load: bool) {
        let among =
            |hosted: &[HostedPartition], id: PartitionId| hosted.iter().any(|partition| partition.id == id);
        let mut existing: HashSet<PartitionId, Seeded> = HashSet::default();
        for partition in &mut self.partitions {
            let (serves, comes) =
                (among(&hosting.serving, partition.id), among(&hosting.incoming, partition.id));
            partition.state = match partition.state {
                PartitionState::Serving | PartitionState::Incoming if serves => PartitionState::Serving,
                PartitionState::Incoming if comes => PartitionState::Incoming,
                PartitionState::Serving | PartitionState::Incoming => PartitionState::Outgoing,
                other => other,
            };
            if matches!(partition.state, PartitionState::Serving | PartitionState::Incoming) {
                existing.insert(partition.id);
            }
            partition.changed = None;
            if resets_load {
                (partition.received, partition.comparisons) = (0, 0);
            }
        }
        let dimensions = hosting.lexicon.dimensions();
        for hosted in hosting.serving.iter().filter(|hosted| !existing.contains(&hosted.id)) {
            self.add_partition(*hosted, PartitionState::Serving, dimensions);
        }
        for hosted in hosting.incoming.iter().filter(|hosted| !existing.contains(&hosted.id)) {
            self.add_partition(*hosted, PartitionState::Incoming, hosting.incoming_dimensions);
        }
        self.lexicon = Arc::clone(&hosting.lexicon);
        self.index_partitions();
    }

    fn index_partitions(&mut self) {
        let serving = (0..).zip(&self.partitions).filter(|(_, one)| one.state == PartitionState::Serving);
        self.local = serving.map(|(index, partition)| (partition.id, LocalIndex(index))).collect();
    }

    /// The index of a serving partition.
    #[inline]
    pub(crate) fn local(&self, id: PartitionId) -> Option<LocalIndex> {
        self.local.get(&id).copied()
    }

    /// The index of a partition that is being filled.
    pub(crate) fn incoming(&self, id: PartitionId) -> Option<LocalIndex> {
        let comes = |partition: &Partition| partition.id == id && partition.state == PartitionState::Incoming;
        self.partitions.iter().position(comes).map(LocalIndex::from)
    }

    /// The serving partition whose box contains these lengths.
    pub(crate) fn home(&self, lengths: &LengthVector) -> Option<LocalIndex> {
        let has = |partition: &Partition| {
            partition.state == PartitionState::Serving && partition.bounds.contains(lengths)
        };
        self.partitions.iter().position(has).map(LocalIndex::from)
    }

    /// The serving partitions that can contain a near-duplicate.
    pub(crate) fn probed(&self, space: &BoundingSpace) -> impl Iterator<Item = LocalIndex> {
        let meets = |partition: &Partition| {
            partition.state == PartitionState::Serving && space.meets(&partition.bounds)
        };
        (0..)
            .zip(&self.partitions)
            .filter(move |(_, partition)| meets(partition))
            .map(|(index, _)| LocalIndex(index))
    }

    /// Whether partitions come or go.
    pub(crate) fn is_changing(&self) -> bool {
        let rests =
            |partition: &Partition| matches!(partition.state, PartitionState::Serving | PartitionState::Free);
        !self.partitions.iter().all(|partition| rests(partition) && partition.changed.is_none())
    }

    /// The serving partitions.
    pub(crate) fn serving(&self) -> impl Iterator<Item = &Partition> + '_ {
        self.partitions.iter().filter(|partition| partition.state == PartitionState::Serving)
    }

    /// The entries of all serving partitions.
    pub(crate) fn entries(&self) -> impl Iterator<Item = EntryRef> + '_ {
        let serves = |entry: &&EntryRef| self.partition(**entry).state == PartitionState::Serving;
        self.contents.iter().filter(serves).copied()
    }

    /// Number of contents in the serving partitions.
    pub(crate) fn len(&self) -> usize {
        self.serving().map(|partition| partition.columns.len()).sum()
    }

    /// Stores a new content in a partition of this node, as the youngest entry.
    pub(crate) fn insert(
        &mut self,
        (partition, lengths): (LocalIndex, LengthVector),
        page: PageId,
        signature: &Signature,
        record: SignatureRecord,
    ) -> EntryRef {
        let mut bitmap = std::mem::take(&mut self.bitmap);
        bitmap.clear();
        parity::append(signature, &mut bitmap);
        let entry = ColumnEntry {
            content: signature.content(),
            lengths,
            bitmap: &bitmap,
            record,
            insert_seq: self.take_insert_seq(),
            page,
            comparable: self.policy.comparable(signature),
        };
        let families = &self.partitions[partition.index()].families;
        let listing = if entry.comparable { self.listing(families, signature) } else { Listing::default() };
        let host = &mut self.partitions[partition.index()];
        host.families.add_shapes(&listing.shapes);
        let slot = host.insert(&entry, &listing.keys);
        self.bitmap = bitmap;
        let entry = EntryRef { partition, slot };
        self.add_content(entry);
        entry
    }

    /// Adds an entry to the directory of contents.
    fn add_content(&mut self, entry: EntryRef) {
        let (hasher, partitions) = (&self.hasher, &self.partitions);
        let hash = |entry: &EntryRef| {
            hasher.hash_one(partitions[entry.partition.index()].columns.content(entry.slot))
        };
        self.contents.insert_unique(hash(&entry), entry, hash);
    }

    /// Makes an entry begin anew with another first page. What is known about the entry holds for the page
    /// that leaves.
    pub(crate) fn renew(&mut self, entry: EntryRef, keys: &EntryKeys, page: PageId) {
        self.centers.remove(&self.insert_seq(entry));
        let insert_seq = self.take_insert_seq();
        let partition = self.partition_mut(entry);
        partition.candidates.remove(keys, entry.slot, &partition.columns);
        partition.columns.renew(entry.slot, insert_seq, page);
        partition.candidates.insert(keys, entry.slot);
        partition.note_change(entry.slot);
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, entry: EntryRef, keys: &EntryKeys) {
        self.forget(entry);
        let partition = self.partition_mut(entry);
        partition.candidates.remove(keys, entry.slot, &partition.columns);
        partition.columns.remove(entry.slot);
    }

    /// Removes an entry whose band keys are unknown. Its slot stays in use, but no search finds it, until the
    /// tables are rebuilt.
    pub(crate) fn abandon(&mut self, entry: EntryRef) {
        self.forget(entry);
        self.partition_mut(entry).columns.hide(entry.slot);
        self.has_leftovers = true;
    }

    fn forget(&mut self, entry: EntryRef) {
        self.partition_mut(entry).note_change(entry.slot);
        self.centers.remove(&self.insert_seq(entry));
        let content = self.partition(entry).columns.content(entry.slot);
        if let Ok(found) = self.contents.find_entry(self.hasher.hash_one(content), |p| *p == entry) {
            found.remove();
        }
    }

    /// The entry of a content in the serving partitions.
    pub(crate) fn find(&self, content: ContentHash) -> Option<EntryRef> {
        self.find_in(PartitionState::Serving, content)
    }

    /// The entry of a content in partitions of this state.
    pub(crate) fn find_in(&self, state: PartitionState, content: ContentHash) -> Option<EntryRef> {
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

    pub(crate) fn set_centers(&mut self, entry: EntryRef, [center, second]: [Center; 2], keys: &EntryKeys) {
        let partition = self.partition_mut(entry);
        let old = partition.columns.center(entry.slot);
        if old.is_entry() && old.insert_seq != center.insert_seq {
            partition.candidates.leave_run(keys, entry.slot, &partition.columns);
        }
        partition.columns.set_center(entry.slot, center);
        partition.columns.set_second_center(entry.slot, second);
        partition.note_change(entry.slot);
    }

    /// Makes an entry a center, and takes it out of its run.
    pub(crate) fn set_is_center(&mut self, entry: EntryRef, keys: &EntryKeys) {
        let partition = self.partition_mut(entry);
        partition.candidates.leave_run(keys, entry.slot, &partition.columns);
        self.mark_center(entry);
    }

    /// Marks an entry as a center. It must not be in a run.
    pub(crate) fn mark_center(&mut self, entry: EntryRef) {
        self.centers.insert(self.insert_seq(entry));
        let partition = self.partition_mut(entry);
        partition.columns.set_is_center(entry.slot);
        partition.note_change(entry.slot);
    }

    /// Whether `center` names an entry that is no longer a center on this node.
    #[inline]
    pub(crate) fn has_left(&self, center: Center) -> bool {
        center.is_entry() && !self.centers.contains(&center.insert_seq)
    }

    pub(crate) fn insert_seq(&self, entry: EntryRef) -> InsertSeq {
        self.partition(entry).columns.insert_seq(entry.slot)
    }

    /// Whether the entry with this insertion sequence still exists, in a serving partition.
    pub(crate) fn is_alive(&self, entry: EntryRef, insert_seq: InsertSeq) -> bool {
        let partition = self.partitions.get(entry.partition.index());
        partition.is_some_and(|p| {
            p.state == PartitionState::Serving && p.columns.has_insert_seq(entry.slot, insert_seq)
        })
    }

    /// Whether the tables have to be rebuilt, because numbers run out or slots were left behind.
    pub(crate) fn is_renewal_due(&self) -> bool {
        self.has_leftovers || self.next_insert_seq.0 > NUMBERS_MAX || self.next_query_order > NUMBERS_MAX
    }

    #[inline]
    pub(crate) fn partition(&self, entry: EntryRef) -> &Partition {
        &self.partitions[entry.partition.index()]
    }

    /// Takes the center from every entry, as if no search had been made.
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
