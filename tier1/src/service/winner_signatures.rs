//! Signatures of winners, each for all members that it is compared with.
//!
//! Most updates of a page that is in a group are compared with the winner of that, which may be a page of another range. A
//! signature never changes under its content hash, so one that was read once serves the members of its group until others
//! need the room, whatever becomes of the page.

use std::sync::Arc;

use doppel_model::ContentHash;
use doppel_model::signature::Signature;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Bytes of signatures that are kept.
const BYTES: u64 = 16 << 20;

/// About as many are expected in that, for the size of its tables.
const SIGNATURES: usize = 16_000;

/// Signatures of winners that were read lately.
pub(super) struct WinnerSignatures(Cache<ContentHash, Arc<Signature>, Bytes>);

#[derive(Clone)]
struct Bytes;

impl Weighter<ContentHash, Arc<Signature>> for Bytes {
    fn weight(&self, _: &ContentHash, signature: &Arc<Signature>) -> u64 {
        (signature.as_bytes().len() + size_of::<(ContentHash, Signature)>()) as u64
    }
}

impl Default for WinnerSignatures {
    fn default() -> Self {
        Self(Cache::with_weighter(SIGNATURES, BYTES, Bytes))
    }
}

impl WinnerSignatures {
    /// The signature of a content that a winner has, if it is kept.
    pub(super) fn get(&self, content: ContentHash) -> Option<Arc<Signature>> {
        self.0.get(&content)
    }

    /// Keeps the signature of a winner.
    pub(super) fn keep(&self, signature: &Arc<Signature>) {
        self.0.insert(signature.content(), Arc::clone(signature));
    }
}
