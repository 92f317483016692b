//! How long pages wait for their decision, as counts that can be added up across ranges.

use doppel_contract::answer::{DecisionClass, DecisionWaits};
use serde::{Deserialize, Serialize};

/// Upper bounds of the classes of waiting times, in milliseconds. The class after the last bound has no upper
/// bound.
pub const CLASS_BOUNDS_MS: [u64; 12] =
    [10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000];

/// Waiting times since the present owners of the ranges took ownership.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct DecisionTimes {
    /// Waiting time of the page that has waited longest, in milliseconds; `None` if no page is pending. Time
    /// before the range was opened is unknown and does not count.
    pub oldest_ms: Option<u64>,
    /// Sum of all waiting times in milliseconds.
    pub total_ms: u64,
    /// Number of pages decided in each class. The bounds are [`CLASS_BOUNDS_MS`], inclusive.
    pub classes: [u64; CLASS_BOUNDS_MS.len() + 1],
}

impl DecisionTimes {
    /// Counts a page that was decided after `ms` milliseconds.
    pub fn observe(&mut self, ms: u64) {
        let class = CLASS_BOUNDS_MS.iter().position(|bound| ms <= *bound);
        self.classes[class.unwrap_or(CLASS_BOUNDS_MS.len())] += 1;
        self.total_ms += ms;
    }

    /// Adds the waiting times of another range.
    pub fn add(&mut self, other: &Self) {
        self.oldest_ms = self.oldest_ms.max(other.oldest_ms);
        self.total_ms += other.total_ms;
        for (own, other) in self.classes.iter_mut().zip(other.classes) {
            *own += other;
        }
    }

    /// Number of pages that were decided.
    #[must_use]
    pub fn decided(&self) -> u64 {
        self.classes.iter().sum()
    }
}

impl From<DecisionTimes> for DecisionWaits {
    fn from(times: DecisionTimes) -> Self {
        let bounds = CLASS_BOUNDS_MS.iter().map(|bound| Some(*bound)).chain([None]);
        let waited = bounds.zip(times.classes).map(|(up_to_ms, pages)| DecisionClass { up_to_ms, pages });
        Self { oldest_pending_ms: times.oldest_ms, waited: waited.filter(|class| class.pages > 0).collect() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_times_are_classified_and_added_up() {
        let (mut one, mut two) = (DecisionTimes::default(), DecisionTimes::default());
        [0, 10, 11, 5_000_000].into_iter().for_each(|ms| one.observe(ms));
        two.observe(10);
        two.oldest_ms = Some(7);
        one.add(&two);
        assert_eq!((one.decided(), one.total_ms, one.oldest_ms), (5, 5_000_031, Some(7)));
        assert_eq!((one.classes[0], one.classes[1], one.classes[CLASS_BOUNDS_MS.len()]), (3, 1, 1));
        one.add(&DecisionTimes::default());
        assert_eq!(
            one.oldest_ms,
            Some(7),
            "a range without pending pages does not hide the oldest page of another range"
        );
    }
}
