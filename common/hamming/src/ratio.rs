//! Computes how well uniformly random fingerprints compress, for any number of fingerprints.
//!
//! Consecutive fingerprints in sorted order first differ at some depth j from the top, at a node of the
//! binary trie where their paths separate. A node contributes one such pair if fingerprints are below both of
//! its children. This gives the expected number of pairs for each depth, and so the Huffman code and the
//! size. Fingerprints that cluster compress better.

use crate::compressed::BLOCK;
use crate::compressed::huffman::Code;
use crate::error::HammingError;
use crate::limits::WIDTH_MAX;

/// Bytes stored outside each block: its key, and the index of its first fingerprint.
const BLOCK_OVERHEAD: usize = size_of::<u64>() + size_of::<u32>();

/// The expected size of random fingerprints after compression. Each field is a fraction of the uncompressed
/// size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedRatio {
    /// The bits written for one fingerprint: the Huffman code and the remaining bits. Here the uncompressed
    /// size is the width in bits. The paper's "half" refers to this number.
    pub code: f64,
    /// Whole blocks, including their first fingerprints and their unused space. The uncompressed size is in
    /// whole bytes per fingerprint.
    pub blocks: f64,
    /// Blocks with their keys and indexes, as
    /// [`CompressedFingerprints::ratio`](crate::CompressedFingerprints::ratio) measures them.
    pub memory: f64,
}

/// Computes the expected size of `fingerprints` random fingerprints of `width` bits.
pub fn expected_ratio(width: u32, fingerprints: u64) -> Result<ExpectedRatio, HammingError> {
    if !(1..=WIDTH_MAX).contains(&width) {
        return Err(HammingError::Width(width));
    }
    let pairs = pairs_by_symbol(width, fingerprints as f64);
    let counts: Vec<u64> = pairs.iter().map(|&pairs| pairs.round() as u64).collect();
    let code = Code::new(&counts);
    let (mut bits, mut pairs_all) = (0.0, 0.0);
    for (symbol, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        bits += count as f64 * (f64::from(code.word(symbol).1) + (symbol as f64 - 1.0));
        pairs_all += count as f64;
    }
    let bits_each = if pairs_all > 0.0 { bits / pairs_all } else { f64::from(width) };
    // A block ends when the next fingerprint does not fit. On average, that wastes half a fingerprint.
    let in_block = 1.0 + (8.0 * BLOCK as f64 - f64::from(width) - bits_each / 2.0) / bits_each;
    let plain = in_block * f64::from(width.div_ceil(8));
    Ok(ExpectedRatio {
        code: bits_each / f64::from(width),
        blocks: BLOCK as f64 / plain,
        memory: (BLOCK + BLOCK_OVERHEAD) as f64 / plain,
    })
}

/// For each symbol, the expected number of consecutive fingerprints whose highest differing bit is `symbol -
/// 1`.
fn pairs_by_symbol(width: u32, fingerprints: f64) -> Vec<f64> {
    let mut pairs = vec![0.0; width as usize + 1];
    for depth in 0..width {
        let nodes = f64::from(depth).exp2();
        // The probability that no fingerprint is below a node that covers `share` of the range: (1 -
        // share)^n. `ln_1p` avoids rounding 1 - share to 1.
        let empty = |share: f64| (fingerprints * (-share).ln_1p()).exp();
        let (node, child) = (1.0 / nodes, 0.5 / nodes);
        // The formula is 1 - 2 (1 - c)^n + (1 - 2c)^n. For small n c, cancellation would lose it, so its
        // approximation n (n - 1) c^2 is used.
        let both = if fingerprints * node < 1e-6 {
            fingerprints * (fingerprints - 1.0) * child * child
        } else {
            1.0 - 2.0 * empty(child) + if depth == 0 { 0.0 } else { empty(node) }
        };
        pairs[(width - depth) as usize] = (nodes * both).max(0.0);
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_expected_pairs_add_up_to_all_consecutive_pairs() {
        for log in [1, 5, 10, 20, 34] {
            let fingerprints = f64::from(log).exp2();
            let pairs_all: f64 = pairs_by_symbol(64, fingerprints).iter().sum();
            assert!((pairs_all / (fingerprints - 1.0) - 1.0).abs() < 1e-6, "{pairs_all} pairs of 2^{log}");
        }
    }

    #[test]
    fn the_expected_ratios_match_the_paper() {
        let ratio = |fingerprints| {
            let ratio = expected_ratio(64, fingerprints).unwrap();
            [ratio.code, ratio.blocks, ratio.memory].map(|ratio| (ratio * 100.0).round())
        };
        assert_eq!(ratio(10_000_000), [69.0, 69.0, 70.0]);
        // The paper says "approximately half": 64 GB become 33 GB.
        assert_eq!(ratio(1 << 34), [52.0, 53.0, 53.0]);
        assert!(expected_ratio(65, 10).is_err());
        assert!(expected_ratio(64, 0).unwrap().memory > 0.9);
    }
}
