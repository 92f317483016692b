//! Shingles (sequences of consecutive words) in the reference: sets of shingles, sketches of sets, and
//! supershingles.

use std::collections::BTreeSet;

use crate::layout::{golden, hash, hash_of_all, mix, polynomial};
use xxhash_rust::xxh3::xxh3_64;

/// Sequence of consecutive words. `None` stands for a dummy after the end of the text.
pub(crate) type Shingle<'w> = Vec<Option<&'w str>>;

/// Returns the set of shingles of `length` words. A shingle begins at each word, and dummies follow the text.
pub(crate) fn padded(words: &[String], length: usize) -> BTreeSet<Shingle<'_>> {
    (0..words.len()).map(|at| (at..at + length).map(|i| words.get(i).map(|w| &**w)).collect()).collect()
}

/// Returns the 40-bit hash of a shingle: 12 bits of the hash of its first word, and 28 bits of the polynomial
/// over all its words.
fn forty_bits(shingle: &Shingle<'_>) -> u64 {
    // The dummy is the hash of the byte 0.
    let hashes: Vec<u64> = shingle.iter().map(|word| word.map_or(xxh3_64(&[0]), hash)).collect();
    let sum = polynomial(&hashes);
    let below = golden(sum ^ (sum >> 32)) >> 36;
    (hashes[0] >> 52) * (1 << 28) + below
}

/// Returns the distinct hashes of a set of shingles, ascending.
pub(crate) fn hashes(set: &BTreeSet<Shingle<'_>>) -> Vec<u64> {
    let hashes: BTreeSet<u64> = set.iter().map(forty_bits).collect();
    hashes.into_iter().collect()
}

/// Returns the sketch of a set of hashes, with a byte for each of 64 bins. In each round, the hashes are
/// thrown into bins. The byte of a bin is the low byte of the smallest hash of the first round in which a
/// hash falls into the bin.
pub(crate) fn sketch(set: &[u64]) -> Vec<u8> {
    let least_in = |bin: u64, round: u64| {
        let seed = mix(round.wrapping_add(crate::layout::GOLDEN));
        let thrown = set.iter().map(|element| mix(element ^ seed));
        let is_in_bin = |hash: &u64| if round < 64 { hash >> 58 == bin } else { round - 64 == bin };
        thrown.filter(is_in_bin).map(|hash| hash % (1 << 57)).min()
    };
    let byte = |bin| (0..128).find_map(|round| least_in(bin, round)).map_or(0, |hash| hash as u8);
    (0..64).map(byte).collect()
}

/// Returns six supershingles, each of 14 minima over shingles of `length` words, without dummies. `None` if
/// the text has fewer than `length` words.
pub(crate) fn supershingles(words: &[String], length: usize) -> Option<[u64; 6]> {
    if words.len() < length {
        return None;
    }
    let shingle = |at: usize| {
        let words: Vec<u64> = words[at..at + length].iter().map(|word| hash(word)).collect();
        mix(polynomial(&words))
    };
    let shingles: Vec<u64> = (0..=words.len() - length).map(shingle).collect();
    let minimum = |function: u64| {
        let seed = mix(golden(function + 1));
        shingles.iter().map(|shingle| mix(shingle ^ seed)).min().unwrap()
    };
    let minima: Vec<u64> = (0..84).map(minimum).collect();
    Some(std::array::from_fn(|group| hash_of_all(&minima[14 * group..14 * group + 14])))
}
