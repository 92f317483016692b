//! Prefix filtering: two sets that share enough hashes share one of their first ones, in any order of all hashes
//! (Chaudhuri, Ganti and Kaushik, "A primitive operator for similarity joins in data cleaning", ICDE 2006).
//!
//! Let o be the least number of hashes that a set of n hashes shares with a near-duplicate of any size. The first
//! n - o + 1 hashes of the set are its *prefix*. Two near-duplicates share a hash that is in both prefixes. Otherwise
//! the first hash that they share would lie behind the prefix of one set, where only o - 1 of its hashes are left, so
//! they would share fewer than o.
//!
//! Hashes that few contents of the reference have come first. A hash that no content of the reference has comes before
//! all others, and need not be looked up. So most contents without a partner look up nothing.

use doppel_model::Tau;
use doppel_model::signature::Signature;

/// The largest number of counters.
const COUNTERS_MAX: u64 = 1 << 28;

/// The number of hashes of the reference for each counter.
const HASHES_PER_COUNTER: u64 = 2;

/// An order of hashes: by the number of contents of the reference that have them, and then by the hash.
///
/// Several hashes can share a counter. The order is then less selective, but an order all the same.
#[derive(Debug)]
pub(super) struct HashOrder {
    /// The number of contents that have a hash of each counter. A power of two.
    counters: Vec<u32>,
}

/// The first hashes of a content in the order, without those that no content of the reference has.
#[derive(Debug)]
pub(super) struct FirstHashes {
    hashes: Vec<u64>,
    /// Number of hashes of the content that come before them in the order.
    before: u32,
}

impl HashOrder {
    /// Creates the order for a reference with so many hashes.
    pub(super) fn for_hashes(hashes: u64) -> Self {
        let counters = hashes.div_ceil(HASHES_PER_COUNTER).next_power_of_two().min(COUNTERS_MAX);
        Self { counters: vec![0; counters as usize] }
    }

    /// Counts the hashes of a content of the reference.
    pub(super) fn count(&mut self, hashes: impl Iterator<Item = u64>) {
        for hash in hashes {
            let counter = self.counter(hash);
            self.counters[counter] = self.counters[counter].saturating_add(1);
        }
    }

    fn counter(&self, hash: u64) -> usize {
        hash as usize & (self.counters.len() - 1)
    }

    /// Returns the prefix of a content without the hashes that the reference lacks. Every near-duplicate in the
    /// reference has one of them in its own prefix.
    pub(super) fn first_hashes(&self, signature: &Signature, tau: Tau) -> FirstHashes {
        let length = prefix_length(tau, signature.size()) as usize;
        let mut counted: Vec<(u32, u64)> = Vec::with_capacity(signature.set().len());
        counted.extend(signature.set().filter_map(|hash| {
            let count = self.counters[self.counter(hash)];
            (count > 0).then_some((count, hash))
        }));
        let before = signature.set().len() - counted.len();
        let wanted = length.saturating_sub(before).min(counted.len());
        if wanted > 0 && wanted < counted.len() {
            counted.select_nth_unstable(wanted - 1);
        }
        counted.truncate(wanted);
        counted.sort_unstable();
        FirstHashes { hashes: counted.into_iter().map(|(_, hash)| hash).collect(), before: before as u32 }
    }
}

impl FirstHashes {
    /// Iterates over the hashes, each with the number of hashes of the content that come before it.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.hashes.iter().copied().zip(self.before..)
    }
}

/// How many of its first hashes a set of `size` hashes needs, so that each near-duplicate has one of them among
/// its own.
fn prefix_length(tau: Tau, size: u32) -> u32 {
    let (size, numerator) = (u64::from(size), tau.numerator());
    // A near-duplicate of m hashes shares at most m of them, so m > tau * size.
    let smallest = (size * numerator / Tau::DENOMINATOR + 1).min(size);
    let least_shared = numerator * (size + smallest) / (Tau::DENOMINATOR + numerator) + 1;
    (size + 1).saturating_sub(least_shared) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_prefix_has_one_hash_more_than_a_near_duplicate_may_lack() {
        for tau in ["0.3", "0.5", "0.8", "0.9", "0.9999"] {
            let tau: Tau = tau.parse().unwrap();
            for size in 1..200_u32 {
                let exceeds =
                    |shared: u32, other: u32| tau.exceeded_by(shared.into(), size.into(), other.into());
                let partners = (1..=size).filter(|other| exceeds(*other, *other));
                let least = partners.map(|other| (1..=other).find(|shared| exceeds(*shared, other)).unwrap());
                assert_eq!(prefix_length(tau, size), size - least.min().unwrap() + 1, "{tau} of {size}");
            }
        }
    }
}
