//! A cache for a report that is expensive to make, because making it reads the whole collection.
//!
//! Invariants: only one caller makes a report at a time, and no caller waits for a report that another caller
//! is making. Making a report may take an hour, and a waiting caller would hold a request permit for that
//! time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use doppel_contract::answer::{GroupSizes, Savings, WhatIfReport};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{REPORT_AGE, REPORT_AGE_TIMES};

/// The cached reports of a service.
#[derive(Debug, Default)]
pub(crate) struct ReportCaches {
    /// Report of `GET /v1/reports/groups`.
    pub(crate) groups: Arc<ReportCache<GroupSizes>>,
    /// Report of `GET /v1/reports/savings`.
    pub(crate) savings: Arc<ReportCache<Savings>>,
    /// Report of `GET /v1/reports/load-balance/what-if`.
    pub(crate) what_if: Arc<ReportCache<WhatIfReport>>,
}

/// The latest report, if any, and the permit to make the next.
#[derive(Debug)]
pub(crate) struct ReportCache<T> {
    last: Mutex<Option<CachedReport<T>>>,
    turns: Arc<Semaphore>,
}

#[derive(Debug)]
struct CachedReport<T> {
    at: Instant,
    took: Duration,
    report: Arc<T>,
}

/// Answer of the cache to a caller that asks for a report.
#[derive(Debug)]
pub(crate) enum CacheAnswer<T> {
    /// The cached report and its age. The report is fresh, or another caller is making the next one.
    Cached(Arc<T>, Duration),
    /// Permission to make the report.
    Turn(ReportTurn<T>),
    /// No report is cached, and another caller is making the first one. The caller should ask again later.
    InProgress,
}

/// Exclusive permission to make the report, until this value is dropped.
#[derive(Debug)]
pub(crate) struct ReportTurn<T> {
    cache: Arc<ReportCache<T>>,
    _permit: OwnedSemaphorePermit,
}

impl<T> Default for ReportCache<T> {
    fn default() -> Self {
        Self { last: Mutex::new(None), turns: Arc::new(Semaphore::new(1)) }
    }
}

impl<T> ReportCache<T> {
    /// Returns the cached report if it is fresh, or else the permission to make it. A report that took long
    /// to make stays fresh for longer.
    pub(crate) fn ask(self: &Arc<Self>) -> CacheAnswer<T> {
        self.ask_within(REPORT_AGE)
    }

    /// Like [`ask`](Self::ask), but a report is fresh up to the age `young`, or longer if making it took
    /// long.
    pub(crate) fn ask_within(self: &Arc<Self>, young: Duration) -> CacheAnswer<T> {
        // The permit is taken before the cache is read. A previous holder has stored its report by then.
        let permit = Arc::clone(&self.turns).try_acquire_owned();
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.as_ref().map(|made| (Arc::clone(&made.report), made.at.elapsed(), made.took));
        match (permit, last) {
            (_, Some((report, age, took))) if age < young.max(REPORT_AGE_TIMES * took) => {
                CacheAnswer::Cached(report, age)
            }
            (Ok(permit), _) => CacheAnswer::Turn(ReportTurn { cache: Arc::clone(self), _permit: permit }),
            (Err(_), Some((report, age, _))) => CacheAnswer::Cached(report, age),
            (Err(_), None) => CacheAnswer::InProgress,
        }
    }

    /// Ages the cached report by this duration, if there is one.
    #[cfg(test)]
    pub(crate) fn grow_old(&self, by: Duration) {
        if let Some(made) = self.last.lock().unwrap().as_mut() {
            made.at = made.at.checked_sub(by).expect("the clock is younger than the requested age");
        }
    }
}

impl<T> ReportTurn<T> {
    /// Makes a new report and caches it. Blocks for as long as `make` does.
    pub(crate) fn make<E>(self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let begin = Instant::now();
        let report = Arc::new(make()?);
        let made = CachedReport { at: Instant::now(), took: begin.elapsed(), report: Arc::clone(&report) };
        *self.cache.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(cache: &Arc<ReportCache<u32>>) -> ReportTurn<u32> {
        match cache.ask() {
            CacheAnswer::Turn(turn) => turn,
            other => panic!("expected a turn to make the report: {other:?}"),
        }
    }

    fn last(cache: &Arc<ReportCache<u32>>) -> (u32, Duration) {
        match cache.ask() {
            CacheAnswer::Cached(report, age) => (*report, age),
            other => panic!("expected a cached report: {other:?}"),
        }
    }

    #[test]
    fn one_report_is_made_at_a_time_and_no_caller_waits_for_it() {
        let cache = Arc::new(ReportCache::default());
        let first = turn(&cache);
        assert!(matches!(cache.ask(), CacheAnswer::InProgress));
        assert_eq!(first.make(|| Ok::<_, ()>(7)), Ok(Arc::new(7)));
        assert_eq!(last(&cache).0, 7);
        cache.grow_old(2 * REPORT_AGE);
        assert!(
            matches!(cache.ask_within(3 * REPORT_AGE), CacheAnswer::Cached(..)),
            "a caller that accepts an older report gets it"
        );
        let second = turn(&cache);
        let (report, age) = last(&cache);
        assert!(report == 7 && age >= 2 * REPORT_AGE, "expected the previous report: {report}, {age:?}");
        // A failed attempt leaves the permission to the next caller.
        assert_eq!(second.make(|| Err(())), Err(()));
        assert_eq!(turn(&cache).make(|| Ok::<_, ()>(8)), Ok(Arc::new(8)));
        assert_eq!(last(&cache).0, 8);
    }
}
