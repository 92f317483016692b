//! The keys of a content in a family. Each names some of its differences from the template of the family.
//!
//! Let x and z differ from the template in dx and dz hashes, and let k be the most hashes in which
//! near-duplicates of their sizes may differ. Near-duplicates have at least c = (dx + dz - k) / 2 differences
//! in common, rounded up. The first one is among the first dx - c + 1 of x and among the first dz - c + 1 of
//! z.
//!
//! - The first common difference is often [*rare*](super::is_rare). So each of the first k + 1 differences that is
//!   rare has a key: a hash of the family and the difference.
//! - Without a common rare one, the rare differences of both leave less than k for the others, the *ranked*
//!   differences. Most contents have so many rare ones that nothing is left, and they have no further keys. Of
//!   a few, the first ranked differences have keys: a hash of the family, of the [`MemberShape`] of z, and of the
//!   difference, or of [`END`] if z may have a near-duplicate without a common difference.
//!
//! If a list is split, the keys of its entries name a further difference, up to [`DEPTH_MAX`]. Between two ranked
//! differences, a key names the position of the earlier one among those of the entry.
//!
//! A search knows which shapes and positions there are. So it looks up ranked differences only where entries may
//! have enough of them in common with the content.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use super::shape::{CountClass, MemberShape};
use super::{Difference, END, FamilyOrder, differing_max, largest_partner};
use crate::signature::Signature;
use crate::{Tau, stable_hash64_seeded};

/// The largest number of common differences that a family key names.
const DEPTH_MAX: u32 = 8;

/// The largest number of keys of an entry in one family.
const KEYS_MAX: usize = 512;

/// A content that may differ from a near-duplicate in more hashes than this has no keys, because it would have too
/// many.
const DIFFERING_MAX: u32 = 128;

/// Begins the keys of rare differences. No shape has this number.
const RARE: u64 = u64::MAX;

/// The differences of one content from the template of a family, as its keys need them.
#[derive(Debug)]
pub struct MemberDifferences {
    /// The first differences. The rare ones come before the ranked ones.
    first: Vec<Difference>,
    /// Number of rare differences.
    rare: u32,
    /// Number of ranked differences.
    ranked: u32,
    /// The most hashes in which the content may differ from a near-duplicate.
    differing_max: u32,
}

/// A place in the tree of split lists.
#[derive(Clone, Copy)]
struct Branch {
    /// Hash of the differences that lead here.
    parent: u64,
    /// Position of the first difference that may follow.
    position: u32,
    /// In a search for ranked differences: the first position at which an entry can have the one that follows.
    other_position: u32,
    /// Whether only ranked differences lead here and may follow.
    is_ranked: bool,
    /// Number of differences that lead here.
    depth: u32,
}

/// How a search looks up differences: the ranked ones of the entries of a shape, or those that follow a rare one.
#[derive(Clone, Copy)]
struct Probe<'d> {
    /// The first differences of the content.
    first: &'d [Difference],
    /// Number of such differences of the content.
    own: u32,
    /// The largest number of such differences that an entry of the shape has.
    others: u32,
    /// The fewest that near-duplicates have in common with the content.
    common: u32,
}

/// Makes the keys of one content in one family.
#[derive(Debug)]
pub struct KeyMaker<S, A> {
    /// Number of the family.
    family: u32,
    /// Seed of all hashes.
    seed: u64,
    /// Whether the list of a key is split.
    is_split: S,
    /// Takes the keys.
    sink: A,
    /// How many keys were made.
    count: usize,
}

/// Whether a content of `size` hashes may have a near-duplicate that has family keys.
#[must_use]
pub fn may_have_keyed_partner(tau: Tau, size: u32) -> bool {
    let smallest = (u64::from(size) * tau.numerator()).div_ceil(Tau::DENOMINATOR) as u32;
    differing_max(tau, smallest, largest_partner(tau, smallest)) <= DIFFERING_MAX
}

impl MemberDifferences {
    /// The differences of a content from the template of a family.
    #[must_use]
    pub fn of(signature: &Signature, order: &FamilyOrder, tau: Tau) -> Self {
        let size = signature.size();
        let differing_max = differing_max(tau, size, largest_partner(tau, size));
        let mut first = Vec::new();
        let most = (differing_max + DEPTH_MAX) as usize;
        let (rare, ranked) = order.first_differences(signature, most, &mut first);
        Self { first, rare: rare as u32, ranked: ranked as u32, differing_max }
    }

    /// How many differences the content has.
    #[must_use]
    pub fn shape(&self) -> MemberShape {
        MemberShape::new(self.rare, self.ranked)
    }

    fn first_ranked(&self) -> &[Difference] {
        &self.first[self.first.len().min(self.rare as usize)..]
    }

    /// How a search finds entries of a shape without a common rare difference, if there can be any.
    fn ranked_probe(&self, shape: MemberShape) -> Option<Probe<'_>> {
        let ranked = shape.ranked().numbers();
        let differing_max = self.differing_max.checked_sub(self.rare)?.checked_sub(shape.rare().first())?;
        if shape.ranked().gap(self.ranked) > differing_max {
            return None;
        }
        let least = self.ranked.saturating_sub(differing_max).max(*ranked.start());
        let common = (self.ranked + least).saturating_sub(differing_max).div_ceil(2);
        Some(Probe { first: self.first_ranked(), own: self.ranked, others: *ranked.end(), common })
    }
}

impl Branch {
    fn root(parent: u64, is_ranked: bool) -> Self {
        Self { parent, position: 0, other_position: 0, is_ranked, depth: 0 }
    }
}

