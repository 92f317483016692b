//! Hashes of URLs and contents under a secret key of the collection. Without the key nobody can construct two
//! values with one hash.

use std::hash::{BuildHasher, RandomState};

use doppel_model::{ContentHash, PageId, PageUrl};
use serde::{Deserialize, Serialize};
use siphasher::sip::SipHasher13;

/// A secret key for hashes. Every snapshot contains the key of its hashes.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SecretKey(u64, u64);

impl SecretKey {
    /// Creates a random key.
    pub(crate) fn random() -> Self {
        // The standard library draws these numbers once per thread and then counts. Two hashes under them do
        // not reveal them.
        let random = RandomState::new();
        Self(random.hash_one(0), random.hash_one(1))
    }

    /// Returns the hash of a URL.
    pub(super) fn hash_of_url(self, url: &PageUrl) -> u32 {
        self.hash(url.as_str().as_bytes()) as u32
    }

    /// Returns the hash of a page id with a content.
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
