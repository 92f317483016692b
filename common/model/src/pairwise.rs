//! The pairwise near-duplicate function F of each policy, and the keys that find candidates for it.
//!
//! A [`Policy`] defines its signature, F, its measure of similarity, its keys, and a bound on lengths if it
//! has one. Two contents are *candidates* if they share a key. Under every policy:
//!
//! - Equal contents are near-duplicates, but a content without tokens is never a near-duplicate.
//! - A content of fewer than [`TOKENS_MIN`] tokens is a near-duplicate only of equal contents.
//!
//! The modules of `policies`:
//!
//! | module | policy | F |
//! |---|---|---|
//! | `jaccard` | `jaccard`, the default | the Jaccard coefficient of the sets of shingles is above tau |
//! | `supershingle` | `supershingle` | at least two of six supershingles are equal |
//! | `projection` | `projection` | at least 372 of 384 bits agree |
//! | `combined` | `combined`, `by-site` | `supershingle` and `projection`; across sites only `projection` |
//! | `simhash` | `simhash` | at most 3 of 64 bits differ |
//! | `imatch` | `imatch` | at least one of eleven fingerprints of words is equal |
//! | `multi_simhash` | `multi-simhash` | in at least one of five lexicons, fewer than 3 of 32 bits differ |
//! | `content` | `content` | like `jaccard`, over the main content |
//! | `copies` | `copies` | the Jaccard coefficient of the main contents' word pairs is above a threshold |
//! | `overlap` | `overlap` | at least 15 fingerprints of four lines each are shared |
//!
//! ```
//! use doppel_model::pairwise::Policy;
//! use doppel_model::signature::Builder;
//!
//! let tokens: Vec<u64> = (1..=100_u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
//! let mut builder = Builder::new();
//! let (a, b) = (builder.build(&tokens), builder.build(&tokens[..98]));
//! let comparison = Policy::default().compare(&a, &b);
//! assert_eq!((comparison.similarity.shared, comparison.similarity.of), (94, 104));
//! assert!(comparison.similar);
//! ```

mod bands;
mod criteria;
mod equality;
pub mod family;
mod keys;
mod policies;
mod policy_text;
mod signer;
mod similarity;
mod sites;
mod tokens;

use serde::{Deserialize, Serialize};

pub use bands::{BandKeys, Bands, COLLISION_PROBABILITY};
pub use criteria::PolicyCriterion;
pub use keys::Key;
pub use policies::overlap::chunks;
pub use policy_text::PolicyError;
pub use signer::{Features, Signer};
pub use similarity::{Comparison, Similarity};
pub use sites::Sites;
pub use tokens::ComparedTokens;

use policies::{
    combined, content, copies, fingerprints, imatch, jaccard, multi_simhash, overlap, projection, simhash,
    supershingle,
};

use crate::Tau;
use crate::signature::{SHINGLE_TOKENS, Signature, SignatureKind};

/// Minimum tokens for comparison by similarity. Otherwise unrelated short texts would form one giant group.
pub const TOKENS_MIN: u32 = 20;

