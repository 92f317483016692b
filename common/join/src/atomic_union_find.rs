//! A union-find structure that several threads update at once.
//!
//! The algorithm is from Anderson, Woll, *Wait-free Parallel Algorithms for the Union-Find Problem*, STOC
//! 1991. A compare-and-set links one root to another, and every search halves the paths it follows.
//!
//! Invariant: a root is only linked to a smaller root. Therefore no cycle can form. After all unions the root
//! of a component is its least member, whatever the order of the unions.

use std::sync::atomic::{AtomicU32, Ordering};

/// Numbered items and their connected components.
#[derive(Debug)]
pub(crate) struct AtomicUnionFind {
    parents: Vec<AtomicU32>,
}

impl AtomicUnionFind {
    /// Creates `count` items, numbered from 0. No two of them are connected.
    pub(crate) fn new(count: usize) -> Self {
        Self { parents: (0..count as u32).map(AtomicU32::new).collect() }
    }

    fn parent(&self, item: u32) -> u32 {
        self.parents[item as usize].load(Ordering::Relaxed)
    }

    /// The current root of an item's component. A concurrent union may replace it at any moment.
    pub(crate) fn root(&self, mut item: u32) -> u32 {
        loop {
            let parent = self.parent(item);
            if parent == item {
                return item;
            }
            let next = self.parent(parent);
            if next != parent {
                // If this fails, another thread has already moved the parent closer to the root.
                let _ = self.parents[item as usize].compare_exchange_weak(
                    parent,
                    next,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
            }
            item = next;
        }
    }

    /// Connects two items, and so their components.
    pub(crate) fn union(&self, a: u32, b: u32) {
        loop {
            let (a, b) = (self.root(a), self.root(b));
            if a == b {
                return;
            }
            let (small, large) = (a.min(b), a.max(b));
            let linked = self.parents[large as usize].compare_exchange(
                large,
                small,
                Ordering::Relaxed,
                Ordering::Relaxed,
            );
            if linked.is_ok() {
                return;
            }
        }
    }

    /// The root of every item, in the order of their numbers. All unions must be complete.
    pub(crate) fn into_roots(self) -> Vec<u32> {
        (0..self.parents.len() as u32).map(|item| self.root(item)).collect()
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::{Random, UnionFind};

    use super::*;

    #[test]
    fn several_threads_find_the_same_components_as_one() {
        const ITEMS: u64 = 3_000;
        let mut random = Random::new(1);
        let pairs: Vec<(u32, u32)> =
            (0..2_000).map(|_| (random.below(ITEMS) as u32, random.below(ITEMS) as u32)).collect();
        let parallel = AtomicUnionFind::new(ITEMS as usize);
        std::thread::scope(|scope| {
            for part in pairs.chunks(500) {
                let parallel = &parallel;
                scope.spawn(move || part.iter().for_each(|(a, b)| parallel.union(*a, *b)));
            }
        });
        let mut sequential = UnionFind::new(ITEMS as usize);
        pairs.iter().for_each(|(a, b)| sequential.union(*a as usize, *b as usize));
        let expected: Vec<u32> = (0..ITEMS as usize).map(|item| sequential.root(item) as u32).collect();
        assert_eq!(parallel.into_roots(), expected);
    }
}
