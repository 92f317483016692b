//! What a column has.

use doppel_model::{ContentHash, PageId};

/// An item of a column: so many bytes, little-endian.
pub trait Item: Copy {
    /// Its length in the file.
    const BYTES: usize;
    /// Writes it to so many bytes.
    fn write(self, to: &mut [u8]);
    /// Reads it from so many bytes.
    fn read(from: &[u8]) -> Self;
}

macro_rules! numbers {
    ($($number:ty),*) => {$(
        impl Item for $number {
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

impl Item for ContentHash {
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

impl Item for PageId {
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
