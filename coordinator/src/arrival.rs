//! Dates of versions that come without one.
//!
//! Versions of one page with one date are ordered by what was fetched, not by their arrival. A caller that gives no dates means the order
//! in which it sends, so no two of its versions may get one date, even if they arrive within a millisecond.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::{AtomicI64, Ordering};

use doppel_model::{PageId, Timestamp};
use doppel_protocol::Submission;

use crate::services::Clock;

/// How far dates may run ahead of the clock when more versions arrive than there are milliseconds.
const AHEAD_MAX_MS: i64 = 1_000;

/// The clock, and the dates that were given so far.
pub(crate) struct Arrivals {
    clock: Clock,
    /// The latest date, in milliseconds.
    last: AtomicI64,
}

impl Arrivals {
    pub(crate) fn new(clock: Clock) -> Self {
        Self { clock, last: AtomicI64::new(i64::MIN) }
    }

    /// The present moment by the clock.
    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The date of what arrives now: later than all dates before, unless they are [`AHEAD_MAX_MS`] ahead of the clock.
    pub(crate) fn next(&self) -> Timestamp {
        let now = self.now();
        let after =
            |last: i64| last.saturating_add(1).clamp(now.millis(), now.plus_millis(AHEAD_MAX_MS).millis());
        let last = self.last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(after(last)));
        Timestamp::from_millis(after(last.unwrap_or_else(|last| last)))
    }

    /// Dates after this one are later.
    fn pass(&self, date: Timestamp) {
        self.last.fetch_max(date.millis(), Ordering::Relaxed);
    }
}

/// The dates of the lines of one request that have none: of several lines of one page each is later than the one before.
pub(crate) struct LineDates<'a> {
    arrivals: &'a Arrivals,
    last: HashMap<PageId, Timestamp>,
}

impl<'a> LineDates<'a> {
    pub(crate) fn new(arrivals: &'a Arrivals) -> Self {
        Self { arrivals, last: HashMap::new() }
    }

    /// Dates a version of a chunk that arrived at `arrival`. A version with another date has its own.
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
                self.arrivals.pass(date);
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

    /// Dates by a clock that the test sets.
    fn arrivals() -> (Arc<AtomicI64>, Arrivals) {
        let set = Arc::new(AtomicI64::new(0));
        let shown = Arc::clone(&set);
        (set, Arrivals::new(Arc::new(move || at(shown.load(Ordering::Relaxed)))))
    }

    #[test]
    fn dates_follow_each_other_and_stay_near_the_clock() {
        let (clock, arrivals) = arrivals();
        let next = |now: i64| {
            clock.store(now, Ordering::Relaxed);
            arrivals.next().millis()
        };
        assert_eq!([7, 7, 7, 20, 5].map(next), [7, 8, 9, 20, 21]);
        assert!((0..5_000).map(|_| next(30)).all(|date| date <= 30 + AHEAD_MAX_MS));
        assert_eq!(next(30), 30 + AHEAD_MAX_MS);
        // The clock was put back by a day.
        assert_eq!(next(-Timestamp::DAY_MS), AHEAD_MAX_MS - Timestamp::DAY_MS);
    }

    #[test]
    fn lines_of_one_page_without_dates_follow_each_other() {
        let (clock, arrivals) = arrivals();
        clock.store(100, Ordering::Relaxed);
        let mut lines = LineDates::new(&arrivals);
        let first = arrivals.next();
        let mut dated = |url: &str, date: Timestamp, arrival: Timestamp| {
            let mut version = version(url, date);
            lines.date(&mut version, arrival);
            version.fetched_at.millis()
        };
        assert_eq!(dated("http://a/", first, first), 100);
        assert_eq!(dated("http://b/", first, first), 100);
        assert_eq!(dated("http://a/", first, first), 101);
        assert_eq!(dated("http://a/", at(5), first), 5, "it has a date");
        assert_eq!(dated("http://a/", first, first), 102);
        let second = at(101);
        assert_eq!(dated("http://a/", second, second), 103, "a chunk that arrived meanwhile");
        assert_eq!(dated("http://b/", second, second), 101);
        // The next request comes after all lines of this one.
        assert_eq!(arrivals.next(), at(104));
    }
}
