//! Connected components that several threads find together.
//!
//! Anderson, Woll, *Wait-free Parallel Algorithms for the Union-Find Problem*, STOC 1991: a root is linked by a
//! compare-and-set, and paths are halved on the way. Roots are linked to smaller ones only, so there is no cycle, and in
//! the end the root of a component is its least member, whatever the order of the unions.

use std::sync::atomic::{AtomicU32, Ordering};

/// Which items are connected.
#[derive(Debug)]
pub(crate) struct AtomicUnionFind {
    parents: Vec<AtomicU32>,
}

impl AtomicUnionFind {
    /// Creates this many items, none of them connected.
    pub(crate) fn new(count: usize) -> Self {
        Self { parents: (0..count as u32).map(AtomicU32::new).collect() }
    }

    fn parent(&self, item: u32) -> u32 {
        self.parents[item as usize].load(Ordering::Relaxed)
    }

    /// The root of an item's component at present.
    pub(crate) fn root(&self, mut item: u32) -> u32 {
        loop {
            let parent = self.parent(item);
            if parent == item {
                return item;
            }
            let next = self.parent(parent);
            if next != parent {
                // Another thread may have put something nearer to the root there; then nothing is to be done.
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

    /// Connects two items.
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

    /// The root of every item, once no thread connects any more.
    pub(crate) fn into_roots(self) -> Vec<u32> {
        (0..self.parents.len() as u32).map(|item| self.root(item)).collect()
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::{Random, UnionFind};

    use super::*;

    #[test]
    fn threads_together_find_the_same_components() {
        const ITEMS: u64 = 3_000;
        let mut random = Random::new(1);
        let pairs: Vec<(u32, u32)> =
            (0..2_000).map(|_| (random.below(ITEMS) as u32, random.below(ITEMS) as u32)).collect();
        let together = AtomicUnionFind::new(ITEMS as usize);
        std::thread::scope(|scope| {
            for part in pairs.chunks(500) {
                let together = &together;
                scope.spawn(move || part.iter().for_each(|(a, b)| together.union(*a, *b)));
            }
        });
        let mut alone = UnionFind::new(ITEMS as usize);
        pairs.iter().for_each(|(a, b)| alone.union(*a as usize, *b as usize));
        let expected: Vec<u32> = (0..ITEMS as usize).map(|item| alone.root(item) as u32).collect();
        assert_eq!(together.into_roots(), expected);
    }
}
