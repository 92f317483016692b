//! The policies `combined` and `by-site`, which compare supershingles and a random projection.
//!
//! - `combined`: by default at least two supershingles are equal (*B-similarity*), and at least 355 bits of
//!   the projection agree (*C-similarity*).
//! - `by-site`: like `combined` within a site; across sites by default at least 372 bits of the projection
//!   agree.
//!
//! Henzinger, *Finding Near-Duplicate Web Pages*, SIGIR 2006, section 3.5. The payload has the supershingles
//! first, and then the projection. The payload of `by-site` ends with the hash of the site.

use super::{projection, supershingle};
use crate::signature::Signature;

/// Number of bytes of the site's hash.
const SITE_BYTES: usize = 8;

/// Appends the supershingles and the projection. The caller appends the site.
pub(in crate::pairwise) fn sign(tokens: &[u64], shingles: &mut Vec<u64>, payload: &mut Vec<u8>) {
    supershingle::sign(tokens, supershingle::SHINGLE_TOKENS, shingles, payload);
    // A short text has no supershingles. Zeros keep the projection at its offset.
    payload.resize(supershingle::BYTES, 0);
    projection::sign(tokens, payload);
}

fn projection_of(payload: &[u8]) -> &[u8] {
    payload.get(supershingle::BYTES..).unwrap_or_default()
}

/// The B-similarity and the C-similarity of two contents.
pub(in crate::pairwise) struct CombinedSimilarity {
    /// Number of equal supershingles.
    pub(in crate::pairwise) supershingles: u32,
    /// Number of agreeing bits of the projection.
    pub(in crate::pairwise) bits: u32,
}

impl CombinedSimilarity {
    /// Whether there are at least `equal` equal supershingles and at least `agreeing` agreeing bits.
    pub(in crate::pairwise) fn is_at_least(&self, equal: u32, agreeing: u32) -> bool {
        self.supershingles >= equal && self.bits >= agreeing
    }
}

/// Measures the similarity of two payloads.
pub(in crate::pairwise) fn measure(a: &[u8], b: &[u8]) -> CombinedSimilarity {
    let supershingles = supershingle::equal(a, b);
    let bits = projection::agreeing(projection_of(a), projection_of(b));
    CombinedSimilarity { supershingles, bits }
}

/// Whether two payloads of `by-site` belong to the same site.
pub(in crate::pairwise) fn is_one_site(a: &[u8], b: &[u8]) -> bool {
    let site = |payload: &[u8]| payload.last_chunk::<SITE_BYTES>().copied();
    site(a) == site(b)
}

/// Calls `each` for every key of the supershingles. All near-duplicates under `combined` share such a key.
pub(in crate::pairwise) fn keys(payload: &[u8], each: impl FnMut(u64)) {
    supershingle::keys(payload, each);
}

/// Calls `each` for every key of the projection, which `by-site` needs for pairs on two sites. The key
/// numbers follow those of the supershingles.
pub(in crate::pairwise) fn keys_across(payload: &[u8], agreeing: u32, mut each: impl FnMut(u64)) {
    projection::keys(projection_of(payload), agreeing, |key| each(key + supershingle::SUPERSHINGLES as u64));
}

/// Whether the payload of a signature has the length of a `combined` payload.
pub(in crate::pairwise) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == supershingle::BYTES + projection::BYTES
}

/// Whether the payload of a signature has the length of a `by-site` payload.
pub(in crate::pairwise) fn is_payload_with_site(signature: &Signature) -> bool {
    signature.payload().len() == supershingle::BYTES + projection::BYTES + SITE_BYTES
}
