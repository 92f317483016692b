//! How well uniformly random fingerprints compress, computed instead of measured, for any number of them.
//!
//! Each pair of neighbours in sorted order differs first at a depth j from the top: at the node of the binary trie where
//! their ways part. A node has one such pair if fingerprints are below both of its children. So the expected number of
//! pairs of each depth is known, and with it the code and the size. Fingerprints that cluster compress better.

use crate::compressed::BLOCK;
use crate::error::HammingError;
use crate::huffman::Code;
use crate::limits::WIDTH_MAX;

/// Bytes that are kept beside each block: its key, and the number of its first fingerprint.
const BESIDE: usize = size_of::<u64>() + size_of::<u32>();

/// What so many random fingerprints take as shares of their plain size.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedRatio {
    /// The bits that are written for one fingerprint: code and rest. This is what the paper's "half" is about.
    pub code: f64,
    /// Whole blocks, with their first fingerprints and what stays free.
    pub blocks: f64,
    /// With keys and numbers of blocks: what [`Compressed::ratio`](crate::Compressed::ratio) measures.
    pub memory: f64,
}

/// How well so many random fingerprints compress.
pub fn expected_ratio(width: u32, fingerprints: u64) -> Result<ExpectedRatio, HammingError> {
    if !(1..=WIDTH_MAX).contains(&width) {
        return Err(HammingError::Width(width));
    }
    let pairs = pairs_by_symbol(width, fingerprints as f64);
    let counts: Vec<u64> = pairs.iter().map(|&pairs| pairs.round() as u64).collect();
    let code = Code::new(&counts);
    let (mut bits, mut all) = (0.0, 0.0);
    for (symbol, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        bits += count as f64 * (f64::from(code.word(symbol).1) + (symbol as f64 - 1.0));
        all += count as f64;
    }
    let each = if all > 0.0 { bits / all } else { f64::from(width) };
    // A block is full when the next one does not fit, which leaves half of one free.
    let in_block = 1.0 + (8.0 * BLOCK as f64 - f64::from(width) - each / 2.0) / each;
    let plain = in_block * f64::from(width.div_ceil(8));
    Ok(ExpectedRatio {
        code: each / f64::from(width),
        blocks: BLOCK as f64 / plain,
        memory: (BLOCK + BESIDE) as f64 / plain,
    })
}

/// The expected number of neighbours whose highest differing bit is `symbol - 1`.
fn pairs_by_symbol(width: u32, fingerprints: f64) -> Vec<f64> {
    let mut pairs = vec![0.0; width as usize + 1];
    for depth in 0..width {
        let nodes = f64::from(depth).exp2();
        // That nothing is below a node of this share of all: (1 - share)^n without rounding to 1 first.
        let empty = |share: f64| (fingerprints * (-share).ln_1p()).exp();
        let (node, child) = (1.0 / nodes, 0.5 / nodes);
        // 1 - 2 (1 - c)^n + (1 - 2c)^n; for small n c it is n (n - 1) c^2, which the difference would lose.
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
    fn pairs_add_up() {
        for log in [1, 5, 10, 20, 34] {
            let fingerprints = f64::from(log).exp2();
            let all: f64 = pairs_by_symbol(64, fingerprints).iter().sum();
            assert!((all / (fingerprints - 1.0) - 1.0).abs() < 1e-6, "{all} pairs of 2^{log}");
        }
    }

    #[test]
    fn ratios_of_the_paper() {
        let ratio = |fingerprints| {
            let ratio = expected_ratio(64, fingerprints).unwrap();
            [ratio.code, ratio.blocks, ratio.memory].map(|ratio| (ratio * 100.0).round())
        };
        assert_eq!(ratio(10_000_000), [69.0, 69.0, 70.0]);
        // "Approximately half": 64 GB become 33.
        assert_eq!(ratio(1 << 34), [52.0, 53.0, 53.0]);
        assert!(expected_ratio(65, 10).is_err());
        assert!(expected_ratio(64, 0).unwrap().memory > 0.9);
    }
}
