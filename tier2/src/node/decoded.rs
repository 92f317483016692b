//! Signatures that the searches of one call have read, so that each is read, decoded and checked once.
//!
//! Searches of one family compare with the same candidates. The signatures that are read first stay, because every search visits the
//! oldest candidates first. Past [`BYTES_MAX`] further signatures are read anew each time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use doppel_model::InsertSeq;
use doppel_model::signature::Signature;
use hashbrown::HashMap;

use super::fetched::Fetched;
use crate::seed::Seeded;

/// Bytes of all signatures that are kept.
const BYTES_MAX: usize = 64 << 20;

/// Parts with a lock each, so that threads seldom wait for each other.
const PARTS: usize = 64;

type Part = HashMap<InsertSeq, Arc<Signature>, Seeded>;

/// Signatures by the insertion sequence of their entry, which names one content for as long as the call takes.
#[derive(Debug)]
pub(crate) struct Decoded {
    parts: [Mutex<Part>; PARTS],
    bytes: AtomicUsize,
    bytes_max: usize,
}

/// The signatures that searches of one call share.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shared<'a> {
    /// Signatures that were fetched from tier 1.
    pub(crate) fetched: &'a Fetched,
    /// Signatures that were read here.
    pub(crate) decoded: &'a Decoded,
}

impl Default for Decoded {
    fn default() -> Self {
        Self::with_limit(BYTES_MAX)
    }
}

impl Decoded {
    /// Keeps nothing.
    pub(crate) fn none() -> Self {
        Self::with_limit(0)
    }

    fn with_limit(bytes_max: usize) -> Self {
        Self { parts: std::array::from_fn(|_| Mutex::default()), bytes: AtomicUsize::new(0), bytes_max }
    }

    fn part(&self, entry: InsertSeq) -> &Mutex<Part> {
        &self.parts[entry.0 as usize % PARTS]
    }

    /// The signature of an entry, if it was read before.
    pub(crate) fn get(&self, entry: InsertSeq) -> Option<Arc<Signature>> {
        if self.bytes_max == 0 {
            return None;
        }
        self.part(entry).lock().unwrap_or_else(PoisonError::into_inner).get(&entry).cloned()
    }

    /// Keeps the signature of an entry, while there is room.
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
    fn the_first_signatures_stay_and_the_bytes_have_a_limit() {
        let signature = Arc::new(Builder::new().build(&(0..40).collect::<Vec<u64>>()));
        let bytes = signature.as_bytes().len();
        let decoded = Decoded::with_limit(3 * bytes);
        for entry in [2, 3, 3, 4, 5] {
            decoded.insert(InsertSeq(entry), &signature);
        }
        let kept: Vec<u32> = (2..6).filter(|entry| decoded.get(InsertSeq(*entry)).is_some()).collect();
        assert_eq!((kept, decoded.bytes.into_inner()), (vec![2, 3, 4], 3 * bytes));
        let none = Decoded::none();
        none.insert(InsertSeq(2), &signature);
        assert!(none.get(InsertSeq(2)).is_none());
    }
}
