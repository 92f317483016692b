//! Families: contents that share most of their hashes, such as pages made from one template.
//!
//! The members of a family share keys, although most of them are not near-duplicates. A [`FamilyOrder`] finds
//! what is special in each member: the *differences* of its set from the template, rarest first. A difference
//! is a hash of the member that the template lacks, or a hash of the template that the member lacks. For all
//! sets x, y and T, x Δ y = (x Δ T) Δ (y Δ T). So two members with many differences are near-duplicates only
//! if they share some of them, and prefix filtering finds such pairs:
//!
//! - Chaudhuri, Ganti, Kaushik, *A Primitive Operator for Similarity Joins in Data Cleaning*, ICDE 2006,
//!   section 3: two sets with a large overlap share an element among the first of each, in any order.
//! - Xiao, Wang, Lin, Yu, *Efficient Similarity Joins for Near Duplicate Detection*, WWW 2008, section 3: the
//!   positions of the first shared element bound the overlap.
//!
//! Invariant: the template and the order change only the cost, never which pairs are found.

pub mod keys;
pub mod shape;

use std::collections::HashMap;

use crate::Tau;
use crate::signature::Signature;

/// A difference in the order of a family: its rank, above the 40 bits of its hash.
pub type Difference = u64;

/// Number of bits of a hash in a set.
const HASH_BITS: u32 = 40;

/// Number of bits of the part of a rank that counts contents.
const COUNT_BITS: u32 = 16;

/// The greatest level of a difference. It leaves the greatest number free for [`END`].
const LEVEL_MAX: u64 = (1 << (64 - HASH_BITS - COUNT_BITS)) - 2;

/// Two differences are *tied* if at least one eighth of the contents that have either of them have both.
const TIED_PART: u32 = 8;

/// The largest number of differences of which the order learns which are tied. It bounds the time, which grows
/// with the square.
const TIED_MAX: usize = 1 << 12;

/// The end of the differences of every member. It comes after all differences.
pub const END: Difference = Difference::MAX;

/// The template of a family, and the order of its differences.
#[derive(Debug)]
pub struct FamilyOrder {
    /// The hashes that most contents of the sample have, in ascending order.
    template: Vec<u64>,
    /// The rank of each hash of the template, and of each that is a difference of several contents of the sample.
    /// All others have rank 0.
    ranks: HashMap<u64, u64, foldhash::fast::RandomState>,
}

/// The most hashes in which near-duplicates of sizes `a` and `b` may differ under a threshold.
#[must_use]
pub fn differing_max(tau: Tau, a: u32, b: u32) -> u32 {
    tau.differing_max(u64::from(a) + u64::from(b)).unwrap_or(0).min(u64::from(u32::MAX)) as u32
}

/// The size of the largest set that can be a near-duplicate of a set of `size` hashes under a threshold.
#[must_use]
pub fn largest_partner(tau: Tau, size: u32) -> u32 {
    (u64::from(size) * Tau::DENOMINATOR / tau.numerator()).min(u64::from(u32::MAX)) as u32
}

/// The number of differences of all contents of a sample together from their own template, which no template
/// undercuts.
pub fn least_differences<'s>(sample: impl IntoIterator<Item = &'s Signature>) -> usize {
    let sample: Vec<&Signature> = sample.into_iter().collect();
    counts(&sample).values().map(|count| (*count).min(sample.len() - count)).sum()
}

/// How many contents of a sample have each hash.
fn counts(sample: &[&Signature]) -> HashMap<u64, usize, foldhash::fast::RandomState> {
    let mut counts = HashMap::default();
    for signature in sample {
        signature.set().for_each(|hash| *counts.entry(hash).or_default() += 1);
    }
    counts
}

/// Whether a difference is *rare*: the template lacks it, and few contents of the sample have it, mostly one or none.
/// Rare differences come first.
#[must_use]
pub fn is_rare(difference: Difference) -> bool {
    difference >> HASH_BITS == 0
}

