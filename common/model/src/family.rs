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

use std::collections::HashMap;

use crate::Tau;
use crate::signature::Signature;

/// A difference in the order of a family: its rank, above the 40 bits of its hash.
pub type Difference = u64;

/// Number of bits of a hash in a set.
const HASH_BITS: u32 = 40;

/// The greatest rank. It leaves the greatest number free for [`END`].
const RANK_MAX: u64 = (1 << (64 - HASH_BITS)) - 2;

/// The end of the differences of every member. It comes after all differences.
pub const END: Difference = Difference::MAX;

/// The template of a family, and the order of its differences.
#[derive(Debug)]
pub struct FamilyOrder {
    /// The hashes that most contents of the sample have, in ascending order.
    template: Vec<u64>,
    /// In how many contents of the sample a hash is a difference. Hashes that are a difference of at most one
    /// content are left out.
    counts: HashMap<u64, u64, foldhash::fast::RandomState>,
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

impl FamilyOrder {
    /// Learns the template and the order from a sample of the family.
    pub fn learn<'s>(sample: impl IntoIterator<Item = &'s Signature>) -> Self {
        let mut counts: HashMap<u64, u64, foldhash::fast::RandomState> = HashMap::default();
        let mut contents = 0;
        for signature in sample {
            contents += 1;
            signature.set().for_each(|hash| *counts.entry(hash).or_default() += 1);
        }
        let mut template = Vec::new();
        for (hash, count) in &mut counts {
            if 2 * *count > contents {
                template.push(*hash);
                *count = contents - *count;
            }
        }
        template.sort_unstable();
        counts.retain(|_, count| *count > 1);
        Self { template, counts }
    }

    /// Makes an order from a template and the counts of its differences. `None` if the template does not
    /// ascend, or has a number that is not a hash.
    #[must_use]
    pub fn from_parts(template: Vec<u64>, counts: impl IntoIterator<Item = (u64, u64)>) -> Option<Self> {
        let is_valid =
            template.is_sorted_by(|a, b| a < b) && template.iter().all(|hash| *hash >> HASH_BITS == 0);
        is_valid.then(|| Self { template, counts: counts.into_iter().collect() })
    }

    /// The hashes that most contents of the sample have, in ascending order.
    #[must_use]
    pub fn template(&self) -> &[u64] {
        &self.template
    }

    /// The hashes that are a difference of several contents of the sample, each with the number of these
    /// contents.
    pub fn counts(&self) -> impl ExactSizeIterator<Item = (u64, u64)> + '_ {
        self.counts.iter().map(|(hash, count)| (*hash, *count))
    }

    /// Memory held, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        8 * self.template.capacity() + 17 * self.counts.capacity()
    }

    /// Replaces `out` by the differences of a set from the template, in the order of the family.
    pub fn differences(&self, signature: &Signature, out: &mut Vec<Difference>) {
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
            *hash |= self.counts.get(hash).map_or(0, |count| (*count).min(RANK_MAX)) << HASH_BITS;
        }
        out.sort_unstable();
    }
}
