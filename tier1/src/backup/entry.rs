//! Encoding of a row, or of a change of a row. An entry consists of the key's length in 2 bytes, the key, the
//! value's length in 4 bytes, and the value. The value's length is [`DELETED`] for a row that is deleted.

use std::io::{self, Read};

use crate::storage::store::Write;

/// Value length that marks a deletion.
const DELETED: u32 = u32::MAX;

/// Appends an entry to `out`. A value of `None` is a deletion.
///
/// # Errors
/// If a length does not fit its field. The store contains no row of such a length.
pub(crate) fn put(out: &mut Vec<u8>, key: &[u8], value: Option<&[u8]>) -> io::Result<()> {
    let too_long = || io::Error::new(io::ErrorKind::InvalidInput, "a row is too long");
    let key_bytes = u16::try_from(key.len()).map_err(|_| too_long())?;
    let value_bytes = match value {
        Some(value) => u32::try_from(value.len()).ok().filter(|n| *n != DELETED).ok_or_else(too_long)?,
        None => DELETED,
    };
    out.extend_from_slice(&key_bytes.to_le_bytes());
    out.extend_from_slice(key);
    out.extend_from_slice(&value_bytes.to_le_bytes());
    out.extend_from_slice(value.unwrap_or_default());
    Ok(())
}

/// Reads an entry. Returns `None` at the end of the input.
///
/// # Errors
/// If the input ends within an entry, or the entry claims a value longer than `limit`.
pub(crate) fn read(input: &mut dyn Read, limit: usize) -> io::Result<Option<Write>> {
    let mut first = [0];
    if input.read(&mut first)? == 0 {
        return Ok(None);
    }
    let mut second = [0];
    input.read_exact(&mut second)?;
    let mut key = vec![0; usize::from(u16::from_le_bytes([first[0], second[0]]))];
    input.read_exact(&mut key)?;
    let mut length = [0; 4];
    input.read_exact(&mut length)?;
    let length = u32::from_le_bytes(length);
    if length == DELETED {
        return Ok(Some((key, None)));
    }
    if length as usize > limit {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "an entry claims a value longer than its block",
        ));
    }
    let mut value = vec![0; length as usize];
    input.read_exact(&mut value)?;
    Ok(Some((key, Some(value))))
}
