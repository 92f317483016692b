//! A cache of the signatures of winners, which many members are compared with.
//!
//! Most updates of a page in a group are compared with the winner of the group, which may be a page of
//! another range. A content hash never gets another signature. A signature that was read once therefore
//! serves all members of its group, whatever becomes of the page, until other signatures need the space.

use std::sync::Arc;

use doppel_model::ContentHash;
use doppel_model::signature::Signature;
use quick_cache::Weighter;
use quick_cache::sync::Cache;

/// Bytes of signatures that the cache keeps.
const BYTES: u64 = 16 << 20;

/// Number of signatures that are expected in the cache, for the size of its tables.
const SIGNATURES: usize = 16_000;

/// Signatures of winners that were read lately.
pub(in crate::service) struct WinnerSignatures(Cache<ContentHash, Arc<Signature>, ByteWeight>);

#[derive(Clone)]
struct ByteWeight;

impl Weighter<ContentHash, Arc<Signature>> for ByteWeight {
    fn weight(&self, _: &ContentHash, signature: &Arc<Signature>) -> u64 {
        (signature.as_bytes().len() + size_of::<(ContentHash, Signature)>()) as u64
    }
}

impl Default for WinnerSignatures {
    fn default() -> Self {
        Self(Cache::with_weighter(SIGNATURES, BYTES, ByteWeight))
    }
}

impl WinnerSignatures {
    /// The signature of a content, if the cache has it.
    pub(in crate::service) fn get(&self, content: ContentHash) -> Option<Arc<Signature>> {
        self.0.get(&content)
    }

    /// Keeps the signature of a winner.
    pub(in crate::service) fn keep(&self, signature: &Arc<Signature>) {
        self.0.insert(signature.content(), Arc::clone(signature));
    }
}
