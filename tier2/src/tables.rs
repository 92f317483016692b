//! The tables of one node under one plan: its partitions, and which content is where.
//!
//! Invariants:
//! - a content is in at most one slot of a serving partition, at the home of its length vector, and in at most one
//!   of an incoming partition;
//! - a comparable entry is in the bucket of each of its band keys, and every list of a bucket is in
//!   order of insertion;
//! - all members of a run have the run's center, and none is a center itself.

use std::hash::BuildHasher;
use std::sync::Arc;

use crate::seed::Seeded;
use doppel_model::pairwise::{Bands, Policy};
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::{LengthVector, PartitionAssignment, PartitionMap, Plan};
use hashbrown::{HashSet, HashTable};

use crate::bands::{self, BandKeys};
use crate::columns::{Center, Entry, FIRST_INSERT_SEQ, Record};
use crate::partition::{Partition, State};
use crate::truncated_minhash;

/// Insertion sequences and query orders are numbered anew above this; what one pass adds is far less than what is left.
const NUMBERS_MAX: u32 = u32::MAX - (1 << 28);

/// Query orders start here; 0 is that of entries that were never searched for, 1 of those searched for before the
/// tables were made.
const FIRST_QUERY_ORDER: u32 = 2;

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EntryRef {
    /// The number of its partition on this node.
    pub(crate) partition: u32,
    pub(crate) slot: u32,
}

/// How a page is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueryRole {
    /// It is the first page of its content: it is compared, and linked to the copies.
    First {
        /// Where its content is.
        entry: EntryRef,
        /// The page that was the first one until now, which others may have named.
        before: Option<PageId>,
    },
    /// It is an exact copy of the first page, which was asked to search: it is linked to that page, and not compared.
    Copy(EntryRef),
}

/// Stands for a partition of the map that is not on this node.
const ELSEWHERE: u32 = u32::MAX;

/// All partitions of a node.
pub(crate) struct Tables {
    pub(crate) policy: Policy,
    /// Those of the policy.
    pub(crate) bands: Bands,
    plan: Arc<Plan>,
    /// This node's number in the plan.
    node: u32,
    /// The number here of each partition of the map.
    local: Vec<u32>,
    pub(crate) partitions: Vec<Partition>,
    /// Where each content is.
    pub(crate) contents: HashTable<EntryRef>,
    /// Insertion sequences of the entries that are centers.
    centers: HashSet<u32, Seeded>,
    hasher: Seeded,
    next_insert_seq: u32,
    next_query_order: u32,
    /// An entry could not be taken out of the bands.
    unclean: bool,
}

impl Tables {
    /// Empty partitions, as the plan has them on a node.
    pub(crate) fn new(policy: Policy, plan: Arc<Plan>, node: u32) -> Self {
        let mut this = Self {
            policy,
            bands: policy.bands(),
            plan,
            node,
            local: Vec::new(),
            partitions: Vec::new(),
            contents: HashTable::new(),
            centers: HashSet::default(),
            hasher: Seeded::default(),
            next_insert_seq: FIRST_INSERT_SEQ,
            next_query_order: FIRST_QUERY_ORDER,
            unclean: false,
        };
        let plan = Arc::clone(&this.plan);
        for assignment in plan.assignments().iter().filter(|assignment| assignment.node == node) {
            this.add_partition(assignment.id, State::Serving, plan.map().lexicon().dimensions());
        }
        this.find_partitions();
        this
    }

    /// The map of the plan.
    pub(crate) fn map(&self) -> &PartitionMap {
        self.plan.map()
    }

    /// Adds an empty partition for length vectors of so many dimensions; returns its number here.
    pub(crate) fn add_partition(&mut self, id: u32, state: State, dimensions: usize) -> u32 {
        let new = Partition::new(id, state, dimensions);
        match self.partitions.iter().position(|partition| partition.state == State::Free) {
            Some(free) => {
                self.partitions[free] = new;
                free as u32
            }
            None => {
                self.partitions.push(new);
                self.partitions.len() as u32 - 1
            }
        }
    }

    /// The next plan is the present one: its partitions serve, the others go.
    pub(crate) fn adopt(&mut self, plan: Arc<Plan>) {
        let here: HashSet<u32, Seeded> = plan
            .assignments()
            .iter()
            .filter(|assignment| assignment.node == self.node)
            .map(|assignment| assignment.id)
            .collect();
        for partition in &mut self.partitions {
            partition.state = match partition.state {
                State::Incoming => State::Serving,
                // What is copied elsewhere is outgoing, also where its id stays.
                State::Serving if here.contains(&partition.id) && partition.changed.is_none() => {
                    State::Serving
                }
                State::Serving => State::Outgoing,
                other => other,
            };
            partition.changed = None;
            (partition.received, partition.comparisons) = (0, 0);
        }
        self.plan = plan;
        self.find_partitions();
    }

    /// The next plan is not taken: what was made for it goes.
    pub(crate) fn give_up(&mut self) {
        for partition in &mut self.partitions {
            partition.changed = None;
            if partition.state == State::Incoming {
                partition.state = State::Outgoing;
            }
        }
    }

    fn find_partitions(&mut self) {
        let serving = |id: u32| {
            self.partitions
                .iter()
                .position(|partition| partition.id == id && partition.state == State::Serving)
        };
        let local = |assignment: &PartitionAssignment| match assignment.node == self.node {
            true => serving(assignment.id).map_or(ELSEWHERE, |number| number as u32),
            false => ELSEWHERE,
        };
        self.local = self.plan.assignments().iter().map(local).collect();
    }

