//! A cache of the signatures that the searches of one call have read. Each signature is read, decoded and
//! checked once.
//!
//! Searches of one family compare with the same candidates. Every search visits the oldest candidates first,
//! so the cache keeps the signatures that were read first. When it has [`BYTES_MAX`] bytes, further
//! signatures are read anew each time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use doppel_model::InsertSeq;
use doppel_model::signature::Signature;
use hashbrown::HashMap;

use super::fetch::FetchedSignatures;
use crate::seed::Seeded;

/// Limit of the cached signatures, in bytes.
const BYTES_MAX: usize = 64 << 20;

/// Number of parts. Each has its own lock, so that threads seldom wait for each other.
const PARTS: usize = 64;

type Part = HashMap<InsertSeq, Arc<Signature>, Seeded>;

/// Cached signatures by the insertion sequence of their entry. During a call, an insertion sequence
/// identifies one content.
#[derive(Debug)]
pub(crate) struct SignatureCache {
    parts: [Mutex<Part>; PARTS],
    bytes: AtomicUsize,
    bytes_max: usize,
}

/// Signatures that the searches of one call share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedSignatures<'a> {
    /// Signatures that were fetched from tier 1.
    pub(crate) fetched: &'a FetchedSignatures,
    /// Signatures that were read from the store of the node.
    pub(crate) cache: &'a SignatureCache,
}

impl Default for SignatureCache {
    fn default() -> Self {
        Self::with_limit(BYTES_MAX)
    }
}

impl SignatureCache {
    /// A cache that keeps no signature.
    pub(crate) fn disabled() -> Self {
        Self::with_limit(0)
    }

    fn with_limit(bytes_max: usize) -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()), bytes: AtomicUsize::new(0), bytes_max }
    }

    fn part(&self, entry: InsertSeq) -> &Mutex<Part> {
        &self.parts[entry.0 as usize % PARTS]
    }

    /// The cached signature of an entry.
    pub(crate) fn get(&self, entry: InsertSeq) -> Option<Arc<Signature>> {
        if self.bytes_max == 0 {
            return None;
        }
        self.part(entry).lock().unwrap_or_else(PoisonError::into_inner).get(&entry).cloned()
    }

    /// Caches the signature of an entry, if there is room.
    pub(crate) fn insert(&self, entry: InsertSeq, signature: &Arc<Signature>) {
        let bytes = signature.as_bytes().len();
        if self.bytes.load(Ordering::Relaxed) + bytes > self.bytes_max {
            return;
        }
        let mut part = self.part(entry).lock().unwrap_or_else(PoisonError::into_inner);
        if part.insert(entry, Arc::clone(signature)).is_none() {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::signature::Builder;

    use super::*;

    #[test]
    fn the_cache_keeps_the_first_signatures_up_to_its_limit() {
        let signature = Arc::new(Builder::new().build(&(0..40).collect::<Vec<u64>>()));
        let bytes = signature.as_bytes().len();
        let cache = SignatureCache::with_limit(3 * bytes);
        for entry in [2, 3, 3, 4, 5] {
            cache.insert(InsertSeq(entry), &signature);
        }
        let kept: Vec<u32> = (2..6).filter(|entry| cache.get(InsertSeq(*entry)).is_some()).collect();
        assert_eq!((kept, cache.bytes.into_inner()), (vec![2, 3, 4], 3 * bytes));
        let disabled = SignatureCache::disabled();
        disabled.insert(InsertSeq(2), &signature);
        assert!(disabled.get(InsertSeq(2)).is_none());
    }
}
