//! `combined`: B-similar in at least two supershingles, and C-similar in at least 355 bits; and `by-site`: that within a site, and
//! C-similar in at least 372 bits across sites.
//!
//! Henzinger, SIGIR 2006, section 3.5. The payload has the supershingles first and the projection behind them; that of
//! `by-site` ends with the hash of the site.

use super::{projection, supershingle};
use crate::signature::Signature;

/// Bytes of the site.
const SITE_BYTES: usize = 8;

/// Appends both parts.
pub(super) fn sign(tokens: &[u64], shingles: &mut Vec<u64>, payload: &mut Vec<u8>) {
    supershingle::sign(tokens, supershingle::SHINGLE_TOKENS, shingles, payload);
    // Of few tokens there are no supershingles, and what comes behind keeps its place.
    payload.resize(supershingle::BYTES, 0);
    projection::sign(tokens, payload);
}

fn projection_of(payload: &[u8]) -> &[u8] {
    payload.get(supershingle::BYTES..).unwrap_or_default()
}

/// Equal supershingles, and agreeing bits.
pub(super) fn measure(a: &[u8], b: &[u8]) -> (u32, u32) {
    (supershingle::equal(a, b), projection::agreeing(projection_of(a), projection_of(b)))
}

/// Whether two payloads are of one site.
pub(super) fn is_one_site(a: &[u8], b: &[u8]) -> bool {
    let site = |payload: &[u8]| payload.last_chunk::<SITE_BYTES>().copied();
    site(a) == site(b)
}

/// The keys of the supershingles.
pub(super) fn keys(payload: &[u8], each: impl FnMut(u64)) {
    supershingle::keys(payload, each);
}

/// The keys by which a pair on two sites meets as well: those of the projection, apart from those of the supershingles.
pub(super) fn keys_across(payload: &[u8], agreeing: u32, mut each: impl FnMut(u64)) {
    projection::keys(projection_of(payload), agreeing, |key| each(key + supershingle::SUPERSHINGLES as u64));
}

/// Whether a payload has the length of one of `combined`.
pub(super) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == supershingle::BYTES + projection::BYTES
}

/// Whether a payload has the length of one of `by-site`.
pub(super) fn is_payload_with_site(signature: &Signature) -> bool {
    signature.payload().len() == supershingle::BYTES + projection::BYTES + SITE_BYTES
}
