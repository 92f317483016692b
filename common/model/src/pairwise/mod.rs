//! The pairwise near-duplicate function F of each policy, and the keys that find candidates for it.
//!
//! A [`Policy`] owns its signature, F, its measure, its candidates, and a bound on lengths if it has one. Whatever it is, two equal
//! contents are near-duplicates, unless they have no tokens: a content without tokens is never a duplicate. A content of fewer
//! than [`TOKENS_MIN`] tokens is a near-duplicate only of an equal content, never by similarity.
//!
//! | module | policy | F |
//! |---|---|---|
//! | `jaccard` | `jaccard`, the default | the Jaccard coefficient of the sets of shingles is above tau |
//! | `supershingle` | `supershingle` | at least two of six supershingles are equal |
//! | `projection` | `projection` | at least 372 of 384 bits agree |
//! | `combined` | `combined`, `by-site` | both of these; across sites the projection alone |
//! | `simhash` | `simhash` | at most 3 of 64 bits differ |
//! | `imatch` | `imatch` | one of eleven fingerprints of words is equal |
//! | `multi_simhash` | `multi-simhash` | in one of five lexicons, fewer than 3 of 32 bits differ |
//! | `content` | `content` | as `jaccard`, over the main content |
//! | `copies` | `copies` | the Jaccard coefficient of the sets of pairs of words of the main content is above one of three thresholds |
//! | `overlap` | `overlap` | at least 15 fingerprints of every four lines are shared |
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
mod combined;
mod content;
mod copies;
mod criteria;
mod equality;
mod fingerprints;
mod imatch;
mod jaccard;
mod keys;
mod multi_simhash;
mod named;
mod overlap;
mod projection;
mod signer;
mod simhash;
mod similarity;
mod sites;
mod supershingle;
mod tokens;

use serde::{Deserialize, Serialize};

pub use bands::{BandKeys, Bands, COLLISION_PROBABILITY};
pub use criteria::Criterion;
pub use keys::Key;
pub use named::PolicyError;
pub use overlap::chunks;
pub use signer::{Features, Signer};
pub use similarity::Similarity;
pub use sites::Sites;
pub use tokens::Tokens;

use crate::Tau;
use crate::signature::{Kind, SHINGLE_TOKENS, Signature};

/// Contents of fewer tokens are never duplicates by similarity. Otherwise unrelated short texts would collapse
/// into one giant group.
pub const TOKENS_MIN: u32 = 20;

/// How two contents are compared. It is chosen when a collection is created and never changes.
///
/// As text it is the name and all parameters, such as `jaccard:tau=0.9`, but `tokens`, and `words` of `jaccard`, where they are the
/// default's. Text that is read may leave out all that are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Policy {
    /// See the module `jaccard`.
    Jaccard {
        /// Two contents are near-duplicates when their Jaccard coefficient is above this threshold.
        tau: Tau,
        /// Words of a shingle, in [`SHINGLE_TOKENS_RANGE`](crate::signature::SHINGLE_TOKENS_RANGE).
        words: u32,
        /// What is compared.
        tokens: Tokens,
    },
    /// See the module `supershingle`.
    Supershingle {
        /// The least number of equal supershingles, 1 to 6.
        equal: u32,
        /// Words of a shingle.
        words: u32,
        /// What is compared.
        tokens: Tokens,
    },
    /// See the module `projection`.
    Projection {
        /// The least number of agreeing bits, 361 to 384.
        agreeing: u32,
        /// What is compared.
        tokens: Tokens,
    },
    /// See the module `combined`.
    Combined {
        /// The least number of equal supershingles, 1 to 6.
        equal: u32,
        /// The least number of agreeing bits, up to 384.
        agreeing: u32,
        /// What is compared.
        tokens: Tokens,
    },
    /// See the module `combined`.
    BySite {
        /// The least number of agreeing bits of a pair on two sites, 361 to 384.
        across: u32,
        /// The least number of equal supershingles of a pair on one site, 1 to 6.
        equal: u32,
        /// The least number of agreeing bits of a pair on one site, up to 384.
        agreeing: u32,
        /// What a site is.
        site: Sites,
        /// What is compared.
        tokens: Tokens,
    },
    /// See the module `simhash`.
    Simhash {
        /// The greatest number of bits that differ, up to 6.
        differing: u32,
    },
    /// See the module `imatch`.
    Imatch {
        /// Random lexicons, beside the one that they are parts of.
        lexicons: u32,
        /// The least weight of a word in a lexicon, in percent of the greatest weight.
        idf_from: u32,
        /// The greatest one.
        idf_to: u32,
    },
    /// See the module `multi_simhash`.
    MultiSimhash {
        /// Words of a feature.
        words: u32,
        /// Lexicons, of which the first has all words.
        lexicons: u32,
        /// The least distance that is too great.
        below: u32,
    },
    /// See the module `content`.
    Content {
        /// Two contents are near-duplicates when the Jaccard coefficient of their main contents is above this threshold.
        tau: Tau,
    },
    /// See the module `copies`.
    Copies {
        /// The threshold of two plain texts.
        text: Tau,
        /// That of a pair on one site.
        within: Tau,
        /// That of a pair on two sites.
        across: Tau,
        /// What a site is.
        site: Sites,
    },
    /// See the module `overlap`.
    Overlap {
        /// Lines of a chunk, 1 to 64.
        lines: u32,
        /// The least number of shared chunks, 1 to 255.
        shared: u32,
    },
}

