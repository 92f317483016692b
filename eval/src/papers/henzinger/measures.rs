//! The two measures of a page, and the algorithms that look at them.

use doppel_crawls::FetchedPage;
use doppel_model::PageUrl;
use doppel_model::pairwise::{Policy, Sites, Tokens};
use doppel_model::signature::Signature;
use doppel_text::Extractor;
use serde::Serialize;

use crate::ground_truth::labelled::{self, Pair};

/// Bits of a projection.
pub(super) const BITS: u32 = 384;
/// B-similarities that pairs have.
pub(super) const SUPERSHINGLES: u32 = 6;
/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Algorithm {
    /// Two equal supershingles.
    B,
    /// 372 agreeing bits.
    C,
    /// Two equal supershingles and 355 agreeing bits.
    Combined,
    /// Three equal supershingles.
    Control,
}

impl Algorithm {
    pub(super) const ALL: [Self; 4] = [Self::B, Self::C, Self::Combined, Self::Control];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::B => "B (at least 2 of 6)",
            Self::C => "C (at least 372 of 384)",
            Self::Combined => "combined (2 of 6, and 355)",
            Self::Control => "B, at least 3 of 6",
        }
    }

    pub(super) fn holds(self, Measures { b, c }: Measures) -> bool {
        match self {
            Self::B => b >= 2,
            Self::C => c >= 372,
            Self::Combined => b >= 2 && c >= 355,
            Self::Control => b >= 3,
        }
    }
}

/// Equal supershingles, and agreeing bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Measures {
    pub(super) b: u32,
    pub(super) c: u32,
}

/// Both signatures of a page.
#[derive(Debug, Clone)]
pub(super) struct Signed {
    pub(super) b: Signature,
    pub(super) c: Signature,
}

impl Signed {
    pub(super) fn measures(&self, other: &Self) -> Measures {
        let of = |policy: Policy, a: &Signature, b: &Signature| policy.compare(a, b).similarity.shared;
        if self.b.content() == other.b.content() {
            return Measures { b: SUPERSHINGLES, c: BITS };
        }
        Measures { b: of(B, &self.b, &other.b), c: of(C, &self.c, &other.c) }
    }
}

/// How signatures are compared, whatever they are of.
pub(super) const B: Policy = Policy::Supershingle { equal: 2, words: 8, tokens: Tokens::Words };
pub(super) const C: Policy = Policy::Projection { agreeing: 372, tokens: Tokens::Words };

/// Makers of both signatures.
pub(super) fn extractors(tokens: Tokens) -> [Extractor; 2] {
    let (b, c) =
        (Policy::Supershingle { equal: 2, words: 8, tokens }, Policy::Projection { agreeing: 372, tokens });
    [b, c].map(Extractor::new)
}

/// A labelled pair with what the measures say.
pub(super) struct Measured<'p> {
    pub(super) pair: &'p Pair,
    pub(super) measures: Measures,
}

impl Measured<'_> {
    /// Whether both pages are on one site, as the source has it.
    pub(super) fn is_on_one_site(&self) -> bool {
        is_one_site(&self.pair.a, &self.pair.b)
    }
}

/// Whether two pages are on one site, as the source has it: the host without its first label, where two labels stay.
pub(super) fn is_one_site(a: &PageUrl, b: &PageUrl) -> bool {
    doppel_text::is_one_site(Sites::Parent, a, b)
}

/// Both signatures of a page; none if it redirects or has no token. The least number of tokens of the product does not hold here, as it does not in
/// the source. One of fewer than 8 tokens has no shingle, so its B-similarity is that of equal pages or 0; its projection is like any other.
pub(super) fn sign(extractors: &mut [Extractor; 2], page: &FetchedPage) -> Option<Signed> {
    let [b, c] = extractors;
    let signed = Signed { b: labelled::sign(b, page)?, c: labelled::sign(c, page)? };
    (signed.b.tokens() > 0).then_some(signed)
}

/// The measures of pairs; those with a page that is not there or has no token are left out.
pub(super) fn measured<'p>(
    pairs: &'p [Pair],
    sign: &mut impl FnMut(&PageUrl) -> Option<Signed>,
) -> Vec<Measured<'p>> {
    let measured = |pair: &'p Pair| {
        let measures = sign(&pair.a)?.measures(&sign(&pair.b)?);
        Some(Measured { pair, measures })
    };
    pairs.iter().filter_map(measured).collect()
}
