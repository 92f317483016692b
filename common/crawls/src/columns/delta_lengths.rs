//! Counts the lengths in Parquet's encoding `DELTA_BINARY_PACKED` without decoding them.
//!
//! Two encodings of text and bytes, `DELTA_LENGTH_BYTE_ARRAY` and `DELTA_BYTE_ARRAY`, store their lengths
//! this way. The data declare the number of lengths, and the decoder takes memory for that number. Equal
//! lengths take almost no bytes, so a small page can declare any number. A page is therefore measured here
//! before it is decoded.
//!
//! The encoding is a header, then blocks. The header has the number of values of a block, the number of
//! miniblocks of a block, the number of all values, and the first value. A block has its least delta, the bit
//! width of each miniblock, and the miniblocks.

/// The number of values of a miniblock must be a multiple of this.
const GROUP: u64 = 32;

/// Measures the lengths at the beginning of `data`. Returns their number and the number of bytes that they
/// take. `None` if the data are damaged, or if there are more than `max_count` lengths.
pub(super) fn measure(data: &[u8], max_count: u64) -> Option<(u64, usize)> {
    let mut rest = data;
    let per_block = varint(&mut rest)?;
    let miniblocks = varint(&mut rest)?;
    let count = varint(&mut rest)?;
    let _first = varint(&mut rest)?;
    let per_miniblock = per_block.checked_div(miniblocks)?;
    if count > max_count
        || per_miniblock == 0
        || !per_miniblock.is_multiple_of(GROUP)
        || per_miniblock * miniblocks != per_block
    {
        return None;
    }
    // The header contains the first length, the blocks contain the others.
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let _least_delta = varint(&mut rest)?;
        let widths = rest.get(..usize::try_from(miniblocks).ok()?)?;
        rest = &rest[widths.len()..];
        for width in widths {
            // Writers omit the miniblocks after the last length.
            if left > 0 {
                let bytes = u64::from(*width).checked_mul(per_miniblock)? / 8;
                rest = rest.get(usize::try_from(bytes).ok()?..)?;
            }
            left = left.saturating_sub(per_miniblock);
        }
    }
    Some((count, data.len() - rest.len()))
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..63).step_by(7) {
        let (byte, behind) = rest.split_first()?;
        *rest = behind;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_counted_without_being_decoded() {
        // Blocks of 128 values in 4 miniblocks: one length alone, then one length and 32 deltas of 1 bit.
        assert_eq!(measure(&[0x80, 1, 4, 1, 10, 0xff], 100), Some((1, 5)));
        let block = [&[0x80, 1, 4, 33, 10, 0, 1, 9, 9, 9][..], &[0; 4], b"text"].concat();
        assert_eq!(measure(&block, 100), Some((33, 14)));
        assert_eq!(measure(&block, 32), None);
        assert_eq!(measure(&block[..13], 100), None);
        // A thousand equal lengths take one block of empty miniblocks for each 128 of them.
        let equal = [&[0x80, 1, 4, 0xe8, 7, 10][..], &[0; 8 * 5]].concat();
        assert_eq!(measure(&equal, 1_000), Some((1_000, 46)));
        for damaged in [&[0x80, 1, 0, 1, 10][..], &[0x81, 1, 4, 1, 10], &[0, 4, 1, 10], &[0xff; 20]] {
            assert_eq!(measure(damaged, u64::MAX), None);
        }
    }
}
