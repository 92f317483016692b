//! Trees: contents of a run or list that are known to be connected.

/// The number of vain visits from which a run is cut. A visit takes some nanoseconds, and to cut takes some
/// microseconds for each content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VisitLimit {
    /// Visits that are free in every run, because a small run is not worth any preparation.
    pub(crate) free: u64,
    /// Further visits for each content, on average.
    pub(crate) per_content: u64,
}

impl VisitLimit {
    /// The limit that costs least on families of 5,000 to 200,000 pages of 100 words.
    pub(crate) const DEFAULT: Self = Self { free: 1 << 14, per_content: 256 };
}

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

/// The number of contents that a run has visited as candidates of its other contents, in vain.
#[derive(Debug, Default)]
pub(crate) struct Visits(u64);

impl Visits {
    /// Adds visits.
    pub(crate) fn add(&mut self, visits: u64) {
        self.0 += visits;
    }

    /// Whether there were so many visits for the first `contents` contents of a run that it should be cut.
    pub(crate) fn are_too_many(&self, limit: VisitLimit, contents: usize) -> bool {
        self.0 > limit.free + limit.per_content * contents as u64
    }
}
