//! The two measures of a pair of pages, and the algorithms that decide by them.

use doppel_crawls::FetchedPage;
use doppel_model::PageUrl;
use doppel_model::pairwise::{ComparedTokens, Policy, Sites};
use doppel_model::signature::Signature;
use doppel_text::Extractor;
use serde::Serialize;

use crate::ground_truth::labelled::{self, Pair};

/// Number of bits of a projection.
pub(super) const BITS: u32 = 384;
/// Number of supershingles of a page, and so the largest B-similarity.
pub(super) const SUPERSHINGLES: u32 = 6;

/// Algorithm that decides whether two pages are near-duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Algorithm {
    /// At least two equal supershingles.
    B,
    /// At least 372 agreeing bits.
    C,
    /// At least two equal supershingles and 355 agreeing bits.
    Combined,
    /// At least three equal supershingles.
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

    /// Whether the algorithm calls a pair with these measures near-duplicates.
    pub(super) fn holds(self, Measures { b, c }: Measures) -> bool {
        match self {
            Self::B => b >= 2,
            Self::C => c >= 372,
            Self::Combined => b >= 2 && c >= 355,
            Self::Control => b >= 3,
        }
    }
}

/// Measures of a pair: number of equal supershingles (B-similarity), and number of agreeing bits
/// (C-similarity).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Measures {
    pub(super) b: u32,
    pub(super) c: u32,
}

/// Signatures of a page for both measures.
#[derive(Debug, Clone)]
pub(super) struct PageSignatures {
    pub(super) b: Signature,
    pub(super) c: Signature,
}

impl PageSignatures {
    pub(super) fn measures(&self, other: &Self) -> Measures {
        let of = |policy: Policy, a: &Signature, b: &Signature| policy.compare(a, b).similarity.shared;
        if self.b.content() == other.b.content() {
            return Measures { b: SUPERSHINGLES, c: BITS };
        }
        Measures { b: of(B, &self.b, &other.b), c: of(C, &self.c, &other.c) }
    }
}

/// Policy that compares the supershingles of two signatures. The comparison does not depend on the tokens
/// that the signatures are made of.
pub(super) const B: Policy = Policy::Supershingle { equal: 2, words: 8, tokens: ComparedTokens::Words };
/// Policy that compares the projections of two signatures. The comparison does not depend on the tokens that
/// the signatures are made of.
pub(super) const C: Policy = Policy::Projection { agreeing: 372, tokens: ComparedTokens::Words };

/// Creates the extractors of both signatures.
pub(super) fn extractors(tokens: ComparedTokens) -> [Extractor; 2] {
    let (b, c) =
        (Policy::Supershingle { equal: 2, words: 8, tokens }, Policy::Projection { agreeing: 372, tokens });
    [b, c].map(Extractor::new)
}

/// Labelled pair with its measures.
pub(super) struct MeasuredPair<'p> {
    pub(super) pair: &'p Pair,
    pub(super) measures: Measures,
}

impl MeasuredPair<'_> {
    /// Whether both pages are on one site by the definition of the paper.
    pub(super) fn is_on_one_site(&self) -> bool {
        is_one_site(&self.pair.a, &self.pair.b)
    }
}

/// Whether two pages are on one site by the definition of the paper: the host without its first label, where
/// two labels stay.
pub(super) fn is_one_site(a: &PageUrl, b: &PageUrl) -> bool {
    doppel_text::is_one_site(Sites::Parent, a, b)
}

/// Signs a page for both measures. `None` if the page redirects or has no token.
///
/// As in the paper, and unlike the product, there is no minimum number of tokens. A page of fewer than 8
/// tokens has no shingle, so its B-similarity is that of equal pages or 0. Its projection is like any other.
pub(super) fn sign(extractors: &mut [Extractor; 2], page: &FetchedPage) -> Option<PageSignatures> {
    let [b, c] = extractors;
    let signed = PageSignatures { b: labelled::sign(b, page)?, c: labelled::sign(c, page)? };
    (signed.b.tokens() > 0).then_some(signed)
}

/// Measures pairs. A pair is left out if one of its pages does not exist or has no token.
pub(super) fn measure_pairs<'p>(
    pairs: &'p [Pair],
    sign: &mut impl FnMut(&PageUrl) -> Option<PageSignatures>,
) -> Vec<MeasuredPair<'p>> {
    let measured = |pair: &'p Pair| {
        let measures = sign(&pair.a)?.measures(&sign(&pair.b)?);
        Some(MeasuredPair { pair, measures })
    };
    pairs.iter().filter_map(measured).collect()
}
