//! The tables of one node under one partition map: its partitions, and which content is where.
//!
//! Invariants:
//! - a content is in at most one slot, at the home of its length vector;
//! - a comparable entry is in the bucket of each of its band keys, and every list of a bucket is in
//!   order of birth;
//! - all members of a run have the run's center, and none is a hub.

use std::hash::BuildHasher;

use crate::seed::Seeded;
use doppel_common::mapping::PartitionMap;
use doppel_common::model::{ContentHash, PageId};
use doppel_common::pairwise::{Bands, Policy};
use doppel_common::signature::Signature;
use hashbrown::{HashSet, HashTable};

use crate::bands::{self, Tags};
use crate::columns::{Center, Entry, FIRST_BIRTH, Record};
use crate::nibbles;
use crate::partition::Partition;

/// Births and turns are numbered anew above this; what one pass adds is far less than what is left.
const NUMBERS_MAX: u32 = u32::MAX - (1 << 28);

/// Turns start here; 0 is that of entries that were never looked at, 1 of those looked at before the
/// tables were made.
const FIRST_TURN: u32 = 2;

/// Where an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
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

/// All partitions.
pub(crate) struct Tables {
    pub(crate) policy: Policy,
    /// Those of the policy.
    pub(crate) bands: Bands,
    pub(crate) map: PartitionMap,
    pub(crate) partitions: Vec<Partition>,
    /// Where each content is.
    pub(crate) contents: HashTable<Place>,
    /// Looks made, and partitions they were sent to.
    pub(crate) looks: u64,
    pub(crate) sends: u64,
    /// Births of the entries that are centers.
    hubs: HashSet<u32, Seeded>,
    hasher: Seeded,
    next_birth: u32,
    next_turn: u32,
    /// An entry could not be taken out of the bands.
    unclean: bool,
}

impl Tables {
    pub(crate) fn new(policy: Policy, map: PartitionMap) -> Self {
        let partitions = (0..map.partitions()).map(|_| Partition::new(map.lexicon().dimensions())).collect();
        Self {
            policy,
            bands: policy.bands(),
            map,
            partitions,
            contents: HashTable::new(),
            looks: 0,
            sends: 0,
            hubs: HashSet::default(),
            hasher: Seeded::default(),
            next_birth: FIRST_BIRTH,
            next_turn: FIRST_TURN,
            unclean: false,
        }
    }

    /// Stores a content that is not stored yet, as the youngest entry.
    pub(crate) fn insert(&mut self, page: PageId, signature: &Signature, record: Record) -> Place {
        let lengths = self.map.lexicon().lengths(signature);
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
        let partition = self.map.home(&lengths);
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
        self.hubs.remove(&self.birth(place));
        let content = self.partition(place).columns.content(place.slot);
        if let Ok(found) = self.contents.find_entry(self.hasher.hash_one(content), |p| *p == place) {
            found.remove();
        }
    }

    /// Where a content is.
    pub(crate) fn find(&self, content: ContentHash) -> Option<Place> {
        let same = |place: &Place| self.partition(*place).columns.content(place.slot) == content;
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
        self.partition_mut(place).columns.set_hub(place.slot);
    }

    /// Whether there was a center, and it has left.
    #[inline]
    pub(crate) fn has_left(&self, center: Center) -> bool {
        center.is_entry() && !self.hubs.contains(&center.birth)
    }

    fn birth(&self, place: Place) -> u32 {
        self.partition(place).columns.birth(place.slot)
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
