//! Limits of the cost of a refinement, so that it costs no more than it can save.
//!
//! Whether a run is cheaper to compare pair by pair or by the differences of its contents is not known
//! beforehand. So both are tried in turn. After the pairs of a run have cost some visits, a refinement may cost
//! a few times as many. If that does not suffice, the comparison of pairs goes on, and the next refinement may
//! cost [`GROWTH`] times as many visits. With the default limits, all refinements of a run together make at most
//! six times the visits of its pairs, or a few times more if several threads notice the limit late.

use std::sync::atomic::{AtomicU64, Ordering};

/// How many times as many visits are made before the next refinement is tried.
const GROWTH: u64 = 4;

/// When refinements are tried, and what they may cost. A *visit* looks at one pair, or at one difference of a
/// content.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefinementLimits {
    /// Vain visits after which the first refinement of a run or list is tried.
    pub(crate) visits_free: u64,
    /// Further vain visits for each content of the run or list, before the first refinement.
    pub(crate) visits_per_content: u64,
    /// Hashes of a run that cost as much to prepare as one vain visit of a pair.
    pub(crate) hashes_per_visit: u64,
    /// Visits that a refinement may make for each vain visit that was made before it.
    pub(crate) budget_per_visit: u64,
}

impl RefinementLimits {
    /// The limits that cost least on families of 5,000 to 200,000 pages of 100 words.
    pub(crate) const DEFAULT: Self =
        Self { visits_free: 1 << 12, visits_per_content: 40, hashes_per_visit: 4, budget_per_visit: 4 };
}

/// Decides when the next refinement of a run or list is tried.
#[derive(Debug)]
pub(crate) struct Trials {
    budget_per_visit: u64,
    visits: u64,
    next: u64,
}

impl Trials {
    /// Begins to count the vain visits of a run or list of this many contents. `hashes` is the number of
    /// hashes that the first refinement reads.
    pub(crate) fn new(limits: RefinementLimits, contents: usize, hashes: u64) -> Self {
        let of_contents = limits.visits_per_content * contents as u64;
        let next = limits.visits_free + of_contents + hashes / limits.hashes_per_visit;
        Self { budget_per_visit: limits.budget_per_visit, visits: 0, next }
    }

    /// Counts vain visits of pairs.
    pub(crate) fn add(&mut self, visits: u64) {
        self.visits += visits;
    }

    /// The visits that a refinement may make now. `None` if none should be tried now.
    pub(crate) fn due(&mut self) -> Option<u64> {
        (self.visits > self.next).then(|| {
            self.next = GROWTH * self.visits;
            self.visits.saturating_mul(self.budget_per_visit)
        })
    }
}

/// The visits that a refinement has made, and how many it may make. Threads share it.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: u64,
    spent: AtomicU64,
}

impl Budget {
    /// A budget of which nothing is spent.
    pub(crate) fn new(limit: u64) -> Self {
        Self { limit, spent: AtomicU64::new(0) }
    }

    /// Counts visits. Returns whether all visits so far are within the limit.
    pub(crate) fn spend(&self, visits: u64) -> bool {
        self.spent.fetch_add(visits, Ordering::Relaxed) + visits <= self.limit
    }

    /// Counts visits as not made.
    pub(crate) fn give_back(&self, visits: u64) {
        self.spent.fetch_sub(visits, Ordering::Relaxed);
    }

    /// Number of visits that were made.
    pub(crate) fn spent(&self) -> u64 {
        self.spent.load(Ordering::Relaxed)
    }

    /// Number of visits that may still be made.
    pub(crate) fn left(&self) -> u64 {
        self.limit.saturating_sub(self.spent())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refinement_may_cost_a_multiple_of_the_pairs_before_it() {
        let limits = RefinementLimits {
            visits_free: 5,
            visits_per_content: 2,
            hashes_per_visit: 4,
            budget_per_visit: 3,
        };
        let mut trials = Trials::new(limits, 5, 21);
        trials.add(20);
        assert_eq!(trials.due(), None);
        trials.add(1);
        assert_eq!(trials.due(), Some(63));
        trials.add(63);
        assert_eq!(trials.due(), None);
        trials.add(1);
        assert_eq!(trials.due(), Some(3 * 85));
    }

    #[test]
    fn a_budget_counts_what_is_beyond_it() {
        let budget = Budget::new(10);
        assert!(budget.spend(4) && budget.spend(6));
        assert_eq!(budget.left(), 0);
        assert!(!budget.spend(1));
        assert_eq!((budget.spent(), budget.left()), (11, 0));
    }
}
