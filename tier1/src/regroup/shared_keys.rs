//! The keys that several contents of a group share, and the contents that have each key.
//!
//! A key of a single content finds no candidate, so it is dropped. Memory therefore grows only with shared
//! keys: 20 bytes for each shared key, and 4 bytes for each content that has it. While keys are collected,
//! each key of each content takes 16 bytes. That is 64 KiB for the largest page for which `overlap` computes
//! keys.

use doppel_model::pairwise::Key;

/// Shared keys in ascending order, with the contents that have each key.
#[derive(Debug, Default)]
pub(super) struct SharedKeys {
    keys: Vec<Key>,
    /// Index in `contents` of the first content of each key.
    starts: Vec<usize>,
    /// Number of contents of each key that are still wanted. They come first among the contents of the key.
    wanted: Vec<u32>,
    /// Content numbers of all keys, key by key.
    contents: Vec<u32>,
}

impl SharedKeys {
    /// Collects the shared keys from pairs of a key and a content that has it, in any order.
    pub(super) fn of(mut all: Vec<(Key, u32)>) -> Self {
        all.sort_unstable();
        all.dedup();
        let mut this = Self::default();
        for same in all.chunk_by(|a, b| a.0 == b.0).filter(|same| same.len() > 1) {
            this.keys.push(same[0].0);
            this.starts.push(this.contents.len());
            this.wanted.push(same.len() as u32);
            this.contents.extend(same.iter().map(|(_, content)| *content));
        }
        this
    }

    /// Number of shared keys.
    pub(super) fn len(&self) -> usize {
        self.keys.len()
    }

    /// Index of a key. `None` if fewer than two contents have the key.
    pub(super) fn find(&self, key: Key) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// All contents that have the key with index `at`.
    pub(super) fn contents(&self, at: usize) -> &[u32] {
        let end = self.starts.get(at + 1).copied().unwrap_or(self.contents.len());
        &self.contents[self.starts[at]..end]
    }

    /// The contents that have the key with index `at` and are still wanted. Drops the contents that
    /// `is_wanted` rejects, also for later calls.
    pub(super) fn still_wanted(&mut self, at: usize, is_wanted: impl Fn(u32) -> bool) -> &[u32] {
        let start = self.starts[at];
        let wanted = &mut self.contents[start..start + self.wanted[at] as usize];
        let mut kept = 0;
        for next in 0..wanted.len() {
            if is_wanted(wanted[next]) {
                wanted.swap(kept, next);
                kept += 1;
            }
        }
        self.wanted[at] = kept as u32;
        &self.contents[start..start + kept]
    }

    /// Sorts the contents of every key. Afterwards [`still_wanted`](Self::still_wanted) has no meaning.
    pub(super) fn sort_contents_by<T: Ord>(&mut self, mut by: impl FnMut(u32) -> T) {
        let mut rest = self.contents.as_mut_slice();
        let ends = self.starts.iter().skip(1).copied().chain([rest.len()]);
        let lengths: Vec<usize> = self.starts.iter().zip(ends).map(|(start, end)| end - start).collect();
        for length in lengths {
            let (own, others) = rest.split_at_mut(length);
            own.sort_unstable_by_key(|content| by(*content));
            rest = others;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shared_keys_have_the_keys_and_contents_of_a_map(
            all in prop::collection::vec((0..12_u64, 0..9_u32), 0..60), wanted in prop::collection::vec(any::<bool>(), 9),
        ) {
            let mut expected: BTreeMap<Key, BTreeSet<u32>> = BTreeMap::new();
            for (key, content) in &all {
                expected.entry(*key).or_default().insert(*content);
            }
            expected.retain(|_, contents| contents.len() > 1);
            let mut keys = SharedKeys::of(all);
            for key in 0..12 {
                let found = keys.find(key);
                prop_assert_eq!(found.is_some(), expected.contains_key(&key));
                let Some(at) = found else { continue };
                let set = |contents: &[u32]| contents.iter().copied().collect::<BTreeSet<_>>();
                prop_assert_eq!(&set(keys.contents(at)), &expected[&key]);
                // A dropped content stays dropped, but `contents` still returns it.
                let left: BTreeSet<u32> = expected[&key].iter().copied().filter(|one| wanted[*one as usize]).collect();
                prop_assert_eq!(set(keys.still_wanted(at, |one| wanted[one as usize])), left.clone());
                prop_assert_eq!(set(keys.still_wanted(at, |_| true)), left);
                prop_assert_eq!(&set(keys.contents(at)), &expected[&key]);
            }
            keys.sort_contents_by(std::cmp::Reverse);
            for (key, contents) in expected {
                let at = keys.find(key).unwrap();
                prop_assert!(keys.contents(at).iter().eq(contents.iter().rev()));
            }
        }
    }
}
