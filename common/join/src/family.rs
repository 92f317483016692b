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

use doppel_model::signature::Signature;

/// A difference in the order of a family: its rank, above the 40 bits of its hash.
pub(crate) type Difference = u64;

/// Number of bits of a hash in a set.
const HASH_BITS: u32 = 40;

/// The greatest rank. It leaves the greatest number free for [`END`].
const RANK_MAX: u64 = (1 << (64 - HASH_BITS)) - 2;

/// The end of the differences of every member. It comes after all differences.
pub(crate) const END: Difference = Difference::MAX;

/// The template of a family, and the order of its differences.
#[derive(Debug)]
pub(crate) struct FamilyOrder {
    /// The hashes that most contents of the sample have, in ascending order.
    template: Vec<u64>,
    /// In how many contents of the sample a hash is a difference. Hashes that are a difference of at most one
    /// content are left out.
    counts: HashMap<u64, u64, foldhash::fast::RandomState>,
}

impl FamilyOrder {
    /// Learns the template and the order from a sample of the family.
    pub(crate) fn learn<'s>(sample: impl IntoIterator<Item = &'s Signature>) -> Self {
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

    /// Replaces `out` by the differences of a set from the template, in the order of the family.
    pub(crate) fn differences(&self, signature: &Signature, out: &mut Vec<Difference>) {
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
