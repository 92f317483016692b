//! Assigns dates to page versions that a client submits without a date.
//!
//! Tier 1 orders versions of a page that have equal dates by their content, not by their arrival. A client
//! that gives no dates expects the order in which it sends. Two of its versions of one page must therefore
//! never get equal dates, even if they arrive within one millisecond.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicI64, Ordering};

use doppel_model::{PageId, Timestamp};
use doppel_protocol::Submission;

use crate::app::services::Clock;

/// Maximum time in milliseconds by which assigned dates may run ahead of the clock. They run ahead if more
/// than one version arrives per millisecond.
const AHEAD_MAX_MS: i64 = 1_000;

/// The clock, and the latest date that was assigned.
pub(crate) struct ArrivalClock {
    clock: Clock,
    /// Latest assigned date, in milliseconds.
    last: AtomicI64,
}

impl ArrivalClock {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, last: AtomicI64::new(i64::MIN) }
    }

    /// Returns the current time by the clock.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Assigns a date to a version that arrives now. The date is later than all dates before it, unless these
    /// are already [`AHEAD_MAX_MS`] ahead of the clock.
    pub(crate) fn next(&self) -> Timestamp {
        let now = self.now();
        let after =
            |last: i64| last.saturating_add(1).clamp(now.millis(), now.plus_millis(AHEAD_MAX_MS).millis());
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        Timestamp::from_millis(after(last.unwrap_or_else(|last| last)))
    }

    /// Makes all dates assigned from now on later than `date`.
    fn pass(&self, date: Timestamp) {
        self.last.fetch_max(date.millis(), Ordering::Relaxed);
    }
}

/// Assigns dates to lines of one request that have no date. If several lines are for one page, each gets a
/// later date than the line before it.
pub(crate) struct LineDates<'a> {
    arrival_clock: &'a ArrivalClock,
    last: HashMap<PageId, Timestamp>,
}

impl<'a> LineDates<'a> {
    pub(crate) fn new(arrival_clock: &'a ArrivalClock) -> Self {
        Self { arrival_clock, last: HashMap::new() }
    }

    /// Assigns the date of a version in a chunk that arrived at `arrival`.
    ///
    /// A version whose date differs from `arrival` has a date from the client and is not changed.
    pub(crate) fn date(&mut self, version: &mut Submission, arrival: Timestamp) {
        if version.fetched_at != arrival {
            return;
        }
        match self.last.entry(version.url.id()) {
            Entry::Vacant(entry) => {
                entry.insert(arrival);
            }
            Entry::Occupied(mut entry) => {
                let date = entry.get().plus_millis(1).max(arrival).min(arrival.plus_millis(AHEAD_MAX_MS));
                entry.insert(date);
                self.arrival_clock.pass(date);
                version.fetched_at = date;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use doppel_model::PageUrl;
    use doppel_protocol::Body;

    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    fn version(url: &str, date: Timestamp) -> Submission {
        Submission {
            url: PageUrl::parse(url).unwrap(),
            fetched_at: date,
            popularity: None,
            language: None,
            canonical: None,
            body: Body::Dead,
        }
    }

    /// Returns a clock that the test sets, and the dates by this clock.
    fn arrival_clock() -> (Arc<AtomicI64>, ArrivalClock) {
        let set = Arc::new(AtomicI64::new(0));
        let shown = Arc::clone(&set);
        (set, ArrivalClock::new(Arc::new(move || at(shown.load(Ordering::Relaxed)))))
    }

    #[test]
    fn dates_follow_each_other_and_stay_near_the_clock() {
        let (clock, arrival_clock) = arrival_clock();
        let next = |now: i64| {
            clock.store(now, Ordering::Relaxed);
            arrival_clock.next().millis()
        };
        assert_eq!([7, 7, 7, 20, 5].map(next), [7, 8, 9, 20, 21]);
        assert!((0..5_000).map(|_| next(30)).all(|date| date <= 30 + AHEAD_MAX_MS));
        assert_eq!(next(30), 30 + AHEAD_MAX_MS);
        // The clock was set back by a day.
        assert_eq!(next(-Timestamp::DAY_MS), AHEAD_MAX_MS - Timestamp::DAY_MS);
    }

    #[test]
    fn lines_of_one_page_without_dates_follow_each_other() {
        let (clock, arrival_clock) = arrival_clock();
        clock.store(100, Ordering::Relaxed);
        let mut lines = LineDates::new(&arrival_clock);
        let first = arrival_clock.next();
        let mut dated = |url: &str, date: Timestamp, arrival: Timestamp| {
            let mut version = version(url, date);
            lines.date(&mut version, arrival);
            version.fetched_at.millis()
        };
        assert_eq!(dated("http://a/", first, first), 100);
        assert_eq!(dated("http://b/", first, first), 100);
        assert_eq!(dated("http://a/", first, first), 101);
        assert_eq!(dated("http://a/", at(5), first), 5, "a version with a date keeps it");
        assert_eq!(dated("http://a/", first, first), 102);
        let second = at(101);
        assert_eq!(dated("http://a/", second, second), 103, "a chunk that arrived meanwhile");
        assert_eq!(dated("http://b/", second, second), 101);
        // The next request gets a date after all lines of this request.
        assert_eq!(arrival_clock.next(), at(104));
    }
}
