//! Connected components of numbered items.

/// Which items are connected. The root of a component is its least member.
#[derive(Debug, Clone, Default)]
pub struct UnionFind {
    /// Each item leads to another item of its component or, at the root, to itself.
    parents: Vec<usize>,
}

impl UnionFind {
    /// Creates this many items, none of them connected.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self { parents: (0..count).collect() }
    }

    /// Adds an item and returns its number.
    pub fn add(&mut self) -> usize {
        let number = self.parents.len();
        self.parents.push(number);
        number
    }

    /// The root of an item's component.
    pub fn root(&mut self, mut thing: usize) -> usize {
        while self.parents[thing] != thing {
            // Each step halves the path for the next search.
            self.parents[thing] = self.parents[self.parents[thing]];
            thing = self.parents[thing];
        }
        thing
    }

    /// Connects two items.
    pub fn union(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.parents[a.max(b)] = a.min(b);
    }

    /// The number of components.
    #[must_use]
    pub fn components(&self) -> usize {
        self.parents.iter().enumerate().filter(|(thing, parent)| thing == *parent).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_has_one_root_its_least_member() {
        let mut sets = UnionFind::new(6);
        assert_eq!(sets.add(), 6);
        for (a, b) in [(5, 3), (6, 5), (1, 2), (3, 6)] {
            sets.union(a, b);
        }
        assert_eq!((0..7).map(|thing| sets.root(thing)).collect::<Vec<_>>(), [0, 1, 1, 3, 4, 3, 3]);
        assert_eq!(sets.components(), 4);
    }
}
