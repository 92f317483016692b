//! The keys that contents of a group have in common, and which contents have each.
//!
//! A key of a single content finds nobody, so it is dropped, and memory grows by what contents share: 4 bytes for a content and a key that
//! others have, too, and 20 for such a key. While keys are collected, each of a content takes 16 bytes: 64 KiB of the largest page that
//! `overlap` has keys of.

use doppel_model::pairwise::Key;

/// Keys in ascending order, with the contents that have each.
#[derive(Debug, Default)]
pub(super) struct SharedKeys {
    keys: Vec<Key>,
    /// Where the contents of each key begin; those of the last one end with all.
    starts: Vec<usize>,
    /// How many of the contents of a key are wanted: these come first.
    wanted: Vec<u32>,
    contents: Vec<u32>,
}

impl SharedKeys {
    /// Those of keys with the content that has each, in any order.
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

    /// The place of a key, if several contents have it.
    pub(super) fn find(&self, key: Key) -> Option<usize> {
        self.keys.binary_search(&key).ok()
    }

    /// All contents that have the key of a place.
    pub(super) fn contents(&self, at: usize) -> &[u32] {
        let end = self.starts.get(at + 1).copied().unwrap_or(self.contents.len());
        &self.contents[self.starts[at]..end]
    }

    /// Those of them that are wanted still, after leaving out the ones that `is_wanted` refuses.
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

    /// Sorts the contents of every key.
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
        fn they_are_those_of_a_map_without_the_keys_of_one(
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
                // Once left out, a content stays so, and is there all the same.
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