impl Default for Policy {
    fn default() -> Self {
        Self::jaccard(Tau::DEFAULT)
    }
}

/// The result of comparing two contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Comparison {
    /// The policy's own measure.
    pub similarity: Similarity,
    /// Whether the contents are the same.
    pub same_content: bool,
    /// The value of F.
    pub similar: bool,
}

impl Comparison {
    /// Of two contents that differ.
    fn of((shared, of): (u32, u32), similar: bool) -> Self {
        Self { similarity: Similarity { shared, of }, same_content: false, similar }
    }
}

impl Policy {
    /// `jaccard` with this threshold, and shingles of five words.
    #[must_use]
    pub const fn jaccard(tau: Tau) -> Self {
        Self::Jaccard { tau, words: SHINGLE_TOKENS as u32, tokens: Tokens::Words }
    }

    /// Compares `a` with `b`.
    #[must_use]
    pub fn compare(&self, a: &Signature, b: &Signature) -> Comparison {
        if a.content() == b.content() {
            let (similarity, similar) = (Similarity::of_copies(a.size()), a.tokens() > 0);
            return Comparison { similarity, same_content: true, similar };
        }
        let mut comparison = match *self {
            Self::Jaccard { tau, .. } | Self::Content { tau } => jaccard::compare(tau, a, b),
            Self::Copies { text, within, across, .. } => {
                jaccard::compare(copies::Pair::of(a, b).threshold(text, within, across), a, b)
            }
            Self::Supershingle { equal, .. } => {
                let shared = supershingle::equal(a.payload(), b.payload());
                Comparison::of((shared, supershingle::SUPERSHINGLES as u32), shared >= equal)
            }
            Self::Projection { agreeing, .. } => {
                let bits = projection::agreeing(a.payload(), b.payload());
                Comparison::of((bits, projection::BITS), bits >= agreeing)
            }
            Self::Combined { equal, agreeing, .. } => {
                let (supershingles, bits) = combined::measure(a.payload(), b.payload());
                Comparison::of((bits, projection::BITS), supershingles >= equal && bits >= agreeing)
            }
            Self::BySite { across, equal, agreeing, .. } => {
                let (supershingles, bits) = combined::measure(a.payload(), b.payload());
                let within = supershingles >= equal && bits >= agreeing;
                let is_one_site = combined::is_one_site(a.payload(), b.payload());
                Comparison::of((bits, projection::BITS), if is_one_site { within } else { bits >= across })
            }
            Self::Simhash { differing } => {
                let bits = simhash::agreeing(a.payload(), b.payload());
                Comparison::of((bits, simhash::BITS), simhash::BITS - bits <= differing)
            }
            Self::Imatch { lexicons, .. } => {
                let shared = fingerprints::equal(a.payload(), b.payload());
                Comparison::of((shared, imatch::fingerprints(lexicons)), shared > 0)
            }
            Self::MultiSimhash { below, .. } => {
                let bits = multi_simhash::agreeing(a.payload(), b.payload());
                Comparison::of((bits, multi_simhash::BITS), multi_simhash::BITS - bits < below)
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
            // It need not count where the sizes forbid it.
            Self::Jaccard { tau, .. } | Self::Content { tau } if a.content() != b.content() => {
                self.comparable(a) && self.comparable(b) && jaccard::similar(tau, a, b)
            }
            Self::Copies { text, within, across, .. } if a.content() != b.content() => {
                let tau = copies::Pair::of(a, b).threshold(text, within, across);
                self.comparable(a) && self.comparable(b) && jaccard::similar(tau, a, b)
            }
            _ => self.compare(a, b).similar,
        }
    }

    /// Whether contents of sizes `a` and `b`, which have at most `shared_max` in common, may be near-duplicates by similarity.
    #[inline]
    #[must_use]
    pub fn admits(&self, shared_max: u32, a: u32, b: u32) -> bool {
        match self.metric() {
            Some(tau) => tau.exceeded_by(shared_max.min(a).min(b).into(), a.into(), b.into()),
            None => true,
        }
    }

    /// The threshold where F is Jaccard's coefficient above it, and the least one where it depends on the pair: the one measure here that
    /// is a metric, bounds lengths exactly, and is bounded by parity bitmaps. No pair is F that is not above it. None elsewhere: whatever
    /// rests on these does without.
    #[inline]
    #[must_use]
    pub const fn metric(&self) -> Option<Tau> {
        match self {
            Self::Jaccard { tau, .. } | Self::Content { tau } => Some(*tau),
            Self::Copies { text, within, across, .. } => Some(copies::least(*text, *within, *across)),
            _ => None,
        }
    }

    /// The kind of its signatures. No other one is compared.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Jaccard { .. } => Kind::Shingles,
            Self::Supershingle { .. } => Kind::Supershingles,
            Self::Projection { .. } => Kind::Projection,
            Self::Combined { .. } => Kind::Combined,
            Self::BySite { .. } => Kind::BySite,
            Self::Simhash { .. } => Kind::Simhash,
            Self::Imatch { .. } => Kind::Imatch,
            Self::MultiSimhash { .. } => Kind::MultiSimhash,
            Self::Content { .. } => Kind::Content,
            Self::Copies { .. } => Kind::Copies,
            Self::Overlap { .. } => Kind::Overlap,
        }
    }

    /// Whether a signature is one of this policy.
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
                signature.payload().len() == multi_simhash::bytes(*lexicons)
            }
            Self::Content { .. } => content::is_payload(signature),
            Self::Copies { .. } => copies::is_payload(signature),
            Self::Overlap { .. } => overlap::is_payload(signature),
        };
        signature.kind() == self.kind() && is_payload
    }

    /// Whether F reads the site: then a content is a text on a site, and copies on two sites are two contents.
    #[must_use]
    pub const fn reads_site(&self) -> bool {
        self.sites().is_some()
    }

    /// Whether its signatures are made of the lines of a page.
    #[must_use]
    pub const fn reads_lines(&self) -> bool {
        matches!(self, Self::Overlap { .. })
    }

    /// What a site is, where F reads it.
    #[must_use]
    pub const fn sites(&self) -> Option<Sites> {
        match self {
            Self::BySite { site, .. } | Self::Copies { site, .. } => Some(*site),
            _ => None,
        }
    }

    /// Whether its signatures are made of the words of a page rather than of its tokens ([`Features::terms`]).
    #[must_use]
    pub const fn reads_terms(&self) -> bool {
        // Terms are read for what tables say of them.
        self.reads_tables()
    }

    /// Whether its signatures depend on [`Tables`](crate::tables::Tables), too, which are then learnt before the first of them is made.
    #[must_use]
    pub const fn reads_tables(&self) -> bool {
        matches!(self, Self::Imatch { .. } | Self::MultiSimhash { .. })
    }

    /// Whether F reads the main content of a page in place of all its text.
    #[must_use]
    pub const fn reads_main(&self) -> bool {
        matches!(self, Self::Content { .. } | Self::Copies { .. })
    }

    /// Whether `signature` may be a duplicate by similarity: it has at least [`TOKENS_MIN`] tokens, and is one of this policy. Of
    /// another policy's nothing can be told: where both have nothing to compare, all of it would agree.
    #[must_use]
    pub fn comparable(&self, signature: &Signature) -> bool {
        signature.tokens() >= TOKENS_MIN && self.accepts(signature)
    }

    /// The link relation, whose connected components are the groups: equal contents, or contents for which F is true and that
    /// [meet](Self::meets).
    ///
    /// It depends on the two contents alone, and not on what was compared earlier.
    #[must_use]
    pub fn linked(&self, a: &Signature, b: &Signature) -> bool {
        (a.content() == b.content() || self.meets(a, b)) && self.similar(a, b)
    }
}

#[cfg(test)]
mod tests;
