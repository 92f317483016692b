//! Fingerprints whose bits are decided by a vote of the words: the random projection and the simhash.

use std::collections::BTreeMap;

use crate::layout::{golden, hash, mix, polynomial};

/// Bits of a fingerprint, lowest bit first.
pub(crate) type Bits = Vec<bool>;

/// Returns the bits as bytes, lowest bits first.
pub(crate) fn bytes(bits: &Bits) -> Vec<u8> {
    let byte = |eight: &[bool]| (0..8).filter(|bit| eight[*bit]).map(|bit| 1 << bit).sum();
    bits.chunks(8).map(byte).collect()
}

/// Returns the number of bits in which two fingerprints agree.
pub(crate) fn agreeing(a: &Bits, b: &Bits) -> usize {
    a.iter().zip(b).filter(|(a, b)| a == b).count()
}

fn is_set(number: u64, bit: usize) -> bool {
    number >> bit & 1 == 1
}

/// Returns the random projection in 384 bits. Each word has a vector of entries 1 and -1. A bit is 1 if the
/// entries of all words add up to more than 0.
pub(crate) fn projection(words: &[String]) -> Bits {
    let mut sums = [0_i64; 384];
    for word in words {
        let hash = hash(word);
        for (bit, sum) in sums.iter_mut().enumerate() {
            let vector = (bit / 64) as u64;
            *sum += if is_set(mix(hash ^ golden(vector + 1)), bit % 64) { 1 } else { -1 };
        }
    }
    sums.iter().map(|sum| *sum > 0).collect()
}

/// Returns the bits for which weighted features vote.
pub(crate) fn voted(features: impl IntoIterator<Item = (u64, i64)>, width: usize) -> Bits {
    let mut sums = vec![0_i64; width];
    for (feature, weight) in features {
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if is_set(feature, bit) { weight } else { -weight };
        }
    }
    sums.into_iter().map(|sum| sum > 0).collect()
}

/// Returns the simhash in 64 bits. Words and pairs of words vote as often as they occur, but at most eight
/// times.
pub(crate) fn simhash(words: &[String]) -> Bits {
    let mut times: BTreeMap<&[String], i64> = BTreeMap::new();
    for length in [1, 2] {
        words.windows(length).for_each(|feature| *times.entry(feature).or_default() += 1);
    }
    let of = |feature: &[String]| mix(polynomial(&feature.iter().map(|word| hash(word)).collect::<Vec<_>>()));
    voted(times.into_iter().map(|(feature, times)| (of(feature), times.min(8))), 64)
}
