//! The pairwise near-duplicate function F, and the banding that finds candidates for it.
//!
//! The policy is `jaccard`: F is true when the exact Jaccard coefficient of the two sets of shingle hashes is
//! above tau; this is decided in integers ([`Tau::exceeded_by`]). Two equal contents are near-duplicates,
//! unless they have no tokens: a content without tokens is never a duplicate. A content of fewer than
//! [`TOKENS_MIN`] tokens is a near-duplicate only of an equal content, never by similarity.
//!
//! ```
//! use doppel_model::pairwise::Policy;
//! use doppel_model::signature::Builder;
//!
//! let tokens: Vec<u64> = (1..=100_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
//! let mut builder = Builder::new();
//! let (a, b) = (builder.build(&tokens), builder.build(&tokens[..98]));
//! let comparison = Policy::default().compare(&a, &b);
//! assert_eq!((comparison.shared, comparison.a, comparison.b), (94, 100, 98));
//! assert!(comparison.similar);
//! ```

mod bands;

use serde::{Deserialize, Serialize};

pub use bands::{BandKeys, Bands, COLLISION_PROBABILITY};

use crate::Tau;
use crate::signature::Signature;

/// Contents of fewer tokens are never duplicates by similarity. Otherwise unrelated short texts would collapse
/// into one giant group.
pub const TOKENS_MIN: u32 = 20;

/// How two contents are compared. It is chosen when the service is created and never changes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Two contents are near-duplicates when their Jaccard coefficient is above this threshold.
    pub tau: Tau,
}

impl Default for Policy {
    fn default() -> Self {
        Self { tau: Tau::DEFAULT }
    }
}

/// The result of comparing two contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// Number of shingles that the two have in common.
    pub shared: u32,
    /// Number of distinct shingles of the first.
    pub a: u32,
    /// Number of distinct shingles of the second.
    pub b: u32,
    /// Whether the token sequences are the same.
    pub same_content: bool,
    /// The value of F.
    pub similar: bool,
}

impl Comparison {
    /// The Jaccard coefficient of the two sets of shingles. It is 1 for the same content.
    #[must_use]
    pub fn jaccard(&self) -> f64 {
        if self.same_content {
            return 1.0;
        }
        let union = u64::from(self.a) + u64::from(self.b) - u64::from(self.shared);
        if union == 0 { 0.0 } else { f64::from(self.shared) / union as f64 }
    }
}

impl Policy {
    /// Compares `a` with `b`.
    #[must_use]
    pub fn compare(&self, a: &Signature, b: &Signature) -> Comparison {
        let same_content = a.content() == b.content();
        let shared = if same_content { a.shingles() } else { a.shared_with(b) };
        let similar = if same_content {
            a.tokens() > 0
        } else {
            self.comparable(a) && self.comparable(b) && self.exceeded(shared, a, b)
        };
        Comparison { shared, a: a.shingles(), b: b.shingles(), same_content, similar }
    }

    /// F: whether `a` and `b` are near-duplicates.
    #[must_use]
    pub fn similar(&self, a: &Signature, b: &Signature) -> bool {
        if a.content() == b.content() {
            return a.tokens() > 0;
        }
        self.comparable(a)
            && self.comparable(b)
            && self.exceeded(a.shingles().min(b.shingles()), a, b)
            && self.exceeded(a.shared_with(b), a, b)
    }

    /// Whether contents of `a` and `b` shingles, of which they have at most `shared_max` in common, may be near-duplicates
    /// by similarity.
    #[inline]
    #[must_use]
    pub fn admits(&self, shared_max: u32, a: u32, b: u32) -> bool {
        self.tau.exceeded_by(shared_max.min(a).min(b).into(), a.into(), b.into())
    }

    /// Whether `signature` has at least [`TOKENS_MIN`] tokens, so that it may be a duplicate by similarity.
    #[must_use]
    pub fn comparable(&self, signature: &Signature) -> bool {
        signature.tokens() >= TOKENS_MIN
    }

    /// The bands for this tau: a pair at tau shares at least one of them almost surely.
    #[must_use]
    pub fn bands(&self) -> Bands {
        Bands::for_tau(self.tau)
    }

    /// One key per band of the sketch of `signature`. Two contents that have the same key in the same band are
    /// candidates.
    pub fn band_keys<'s>(&self, signature: &'s Signature) -> BandKeys<'s> {
        self.bands().keys(signature.sketch())
    }

    /// The link relation, whose connected components are the groups: equal contents, or contents that share a
    /// band and for which F is true.
    ///
    /// It depends on the two contents alone, and not on what was compared earlier.
    #[must_use]
    pub fn linked(&self, a: &Signature, b: &Signature) -> bool {
        let banded = || self.band_keys(a).zip(self.band_keys(b)).any(|(x, y)| x == y);
        (a.content() == b.content() || banded()) && self.similar(a, b)
    }

    fn exceeded(&self, shared: u32, a: &Signature, b: &Signature) -> bool {
        self.tau.exceeded_by(shared.into(), a.shingles().into(), b.shingles().into())
    }
}

#[cfg(test)]
mod tests;
