//! Stores sorted fingerprints in blocks of [`BLOCK`] bytes, each fingerprint as its difference from the
//! previous one (Manku et al., section 3.2).
//!
//! A block begins with a whole fingerprint. Each following fingerprint consists of a Huffman code and the
//! remaining bits. The code names the highest bit that differs from the previous fingerprint. The remaining
//! bits are the bits of the difference below that bit. The *key* of a block is its last fingerprint. Keys are
//! stored separately, and an interpolation search among them finds the blocks to decode.
//!
//! This format differs from the paper in three points:
//! - The paper stores "8f bits" for the first fingerprint. This format stores f bits.
//! - The paper does not say how a decoder finds the end of a block. This format stores the index of the first
//!   fingerprint of each block.
//! - Equal fingerprints may follow each other. They have their own symbol, which costs nothing if it does not
//!   occur.
//!
//! Invariants: fingerprints are ascending, within a block and from block to block. Each block contains at
//! least one fingerprint, and no bit of a fingerprint is in another block.

pub(crate) mod huffman;

use std::ops::ControlFlow;

use crate::error::HammingError;
use crate::limits::{FINGERPRINTS_MAX, WIDTH_MAX};
use crate::search;
use huffman::{CODE_BITS_MAX, Code};

/// Size of a block in bytes: the paper's B.
pub(crate) const BLOCK: usize = 1024;
/// Number of zero bytes after the last block, so that the decoder can read whole words at the end of the
/// block.
const WORD: usize = 16;

/// A compressed sequence of sorted fingerprints.
#[derive(Debug)]
pub struct CompressedFingerprints {
    width: u32,
    decoder: Vec<(u8, u8)>,
    blocks: Vec<u8>,
    /// The last fingerprint of each block.
    keys: Vec<u64>,
    /// Index of the first fingerprint of each block. The last element is the number of all fingerprints.
    starts: Vec<u32>,
}

impl CompressedFingerprints {
    /// Compresses ascending fingerprints of `width` bits. Returns an error if they are not ascending, have
    /// bits above the width, or are too many.
    pub fn new(width: u32, sorted: &[u64]) -> Result<Self, HammingError> {
        if !(1..=WIDTH_MAX).contains(&width) {
            return Err(HammingError::Width(width));
        }
        if let Some(pair) = sorted.windows(2).find(|pair| pair[0] > pair[1]) {
            return Err(HammingError::Order(pair[1]));
        }
        if let Some(&fingerprint) = sorted.last().filter(|last| last.checked_shr(width).unwrap_or(0) > 0) {
            return Err(HammingError::Fingerprint { fingerprint, width });
        }
        if sorted.len() > FINGERPRINTS_MAX {
            return Err(HammingError::Full);
        }
        let mut counts = vec![0u64; width as usize + 1];
        for pair in sorted.windows(2) {
            counts[symbol(pair[0] ^ pair[1]) as usize] += 1;
        }
        let code = Code::new(&counts);
        let mut blocks = Blocks { width, bytes: Vec::new(), keys: Vec::new(), starts: Vec::new(), bit: 0 };
        let mut before = None;
        for (number, &fingerprint) in sorted.iter().enumerate() {
            blocks.append(number, before, fingerprint, &code);
            before = Some(fingerprint);
        }
        blocks.keys.extend(before);
        blocks.starts.push(sorted.len() as u32);
        blocks.bytes.resize(blocks.keys.len() * BLOCK + WORD, 0);
        Ok(Self {
            width,
            decoder: code.decoder(),
            blocks: blocks.bytes,
            keys: blocks.keys,
            starts: blocks.starts,
        })
    }