impl FamilyOrder {
    /// Learns the template and the order from a sample of the family.
    pub fn learn<'s>(sample: impl IntoIterator<Item = &'s Signature>) -> Self {
        let sample: Vec<&Signature> = sample.into_iter().collect();
        let counts = counts(&sample);
        let is_of_template = |count: usize| 2 * count > sample.len();
        let mut template: Vec<u64> =
            counts.iter().filter(|(_, count)| is_of_template(**count)).map(|(hash, _)| *hash).collect();
        template.sort_unstable();
        // The contents of the sample share a key. So all of them have the hashes that the key was made from,
        // although many members of the family lack them. Such hashes come last.
        let (kept, lacking): (Vec<_>, Vec<_>) =
            counts.into_iter().partition(|(_, count)| *count == sample.len());
        let mut differences: Vec<(usize, u64)> = lacking
            .into_iter()
            .map(|(hash, count)| (if is_of_template(count) { sample.len() - count } else { count }, hash))
            .filter(|(count, hash)| *count > 1 || template.binary_search(hash).is_ok())
            .collect();
        differences.sort_unstable();
        // The most frequent ones are ranked. The others stay rare, like those that no content of the sample has.
        let is_other = |hash: &u64| template.binary_search(hash).is_err();
        let others = differences.iter().filter(|(_, hash)| is_other(hash)).count();
        let mut dropped = others.saturating_sub(TIED_MAX);
        differences.retain(|(_, hash)| {
            let is_dropped = dropped > 0 && is_other(hash);
            dropped -= usize::from(is_dropped);
            !is_dropped
        });
        let levels = levels(&sample, &template, &differences);
        let rank = |level: u64, count: usize| {
            level.min(LEVEL_MAX) << COUNT_BITS | (count as u64).min((1 << COUNT_BITS) - 1)
        };
        let levels = levels.into_iter().chain(std::iter::repeat(LEVEL_MAX));
        let ranks = differences.iter().zip(levels).map(|((count, hash), level)| (*hash, rank(level, *count)));
        let last = kept.into_iter().map(|(hash, _)| (hash, rank(LEVEL_MAX, 0)));
        Self { template, ranks: ranks.chain(last).collect() }
    }

    /// Makes an order from a template and the ranks of its differences. `None` if the template does not ascend,
    /// or has a number that is not a hash, or if a rank is 0 or too large.
    #[must_use]
    pub fn from_parts(template: Vec<u64>, ranks: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let ranks: HashMap<_, _, _> = ranks.into_iter().collect();
        let is_valid = template.is_sorted_by(|a, b| a < b)
            && template.iter().all(|hash| *hash >> HASH_BITS == 0)
            && ranks.values().all(|rank| *rank > 0 && *rank >> COUNT_BITS <= LEVEL_MAX);
        is_valid.then_some(Self { template, ranks })
    }

    /// The hashes that most contents of the sample have, in ascending order.
    #[must_use]
    pub fn template(&self) -> &[u64] {
        &self.template
    }

    /// The hashes that have a rank above 0, with their ranks.
    pub fn ranks(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.ranks.iter().map(|(hash, rank)| (*hash, *rank))
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 * self.template.capacity() + 17 * self.ranks.capacity()
    }

    /// The number of differences of a set from the template.
    #[must_use]
    pub fn distance(&self, signature: &Signature) -> usize {
        let mut template = self.template.iter().copied().peekable();
        let mut shared = 0;
        for hash in signature.set() {
            while template.next_if(|next| *next < hash).is_some() {}
            shared += usize::from(template.next_if_eq(&hash).is_some());
        }
        signature.set().len() + self.template.len() - 2 * shared
    }

    /// Replaces `out` by the first `most` differences of a set from the template, in the order of the family. Returns
    /// the numbers of rare and of ranked differences among all.
    pub fn first_differences(
        &self,
        signature: &Signature,
        most: usize,
        out: &mut Vec<Difference>,
    ) -> (usize, usize) {
        self.collect_differences(signature, out);
        let rare = out.iter().filter(|difference| is_rare(**difference)).count();
        let ranked = out.len() - rare;
        if most < out.len() {
            out.select_nth_unstable(most);
            out.truncate(most);
        }
        out.sort_unstable();
        (rare, ranked)
    }

    /// Replaces `out` by the differences of a set from the template, in the order of the family.
    pub fn differences(&self, signature: &Signature, out: &mut Vec<Difference>) {
        self.collect_differences(signature, out);
        out.sort_unstable();
    }

    /// Replaces `out` by the differences of a set from the template, in no order.
    fn collect_differences(&self, signature: &Signature, out: &mut Vec<Difference>) {
        out.clear();
        let mut template = self.template.iter().copied().peekable();
        for hash in signature.set() {
            while let Some(lacking) = template.next_if(|next| *next < hash) {
                out.push(lacking);
            }
            if template.next_if_eq(&hash).is_none() {
                out.push(hash);
            }
        }
        out.extend(template);
        for hash in &mut *out {
            *hash |= self.ranks.get(hash).map_or(0, |rank| *rank) << HASH_BITS;
        }
    }
}

