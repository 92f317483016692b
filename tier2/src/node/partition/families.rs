//! Families: how the entries of a crowded band are listed, so that no search visits all of them.
//!
//! The pages of one template share many band keys, although most of them are not near-duplicates. The bucket
//! of such a band grows with the collection. So a crowded band is *refined*: its entries are listed by *family
//! keys* instead. These are made from the differences of an entry from the template, see
//! [`family`](doppel_model::pairwise::family). Refined bands whose entries have the same template share a family.
//!
//! Let x and z differ from the template in dx and dz hashes, and let k be the most hashes in which
//! near-duplicates of their sizes may differ. Near-duplicates have at least c = (dx + dz - k) / 2 differences
//! in common, rounded up. The first one is among the first dx - c + 1 of x and among the first dz - c + 1 of
//! z. A family key of z is a hash of:
//! - the family, and the class of dz. The class tells a search how many of its own differences it looks up.
//! - whether the difference is *near* the first one of z, or not. If x has at least as many differences as z,
//!   they meet in a near one.
//! - the difference, or [`END`] if z may have a near-duplicate without a further common difference.
//!
//! The list of a family key can be crowded, too, because many pages may lack the same words of the template.
//! It is *split*: its entries are listed by two differences. Such lists are split again, up to [`DEPTH_MAX`]
//! differences.
//!
//! Invariants:
//! - The keys of an entry depend only on its signature, and on which bands are refined and which lists are
//!   split.
//! - Let x and z share a band and be near-duplicates. Then one of the keys that a search of x looks up is a
//!   key of z. An entry that would have too many keys of a family has the keys of the bands that the family
//!   refines instead. So a search also looks up refined bands.
//!
//! A snapshot contains family keys. A change of how they are made needs another version of its format.

mod persistence;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use doppel_model::Tau;
use doppel_model::pairwise::family::{Difference, END, FamilyOrder, differing_max, largest_partner};
use doppel_model::signature::Signature;
use doppel_model::stable_hash64_seeded;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::candidates::{EntryKeys, TableKey};
use crate::seed::{BandSeed, Seeded};

/// The largest number of common differences that a family key names.
const DEPTH_MAX: u32 = 8;

/// The largest number of keys of an entry that has family keys.
const KEYS_MAX: usize = 512;

/// A content that may differ from a near-duplicate in more hashes than this has no family keys, because it would
/// have too many.
const DIFFERING_MAX: u32 = 128;

/// The largest number of families in a partition.
const FAMILIES_MAX: usize = 64;

/// The families of a partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Families {
    orders: Vec<Arc<FamilyOrder>>,
    /// The family of each refined band.
    refined: HashMap<TableKey, u32, Seeded>,
    /// The keys of split lists.
    split: HashSet<TableKey, Seeded>,
}

/// The differences of one content from the template of a family.
struct Differences {
    /// The first differences.
    first: Vec<Difference>,
    /// Number of all differences.
    count: u32,
    /// The most hashes in which the content may differ from a near-duplicate.
    differing_max: u32,
}

/// Numbers of differences that family keys do not distinguish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct CountClass {
    first: u32,
    width: u32,
}

/// Makes the keys of one content in one family.
struct KeyMaker<'f> {
    families: &'f Families,
    seed: BandSeed,
    differences: &'f Differences,
    keys: &'f mut EntryKeys,
}

impl Families {
    /// Whether no band is refined.
    pub(crate) fn is_empty(&self) -> bool {
        self.refined.is_empty()
    }

    /// Whether this band is refined.
    pub(crate) fn is_refined(&self, band: TableKey) -> bool {
        self.refined.contains_key(&band)
    }