    /// Number of fingerprints in all blocks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.last().map_or(0, |&all| all as usize)
    }

    /// Whether the sequence has no fingerprints.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of bits in a fingerprint.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Number of blocks in the sequence.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.keys.len()
    }

    /// Index of the first fingerprint of a block.
    #[must_use]
    pub fn block_start(&self, block: usize) -> usize {
        self.starts[block] as usize
    }

    /// Bytes of memory that the blocks, keys, indexes, and the decoder take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { decoder, blocks, keys, starts, .. } = self;
        size_of_val(&decoder[..])
            + size_of_val(&blocks[..])
            + size_of_val(&keys[..])
            + size_of_val(&starts[..])
    }

    /// The size in memory as a fraction of the uncompressed size, where each fingerprint takes whole bytes.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.bytes() as f64 / (self.len() as f64 * f64::from(self.width.div_ceil(8)))
    }

    /// Appends the fingerprints of a block to `fingerprints`.
    pub fn decode_block(&self, block: usize, fingerprints: &mut Vec<u64>) {
        self.decode_up_to(block, u64::MAX, fingerprints);
    }

    /// Appends the fingerprints of a block, up to and including the first that is greater than `highest`.
    fn decode_up_to(&self, block: usize, highest: u64, fingerprints: &mut Vec<u64>) {
        let count = (self.starts[block + 1] - self.starts[block]) as usize;
        let bytes = &self.blocks[block * BLOCK..(block + 1) * BLOCK + WORD];
        let mut fingerprint = word(bytes, 0) >> (64 - self.width);
        let mut bit = self.width as usize;
        fingerprints.reserve(count);
        fingerprints.push(fingerprint);
        for _ in 1..count {
            if fingerprint > highest {
                break;
            }
            let (symbol, length) = self.decoder[(word(bytes, bit) >> (64 - CODE_BITS_MAX)) as usize];
            // A symbol s > 0 means that bit s - 1 is the highest bit of the difference. s - 1 more bits
            // follow.
            let rest = u32::from(symbol).saturating_sub(1);
            let below = bit + usize::from(length);
            bit = below + rest as usize;
            // One word holds at least 57 bits after a position, so the rest needs two words. The highest bit
            // of the difference is not stored and is added here.
            let high = word(bytes, below) >> 32;
            let low = word(bytes, below + 32) >> 32;
            let below = (high << 32 | low).checked_shr(64 - rest).unwrap_or(0);
            fingerprint ^= u64::from(symbol > 0) << rest | below;
            fingerprints.push(fingerprint);
        }
    }

    /// Calls `visit` with the fingerprints of every block that may contain fingerprints from `lowest` to
    /// `highest`, one block at a time.
    pub(crate) fn between(
        &self,
        lowest: u64,
        highest: u64,
        decoded: &mut Vec<u64>,
        mut visit: impl FnMut(&[u64]) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let first = search::lower_bound_by(self.keys.len(), lowest, |block| self.keys[block]);
        for block in first..self.keys.len() {
            decoded.clear();
            self.decode_up_to(block, highest, decoded);
            visit(decoded)?;
            if self.keys[block] > highest {
                break;
            }
        }
        ControlFlow::Continue(())
    }
}

/// The symbol of the difference (the XOR) of two fingerprints: 0 for no difference, otherwise the position of
/// its highest bit plus one.
fn symbol(difference: u64) -> u32 {
    u64::BITS - difference.leading_zeros()
}

/// The bits from position `bit` on, in the most significant bits. At least 57 bits are valid.
#[inline]
fn word(bytes: &[u8], bit: usize) -> u64 {
    let at = bit / 8;
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_be_bytes);
    word << (bit % 8)
}

/// Writes ascending fingerprints to blocks.
struct Blocks {
    width: u32,
    bytes: Vec<u8>,
    keys: Vec<u64>,
    starts: Vec<u32>,
    /// Position of the next free bit in the last block.
    bit: usize,
}

impl Blocks {
    /// Appends a fingerprint with index `number` after the fingerprint `before`, which is `None` for the first
    /// one. Begins a new block if the last block has no room.
    fn append(&mut self, number: usize, before: Option<u64>, fingerprint: u64, code: &Code) {
        if let Some(before) = before {
            let difference = before ^ fingerprint;
            let (word, length) = code.word(symbol(difference) as usize);
            let rest = symbol(difference).saturating_sub(1);
            if self.bit + (length + rest) as usize <= 8 * BLOCK {
                self.put(word, length);
                self.put(difference & ((1 << rest) - 1), rest);
                return;
            }
            self.keys.push(before);
        }
        self.starts.push(number as u32);
        self.bytes.resize(self.keys.len() * BLOCK + BLOCK + WORD, 0);
        self.bit = 0;
        self.put(fingerprint, self.width);
    }

    /// Appends the low `bits` bits of a number to the last block. The other bits of the number must be zero.
    fn put(&mut self, number: u64, bits: u32) {
        if bits == 0 {
            return;
        }
        let at = self.keys.len() * BLOCK + self.bit / 8;
        let word = u128::from(number) << (128 - bits) >> (self.bit % 8);
        for (byte, more) in self.bytes[at..at + WORD].iter_mut().zip(word.to_be_bytes()) {
            *byte |= more;
        }
        self.bit += bits as usize;
    }
}
