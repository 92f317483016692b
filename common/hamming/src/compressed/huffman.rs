//! Canonical Huffman codes for few symbols, with codes of at most [`CODE_BITS_MAX`] bits.
//!
//! Invariants: the code is prefix-free, and every symbol with a count has a code. A decoder identifies each
//! code by the next [`CODE_BITS_MAX`] bits alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum length of a code in bits. A table of 4,096 entries decodes such codes.
pub(crate) const CODE_BITS_MAX: u32 = 12;

/// A code for the symbols from 0 on.
#[derive(Debug)]
pub(crate) struct Code {
    /// The code of each symbol in the low bits, and its length. Symbols that do not occur have length 0.
    words: Vec<(u16, u8)>,
}

impl Code {
    /// Creates a code for symbols with the given counts. At most 256 symbols.
    pub(crate) fn new(counts: &[u64]) -> Self {
        let mut counts = counts.to_vec();
        let mut lengths = lengths(&counts);
        // Halving the counts brings rare symbols closer to the others. This shortens the longest codes at
        // next to no cost.
        while lengths.iter().any(|&length| u32::from(length) > CODE_BITS_MAX) {
            for count in &mut counts {
                *count = count.div_ceil(2);
            }
            lengths = self::lengths(&counts);
        }
        let mut order: Vec<usize> = (0..lengths.len()).filter(|&symbol| lengths[symbol] > 0).collect();
        order.sort_by_key(|&symbol| lengths[symbol]);
        let mut words = vec![(0, 0); lengths.len()];
        let (mut next, mut before) = (0u16, 0);
        for symbol in order {
            next <<= lengths[symbol] - before;
            before = lengths[symbol];
            words[symbol] = (next, before);
            next += 1;
        }
        Self { words }
    }

    /// The code of a symbol and its length in bits. The length is 0 if the symbol does not occur.
    pub(crate) fn word(&self, symbol: usize) -> (u64, u32) {
        let (word, length) = self.words[symbol];
        (u64::from(word), u32::from(length))
    }

    /// The decoding table: for every value of [`CODE_BITS_MAX`] bits, the symbol whose code these bits begin
    /// with, and the length of this code.
    pub(crate) fn decoder(&self) -> Vec<(u8, u8)> {
        let mut decoder = vec![(0, 0); 1 << CODE_BITS_MAX];
        for (symbol, &(word, length)) in self.words.iter().enumerate().filter(|(_, word)| word.1 > 0) {
            let free = CODE_BITS_MAX - u32::from(length);
            let first = usize::from(word) << free;
            decoder[first..first + (1 << free)].fill((symbol as u8, length));
        }
        decoder
    }
}

/// The length of the code of each symbol: the depth of the symbol in a Huffman tree. 0 for a symbol that does
/// not occur.
fn lengths(counts: &[u64]) -> Vec<u8> {
    let mut lengths = vec![0; counts.len()];
    let mut trees: BinaryHeap<Reverse<(u64, Vec<usize>)>> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(symbol, &count)| Reverse((count, vec![symbol])))
        .collect();
    if trees.len() == 1 {
        // A code of zero bits would suffice, but length 0 marks symbols that do not occur.
        trees.into_iter().for_each(|Reverse((_, symbols))| lengths[symbols[0]] = 1);
        return lengths;
    }
    while let (Some(Reverse(rare)), Some(Reverse(other))) = (trees.pop(), trees.pop()) {
        let symbols = [rare.1, other.1].concat();
        symbols.iter().for_each(|&symbol| lengths[symbol] += 1);
        trees.push(Reverse((rare.0.saturating_add(other.0), symbols)));
        if trees.len() == 1 {
            break;
        }
    }
    lengths
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count() -> impl Strategy<Value = u64> {
        prop_oneof![Just(0u64), 0..10u64, any::<u32>().prop_map(u64::from)]
    }

    fn cost(counts: &[u64], code: &Code) -> u64 {
        counts.iter().enumerate().map(|(s, count)| count * u64::from(code.word(s).1)).sum()
    }

    proptest! {
        #[test]
        fn every_code_is_decoded(counts in prop::collection::vec(count(), 1..66)) {
            let code = Code::new(&counts);
            let decoder = code.decoder();
            for (symbol, &count) in counts.iter().enumerate() {
                let (word, length) = code.word(symbol);
                prop_assert_eq!(length > 0, count > 0);
                if length > 0 {
                    prop_assert!(length <= CODE_BITS_MAX);
                    let first = (word as usize) << (CODE_BITS_MAX - length);
                    for at in [first, first + (1 << (CODE_BITS_MAX - length)) - 1] {
                        prop_assert_eq!(decoder[at], (symbol as u8, length as u8));
                    }
                }
            }
            // The code is within one bit of the entropy per symbol, unless codes had to be shortened.
            let total = counts.iter().sum::<u64>() as f64;
            let rare = counts.iter().filter(|c| **c > 0).min().copied().unwrap_or(1) as f64;
            if total > 0.0 && rare / total > 0.001 {
                let present = counts.iter().filter(|count| **count > 0);
                let entropy: f64 = present.map(|&c| c as f64 * (total / c as f64).log2()).sum();
                prop_assert!(cost(&counts, &code) as f64 <= entropy + total);
            }
        }
    }

    #[test]
    fn known_counts_have_known_code_lengths() {
        let lengths = |counts: &[u64]| -> Vec<u32> {
            let code = Code::new(counts);
            (0..counts.len()).map(|symbol| code.word(symbol).1).collect()
        };
        assert_eq!(lengths(&[1, 1, 2, 4, 8]), [4, 4, 3, 2, 1]);
        assert_eq!(lengths(&[5, 5, 5, 5]), [2, 2, 2, 2]);
        assert_eq!(lengths(&[0, 9, 0]), [0, 1, 0]);
        assert_eq!(lengths(&[0, 0]), [0, 0]);
        // The Huffman code of these counts would have codes of up to 62 bits.
        assert!(
            lengths(&(0..63).map(|i| 1 << i).collect::<Vec<_>>())
                .iter()
                .all(|&l| 0 < l && l <= CODE_BITS_MAX)
        );
    }
}
