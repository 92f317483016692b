//! What is sorted: numbers of a fixed length.

/// A number of a fixed length.
pub(crate) trait Record: Copy + Ord {
    /// Its bytes in a file.
    const BYTES: usize;
    fn write(self, out: &mut Vec<u8>);
    fn read(bytes: &[u8]) -> Self;
}

impl Record for u64 {
    const BYTES: usize = 8;

    fn write(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |bytes| Self::from_le_bytes(*bytes))
    }
}

impl Record for u128 {
    const BYTES: usize = 16;

    fn write(self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(bytes: &[u8]) -> Self {
        bytes.first_chunk().map_or(0, |bytes| Self::from_le_bytes(*bytes))
    }
}
