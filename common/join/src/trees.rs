//! Trees: contents of a run or list that are known to be connected.

/// Contents that are known to be connected. They are in several lists, each in ascending order.
#[derive(Debug)]
pub(crate) struct Tree<T> {
    lists: Vec<Vec<T>>,
    /// The greatest member.
    last: Option<T>,
}

impl<T> Default for Tree<T> {
    fn default() -> Self {
        Self { lists: Vec::new(), last: None }
    }
}

impl<T: Copy + Ord> Tree<T> {
    /// Whether the tree has no members.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Any member. `None` if the tree is empty.
    pub(crate) fn first(&self) -> Option<T> {
        self.lists.first().and_then(|list| list.first()).copied()
    }

    /// The greatest member. `None` if the tree is empty.
    pub(crate) fn last(&self) -> Option<T> {
        self.last
    }

    /// The members, in several lists.
    pub(crate) fn lists(&self) -> &[Vec<T>] {
        &self.lists
    }

    /// Moves all members of `other` into this tree.
    pub(crate) fn absorb(&mut self, other: &mut Self) {
        if self.lists.len() < other.lists.len() {
            std::mem::swap(&mut self.lists, &mut other.lists);
        }
        self.lists.append(&mut other.lists);
        self.last = self.last.max(other.last.take());
    }

    /// Adds a member that is greater than all others.
    pub(crate) fn push(&mut self, member: T) {
        self.last = Some(member);
        match self.lists.first_mut() {
            Some(list) => list.push(member),
            None => self.lists.push(vec![member]),
        }
    }
}