/// How the contents of a collection are compared. The policy of a collection never changes.
///
/// The text form is the name and all parameters, such as `jaccard:tau=0.9`. It leaves out `tokens`, and
/// `words` of `jaccard`, if they have their default value. All parameters are optional in text to parse.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// Sets of shingles above a Jaccard threshold; see the module `jaccard`.
    Jaccard {
        /// Near-duplicates have a Jaccard coefficient above this threshold.
        tau: Tau,
        /// Number of words in a shingle, in [`SHINGLE_TOKENS_RANGE`](crate::signature::SHINGLE_TOKENS_RANGE).
        words: u32,
        /// Which tokens are compared.
        tokens: ComparedTokens,
    },
    /// Equal supershingles; see the module `supershingle`.
    Supershingle {
        /// Minimum number of equal supershingles, 1 to 6.
        equal: u32,
        /// Number of words in a shingle, 1 to 16.
        words: u32,
        /// Which tokens are compared.
        tokens: ComparedTokens,
    },
    /// Agreeing bits of a random projection; see the module `projection`.
    Projection {
        /// Minimum number of agreeing bits, 361 to 384.
        agreeing: u32,
        /// Which tokens are compared.
        tokens: ComparedTokens,
    },
    /// Equal supershingles and agreeing bits; see the module `combined`.
    Combined {
        /// Minimum number of equal supershingles, 1 to 6.
        equal: u32,
        /// Minimum number of agreeing bits, 0 to 384.
        agreeing: u32,
        /// Which tokens are compared.
        tokens: ComparedTokens,
    },
    /// Like `Combined` within a site, and like `Projection` across sites; see the module `combined`.
    BySite {
        /// Minimum number of agreeing bits of a pair on two sites, 361 to 384.
        across: u32,
        /// Minimum number of equal supershingles of a pair on one site, 1 to 6.
        equal: u32,
        /// Minimum number of agreeing bits of a pair on one site, 0 to 384.
        agreeing: u32,
        /// Which pages form a site.
        site: Sites,
        /// Which tokens are compared.
        tokens: ComparedTokens,
    },
    /// Few differing bits of a simhash; see the module `simhash`.
    Simhash {
        /// Maximum number of differing bits, 0 to 6.
        differing: u32,
    },
    /// Equal fingerprints of words; see the module `imatch`.
    Imatch {
        /// Number of random lexicons, 0 to 16. Each is a part of the first lexicon, which is not counted.
        lexicons: u32,
        /// Minimum weight of a word in a lexicon, in percent of the greatest weight, 0 to 49.
        idf_from: u32,
        /// Maximum weight of a word in a lexicon, in percent of the greatest weight, 50 to 100.
        idf_to: u32,
    },
    /// Near simhashes in several lexicons; see the module `multi_simhash`.
    MultiSimhash {
        /// Number of words in a feature, 1 to 5.
        words: u32,
        /// Number of lexicons, 1 to 16. The first lexicon has all words.
        lexicons: u32,
        /// The number of differing bits must be below this, 1 to 7.
        below: u32,
    },
    /// Shingles of the main content above a Jaccard threshold; see the module `content`.
    Content {
        /// Main contents of near-duplicates have a Jaccard coefficient above this threshold.
        tau: Tau,
    },
    /// Word pairs of the main content above a Jaccard threshold; see the module `copies`.
    Copies {
        /// Threshold of two plain texts.
        text: Tau,
        /// Threshold of a pair on one site.
        within: Tau,
        /// Threshold of a pair on two sites.
        across: Tau,
        /// Which pages form a site.
        site: Sites,
    },
    /// Shared chunks of lines; see the module `overlap`.
    Overlap {
        /// Number of lines in a chunk, 1 to 64.
        lines: u32,
        /// Minimum number of shared chunks, 1 to 255.
        shared: u32,
    },
}

impl Default for Policy {
    fn default() -> Self {
        Self::jaccard(Tau::DEFAULT)
    }
}

impl Policy {
    /// The policy `jaccard` with this threshold, and shingles of five words.
    #[must_use]
    pub const fn jaccard(tau: Tau) -> Self {
        Self::Jaccard { tau, words: SHINGLE_TOKENS as u32, tokens: ComparedTokens::Words }
    }

