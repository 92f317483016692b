//! Rows as bytes, one after another. Each row has the length of the key in 2 bytes, the key, the length of
//! the value in 4 bytes, and the value. The length is [`DELETED`] if the row is deleted. Integers are
//! little-endian.

use crate::storage::store::Write;

/// Length that marks a deleted row.
const DELETED: u32 = u32::MAX;

/// Appends the bytes of the rows to `out`.
pub(crate) fn encode(out: &mut Vec<u8>, writes: &[Write]) -> Result<(), &'static str> {
    for (key, value) in writes {
        out.extend(u16::try_from(key.len()).map_err(|_| "a key is too long")?.to_le_bytes());
        out.extend(key);
        let length = value.as_ref().map_or(Ok(DELETED), |value| u32::try_from(value.len()));
        out.extend(length.map_err(|_| "a row is too long")?.to_le_bytes());
        out.extend(value.iter().flatten());
    }
    Ok(())
}

/// Decodes rows. Returns `None` if the bytes are damaged.
pub(crate) fn decode(bytes: &[u8]) -> Option<Vec<Write>> {
    let mut fields = Fields(bytes);
    let mut rows = Vec::new();
    while !fields.0.is_empty() {
        let length = fields.array().map(u16::from_le_bytes)?;
        let key = fields.take(usize::from(length))?.to_vec();
        let value = match fields.u32()? {
            DELETED => None,
            length => Some(fields.take(length as usize)?.to_vec()),
        };
        rows.push((key, value));
    }
    Some(rows)
}

/// Reads fields that follow each other in a byte string. Each method returns `None` if too few bytes are
/// left.
pub(crate) struct Fields<'b>(pub(crate) &'b [u8]);

impl<'b> Fields<'b> {
    /// Reads the given number of bytes.
    pub(crate) fn take(&mut self, bytes: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    /// Reads an array of `N` bytes.
    pub(crate) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.first_chunk().copied()
    }

    /// Reads a number of 4 bytes.
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    /// Reads a number of 8 bytes.
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    /// Reads a number of 16 bytes.
    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.array().map(u128::from_le_bytes)
    }
}
