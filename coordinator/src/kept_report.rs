//! A report that is kept for a while, because making it reads the whole collection.
//!
//! Invariants: one is made at a time; nobody waits for one that is made for another caller. That may take an hour, and who waits has one of
//! the places for requests in work.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use doppel_protocol::answer::{GroupSizes, Savings, WhatIfs};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{REPORT_AGE, REPORT_AGE_TIMES};

/// The reports of a service that are kept.
#[derive(Debug, Default)]
pub(crate) struct KeptReports {
    /// `GET /v1/reports/groups`.
    pub(crate) groups: Arc<KeptReport<GroupSizes>>,
    /// `GET /v1/reports/savings`.
    pub(crate) savings: Arc<KeptReport<Savings>>,
    /// `GET /v1/reports/load-balance/what-if`.
    pub(crate) what_if: Arc<KeptReport<WhatIfs>>,
}

/// The last report, if there is one, and the turn to make another.
#[derive(Debug)]
pub(crate) struct KeptReport<T> {
    last: Mutex<Option<Made<T>>>,
    turns: Arc<Semaphore>,
}

#[derive(Debug)]
struct Made<T> {
    at: Instant,
    took: Duration,
    report: Arc<T>,
}

/// What who asks for the report is to do.
#[derive(Debug)]
pub(crate) enum Asked<T> {
    /// Take this one, which is so old. It is still fresh, or another one is being made.
    Kept(Arc<T>, Duration),
    /// Make it.
    Turn(Turn<T>),
    /// Come again later: the first one is being made.
    BeingMade,
}

/// The only turn to make the report, until it is dropped.
#[derive(Debug)]
pub(crate) struct Turn<T> {
    kept: Arc<KeptReport<T>>,
    _permit: OwnedSemaphorePermit,
}

impl<T> Default for KeptReport<T> {
    fn default() -> Self {
        Self { last: Mutex::new(None), turns: Arc::new(Semaphore::new(1)) }
    }
}

impl<T> KeptReport<T> {
    /// The report while it is young enough, or else the turn to make it. A report that took longer is kept longer.
    pub(crate) fn ask(self: &Arc<Self>) -> Asked<T> {
        self.ask_within(REPORT_AGE)
    }

    /// The same with a report that may be so old, and older where making it takes long.
    pub(crate) fn ask_within(self: &Arc<Self>, young: Duration) -> Asked<T> {
        // First the turn: who had it before has kept a report by then.
        let permit = Arc::clone(&self.turns).try_acquire_owned();
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let last = last.as_ref().map(|made| (Arc::clone(&made.report), made.at.elapsed(), made.took));
        match (permit, last) {
            (_, Some((report, age, took))) if age < young.max(REPORT_AGE_TIMES * took) => {
                Asked::Kept(report, age)
            }
            (Ok(permit), _) => Asked::Turn(Turn { kept: Arc::clone(self), _permit: permit }),
            (Err(_), Some((report, age, _))) => Asked::Kept(report, age),
            (Err(_), None) => Asked::BeingMade,
        }
    }

    /// Makes the last report older than it is, if there is one.
    #[cfg(test)]
    pub(crate) fn grow_old(&self, by: Duration) {
        if let Some(made) = self.last.lock().unwrap().as_mut() {
            made.at = made.at.checked_sub(by).expect("the clock has run for that long");
        }
    }
}

impl<T> Turn<T> {
    /// Makes a new report and keeps it; blocks for as long as `make` does.
    pub(crate) fn make<E>(self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let begin = Instant::now();
        let report = Arc::new(make()?);
        let made = Made { at: Instant::now(), took: begin.elapsed(), report: Arc::clone(&report) };
        *self.kept.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(made);
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(kept: &Arc<KeptReport<u32>>) -> Turn<u32> {
        match kept.ask() {
            Asked::Turn(turn) => turn,
            other => panic!("it is to be made: {other:?}"),
        }
    }

    fn last(kept: &Arc<KeptReport<u32>>) -> (u32, Duration) {
        match kept.ask() {
            Asked::Kept(report, age) => (*report, age),
            other => panic!("there is one: {other:?}"),
        }
    }

    #[test]
    fn one_is_made_at_a_time_and_nobody_waits_for_it() {
        let kept = Arc::new(KeptReport::default());
        let first = turn(&kept);
        assert!(matches!(kept.ask(), Asked::BeingMade));
        assert_eq!(first.make(|| Ok::<_, ()>(7)), Ok(Arc::new(7)));
        assert_eq!(last(&kept).0, 7);
        kept.grow_old(2 * REPORT_AGE);
        assert!(matches!(kept.ask_within(3 * REPORT_AGE), Asked::Kept(..)), "who takes an older one gets it");
        let second = turn(&kept);
        let (report, age) = last(&kept);
        assert!(report == 7 && age >= 2 * REPORT_AGE, "the one before: {report}, {age:?}");
        // One that could not be made leaves the turn to the next.
        assert_eq!(second.make(|| Err(())), Err(()));
        assert_eq!(turn(&kept).make(|| Ok::<_, ()>(8)), Ok(Arc::new(8)));
        assert_eq!(last(&kept).0, 8);
    }
}
