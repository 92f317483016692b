//! Families: how the entries of a crowded band are listed, so that no search visits all of them.
//!
//! The pages of one template share many band keys, although most of them are not near-duplicates. The bucket
//! of such a band grows with the collection. So a crowded band is *refined*: its entries are listed by *family
//! keys* instead. These are made from the differences of an entry from the template, see
//! [`family`](doppel_model::pairwise::family). Refined bands whose entries have the same template share a family.
//!
//! A list of a family can be crowded, too. It is *split*: its entries are listed by keys that name a further
//! difference. See [`keys`](doppel_model::pairwise::family::keys) for how keys are made, and which keys a search
//! looks up.
//!
//! Invariants:
//! - The keys of an entry depend only on its signature, and on which bands are refined and which lists are
//!   split.
//! - The families have the shape of every entry that has family keys. Whoever lists an entry adds its shapes
//!   first. A shape is never removed.
//! - Let x and z share a band and be near-duplicates. Then one of the keys that a search of x looks up is a
//!   key of z. An entry that would have too many keys of a family has the keys of the bands that the family
//!   refines instead. So a search also looks up refined bands.
//!
//! A snapshot contains family keys. A change of how they are made needs another version of its format.

mod persistence;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use doppel_model::Tau;
use doppel_model::pairwise::family::keys::{KeyMaker, MemberDifferences, may_have_keyed_partner};
use doppel_model::pairwise::family::shape::MemberShape;
use doppel_model::pairwise::family::{FamilyOrder, least_differences};
use doppel_model::signature::Signature;
use hashbrown::{HashMap, HashSet};
use smallvec::SmallVec;

use super::candidates::{EntryKeys, TableKey};
use crate::seed::{BandSeed, Seeded};

/// The largest number of families in a partition.
const FAMILIES_MAX: usize = 64;

/// Number of contents of a sample that are compared with every template, to find the nearest.
const FEW: usize = 4;

/// The families of a partition.
#[derive(Debug, Clone, Default)]
pub(crate) struct Families {
    orders: Vec<Arc<FamilyOrder>>,
    /// The shapes of the entries of each family.
    shapes: Vec<BTreeSet<MemberShape>>,
    /// The family of each refined band.
    refined: HashMap<TableKey, u32, Seeded>,
    /// The keys of split lists.
    split: HashSet<TableKey, Seeded>,
}

/// Some contents of a band.
type Sample = [Arc<Signature>];

/// How an entry is listed.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    pub(crate) keys: EntryKeys,
    pub(crate) shapes: EntryShapes,
}

/// The families in which an entry has keys, and its shape in each.
pub(crate) type EntryShapes = SmallVec<[(u32, MemberShape); 1]>;

impl Families {
    /// Whether no band is refined.
    pub(crate) fn is_empty(&self) -> bool {
        self.refined.is_empty()
    }

    /// Whether there are as many families as a partition may have.
    pub(crate) fn is_full(&self) -> bool {
        self.orders.len() == FAMILIES_MAX
    }

    /// Whether this band is refined.
    pub(crate) fn is_refined(&self, band: TableKey) -> bool {
        self.refined.contains_key(&band)
    }

    /// Refines a band whose entries are like those of the sample, in the family whose template is nearest to them.
    /// Returns `false` if no template is near enough.
    pub(crate) fn refine(&mut self, band: TableKey, sample: &Sample) -> bool {
        let some: Vec<_> = sample.iter().step_by(sample.len().div_ceil(FEW).max(1)).cloned().collect();
        let distances = self.orders.iter().map(|order| differences(order, &some));
        let Some((_, family)) = distances.zip(0_u32..).min() else { return false };
        let is_near = differences(&self.orders[family as usize], sample) <= differences_max(sample);
        if is_near {
            self.refined.insert(band, family);
        }
        is_near
    }