    /// Compares two contents by their signatures.
    #[must_use]
    pub fn compare(&self, a: &Signature, b: &Signature) -> Comparison {
        if a.content() == b.content() {
            let (similarity, similar) = (Similarity::of_copies(a.size()), a.tokens() > 0);
            return Comparison { similarity, same_content: true, similar };
        }
        let mut comparison = match *self {
            Self::Jaccard { tau, .. } | Self::Content { tau } => jaccard::compare(tau, a, b),
            Self::Copies { text, within, across, .. } => {
                jaccard::compare(copies::PairKind::of(a, b).threshold(text, within, across), a, b)
            }
            Self::Supershingle { equal, .. } => {
                let shared = supershingle::equal(a.payload(), b.payload());
                Comparison::new(shared, supershingle::SUPERSHINGLES as u32, shared >= equal)
            }
            Self::Projection { agreeing, .. } => {
                let bits = projection::agreeing(a.payload(), b.payload());
                Comparison::new(bits, projection::BITS, bits >= agreeing)
            }
            Self::Combined { equal, agreeing, .. } => {
                let measured = combined::measure(a.payload(), b.payload());
                Comparison::new(measured.bits, projection::BITS, measured.is_at_least(equal, agreeing))
            }
            Self::BySite { across, equal, agreeing, .. } => {
                let measured = combined::measure(a.payload(), b.payload());
                let is_one_site = combined::is_one_site(a.payload(), b.payload());
                let (equal, agreeing) = if is_one_site { (equal, agreeing) } else { (0, across) };
                Comparison::new(measured.bits, projection::BITS, measured.is_at_least(equal, agreeing))
            }
            Self::Simhash { differing } => {
                let bits = simhash::agreeing(a.payload(), b.payload());
                Comparison::new(bits, simhash::BITS, simhash::BITS - bits <= differing)
            }
            Self::Imatch { lexicons, .. } => {
                let shared = fingerprints::equal(a.payload(), b.payload());
                Comparison::new(shared, imatch::fingerprints(lexicons), shared > 0)
            }
            Self::MultiSimhash { below, .. } => {
                let bits = multi_simhash::agreeing(a.payload(), b.payload());
                Comparison::new(bits, multi_simhash::BITS, multi_simhash::BITS - bits < below)
            }
            Self::Overlap { shared, .. } => overlap::compare(shared, a, b),
        };
        comparison.similar &= self.comparable(a) && self.comparable(b);
        comparison
    }

    /// F: whether `a` and `b` are near-duplicates.
    #[must_use]
    pub fn similar(&self, a: &Signature, b: &Signature) -> bool {
        match *self {
            // Faster than `compare`: no hashes are counted if the sizes alone rule out F.
            Self::Jaccard { tau, .. } | Self::Content { tau } if a.content() != b.content() => {
                self.comparable(a) && self.comparable(b) && jaccard::similar(tau, a, b)
            }
            Self::Copies { text, within, across, .. } if a.content() != b.content() => {
                let tau = copies::PairKind::of(a, b).threshold(text, within, across);
                self.comparable(a) && self.comparable(b) && jaccard::similar(tau, a, b)
            }
            _ => self.compare(a, b).similar,
        }
    }

    /// Whether contents of sizes `a` and `b` that share at most `shared_max` hashes may be near-duplicates by
    /// similarity. Always true for a policy without a [metric](Self::metric).
    #[inline]
    #[must_use]
    pub fn admits(&self, shared_max: u32, a: u32, b: u32) -> bool {
        match self.metric() {
            Some(tau) => tau.exceeded_by(shared_max.min(a).min(b).into(), a.into(), b.into()),
            None => true,
        }
    }

    /// The threshold, if F is a Jaccard coefficient above a threshold. `None` for every other policy.
    ///
    /// If the threshold depends on the pair, this is the lowest one, so every pair that F accepts is above
    /// it. Only the Jaccard coefficient gives a metric, exact bounds on lengths, and bounds by parity
    /// bitmaps. Code that relies on them must do without if this is `None`.
    #[inline]
    #[must_use]
    pub const fn metric(&self) -> Option<Tau> {
        match self {
            Self::Jaccard { tau, .. } | Self::Content { tau } => Some(*tau),
            Self::Copies { text, within, across, .. } => Some(copies::lowest(*text, *within, *across)),
            _ => None,
        }
    }