    /// Refines a band whose entries are like those of the sample, unless there are too many families.
    pub(crate) fn refine(&mut self, band: TableKey, sample: &[Arc<Signature>]) {
        if sample.is_empty() {
            return;
        }
        let learned = FamilyOrder::learn(sample.iter().map(|signature| &**signature));
        let mut scratch = Vec::new();
        let mut differences = |order: &FamilyOrder| {
            let of = |signature: &Arc<Signature>| {
                order.differences(signature, &mut scratch);
                scratch.len()
            };
            sample.iter().map(of).sum::<usize>()
        };
        // A quarter more differences are cheaper than another family.
        let most = differences(&learned) * 5 / 4;
        let nearest = (0..self.orders.len())
            .map(|family| (differences(&self.orders[family]), family))
            .min()
            .filter(|(differences, _)| *differences <= most);
        let family = match nearest {
            Some((_, family)) => family,
            None if self.orders.len() == FAMILIES_MAX => return,
            None => {
                self.orders.push(Arc::new(learned));
                self.orders.len() - 1
            }
        };
        self.refined.insert(band, family as u32);
    }

    /// Splits the list of a family key.
    pub(crate) fn split(&mut self, list: TableKey) {
        self.split.insert(list);
    }

    /// The keys of an entry. `bands` are the keys of its bands.
    pub(crate) fn entry_keys(
        &self,
        tau: Option<Tau>,
        seed: BandSeed,
        signature: &Signature,
        bands: EntryKeys,
    ) -> EntryKeys {
        let Some(tau) = tau.filter(|_| !self.is_empty()) else { return bands };
        let mut keys: EntryKeys = bands.iter().filter(|band| !self.is_refined(**band)).copied().collect();
        for family in self.families_of(&bands) {
            let before = keys.len();
            let differences = self.differences(family, tau, signature);
            let mut maker = KeyMaker { families: self, seed, differences: &differences, keys: &mut keys };
            if !maker.add_entry_keys(family) {
                keys.truncate(before);
                keys.extend(bands.iter().filter(|band| self.refined.get(*band) == Some(&family)).copied());
            }
        }
        keys
    }

    /// The family keys that a search looks up for a content with these bands, besides the keys of its bands.
    pub(crate) fn search_keys(
        &self,
        tau: Option<Tau>,
        seed: BandSeed,
        signature: &Signature,
        bands: &EntryKeys,
    ) -> EntryKeys {
        let mut keys = EntryKeys::new();
        let Some(tau) = tau.filter(|_| !self.is_empty()) else { return keys };
        let size = signature.size();
        let smallest = (u64::from(size) * tau.numerator()).div_ceil(Tau::DENOMINATOR) as u32;
        if differing_max(tau, smallest, largest_partner(tau, smallest)) > DIFFERING_MAX {
            // No partner has family keys.
            return keys;
        }
        for family in self.families_of(bands) {
            let differences = self.differences(family, tau, signature);
            KeyMaker { families: self, seed, differences: &differences, keys: &mut keys }
                .add_search_keys(family);
        }
        keys
    }

    /// The families of these bands.
    fn families_of(&self, bands: &EntryKeys) -> SmallVec<[u32; 2]> {
        let mut families = SmallVec::new();
        for family in bands.iter().filter_map(|band| self.refined.get(band)) {
            if !families.contains(family) {
                families.push(*family);
            }
        }
        families
    }

    fn differences(&self, family: u32, tau: Tau, signature: &Signature) -> Differences {
        let size = signature.size();
        let differing_max = differing_max(tau, size, largest_partner(tau, size));
        let mut first = Vec::new();
        self.orders[family as usize].differences(signature, &mut first);
        let count = first.len() as u32;
        first.truncate((differing_max + DEPTH_MAX) as usize);
        Differences { first, count, differing_max }
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let orders = self.orders.iter().map(|order| order.bytes()).sum::<usize>();
        orders + self.refined.allocation_size() + self.split.allocation_size()
    }
}

impl CountClass {
    /// The class of a number of differences. From 16 on, each power of two begins four classes. The classes
    /// before have four numbers.
    fn of(count: u32) -> Self {
        let width = (1 << count.max(1).ilog2() >> 2).max(4);
        Self { first: count / width * width, width }
    }

