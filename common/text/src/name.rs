//! The name of a tag or attribute, and any other short word.

/// A name. No name of interest is longer than this.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    bytes: [u8; 16],
    len: usize,
}

impl Name {
    pub(super) fn of(name: &[u8]) -> Self {
        let mut new = Self::default();
        new.push(name);
        new
    }

    pub(super) fn push(&mut self, piece: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.len..self.len + piece.len()) {
            room.copy_from_slice(piece);
        }
        // A name that is too long equals no name of interest.
        self.len += piece.len();
    }

    pub(super) fn get(&self) -> &[u8] {
        self.bytes.get(..self.len).unwrap_or(b"\0")
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}
