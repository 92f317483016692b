//! Fixed-length records that `Sorter` can sort and write to disk.

/// An unsigned integer with a fixed length in a file.
pub(crate) trait FixedRecord: Copy + Ord {
    /// Length of the record in a file, in bytes.
    const BYTES: usize;
    fn write(self, out: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Self;
}

impl FixedRecord for u64 {
    const BYTES: usize = 8;

    fn write(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |bytes| Self::from_le_bytes(*bytes))
    }
}

impl FixedRecord for u128 {
    const BYTES: usize = 16;

    fn write(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |bytes| Self::from_le_bytes(*bytes))
    }
}
