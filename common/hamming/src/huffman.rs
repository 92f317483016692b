//! Huffman codes of few symbols, in canonical form, none longer than [`LONGEST`] bits.
//!
//! Invariants: the code is free of prefixes, every symbol with a count has a code, and a decoder knows each code by the
//! next [`LONGEST`] bits alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Bits of the longest code, so that a table of 4,096 entries decodes it.
pub(crate) const LONGEST: u32 = 12;

/// A code for the symbols from 0 on.
#[derive(Debug)]
pub(crate) struct Code {
    /// Code in the low bits, and its length; length 0 for symbols that do not occur.
    words: Vec<(u16, u8)>,
}

impl Code {
    /// The code for symbols that occur so often. At most 256 symbols.
    pub(crate) fn new(counts: &[u64]) -> Self {
        let mut counts = counts.to_vec();
        let mut lengths = lengths(&counts);
        // Halving makes rare symbols less rare, and so the longest codes shorter, at next to no cost.
        while lengths.iter().any(|&length| u32::from(length) > LONGEST) {
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

    /// The code of a symbol and its length, which is 0 if the symbol did not occur.
    pub(crate) fn word(&self, symbol: usize) -> (u64, u32) {
        let (word, length) = self.words[symbol];
        (u64::from(word), u32::from(length))
    }

    /// What the next bits mean: symbol and length for every value of [`LONGEST`] bits.
    pub(crate) fn decoder(&self) -> Vec<(u8, u8)> {
        let mut decoder = vec![(0, 0); 1 << LONGEST];
        for (symbol, &(word, length)) in self.words.iter().enumerate().filter(|(_, word)| word.1 > 0) {
            let free = LONGEST - u32::from(length);
            let first = usize::from(word) << free;
            decoder[first..first + (1 << free)].fill((symbol as u8, length));
        }
        decoder
    }
}

/// The depth of each symbol in a Huffman tree.
fn lengths(counts: &[u64]) -> Vec<u8> {
    let mut lengths = vec![0; counts.len()];
    let mut trees: BinaryHeap<Reverse<(u64, Vec<usize>)>> = counts
        .iter()
        .enumerate()
        .filter(|(_, count)| **count > 0)
        .map(|(symbol, &count)| Reverse((count, vec![symbol])))
        .collect();
    if trees.len() == 1 {
        // A code of no bits would be enough, but could not be told from a symbol that does not occur.
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

    fn cost(counts: &[u64], code: &Code) -> u64 {
        counts.iter().enumerate().map(|(s, count)| count * u64::from(code.word(s).1)).sum()
    }

    proptest! {
        #[test]
        fn every_word_is_decoded(counts in prop::collection::vec(prop_oneof![Just(0u64), 0..10u64, any::<u32>().prop_map(u64::from)], 1..66)) {
            let code = Code::new(&counts);
            let decoder = code.decoder();
            for (symbol, &count) in counts.iter().enumerate() {
                let (word, length) = code.word(symbol);
                prop_assert_eq!(length > 0, count > 0);
                if length > 0 {
                    prop_assert!(length <= LONGEST);
                    let first = (word as usize) << (LONGEST - length);
                    for at in [first, first + (1 << (LONGEST - length)) - 1] {
                        prop_assert_eq!(decoder[at], (symbol as u8, length as u8));
                    }
                }
            }
            // Within a bit of the entropy, if no code had to be shortened.
            let total = counts.iter().sum::<u64>() as f64;
            let rare = counts.iter().filter(|c| **c > 0).min().copied().unwrap_or(1) as f64;
            if total > 0.0 && rare / total > 0.001 {
                let entropy: f64 = counts.iter().filter(|c| **c > 0).map(|&c| c as f64 * (total / c as f64).log2()).sum();
                prop_assert!(cost(&counts, &code) as f64 <= entropy + total);
            }
        }
    }

    #[test]
    fn known_codes() {
        let lengths = |counts: &[u64]| -> Vec<u32> {
            let code = Code::new(counts);
            (0..counts.len()).map(|symbol| code.word(symbol).1).collect()
        };
        assert_eq!(lengths(&[1, 1, 2, 4, 8]), [4, 4, 3, 2, 1]);
        assert_eq!(lengths(&[5, 5, 5, 5]), [2, 2, 2, 2]);
        assert_eq!(lengths(&[0, 9, 0]), [0, 1, 0]);
        assert_eq!(lengths(&[0, 0]), [0, 0]);
        // Powers of two would have a code of 63 bits.
        assert!(lengths(&(0..63).map(|i| 1 << i).collect::<Vec<_>>()).iter().all(|&l| 0 < l && l <= LONGEST));
    }
}
