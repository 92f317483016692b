//! What contents are sorted by to find candidates: the bands of their sketches, or their keys.

use std::cmp::Ordering;

use doppel_model::pairwise::{Bands, Key, Policy};
use doppel_model::signature::Signature;
use doppel_model::sketch::Sketch;

/// Where a content is sorted in: the number of the turn, and below it, in 32 bits, what it is sorted by. Keys that differ may have one
/// place: that is a candidate in vain.
type Place = u64;

/// The place of a key.
fn place(key: Key) -> Place {
    (key & 0xff) << 32 | u64::from((key ^ key >> 32) as u32 ^ (key >> 8) as u32)
}

/// By content, in the order of their numbers.
#[derive(Debug)]
pub(crate) enum Keyed {
    /// Of a policy with bands: keys are read from the sketches.
    Sketches(Bands, Vec<Sketch>),
    /// Of any other one: the places of all, and where those of each content begin. Those of a content are ascending, each once.
    Keys(Policy, Vec<Place>, Vec<u64>),
}

impl Keyed {
    /// None yet.
    pub(crate) fn new(policy: Policy) -> Self {
        match policy.bands() {
            Some(bands) => Self::Sketches(bands, Vec::new()),
            None => Self::Keys(policy, Vec::new(), Vec::new()),
        }
    }

    /// Those of the next content.
    pub(crate) fn push(&mut self, signature: &Signature) {
        match self {
            Self::Sketches(_, sketches) => sketches.push(*signature.sketch()),
            Self::Keys(policy, keys, starts) => {
                starts.push(keys.len() as u64);
                let mut own = Vec::new();
                policy.keys(signature, |key| own.push(place(key)));
                own.sort_unstable();
                own.dedup();
                keys.append(&mut own);
            }
        }
    }

    /// In how many turns contents are sorted.
    pub(crate) fn turns(&self) -> usize {
        match self {
            Self::Sketches(bands, _) => bands.count,
            Self::Keys(_, keys, _) => keys.iter().map(|place| (place >> 32) as usize + 1).max().unwrap_or(0),
        }
    }

    /// Calls `each` for what a content is sorted by in a turn.
    pub(crate) fn in_turn(&self, turn: usize, content: u32, mut each: impl FnMut(u32)) {
        match self {
            Self::Sketches(bands, sketches) => {
                bands.keys(&sketches[content as usize]).nth(turn).into_iter().for_each(each);
            }
            Self::Keys(_, keys, starts) => {
                let own = own(keys, starts, content);
                let first = own.partition_point(|place| ((place >> 32) as usize) < turn);
                let in_turn = own[first..].iter().take_while(|place| (**place >> 32) as usize == turn);
                in_turn.for_each(|place| each(*place as u32));
            }
        }
    }

    /// Whether two contents that have `key` in this turn are candidates in a turn before it as well, or by a lesser key of this one.
    pub(crate) fn meet_before(&self, turn: usize, key: u32, a: u32, b: u32) -> bool {
        match self {
            Self::Sketches(bands, sketches) => {
                let keys = |content: u32| bands.keys(&sketches[content as usize]).take(turn);
                keys(a).zip(keys(b)).any(|(a, b)| a == b)
            }
            Self::Keys(_, keys, starts) => {
                let here = (turn as u64) << 32 | u64::from(key);
                let (mut a, mut b) = (own(keys, starts, a), own(keys, starts, b));
                while let ([first_of_a, rest_of_a @ ..], [first_of_b, rest_of_b @ ..]) = (a, b) {
                    if *first_of_a.max(first_of_b) >= here {
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

/// The places of a content.
fn own<'k>(keys: &'k [Place], starts: &[u64], content: u32) -> &'k [Place] {
    let at = content as usize;
    let end = starts.get(at + 1).map_or(keys.len(), |start| *start as usize);
    &keys[starts[at] as usize..end]
}