/// The level of each of the first [`TIED_MAX`] differences: its position in its set of tied differences. So
/// differences of the first level are not tied with each other.
fn levels(sample: &[&Signature], template: &[u64], differences: &[(usize, u64)]) -> Vec<u64> {
    let differences = &differences[..differences.len().min(TIED_MAX)];
    let words = sample.len().div_ceil(64);
    let index: HashMap<u64, usize, foldhash::fast::RandomState> =
        differences.iter().enumerate().map(|(at, (_, hash))| (*hash, at)).collect();
    // For each difference, a bit for each content that has the hash. They are inverted for the template.
    let mut contents = vec![0_u64; words * differences.len()];
    for (number, signature) in sample.iter().enumerate() {
        for at in signature.set().filter_map(|hash| index.get(&hash)) {
            contents[at * words + number / 64] |= 1 << (number % 64);
        }
    }
    for (at, (_, hash)) in differences.iter().enumerate() {
        if template.binary_search(hash).is_ok() {
            contents[at * words..][..words].iter_mut().for_each(|word| *word = !*word);
            if let Some(last) = contents[at * words..][..words].last_mut() {
                *last &= u64::MAX >> (64 * words - sample.len());
            }
        }
    }
    let of = |at: usize| &contents[at * words..][..words];
    let is_tied = |a: usize, b: usize| {
        let (both, either) = of(a).iter().zip(of(b)).fold((0, 0), |(both, either), (a, b)| {
            (both + (a & b).count_ones(), either + (a | b).count_ones())
        });
        TIED_PART * both >= either
    };
    // The first difference of each tied set, and the size of the set.
    let mut sets: Vec<(usize, u64)> = Vec::new();
    let level = |at: usize| match sets.iter_mut().find(|(first, _)| is_tied(*first, at)) {
        Some((_, size)) => {
            *size += 1;
            *size - 1
        }
        None => {
            sets.push((at, 1));
            0
        }
    };
    (0..differences.len()).map(level).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Random;
    use crate::signature::Builder;

    proptest! {
        #[test]
        fn the_first_differences_and_their_number_are_those_of_all(seed in any::<u64>(), most in 0..80_usize) {
            let mut random = Random::new(seed);
            let template: Vec<u64> = (0..60).map(|_| random.below(1 << 40)).collect();
            let mut page = || {
                let mut words = template.clone();
                for _ in 0..random.below(30) {
                    words[random.index(60)] = random.below(50);
                }
                Builder::new().build(&words)
            };
            let pages: Vec<Signature> = (0..20).map(|_| page()).collect();
            let order = FamilyOrder::learn(&pages[..10]);
            let (mut all, mut first) = (Vec::new(), Vec::new());
            for page in &pages {
                order.differences(page, &mut all);
                let numbers = order.first_differences(page, most, &mut first);
                let rare = all.partition_point(|difference| is_rare(*difference));
                prop_assert_eq!(numbers, (rare, all.len() - rare));
                prop_assert_eq!(&first, &all[..all.len().min(most)]);
                prop_assert_eq!(order.distance(page), all.len());
            }
        }
    }
}
