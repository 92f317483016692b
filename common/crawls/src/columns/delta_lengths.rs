//! Lengths in the delta encodings of Parquet. They say how many they are, which may be any number, because equal lengths take no room.

/// The values of one block have to be a multiple of this.
const GROUP: u64 = 32;

/// How many lengths there are at the beginning of `data`, and how many bytes they take; none where the data are damaged or there are
/// more than `most`.
pub(super) fn measure(data: &[u8], most: u64) -> Option<(u64, usize)> {
    let mut rest = data;
    let in_block = varint(&mut rest)?;
    let parts = varint(&mut rest)?;
    let count = varint(&mut rest)?;
    let _first = varint(&mut rest)?;
    let in_part = in_block.checked_div(parts)?;
    if count > most || in_part == 0 || !in_part.is_multiple_of(GROUP) || in_part * parts != in_block {
        return None;
    }
    // The first is in front of all blocks.
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let _least = varint(&mut rest)?;
        let widths = rest.get(..usize::try_from(parts).ok()?)?;
        rest = &rest[widths.len()..];
        for width in widths {
            // Parts behind the last length are left out.
            if left > 0 {
                let bytes = u64::from(*width).checked_mul(in_part)? / 8;
                rest = rest.get(usize::try_from(bytes).ok()?..)?;
            }
            left = left.saturating_sub(in_part);
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
        // Blocks of 128 in 4 parts: a first value alone, then 32 values of 1 bit, then none.
        assert_eq!(measure(&[0x80, 1, 4, 1, 10, 0xff], 100), Some((1, 5)));
        let block = [&[0x80, 1, 4, 33, 10, 0, 1, 9, 9, 9][..], &[0; 4], b"text"].concat();
        assert_eq!(measure(&block, 100), Some((33, 14)));
        assert_eq!(measure(&block, 32), None);
        assert_eq!(measure(&block[..13], 100), None);
        // A thousand equal lengths take a block of nothing for each 128.
        let equal = [&[0x80, 1, 4, 0xe8, 7, 10][..], &[0; 8 * 5]].concat();
        assert_eq!(measure(&equal, 1_000), Some((1_000, 46)));
        for damaged in [&[0x80, 1, 0, 1, 10][..], &[0x81, 1, 4, 1, 10], &[0, 4, 1, 10], &[0xff; 20]] {
            assert_eq!(measure(damaged, u64::MAX), None);
        }
    }
}
