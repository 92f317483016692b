//! The history of a value over a window of time.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Number of marks in a window.
const MARKS: u32 = 60;

/// Values and when they were seen, oldest first.
#[derive(Debug)]
pub(super) struct ValueHistory<T>(VecDeque<(Instant, T)>);

impl<T> Default for ValueHistory<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T: Copy> ValueHistory<T> {
    /// Records the present value, unless that was done shortly before.
    pub(super) fn record(&mut self, now: Instant, window: Duration, what: T) {
        if self.0.back().is_none_or(|(at, _)| now.saturating_duration_since(*at) >= window / MARKS) {
            self.0.push_back((now, what));
        }
        // Keep one mark that is older than the window.
        while self.0.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= window) {
            self.0.pop_front();
        }
    }

    /// The value before the window. `None` if it is not known.
    pub(super) fn before(&self, now: Instant, window: Duration) -> Option<T> {
        let before = self.0.front().filter(|(at, _)| now.saturating_duration_since(*at) >= window);
        before.map(|(_, what)| *what)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_history_returns_the_value_before_the_window() {
        let (begun, window) = (Instant::now(), Duration::from_secs(60));
        let mut marks = ValueHistory::default();
        for second in 0..200 {
            let now = begun + Duration::from_secs(second);
            marks.record(now, window, second);
            assert!(marks.0.len() <= 62, "{}", marks.0.len());
            assert_eq!(marks.before(now, window), second.checked_sub(60), "at {second}");
        }
    }
}
