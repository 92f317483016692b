//! `copies`: the exact Jaccard coefficient of the sets of pairs of words of the main contents is above a threshold, which depends
//! on where the two pages are.
//!
//! There are three: of two plain texts; of a pair on one site, where different items share a template; and of a pair on two sites,
//! where the template differs around the same content. A pair of a page and a plain text is judged by their sites. Pairs of words
//! and not shingles of five: a changed word, such as a version or another package name, touches two of them and not five, so copies
//! stay further from pages that only resemble each other. The defaults are round figures in the gaps between pairs that were judged
//! (`doppel-eval copies`).
//!
//! The coefficient is a metric, and F asks for more than the least threshold of every pair: all that rests on one takes that threshold.
//! Whether a pair is F is decided by its own.
//!
//! The payload is the sketch, the hash of the site, and a byte that is 1 for plain text.

use super::content;
use crate::Tau;
use crate::signature::{Signature, shingles};
use crate::sketch::{BINS, sketch};

/// Tokens of a shingle.
pub(super) const WORDS: usize = 2;

/// The threshold of two plain texts.
pub(super) const TEXT: Tau = Tau::of_hundredths(85);

/// That of a pair on one site.
pub(super) const WITHIN: Tau = Tau::of_hundredths(90);

/// That of a pair on two sites.
pub(super) const ACROSS: Tau = Tau::of_hundredths(80);

/// Bytes of the site.
const SITE_BYTES: usize = 8;

/// The byte that says whether a page is plain text.
pub(super) fn form(is_text: bool) -> &'static [u8] {
    if is_text { &[1] } else { &[0] }
}

/// Writes the set of pairs of words, and appends what else there is.
pub(super) fn sign(tokens: &[u64], site: u64, is_text: bool, set: &mut Vec<u64>, payload: &mut Vec<u8>) {
    shingles::<WORDS>(tokens, set);
    payload.extend(sketch(set));
    payload.extend(site.to_le_bytes());
    payload.extend(form(is_text));
}

/// Where two pages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pair {
    /// Both are plain text.
    Text,
    /// Both are on one site, and at least one is a page of markup.
    Within,
    /// They are on two sites, and at least one is a page of markup.
    Across,
}

impl Pair {
    /// What the two signatures say.
    pub(super) fn of(a: &Signature, b: &Signature) -> Self {
        let (x, y) = (own(a), own(b));
        let is_text = |own: &[u8]| own.last() == form(true).last();
        if is_text(x) && is_text(y) {
            Self::Text
        } else if x.get(..SITE_BYTES) == y.get(..SITE_BYTES) {
            Self::Within
        } else {
            Self::Across
        }
    }

    /// The threshold of such a pair.
    pub(super) fn threshold(self, text: Tau, within: Tau, across: Tau) -> Tau {
        match self {
            Self::Text => text,
            Self::Within => within,
            Self::Across => across,
        }
    }

    /// Which pair the threshold is for, in words.
    pub(super) fn words(self) -> &'static str {
        match self {
            Self::Text => ", the threshold of two plain texts",
            Self::Within => ", the threshold within a site",
            Self::Across => ", the threshold across sites",
        }
    }
}

/// The least of the three thresholds.
pub(super) const fn least(text: Tau, within: Tau, across: Tau) -> Tau {
    let lower = if text.numerator() < within.numerator() { text } else { within };
    if lower.numerator() < across.numerator() { lower } else { across }
}

/// The site and the form.
fn own(signature: &Signature) -> &[u8] {
    signature.payload().get(BINS..).unwrap_or_default()
}

/// Whether the set has the size that is stated, and the payload its length.
pub(super) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == BINS + SITE_BYTES + 1 && content::is_set(signature)
}
