//! Which content has which signature, in 16 bytes each.
//!
//! Four bytes of the content's hash stand for it, so what is found is only a candidate.

use hashbrown::HashTable;

use super::SignatureId;

/// The table.
#[derive(Debug, Default)]
pub(super) struct Contents {
    known: HashTable<(u32, SignatureId)>,
}

/// Spreads the four bytes over a hash.
fn spread(part: u32) -> u64 {
    u64::from(part).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

fn part_of(content: &[u8]) -> u32 {
    content.first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

impl Contents {
    /// The signatures of so many bytes that may have a content.
    pub(super) fn find(&self, content: &[u8], bytes: u32) -> impl Iterator<Item = SignatureId> {
        let part = part_of(content);
        let found = self.known.iter_hash(spread(part));
        found.filter(move |(other, id)| *other == part && id.bytes == bytes).map(|(_, id)| *id)
    }

    /// A signature has a content.
    pub(super) fn insert(&mut self, content: &[u8], id: SignatureId) {
        let part = part_of(content);
        self.known.insert_unique(spread(part), (part, id), |(part, _)| spread(*part));
    }

    /// The same for one that may be there already.
    pub(super) fn insert_known(&mut self, content: &[u8], id: SignatureId) {
        let part = part_of(content);
        if self.known.find(spread(part), |(other, known)| *other == part && *known == id).is_none() {
            self.insert(content, id);
        }
    }

    /// Forgets those of a segment that are not kept.
    pub(super) fn retain(&mut self, segment: u32, keep: impl Fn(u32) -> bool) {
        self.known.retain(|(_, id)| id.segment != segment || keep(id.offset));
    }

    /// Signatures known.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len()
    }
}