    /// Refines a band whose entries are like those of the sample, in a new family. Its template is that of the
    /// `wider` sample if it is near enough. Does nothing if there are too many families.
    pub(crate) fn refine_in_new(&mut self, band: TableKey, sample: &Sample, wider: &Sample) {
        if self.is_full() {
            return;
        }
        let learn = |sample: &Sample| FamilyOrder::learn(sample.iter().map(|signature| &**signature));
        let mut order = learn(wider);
        if differences(&order, sample) > differences_max(sample) {
            order = learn(sample);
        }
        self.refined.insert(band, self.orders.len() as u32);
        self.orders.push(Arc::new(order));
        self.shapes.push(BTreeSet::new());
    }

    /// Splits the list of a family key.
    pub(crate) fn split(&mut self, list: TableKey) {
        self.split.insert(list);
    }

    /// How an entry is listed. `bands` are the keys of its bands.
    pub(crate) fn listing(
        &self,
        tau: Option<Tau>,
        seed: BandSeed,
        signature: &Signature,
        bands: EntryKeys,
    ) -> Listing {
        let Some(tau) = tau.filter(|_| !self.is_empty()) else {
            return Listing { keys: bands, shapes: EntryShapes::new() };
        };
        let mut keys: EntryKeys = bands.iter().filter(|band| !self.is_refined(**band)).copied().collect();
        let mut shapes = EntryShapes::new();
        for family in self.families_of(&bands) {
            let before = keys.len();
            let differences = MemberDifferences::of(signature, &self.orders[family as usize], tau);
            if self.key_maker(family, seed, &mut keys).add_entry_keys(&differences) {
                shapes.push((family, differences.shape()));
            } else {
                keys.truncate(before);
                keys.extend(bands.iter().filter(|band| self.refined.get(*band) == Some(&family)).copied());
            }
        }
        Listing { keys, shapes }
    }

    /// Notes the shapes of an entry. Searches find the entry from then on.
    pub(crate) fn add_shapes(&mut self, shapes: &EntryShapes) {
        for (family, shape) in shapes {
            self.shapes[*family as usize].insert(*shape);
        }
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
        let tau = tau.filter(|tau| !self.is_empty() && may_have_keyed_partner(*tau, signature.size()));
        let Some(tau) = tau else { return keys };
        for family in self.families_of(bands) {
            let differences = MemberDifferences::of(signature, &self.orders[family as usize], tau);
            self.key_maker(family, seed, &mut keys)
                .add_search_keys(&differences, &self.shapes[family as usize]);
        }
        keys
    }

    /// Creates a maker that appends the keys of a content in a family to `keys`.
    fn key_maker(
        &self,
        family: u32,
        seed: BandSeed,
        keys: &mut EntryKeys,
    ) -> KeyMaker<impl Fn(u64) -> bool, impl FnMut(u64)> {
        let is_split = move |key| self.split.contains(&TableKey::of(key));
        KeyMaker::new(family, seed.0, is_split, move |key| keys.push(TableKey::of(key)))
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

    /// Whether searches know all shapes of an entry.
    #[cfg(test)]
    pub(crate) fn has_shapes(&self, shapes: &EntryShapes) -> bool {
        shapes.iter().all(|(family, shape)| self.shapes[*family as usize].contains(shape))
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let orders = self.orders.iter().map(|order| order.bytes()).sum::<usize>();
        // A node of the tree of shapes has up to 11 shapes, and is more than half full.
        let shapes = self.shapes.iter().map(BTreeSet::len).sum::<usize>() * 2 * size_of::<MemberShape>();
        orders + shapes + self.refined.allocation_size() + self.split.allocation_size()
    }
}

/// The most differences of a sample from a template that is near enough. Twice as many as necessary are cheaper than
/// another family, in which entries have more keys.
fn differences_max(sample: &Sample) -> usize {
    2 * least_differences(sample.iter().map(|signature| &**signature))
}

/// Number of differences of all contents of a sample together.
fn differences(order: &FamilyOrder, sample: &Sample) -> usize {
    sample.iter().map(|signature| order.distance(signature)).sum()
}
