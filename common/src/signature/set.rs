//! The packed set of shingle hashes: 5 bytes each, little-endian, strictly ascending.

use super::SHINGLE_BITS;

/// Bytes of one packed hash.
pub(super) const ENTRY_BYTES: usize = SHINGLE_BITS as usize / 8;

const MASK: u64 = (1 << SHINGLE_BITS) - 1;

/// Appends one hash.
pub(super) fn pack(hash: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(&hash.to_le_bytes()[..ENTRY_BYTES]);
}

/// The hash in a chunk of [`ENTRY_BYTES`] bytes.
pub(super) fn unpack(entry: &[u8]) -> u64 {
    entry.iter().rev().fold(0, |hash, &byte| hash << 8 | u64::from(byte))
}

/// The first entry that is not above the one before it.
pub(super) fn first_out_of_order(packed: &[u8]) -> Option<usize> {
    let entries = || packed.chunks_exact(ENTRY_BYTES).map(unpack);
    entries().zip(entries().skip(1)).position(|(a, b)| a >= b).map(|at| at + 1)
}

/// Number of entries in both of two packed sets of `a_len` and `b_len` entries. At least 3 bytes must
/// follow the entries (in a signature the checksum does), so that each can be read as 8 bytes.
///
/// A merge whose steps depend on no branch: real sets interleave at random, and a mispredicted branch
/// costs more than the step.
pub(super) fn shared(a: &[u8], a_len: usize, b: &[u8], b_len: usize) -> u32 {
    let (mut i, mut j, mut count) = (0, 0, 0);
    while i < a_len && j < b_len {
        let (x, y) = (load(a, i), load(b, j));
        count += u32::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    count
}

/// The entry at index `at`.
#[inline]
fn load(packed: &[u8], at: usize) -> u64 {
    match packed[at * ENTRY_BYTES..].first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes) & MASK,
        None => 0,
    }
}