    /// The kind of the policy's signatures. The policy compares no other kind.
    #[must_use]
    pub const fn kind(&self) -> SignatureKind {
        match self {
            Self::Jaccard { .. } => SignatureKind::Shingles,
            Self::Supershingle { .. } => SignatureKind::Supershingles,
            Self::Projection { .. } => SignatureKind::Projection,
            Self::Combined { .. } => SignatureKind::Combined,
            Self::BySite { .. } => SignatureKind::BySite,
            Self::Simhash { .. } => SignatureKind::Simhash,
            Self::Imatch { .. } => SignatureKind::Imatch,
            Self::MultiSimhash { .. } => SignatureKind::MultiSimhash,
            Self::Content { .. } => SignatureKind::Content,
            Self::Copies { .. } => SignatureKind::Copies,
            Self::Overlap { .. } => SignatureKind::Overlap,
        }
    }

    /// Whether this policy can have made a signature: the kind and the form of the payload fit.
    #[must_use]
    pub fn accepts(&self, signature: &Signature) -> bool {
        let is_payload = match self {
            Self::Jaccard { .. } => true,
            Self::Supershingle { .. } => supershingle::is_payload(signature),
            Self::Projection { .. } => signature.payload().len() == projection::BYTES,
            Self::Combined { .. } => combined::is_payload(signature),
            Self::BySite { .. } => combined::is_payload_with_site(signature),
            Self::Simhash { .. } => simhash::is_payload(signature),
            Self::Imatch { lexicons, .. } => {
                signature.payload().len() == 8 * imatch::fingerprints(*lexicons) as usize
            }
            Self::MultiSimhash { lexicons, .. } => {
                signature.payload().len() == multi_simhash::payload_bytes(*lexicons)
            }
            Self::Content { .. } => content::is_payload(signature),
            Self::Copies { .. } => copies::is_payload(signature),
            Self::Overlap { .. } => overlap::is_payload(signature),
        };
        signature.kind() == self.kind() && is_payload
    }

    /// Whether F reads the site of a page. If it does, copies on two sites are two contents.
    #[must_use]
    pub const fn reads_site(&self) -> bool {
        self.sites().is_some()
    }

    /// Whether signatures are made from the lines of a page.
    #[must_use]
    pub const fn reads_lines(&self) -> bool {
        matches!(self, Self::Overlap { .. })
    }

    /// Which pages form a site. `None` if F does not read the site.
    #[must_use]
    pub const fn sites(&self) -> Option<Sites> {
        match self {
            Self::BySite { site, .. } | Self::Copies { site, .. } => Some(*site),
            _ => None,
        }
    }

    /// Whether signatures are made from a page's terms ([`Features::terms`]) instead of its tokens.
    #[must_use]
    pub const fn reads_terms(&self) -> bool {
        // Exactly the policies with tables read terms, because tables hold the weights of terms.
        self.reads_tables()
    }

    /// Whether signers need [`Tables`](crate::tables::Tables), which are learnt before the first signature.
    #[must_use]
    pub const fn reads_tables(&self) -> bool {
        matches!(self, Self::Imatch { .. } | Self::MultiSimhash { .. })
    }

    /// Whether F reads only the main content of a page, instead of all its text.
    #[must_use]
    pub const fn reads_main(&self) -> bool {
        matches!(self, Self::Content { .. } | Self::Copies { .. })
    }

    /// Whether a content may be a near-duplicate by similarity: it has at least [`TOKENS_MIN`] tokens, and
    /// this policy [accepts](Self::accepts) its signature. Signatures of other policies could agree only
    /// because both lack data.
    #[must_use]
    pub fn comparable(&self, signature: &Signature) -> bool {
        signature.tokens() >= TOKENS_MIN && self.accepts(signature)
    }

    /// The link relation, whose connected components are the groups. Two contents are linked if F is true,
    /// and if they are equal or [share a band](Self::meets).
    ///
    /// The relation depends on the two contents alone, not on earlier comparisons.
    #[must_use]
    pub fn linked(&self, a: &Signature, b: &Signature) -> bool {
        (a.content() == b.content() || self.meets(a, b)) && self.similar(a, b)
    }
}

#[cfg(test)]
mod tests;
