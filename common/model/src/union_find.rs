//! A union-find structure: connected components of numbered items.

/// Numbered items and their connected components. The root of a component is its least member.
#[derive(Debug, Clone, Default)]
pub struct UnionFind {
    /// The parent of each item in the tree of its component. The parent of a root is the root itself.
    parents: Vec<usize>,
}

impl UnionFind {
    /// Creates `count` items, numbered from 0. No two of them are connected.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { parents: (0..count).collect() }
    }

    /// Adds an item that is connected to no other, and returns its number.
    pub fn add(&mut self) -> usize {
        let number = self.parents.len();
        self.parents.push(number);
        number
    }

    /// Finds the root of an item's component.
    pub fn root(&mut self, mut item: usize) -> usize {
        while self.parents[item] != item {
            // Path halving: later searches from this item take half as many steps.
            self.parents[item] = self.parents[self.parents[item]];
            item = self.parents[item];
        }
        item
    }

    /// Connects two items, and so their components.
    pub fn union(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }

    /// The number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.parents.iter().enumerate().filter(|(item, parent)| item == *parent).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_root_of_a_component_is_its_least_member() {
        let mut sets = UnionFind::new(6);
        assert_eq!(sets.add(), 6);
        for (a, b) in [(5, 3), (6, 5), (1, 2), (3, 6)] {
            sets.union(a, b);
        }
        assert_eq!((0..7).map(|item| sets.root(item)).collect::<Vec<_>>(), [0, 1, 1, 3, 4, 3, 3]);
        assert_eq!(sets.components(), 4);
    }
}
