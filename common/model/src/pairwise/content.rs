//! `content`: the exact Jaccard coefficient of the sets of 5-token shingles of the main contents is above tau.
//!
//! It is F of `jaccard` over other tokens, so it is a metric as well, and everything that rests on one works for it. Two pages
//! with the same main content are the same content, whatever stands around it. The payload is the sketch.

use crate::signature::{SHINGLE_TOKENS, Signature, shingles};
use crate::sketch::{BINS, sketch};

/// Writes the set of shingles, and appends its sketch.
pub(super) fn sign(tokens: &[u64], set: &mut Vec<u64>, payload: &mut Vec<u8>) {
    shingles::<SHINGLE_TOKENS>(tokens, set);
    payload.extend(sketch(set));
}

/// Whether a set has the size that is stated, and the payload is a sketch.
pub(super) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == BINS && is_set(signature)
}

/// Whether the size is that of the set, which has at most one shingle for each token.
pub(super) fn is_set(signature: &Signature) -> bool {
    signature.set().len() == signature.size() as usize && signature.size() <= signature.tokens()
}
