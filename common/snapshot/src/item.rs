//! The types of items that a column can store.

use doppel_model::{ContentHash, PageId};

/// A fixed-width item of a column, little-endian in the file.
pub trait SnapshotItem: Copy {
    /// Length of the item in the file, in bytes.
    const BYTES: usize;
    /// Writes the item to `to`, which has [`BYTES`](Self::BYTES) bytes.
    fn write(self, to: &mut [u8]);
    /// Reads an item from `from`, which has [`BYTES`](Self::BYTES) bytes.
    fn read(from: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl SnapshotItem for $number {
            const BYTES: usize = size_of::<Self>();
            #[inline]
            fn write(self, to: &mut [u8]) {
                to.copy_from_slice(&self.to_le_bytes());
            }
            #[inline]
            fn read(from: &[u8]) -> Self {
                from.first_chunk().map_or(0, |bytes| Self::from_le_bytes(*bytes))
            }
        }
    )*};
}

numbers!(u8, u32, u64);

impl SnapshotItem for ContentHash {
    const BYTES: usize = 16;
    #[inline]
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(&self.0);
    }
    #[inline]
    fn read(from: &[u8]) -> Self {
        Self(from.first_chunk().copied().unwrap_or_default())
    }
}

impl SnapshotItem for PageId {
    const BYTES: usize = 16;
    #[inline]
    fn write(self, to: &mut [u8]) {
        to.copy_from_slice(self.bytes());
    }
    #[inline]
    fn read(from: &[u8]) -> Self {
        Self::from_bytes(from.first_chunk().copied().unwrap_or_default())
    }
}
