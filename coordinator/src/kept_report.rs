//! A report that is kept for a while, because making it reads the whole collection.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::limits::{REPORT_AGE, REPORT_AGE_TIMES};

/// The last report, if there is one.
#[derive(Debug)]
pub(crate) struct KeptReport<T>(Option<Made<T>>);

#[derive(Debug)]
struct Made<T> {
    at: Instant,
    took: Duration,
    report: Arc<T>,
}

impl<T> Default for KeptReport<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<T> KeptReport<T> {
    /// The last report while it is young enough. A report that took longer is kept longer.
    pub(crate) fn fresh(&self) -> Option<Arc<T>> {
        let is_fresh = |made: &&Made<T>| made.at.elapsed() < REPORT_AGE.max(REPORT_AGE_TIMES * made.took);
        self.0.as_ref().filter(is_fresh).map(|made| Arc::clone(&made.report))
    }

    /// Makes a new report and keeps it; blocks for as long as `make` does.
    pub(crate) fn renew<E>(&mut self, make: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let begin = Instant::now();
        let report = Arc::new(make()?);
        self.0 = Some(Made { at: Instant::now(), took: begin.elapsed(), report: Arc::clone(&report) });
        Ok(report)
    }
}
