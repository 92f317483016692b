//! The place of a signature among all ranges of a process, as the index stores it.

use doppel_model::RangeId;
use doppel_protocol::SignaturePlace;

use super::SignatureId;

/// Number of bits of the offset, and of the number of the segment. A segment has at most 2^28 bytes before its
/// last signature, and a collection has at most 2^10 ranges.
const OFFSET_BITS: u32 = 28;
const SEGMENT_BITS: u32 = 26;

impl SignatureId {
    /// Encodes the id and the range that it belongs to.
    pub(crate) fn place_in(self, range: RangeId) -> SignaturePlace {
        let upper = u64::from(range.0) << SEGMENT_BITS | u64::from(self.segment);
        SignaturePlace { at: upper << OFFSET_BITS | u64::from(self.offset), bytes: self.bytes }
    }

    /// Decodes a place. Returns the number of the range, which may not exist, and the id.
    pub(crate) fn at_place(SignaturePlace { at, bytes }: SignaturePlace) -> (usize, Self) {
        let below = |bits: u32, of: u64| of & ((1 << bits) - 1);
        let (upper, offset) = (at >> OFFSET_BITS, below(OFFSET_BITS, at) as u32);
        let segment = below(SEGMENT_BITS, upper) as u32;
        ((upper >> SEGMENT_BITS) as usize, Self { segment, offset, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_place_encodes_its_range_and_its_id() {
        for range in [0, 1, 1_023] {
            for (segment, offset) in [(0, 16), (7, 1 << 27), ((1 << 26) - 1, (1 << 28) - 1)] {
                let one = SignatureId { segment, offset, bytes: 900 };
                assert_eq!(SignatureId::at_place(one.place_in(RangeId(range))), (usize::from(range), one));
            }
        }
    }
}
