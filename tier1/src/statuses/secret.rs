//! Hashes of URLs and contents under a key that only the collection has: nobody can make two that are taken for one another.

use std::hash::{BuildHasher, RandomState};

use doppel_model::{ContentHash, PageId, PageUrl};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

/// The key. It is in every snapshot of a table, whose hashes are made with it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecretKey(u64, u64);

impl SecretKey {
    /// A new one, of the system's random numbers.
    pub(crate) fn random() -> Self {
        // The standard library keeps these numbers for a thread, and counts: two hashes under them tell nothing of them.
        let random = RandomState::new();
        Self(random.hash_one(0), random.hash_one(1))
    }

    /// Of the URL of a page.
    pub(super) fn hash_of_url(self, url: &PageUrl) -> u32 {
        self.hash(url.as_str().as_bytes()) as u32
    }

    /// Of a page with a content.
    pub(super) fn hash_of_content(self, page: PageId, content: ContentHash) -> u64 {
        let mut bytes = [0; 32];
        bytes[..16].copy_from_slice(page.bytes());
        bytes[16..].copy_from_slice(&content.0);
        self.hash(&bytes)
    }

    fn hash(self, bytes: &[u8]) -> u64 {
        SipHasher13::new_with_keys(self.0, self.1).hash(bytes)
    }
}
