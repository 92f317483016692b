//! The memory of one request body, while the body arrives and while it is read.
//!
//! A small body lies on the heap. A larger body gets an anonymous memory mapping of its maximum length, and
//! the operating system provides pages only as they are written. A mapping never moves, so its content never
//! exists twice during growth. When the mapping is dropped, its pages return to the system at once, where an
//! allocator would keep them.
//!
//! Invariant: the buffer always holds a share of the memory budget that covers the memory in use.

use std::fmt;

use axum::body::Bytes;
use memmap2::{MmapMut, MmapOptions};

use crate::problem::Problem;
use crate::request::memory::{BodyMemory, MemoryShare};

/// Maximum length in bytes of a body on the heap. The share of a longer body grows in steps of this size.
const SMALL: usize = 256 << 10;

/// A body of at most `max` bytes, with its share of the memory budget.
#[derive(Debug)]
pub(crate) struct BodyBuffer {
    bytes: BufferStorage,
    share: MemoryShare,
    max: usize,
}

enum BufferStorage {
    Heap(Vec<u8>),
    Mapped { map: MmapMut, length: usize },
}

impl AsRef<[u8]> for BufferStorage {
    fn as_ref(&self) -> &[u8] {
        match self {
            Self::Heap(bytes) => bytes,
            Self::Mapped { map, length } => &map[..*length],
        }
    }
}

impl fmt::Debug for BufferStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.as_ref().len())
    }
}

impl BodyBuffer {
    /// Creates an empty buffer for a body of at most `max` bytes.
    pub(crate) fn new(memory: &BodyMemory, max: usize) -> Self {
        Self { bytes: BufferStorage::Heap(Vec::new()), share: memory.share(), max }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.as_ref()
    }

    /// Returns the bytes. Their share of the budget is returned when the last clone or slice of them is
    /// dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        self.share.hold(self.bytes)
    }

    /// Drops the bytes and returns their share, for a value that was parsed from the bytes and replaces them
    /// in memory.
    pub(crate) fn into_share(self) -> MemoryShare {
        self.share
    }

    /// Appends bytes to the body.
    ///
    /// # Errors
    /// 413 if the body would be longer than `max`. 503 if the memory for all bodies, or for the bodies of
    /// this client, is used up.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Result<(), Problem> {
        let length = self.bytes().len() + piece.len();
        if length > self.max {
            return Err(too_large(self.max));
        }
        let present = match length {
            _ if self.max <= SMALL => self.max,
            small if small <= SMALL && self.bytes().is_empty() => small,
            // While a heap buffer grows, the old and the new allocation exist at once.
            small if small <= SMALL => 2 * length,
            _ => length.next_multiple_of(SMALL),
        };
        if present > self.share.bytes() && !self.share.grow_to(present) {
            return Err(Problem::memory_full());
        }
        if length > SMALL
            && let BufferStorage::Heap(small) = &self.bytes
        {
            let map = MmapOptions::new().len(self.max).no_reserve_swap().map_anon();
            let mut map = map.map_err(|error| {
                tracing::warn!(%error, "cannot map memory for a request body; the request gets 503");
                Problem::memory_full()
            })?;
            map[..small.len()].copy_from_slice(small);
            self.bytes = BufferStorage::Mapped { length: small.len(), map };
        }
        match &mut self.bytes {
            BufferStorage::Heap(bytes) => {
                if self.max <= SMALL {
                    bytes.reserve_exact(self.max - bytes.len());
                }
                bytes.extend_from_slice(piece);
            }
            BufferStorage::Mapped { map, length: end } => {
                map[*end..length].copy_from_slice(piece);
                *end = length;
            }
        }
        Ok(())
    }
}

/// Builds the problem (413) for a body that is longer than `max` bytes.
pub(crate) fn too_large(max: usize) -> Problem {
    Problem::too_large(format!("the body is longer than the limit of {max} bytes; send it in parts"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_bytes_are_kept_at_every_length() {
        let memory = BodyMemory::new(8 << 20);
        for pieces in [&[0][..], &[1, 0, 5], &[SMALL], &[SMALL, 1], &[SMALL - 1, 2, SMALL, 7], &[3 << 20]] {
            let mut buffer = BodyBuffer::new(&memory, 4 << 20);
            let mut expected = Vec::new();
            for (n, length) in pieces.iter().enumerate() {
                let piece: Vec<u8> = (0..*length).map(|at| (at * 31 + n) as u8).collect();
                buffer.push(&piece).unwrap();
                expected.extend(piece);
            }
            assert_eq!(buffer.bytes(), expected);
            let used = (8 << 20) - memory.free();
            assert!(used >= expected.len() && used <= 2 * expected.len() + SMALL, "{used} for {pieces:?}");
            assert_eq!(buffer.into_bytes(), expected);
            assert_eq!(memory.free(), 8 << 20);
        }
    }

    #[test]
    fn a_body_is_refused_before_it_passes_a_limit() {
        let memory = BodyMemory::new(2 << 20);
        let mut buffer = BodyBuffer::new(&memory, 3 << 20);
        let piece = vec![1; SMALL];
        (0..8).for_each(|_| buffer.push(&piece).unwrap());
        assert_eq!(buffer.push(&piece).unwrap_err().status().as_u16(), 503);
        assert_eq!(buffer.bytes().len(), 2 << 20);
        let mut short = BodyBuffer::new(&BodyMemory::new(1 << 20), 10);
        short.push(&[0; 10]).unwrap();
        assert_eq!(short.push(&[0]).unwrap_err().status().as_u16(), 413);
        assert_eq!(memory.free(), 0);
        drop(buffer);
        assert_eq!(memory.free(), 2 << 20);
    }
}