    /// The number here of a partition of the map; none where it is on another node.
    #[inline]
    pub(crate) fn local(&self, number: u32) -> Option<u32> {
        self.local.get(number as usize).copied().filter(|local| *local != ELSEWHERE)
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
        (partition, lengths): (u32, LengthVector),
        page: PageId,
        signature: &Signature,
        record: Record,
    ) -> EntryRef {
        let entry = Entry {
            content: signature.content(),
            lengths,
            truncated_minhash: truncated_minhash::pack(signature.sketch()),
            record,
            insert_seq: self.take_insert_seq(),
            page,
            comparable: self.policy.comparable(signature),
        };
        let band_keys = if entry.comparable { self.band_keys(signature) } else { BandKeys::new() };
        let slot = self.partitions[partition as usize].insert(&entry, &band_keys);
        let entry = EntryRef { partition, slot };
        let (hasher, partitions) = (&self.hasher, &self.partitions);
        let hash = |entry: &EntryRef| {
            hasher.hash_one(partitions[entry.partition as usize].columns.content(entry.slot))
        };
        self.contents.insert_unique(hash(&entry), entry, hash);
        entry
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

    /// Forgets up to `entries` of an outgoing partition; their records, and whether that was all. Then the partition
    /// is free, and what it was is in the second part.
    pub(crate) fn drop_partition(
        &mut self,
        partition: u32,
        entries: usize,
    ) -> (Vec<Record>, Option<Partition>) {
        let host = &mut self.partitions[partition as usize];
        let slots: Vec<u32> = host.columns.slots_from(host.dropped_to).take(entries).collect();
        let mut records = Vec::with_capacity(slots.len());
        for slot in &slots {
            let entry = EntryRef { partition, slot: *slot };
            let content = self.partition(entry).columns.content(*slot);
            self.centers.remove(&self.insert_seq(entry));
            if let Ok(found) = self.contents.find_entry(self.hasher.hash_one(content), |p| *p == entry) {
                found.remove();
                records.push(self.partition(entry).columns.record(*slot));
            }
        }
        let host = &mut self.partitions[partition as usize];
        if slots.len() == entries {
            host.dropped_to = slots.last().map_or(0, |slot| slot + 1);
            return (records, None);
        }
        let free = Partition::new(0, State::Free, 1);
        (records, Some(std::mem::replace(host, free)))
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

    /// Whether a page has a content.
    pub(crate) fn has(&self, page: PageId, content: ContentHash) -> bool {
        self.find(content).is_some_and(|entry| self.partition(entry).has_page(entry.slot, page))
    }

    /// How a page is searched for in the present pass, and its content's query order; none when it does not have
    /// that content. The first page that searches becomes the first page of its content.
    pub(crate) fn take_query_order(&mut self, page: PageId, content: ContentHash) -> Option<QueryRole> {
        let entry = self.find(content)?;
        let query_order = self.next_query_order;
        let partition = self.partition_mut(entry);
        let first = partition.columns.page(entry.slot);
        let before = if first == page {
            None
        } else if !partition.has_page(entry.slot, page) {
            return None;
        } else if partition.columns.query_order(entry.slot) == 0 {
            partition.put_first(entry.slot, page);
            Some(first)
        } else {
            return Some(QueryRole::Copy(entry));
        };
        partition.columns.set_query_order(entry.slot, query_order);
        partition.note(entry.slot);
        self.next_query_order += 1;
        Some(QueryRole::First { entry, before })
    }

    fn take_insert_seq(&mut self) -> u32 {
        self.next_insert_seq += 1;
        self.next_insert_seq - 1
    }

    pub(crate) fn set_center(&mut self, entry: EntryRef, center: Center, band_keys: &BandKeys) {
        let partition = self.partition_mut(entry);
        let old = partition.columns.center(entry.slot);
        if old.is_entry() && old.insert_seq != center.insert_seq {
            partition.bands.loosen(band_keys, entry.slot, &partition.columns);
        }
        partition.columns.set_center(entry.slot, center);
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

    pub(crate) fn insert_seq(&self, entry: EntryRef) -> u32 {
        self.partition(entry).columns.insert_seq(entry.slot)
    }

    /// Whether the entry of that insertion sequence is still in a place.
    pub(crate) fn is_alive(&self, entry: EntryRef, insert_seq: u32) -> bool {
        let partition = self.partitions.get(entry.partition as usize);
        partition
            .is_some_and(|p| p.state == State::Serving && p.columns.has_insert_seq(entry.slot, insert_seq))
    }

    /// Whether the numbers run out or slots were left behind.
    pub(crate) fn want_renewal(&self) -> bool {
        self.unclean || self.next_insert_seq > NUMBERS_MAX || self.next_query_order > NUMBERS_MAX
    }

    pub(crate) fn band_keys(&self, signature: &Signature) -> BandKeys {
        bands::band_keys(self.bands, &self.hasher, signature)
    }

    #[inline]
    pub(crate) fn partition(&self, entry: EntryRef) -> &Partition {
        &self.partitions[entry.partition as usize]
    }

    pub(crate) fn partition_mut(&mut self, entry: EntryRef) -> &mut Partition {
        &mut self.partitions[entry.partition as usize]
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.contents.allocation_size()
            + self.centers.allocation_size()
            + self.partitions.iter().map(Partition::bytes).sum::<usize>()
    }
}
