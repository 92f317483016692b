//! The keys by which the join sorts contents to find candidates: the bands of their sketches, or the keys of
//! their policy.
//!
//! The join sorts all contents once per *turn*. A turn uses one band, or all keys with one key number. The
//! key number is the low byte of a key, which numbers the keys of a signature. Two contents that share a key
//! in a turn are candidates.

use std::cmp::Ordering;

use doppel_model::pairwise::{Bands, Key, Policy};
use doppel_model::signature::Signature;
use doppel_model::sketch::Sketch;

/// A key, reduced to its turn and 32 bits. The low 32 bits are a digest of the key, and the bits above are
/// the number of the turn.
///
/// Two different keys can have one sort key. The only cost is a candidate that the exact comparison rejects.
type SortKey = u64;

/// Reduces a key of a policy to its sort key.
fn sort_key(key: Key) -> SortKey {
    (key & 0xff) << 32 | u64::from((key ^ key >> 32) as u32 ^ (key >> 8) as u32)
}

/// The sort keys of all contents, in the order of the contents' numbers.
#[derive(Debug)]
pub(crate) enum SortKeys {
    /// Under a policy with bands: the sketches, from which the keys are computed when they are needed.
    Sketches(Bands, Vec<Sketch>),
    /// Under every other policy: the sort keys of all contents, and the index at which the keys of each
    /// content begin. The sort keys of a content are distinct and ascending.
    Keys(Policy, Vec<SortKey>, Vec<u64>),
}

impl SortKeys {
    /// Creates sort keys for a collection that has no contents yet.
    pub(crate) fn new(policy: Policy) -> Self {
        match policy.bands() {
            Some(bands) => Self::Sketches(bands, Vec::new()),
            None => Self::Keys(policy, Vec::new(), Vec::new()),
        }
    }

    /// Adds the sort keys of the next content.
    pub(crate) fn push(&mut self, signature: &Signature) {
        match self {
            Self::Sketches(_, sketches) => sketches.push(*signature.sketch()),
            Self::Keys(policy, keys, starts) => {
                starts.push(keys.len() as u64);
                let mut content_keys = Vec::new();
                policy.keys(signature, |key| content_keys.push(sort_key(key)));
                content_keys.sort_unstable();
                content_keys.dedup();
                keys.append(&mut content_keys);
            }
        }
    }

    /// The number of turns. In each turn the join sorts the contents once.
    pub(crate) fn turns(&self) -> usize {
        match self {
            Self::Sketches(bands, _) => bands.count,
            Self::Keys(_, keys, _) => keys.iter().map(|key| (key >> 32) as usize + 1).max().unwrap_or(0),
        }
    }

    /// Calls `each` for every sort key that a content has in a turn. Passes only the low 32 bits of the sort
    /// key.
    pub(crate) fn for_each_in_turn(&self, turn: usize, content: u32, mut each: impl FnMut(u32)) {
        match self {
            Self::Sketches(bands, sketches) => {
                bands.keys(&sketches[content as usize]).nth(turn).into_iter().for_each(each);
            }
            Self::Keys(_, keys, starts) => {
                let keys = keys_of(keys, starts, content);
                let first = keys.partition_point(|key| ((key >> 32) as usize) < turn);
                let in_turn = keys[first..].iter().take_while(|key| (**key >> 32) as usize == turn);
                in_turn.for_each(|key| each(*key as u32));
            }
        }
    }

    /// Whether two contents that share `key` in `turn` also share a key of an earlier turn, or a smaller key
    /// of this turn. Then they are candidates there, too.
    pub(crate) fn is_earlier_candidate(&self, turn: usize, key: u32, a: u32, b: u32) -> bool {
        match self {
            Self::Sketches(bands, sketches) => {
                let keys = |content: u32| bands.keys(&sketches[content as usize]).take(turn);
                keys(a).zip(keys(b)).any(|(a, b)| a == b)
            }
            Self::Keys(_, keys, starts) => {
                let current = (turn as u64) << 32 | u64::from(key);
                let (mut a, mut b) = (keys_of(keys, starts, a), keys_of(keys, starts, b));
                while let ([first_of_a, rest_of_a @ ..], [first_of_b, rest_of_b @ ..]) = (a, b) {
                    if *first_of_a.max(first_of_b) >= current {
                        return false;
                    }
                    match first_of_a.cmp(first_of_b) {
                        Ordering::Less => a = rest_of_a,
                        Ordering::Greater => b = rest_of_b,
                        Ordering::Equal => return true,
                    }
                }
                false
            }
        }
    }
}

/// The sort keys of one content.
fn keys_of<'k>(keys: &'k [SortKey], starts: &[u64], content: u32) -> &'k [SortKey] {
    let at = content as usize;
    let end = starts.get(at + 1).map_or(keys.len(), |start| *start as usize);
    &keys[starts[at] as usize..end]
}
