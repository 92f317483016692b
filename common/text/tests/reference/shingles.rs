//! Sequences of words that follow each other: sets of them, sketches of sets, and supershingles.

use std::collections::BTreeSet;

use crate::written::{golden, hash, hash_of_all, mix, polynomial};
use xxhash_rust::xxh3::xxh3_64;

/// A sequence of words; none where the text is at its end.
pub(crate) type Shingle<'w> = Vec<Option<&'w str>>;

/// The set of shingles of so many words, one of which begins at each word. The text is followed by dummies.
pub(crate) fn padded(words: &[String], length: usize) -> BTreeSet<Shingle<'_>> {
    (0..words.len()).map(|at| (at..at + length).map(|i| words.get(i).map(|w| &**w)).collect()).collect()
}

/// The hash of a shingle in 40 bits: twelve of its first word, and 28 of the polynomial.
fn forty_bits(shingle: &Shingle<'_>) -> u64 {
    // The dummy is the hash of the byte 0.
    let hashes: Vec<u64> = shingle.iter().map(|word| word.map_or(xxh3_64(&[0]), hash)).collect();
    let sum = polynomial(&hashes);
    let below = golden(sum ^ (sum >> 32)) >> 36;
    (hashes[0] >> 52) * (1 << 28) + below
}

/// The hashes of a set, ascending.
pub(crate) fn hashes(set: &BTreeSet<Shingle<'_>>) -> Vec<u64> {
    let hashes: BTreeSet<u64> = set.iter().map(forty_bits).collect();
    hashes.into_iter().collect()
}

/// The sketch of a set of hashes: of each of 64 bins the low byte of the least hash in the first round in which one falls there.
pub(crate) fn sketch(set: &[u64]) -> Vec<u8> {
    let least_in = |bin: u64, round: u64| {
        let seed = mix(round.wrapping_add(crate::written::GOLDEN));
        let thrown = set.iter().map(|element| mix(element ^ seed));
        let is_here = |hash: &u64| if round < 64 { hash >> 58 == bin } else { round - 64 == bin };
        thrown.filter(is_here).map(|hash| hash % (1 << 57)).min()
    };
    let byte = |bin| (0..128).find_map(|round| least_in(bin, round)).map_or(0, |hash| hash as u8);
    (0..64).map(byte).collect()
}

/// The six supershingles, of 14 minima each over shingles of `length` words without dummies; none where there are fewer words.
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
