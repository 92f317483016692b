//! Sorted fingerprints in blocks of [`BLOCK`] bytes, each written as its difference from the one before (Manku et al.,
//! section 3.2).
//!
//! A block begins with a whole fingerprint. Of each following one it has the Huffman code of the highest bit in which it
//! differs from the one before, and the bits below that. The last fingerprint of each block, its key, is kept apart, and
//! interpolation search among the keys finds the blocks to decode. The paper's "8f bits" for the first fingerprint are
//! f bits. It does not say how a decoder finds the end of a block; here the number of each block's first fingerprint is
//! kept, too. Equal fingerprints may follow each other; they have a symbol of their own, which costs nothing where it
//! does not occur.
//!
//! Invariants: fingerprints are ascending, in a block and from block to block; a block holds at least one, and no bit of
//! it is in another block.

use std::ops::ControlFlow;

use crate::error::HammingError;
use crate::huffman::{Code, LONGEST};
use crate::limits::{FINGERPRINTS_MAX, WIDTH_MAX};
use crate::search;

/// Bytes of a block: the paper's B.
pub(crate) const BLOCK: usize = 1024;
/// A decoder reads so many bytes at once, also at the end of the last block.
const WORD: usize = 16;

/// Sorted fingerprints, compressed.
#[derive(Debug)]
pub struct Compressed {
    width: u32,
    decoder: Vec<(u8, u8)>,
    blocks: Vec<u8>,
    /// The last fingerprint of each block.
    keys: Vec<u64>,
    /// The number of the first fingerprint of each block, and of all fingerprints.
    starts: Vec<u32>,
}

impl Compressed {
    /// Compresses ascending fingerprints of `width` bits.
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

    /// How many fingerprints there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.starts.last().map_or(0, |&all| all as usize)
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bits of a fingerprint.
    #[must_use]
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The number of blocks.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.keys.len()
    }

    /// The number of the first fingerprint of a block.
    #[must_use]
    pub fn block_start(&self, block: usize) -> usize {
        self.starts[block] as usize
    }

    /// Bytes of memory: blocks, keys, numbers and the decoder.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let Self { decoder, blocks, keys, starts, .. } = self;
        size_of_val(&decoder[..])
            + size_of_val(&blocks[..])
            + size_of_val(&keys[..])
            + size_of_val(&starts[..])
    }

    /// These bytes as a share of what the fingerprints take in whole bytes.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.bytes() as f64 / (self.len() as f64 * f64::from(self.width.div_ceil(8)))
    }

    /// Appends the fingerprints of a block.
    pub fn decode_block(&self, block: usize, fingerprints: &mut Vec<u64>) {
        self.decode_up_to(block, u64::MAX, fingerprints);
    }

    /// Appends the fingerprints of a block up to the first that is greater.
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
            let (symbol, length) = self.decoder[(word(bytes, bit) >> (64 - LONGEST)) as usize];
            // Symbol s > 0 stands for a difference with bit s - 1 as its highest, and s - 1 bits follow.
            let rest = u32::from(symbol).saturating_sub(1);
            let below = bit + usize::from(length);
            bit = below + rest as usize;
            // A word has 57 bits or more after its first; the highest bit of the difference is put above the others.
            let high = word(bytes, below) >> 32;
            let low = word(bytes, below + 32) >> 32;
            let below = (high << 32 | low).checked_shr(64 - rest).unwrap_or(0);
            fingerprint ^= u64::from(symbol > 0) << rest | below;
            fingerprints.push(fingerprint);
        }
    }

    /// Calls `visit` with the fingerprints of every block that may hold some between these two, block after block.
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

/// The symbol of a difference: 0 for none, or one more than its highest bit.
fn symbol(difference: u64) -> u32 {
    u64::BITS - difference.leading_zeros()
}

/// The 57 bits or more that follow a bit, at the top.
#[inline]
fn word(bytes: &[u8], bit: usize) -> u64 {
    let at = bit / 8;
    let word = bytes.get(at..at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_be_bytes);
    word << (bit % 8)
}

/// Blocks that are being written.
struct Blocks {
    width: u32,
    bytes: Vec<u8>,
    keys: Vec<u64>,
    starts: Vec<u32>,
    /// The next free bit of the last block.
    bit: usize,
}

impl Blocks {
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

    /// Writes the low `bits` of a number, of which no others are set.
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
