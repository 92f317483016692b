//! What contents are sorted by to find candidates: the bands of their sketches, or their keys.

use doppel_model::pairwise::{Bands, Key, Policy};
use doppel_model::signature::Signature;
use doppel_model::sketch::Sketch;

/// By content, in the order of their numbers.
#[derive(Debug)]
pub(crate) enum Keyed {
    /// Of a policy with bands: keys are read from the sketches.
    Sketches(Bands, Vec<Sketch>),
    /// Of any other one: all keys, and where those of each content begin.
    Keys(Policy, Vec<Key>, Vec<u64>),
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
                policy.keys(signature, |key| keys.push(key));
            }
        }
    }

    /// In how many turns contents are sorted.
    pub(crate) fn turns(&self) -> usize {
        match self {
            Self::Sketches(bands, _) => bands.count,
            Self::Keys(_, keys, _) => keys.iter().map(|key| *key as u8 as usize + 1).max().unwrap_or(0),
        }
    }

    /// Calls `each` for the keys of a content in a turn. Keys that differ may be the same here: that is a candidate in vain.
    pub(crate) fn in_turn(&self, turn: usize, content: u32, mut each: impl FnMut(u32)) {
        match self {
            Self::Sketches(bands, sketches) => {
                bands.keys(&sketches[content as usize]).nth(turn).into_iter().for_each(each);
            }
            Self::Keys(_, keys, starts) => {
                let at = content as usize;
                let end = starts.get(at + 1).map_or(keys.len(), |start| *start as usize);
                let own = keys[starts[at] as usize..end].iter().filter(|key| **key as u8 as usize == turn);
                own.for_each(|key| each((key ^ key >> 32) as u32 ^ (key >> 8) as u32));
            }
        }
    }

    /// Whether it is known that two contents were candidates in a turn before this one.
    pub(crate) fn meet_before(&self, turn: usize, a: u32, b: u32) -> bool {
        match self {
            Self::Sketches(bands, sketches) => {
                let keys = |content: u32| bands.keys(&sketches[content as usize]).take(turn);
                keys(a).zip(keys(b)).any(|(a, b)| a == b)
            }
            Self::Keys(..) => false,
        }
    }
}
