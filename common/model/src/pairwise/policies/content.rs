//! The policy `content`: the Jaccard coefficient of the main contents' sets of 5-token shingles is above tau.
//!
//! F is that of `jaccard`, over the tokens of the main content. Therefore the distance is a metric, too, and
//! all code that relies on a metric works for this policy. Two pages with the same main content have the same
//! content, whatever surrounds it. The payload is the sketch.

use crate::signature::{SHINGLE_TOKENS, Signature, shingles};
use crate::sketch::{BINS, sketch};

/// Replaces `set` by the set of shingles, and appends the sketch to the payload.
pub(in crate::pairwise) fn sign(tokens: &[u64], set: &mut Vec<u64>, payload: &mut Vec<u8>) {
    shingles::<SHINGLE_TOKENS>(tokens, set);
    payload.extend(sketch(set));
}

/// Whether the payload of a signature has the length of a sketch, and its set has the size in the signature.
pub(in crate::pairwise) fn is_payload(signature: &Signature) -> bool {
    signature.payload().len() == BINS && is_set(signature)
}

/// Whether the set has the size in the signature, and at most one shingle for each token.
pub(in crate::pairwise) fn is_set(signature: &Signature) -> bool {
    signature.set().len() == signature.size() as usize && signature.size() <= signature.tokens()
}
