//! A table in memory that finds the signature of a content, at 16 bytes per entry.
//!
//! An entry has only four bytes of the content's hash. So a result is a candidate that the caller must
//! compare.

use hashbrown::HashTable;

use super::SignatureId;

/// Maps parts of content hashes to signature ids.
#[derive(Debug, Default)]
pub(super) struct ContentTable {
    known: HashTable<(u32, SignatureId)>,
}

/// Spreads the four bytes over a 64-bit hash.
fn spread(part: u32) -> u64 {
    u64::from(part).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn part_of(content: &[u8]) -> u32 {
    content.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

impl ContentTable {
    /// Returns the signatures with a length of `bytes` that may have the content.
    pub(super) fn find(&self, content: &[u8], bytes: u32) -> impl Iterator<Item = SignatureId> {
        let part = part_of(content);
        let found = self.known.iter_hash(spread(part));
        found.filter(move |(other, id)| *other == part && id.bytes == bytes).map(|(_, id)| *id)
    }

    /// Adds the signature of a content.
    pub(super) fn insert(&mut self, content: &[u8], id: SignatureId) {
        let part = part_of(content);
        self.known.insert_unique(spread(part), (part, id), |(part, _)| spread(*part));
    }

    /// Like [`insert`](Self::insert), for a signature that the table may already have.
    pub(super) fn insert_known(&mut self, content: &[u8], id: SignatureId) {
        let part = part_of(content);
        if self.known.find(spread(part), |(other, known)| *other == part && *known == id).is_none() {
            self.insert(content, id);
        }
    }

    /// Forgets the signatures of a segment, except the offsets that `keep` accepts.
    pub(super) fn retain(&mut self, segment: u32, keep: impl Fn(u32) -> bool) {
        self.known.retain(|(_, id)| id.segment != segment || keep(id.offset));
    }

    /// Returns the number of signatures.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