impl<S: Fn(u64) -> bool, A: FnMut(u64)> KeyMaker<S, A> {
    /// Creates a maker of the keys of a family. It passes them to `sink`. `is_split` says whether the list of a key
    /// is split.
    pub fn new(family: u32, seed: u64, is_split: S, sink: A) -> Self {
        Self { family, seed, is_split, sink, count: 0 }
    }

    /// Adds the keys of an entry. Returns `false` if there are too many. The caller then discards those that were
    /// added.
    pub fn add_entry_keys(&mut self, of: &MemberDifferences) -> bool {
        if of.differing_max > DIFFERING_MAX {
            return false;
        }
        let root = self.rare_root();
        for position in 0..of.rare.min(of.differing_max + 1) {
            let (branch, is_split) = self.child(root, of.first[position as usize], position);
            if !is_split {
                self.add_branch(branch);
            } else if !self.add_entry_keys_at(branch, &of.first, of.rare + of.ranked, of.differing_max) {
                return false;
            }
        }
        let Some(differing_max) = of.differing_max.checked_sub(of.rare) else { return true };
        let root = self.ranked_root(of.shape());
        self.add_entry_keys_at(root, of.first_ranked(), of.ranked, differing_max)
    }

    /// Adds the keys of an entry in the lists of a branch. The entry has `count` differences, of which
    /// near-duplicates have all but `differing_max`.
    fn add_entry_keys_at(
        &mut self,
        at: Branch,
        first: &[Difference],
        count: u32,
        differing_max: u32,
    ) -> bool {
        for position in at.position..count.min(differing_max + at.depth + 1) {
            let (branch, is_split) = self.child(at, first[position as usize], position);
            if !is_split {
                self.add_branch(branch);
            } else {
                let branch =
                    if at.is_ranked { self.at_position(branch, CountClass::of(position)) } else { branch };
                if !self.add_entry_keys_at(branch, first, count, differing_max) {
                    return false;
                }
            }
            if self.count >= KEYS_MAX {
                return false;
            }
        }
        if count <= differing_max + at.depth {
            self.add_end(at);
        }
        true
    }

    /// Adds the keys that a search looks up. `shapes` are those of all entries of the family.
    pub fn add_search_keys(&mut self, of: &MemberDifferences, shapes: &BTreeSet<MemberShape>) {
        let root = self.rare_root();
        let own = of.rare + of.ranked;
        let any =
            Probe { first: &of.first, own, others: u32::MAX, common: own.saturating_sub(of.differing_max) };
        for position in 0..of.rare.min(of.differing_max + 1) {
            let (branch, is_split) = self.child(root, of.first[position as usize], position);
            self.add_branch(branch);
            if is_split {
                self.add_search_keys_at(branch, any);
            }
        }
        let rare_max = of.differing_max.saturating_sub(of.rare);
        for shape in shapes.iter().take_while(|shape| shape.rare().first() <= rare_max) {
            if let Some(probe) = of.ranked_probe(*shape) {
                self.add_search_keys_at(self.ranked_root(*shape), probe);
            }
        }
    }

    /// Adds the keys that a search looks up in the lists of a branch.
    fn add_search_keys_at(&mut self, at: Branch, probe: Probe<'_>) {
        // The next common difference is the one after `at.depth` others.
        let positions = |count: u32| (count + at.depth + 1).saturating_sub(probe.common).min(count);
        for position in at.position..positions(probe.own) {
            let (branch, is_split) = self.child(at, probe.first[position as usize], position);
            self.add_branch(branch);
            if is_split && at.is_ranked {
                let mut class = CountClass::of(at.other_position);
                while class.first() < positions(probe.others) {
                    self.add_search_keys_at(self.at_position(branch, class), probe);
                    class = class.next();
                }
            } else if is_split {
                self.add_search_keys_at(branch, probe);
            }
        }
        if probe.common <= at.depth {
            self.add_end(at);
        }
    }

    fn add_branch(&mut self, branch: Branch) {
        self.count += 1;
        (self.sink)(branch.parent);
    }

    /// Adds the key of the contents that need no common difference after those that lead to a branch.
    fn add_end(&mut self, at: Branch) {
        self.count += 1;
        let hash = self.hash(at.parent, END);
        (self.sink)(hash);
    }

    /// The root of the lists of rare differences.
    fn rare_root(&self) -> Branch {
        Branch::root(self.hash(self.family.into(), RARE), false)
    }

    /// The root of the lists of ranked differences of entries of a shape.
    fn ranked_root(&self, shape: MemberShape) -> Branch {
        Branch::root(self.hash(self.family.into(), shape.number()), true)
    }

    /// The branch of one more difference, and whether its list is split.
    fn child(&self, at: Branch, difference: Difference, position: u32) -> (Branch, bool) {
        let branch = Branch {
            parent: self.hash(at.parent, difference),
            position: position + 1,
            other_position: at.other_position + 1,
            is_ranked: at.is_ranked,
            depth: at.depth + 1,
        };
        (branch, branch.depth < DEPTH_MAX && (self.is_split)(branch.parent))
    }

    /// The branch of those entries whose last common difference has such a position.
    fn at_position(&self, branch: Branch, position: CountClass) -> Branch {
        let parent = self.hash(branch.parent, position.first().into());
        let other_position = branch.other_position.max(position.first() + 1);
        Branch { parent, other_position, ..branch }
    }

    fn hash(&self, parent: u64, number: u64) -> u64 {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&parent.to_le_bytes());
        bytes[8..].copy_from_slice(&number.to_le_bytes());
        stable_hash64_seeded(&bytes, self.seed)
    }
}
