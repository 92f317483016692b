//! The tables of one node under one plan: its partitions, and which content is where.
//!
//! Invariants:
//! - a content is in at most one slot of a serving partition, at the home of its length vector, and in at most one
//!   of an incoming partition;
//! - a comparable entry is in the bucket of each of its band keys, and every list of a bucket is in
//!   order of birth;
//! - all members of a run have the run's center, and none is a hub.

use std::hash::BuildHasher;
use std::sync::Arc;

use crate::seed::Seeded;
use doppel_model::pairwise::{Bands, Policy};
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_partitioning::{LengthVector, PartitionMap, PartitionPlace, Plan};
use hashbrown::{HashSet, HashTable};

use crate::bands::{self, Tags};
use crate::columns::{Center, Entry, FIRST_BIRTH, Record};
use crate::nibbles;
use crate::partition::{Partition, State};

/// Births and turns are numbered anew above this; what one pass adds is far less than what is left.
const NUMBERS_MAX: u32 = u32::MAX - (1 << 28);

/// Turns start here; 0 is that of entries that were never looked at, 1 of those looked at before the
/// tables were made.
const FIRST_TURN: u32 = 2;

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// The number of its partition on this node.
    pub(crate) partition: u32,
    pub(crate) slot: u32,
}

/// How a page is looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// It is the first page of its content: it is compared, and tied to the copies.
    First {
        /// Where its content is.
        place: Place,
        /// The page that was the first one until now, which others may have named.
        before: Option<PageId>,
    },
    /// It is an exact copy of the first page, which was asked to look: it is tied to that page, and not compared.
    Copy(Place),
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
    pub(crate) contents: HashTable<Place>,
    /// Births of the entries that are centers.
    hubs: HashSet<u32, Seeded>,
    hasher: Seeded,
    next_birth: u32,
    next_turn: u32,
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
            hubs: HashSet::default(),
            hasher: Seeded::default(),
            next_birth: FIRST_BIRTH,
            next_turn: FIRST_TURN,
            unclean: false,
        };
        let plan = Arc::clone(&this.plan);
        for place in plan.places().iter().filter(|place| place.node == node) {
            this.add_partition(place.id, State::Serving, plan.map().lexicon().dimensions());
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
        let here: HashSet<u32, Seeded> =
            plan.places().iter().filter(|place| place.node == self.node).map(|place| place.id).collect();
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
        let local = |place: &PartitionPlace| match place.node == self.node {
            true => serving(place.id).map_or(ELSEWHERE, |number| number as u32),
            false => ELSEWHERE,
        };
        self.local = self.plan.places().iter().map(local).collect();
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
    pub(crate) fn places(&self) -> impl Iterator<Item = Place> + '_ {
        let serves = |place: &&Place| self.partition(**place).state == State::Serving;
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
    ) -> Place {
        let entry = Entry {
            content: signature.content(),
            lengths,
            nibbles: nibbles::pack(signature.sketch()),
            record,
            birth: self.take_birth(),
            page,
            comparable: self.policy.comparable(signature),
        };
        let tags = if entry.comparable { self.tags(signature) } else { Tags::new() };
        let slot = self.partitions[partition as usize].insert(&entry, &tags);
        let place = Place { partition, slot };
        let (hasher, partitions) = (&self.hasher, &self.partitions);
        let hash =
            |place: &Place| hasher.hash_one(partitions[place.partition as usize].columns.content(place.slot));
        self.contents.insert_unique(hash(&place), place, hash);
        place
    }

    /// The entry begins anew with another first page: what was said about it was said of the page that
    /// leaves.
    pub(crate) fn renew(&mut self, place: Place, tags: &Tags, page: PageId) {
        self.hubs.remove(&self.birth(place));
        let birth = self.take_birth();
        let partition = self.partition_mut(place);
        partition.bands.remove(tags, place.slot, &partition.columns);
        partition.columns.renew(place.slot, birth, page);
        partition.bands.insert(tags, place.slot);
        partition.note(place.slot);
    }

    /// The entry goes.
    pub(crate) fn remove(&mut self, place: Place, tags: &Tags) {
        self.forget(place);
        let partition = self.partition_mut(place);
        partition.bands.remove(tags, place.slot, &partition.columns);
        partition.columns.remove(place.slot);
    }

    /// The entry goes, and nobody knows its tags any more: its slot stays behind, unseen, until the tables
    /// are made anew.
    pub(crate) fn abandon(&mut self, place: Place) {
        self.forget(place);
        self.partition_mut(place).columns.bury(place.slot);
        self.unclean = true;
    }

    fn forget(&mut self, place: Place) {
        self.partition_mut(place).note(place.slot);
        self.hubs.remove(&self.birth(place));
        let content = self.partition(place).columns.content(place.slot);
        if let Ok(found) = self.contents.find_entry(self.hasher.hash_one(content), |p| *p == place) {
            found.remove();
        }
    }

    /// Forgets up to `entries` of an outgoing partition; their records, and whether that was all. Then the partition
    /// is free, and what it was is in the second part.
    pub(crate) fn take_down(&mut self, partition: u32, entries: usize) -> (Vec<Record>, Option<Partition>) {
        let host = &mut self.partitions[partition as usize];
        let slots: Vec<u32> = host.columns.slots_from(host.down_to).take(entries).collect();
        let mut records = Vec::with_capacity(slots.len());
        for slot in &slots {
            let place = Place { partition, slot: *slot };
            let content = self.partition(place).columns.content(*slot);
            self.hubs.remove(&self.birth(place));
            if let Ok(found) = self.contents.find_entry(self.hasher.hash_one(content), |p| *p == place) {
                found.remove();
                records.push(self.partition(place).columns.record(*slot));
            }
        }
        let host = &mut self.partitions[partition as usize];
        if slots.len() == entries {
            host.down_to = slots.last().map_or(0, |slot| slot + 1);
            return (records, None);
        }
        let free = Partition::new(0, State::Free, 1);
        (records, Some(std::mem::replace(host, free)))
    }

    /// Where a content is.
    pub(crate) fn find(&self, content: ContentHash) -> Option<Place> {
        self.find_in(State::Serving, content)
    }

    /// Where a content is among the partitions of a state.
    pub(crate) fn find_in(&self, state: State, content: ContentHash) -> Option<Place> {
        let same = |place: &Place| {
            let partition = self.partition(*place);
            partition.columns.content(place.slot) == content && partition.state == state
        };
        self.contents.find(self.hasher.hash_one(content), same).copied()
    }

    /// Whether a page has a content.
    pub(crate) fn has(&self, page: PageId, content: ContentHash) -> bool {
        self.find(content).is_some_and(|place| self.partition(place).has_page(place.slot, page))
    }

    /// How a page is looked at in the present pass, and its content's turn; none when it does not have
    /// that content. The first page that looks becomes the first page of its content.
    pub(crate) fn take_turn(&mut self, page: PageId, content: ContentHash) -> Option<Standing> {
        let place = self.find(content)?;
        let turn = self.next_turn;
        let partition = self.partition_mut(place);
        let first = partition.columns.page(place.slot);
        let before = if first == page {
            None
        } else if !partition.has_page(place.slot, page) {
            return None;
        } else if partition.columns.turn(place.slot) == 0 {
            partition.put_first(place.slot, page);
            Some(first)
        } else {
            return Some(Standing::Copy(place));
        };
        partition.columns.set_turn(place.slot, turn);
        partition.note(place.slot);
        self.next_turn += 1;
        Some(Standing::First { place, before })
    }

    fn take_birth(&mut self) -> u32 {
        self.next_birth += 1;
        self.next_birth - 1
    }

    pub(crate) fn set_center(&mut self, place: Place, center: Center, tags: &Tags) {
        let partition = self.partition_mut(place);
        let old = partition.columns.center(place.slot);
        if old.is_entry() && old.birth != center.birth {
            partition.bands.loosen(tags, place.slot, &partition.columns);
        }
        partition.columns.set_center(place.slot, center);
        partition.note(place.slot);
    }

    /// The entry is somebody's center from now on.
    pub(crate) fn set_hub(&mut self, place: Place, tags: &Tags) {
        let partition = self.partition_mut(place);
        partition.bands.loosen(tags, place.slot, &partition.columns);
        self.keep_hub(place);
    }

    /// The entry is somebody's center, and in no run.
    pub(crate) fn keep_hub(&mut self, place: Place) {
        self.hubs.insert(self.birth(place));
        let partition = self.partition_mut(place);
        partition.columns.set_hub(place.slot);
        partition.note(place.slot);
    }

    /// Whether there was a center, and it has left.
    #[inline]
    pub(crate) fn has_left(&self, center: Center) -> bool {
        center.is_entry() && !self.hubs.contains(&center.birth)
    }

    pub(crate) fn birth(&self, place: Place) -> u32 {
        self.partition(place).columns.birth(place.slot)
    }

    /// Whether the entry of that birth is still in a place.
    pub(crate) fn is_alive(&self, place: Place, birth: u32) -> bool {
        let partition = self.partitions.get(place.partition as usize);
        partition.is_some_and(|p| p.state == State::Serving && p.columns.has_birth(place.slot, birth))
    }

    /// Whether the numbers run out or slots were left behind.
    pub(crate) fn want_renewal(&self) -> bool {
        self.unclean || self.next_birth > NUMBERS_MAX || self.next_turn > NUMBERS_MAX
    }

    pub(crate) fn tags(&self, signature: &Signature) -> Tags {
        bands::tags(self.bands, &self.hasher, signature)
    }

    #[inline]
    pub(crate) fn partition(&self, place: Place) -> &Partition {
        &self.partitions[place.partition as usize]
    }

    pub(crate) fn partition_mut(&mut self, place: Place) -> &mut Partition {
        &mut self.partitions[place.partition as usize]
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.contents.allocation_size()
            + self.hubs.allocation_size()
            + self.partitions.iter().map(Partition::bytes).sum::<usize>()
    }
}
