//! Short names of tags, attributes and class words in a fixed buffer, so that reading a page allocates no
//! memory for them.

/// Name of at most 16 bytes. Longer names are never compared with a known name, so they may all look alike.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Name {
    bytes: [u8; 16],
    len: usize,
}

impl Name {
    pub(crate) fn of(name: &[u8]) -> Self {
        let mut new = Self::default();
        new.push(name);
        new
    }

    pub(crate) fn push(&mut self, piece: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + piece.len()) {
            room.copy_from_slice(piece);
        }
        // The length marks a name that is too long, so that it equals no known name.
        self.len += piece.len();
    }

    pub(crate) fn get(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(b"\0")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