    /// The last number of the class.
    fn last(self) -> u32 {
        self.first + (self.width - 1)
    }
}

impl KeyMaker<'_> {
    /// Adds the keys of an entry in a family. Returns `false` if there are too many.
    fn add_entry_keys(&mut self, family: u32) -> bool {
        let class = CountClass::of(self.differences.count);
        let root = self.root(family, class);
        self.differences.differing_max <= DIFFERING_MAX && self.add_entry_keys_after(root, class, (0, 0))
    }

    /// Adds the keys that name a difference from `position` on, after `depth` others that `parent` names.
    fn add_entry_keys_after(
        &mut self,
        parent: u64,
        class: CountClass,
        (position, depth): (u32, u32),
    ) -> bool {
        let Differences { count, differing_max, .. } = *self.differences;
        for position in position..count.min(differing_max + depth + 1) {
            let is_far = position > (differing_max + class.width) / 2 + depth;
            let (key, table_key, is_split) = self.child(parent, is_far, position, depth);
            if !is_split {
                self.keys.push(table_key);
            } else if !self.add_entry_keys_after(key, class, (position + 1, depth + 1)) {
                return false;
            }
            if self.keys.len() >= KEYS_MAX {
                return false;
            }
        }
        if count <= differing_max + depth {
            self.keys.push(TableKey::of(self.hash(parent, END)));
        }
        true
    }

    /// Adds the keys that a search looks up in a family.
    fn add_search_keys(&mut self, family: u32) {
        let Differences { count, differing_max, .. } = *self.differences;
        let least = count.saturating_sub(differing_max);
        let mut class = CountClass::of(least);
        loop {
            // The fewest common differences with a near-duplicate of the class.
            let common = (count + class.first.max(least)).saturating_sub(differing_max).div_ceil(2);
            let probe = ClassProbe { common, needs_far: class.first > count };
            let root = self.root(family, class);
            self.add_search_keys_after(root, probe, (0, 0), false);
            if class.last() >= count.saturating_add(differing_max) {
                return;
            }
            class = CountClass::of(class.last() + 1);
        }
    }

    fn add_search_keys_after(
        &mut self,
        parent: u64,
        probe: ClassProbe,
        (position, depth): (u32, u32),
        parent_is_far: bool,
    ) {
        let count = self.differences.count;
        let end = (count + depth + 1).saturating_sub(probe.common).min(count);
        for position in position..end {
            for is_far in [false, true] {
                if is_far && !probe.needs_far || !is_far && parent_is_far {
                    continue;
                }
                let (key, table_key, is_split) = self.child(parent, is_far, position, depth);
                self.keys.push(table_key);
                if is_split {
                    self.add_search_keys_after(key, probe, (position + 1, depth + 1), is_far);
                }
            }
        }
        if probe.common <= depth {
            self.keys.push(TableKey::of(self.hash(parent, END)));
        }
    }

    /// The key of the list of `parent` for one more difference, its form in the tables, and whether the list
    /// is split.
    fn child(&self, parent: u64, is_far: bool, position: u32, depth: u32) -> (u64, TableKey, bool) {
        let key = self.hash(parent.wrapping_add(is_far.into()), self.differences.first[position as usize]);
        let table_key = TableKey::of(key);
        (key, table_key, depth + 1 < DEPTH_MAX && self.families.split.contains(&table_key))
    }

    fn root(&self, family: u32, class: CountClass) -> u64 {
        self.hash(family.into(), class.first.into())
    }

    fn hash(&self, parent: u64, difference: Difference) -> u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&parent.to_le_bytes());
        bytes[8..].copy_from_slice(&difference.to_le_bytes());
        stable_hash64_seeded(&bytes, self.seed.0)
    }
}

/// How a search looks up the entries of one class.
#[derive(Clone, Copy)]
struct ClassProbe {
    /// The fewest differences that near-duplicates of the class have in common with the content.
    common: u32,
    /// Whether far differences are looked up, too: entries of the class may have more differences.
    needs_far: bool,
}
