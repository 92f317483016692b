//! Failures of background work. A flush reports the reason, and the worker tries the work again.

use std::sync::{Mutex, PoisonError};

use doppel_protocol::Tier1Error;

/// Why work of a range failed when the worker last tried it.
#[derive(Debug, Default)]
pub(in crate::service) struct WorkFailures(Mutex<Failures>);

#[derive(Debug, Default)]
struct Failures {
    refused: Option<Tier1Error>,
    count: u64,
}

impl WorkFailures {
    /// Notes that work has failed, for the first time or again.
    pub(in crate::service) fn record(&self, refused: Tier1Error) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refused = Some(refused);
        state.count += 1;
    }

    /// Notes that all work that had failed is done.
    pub(in crate::service) fn clear(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).refused = None;
    }

    /// Number of failures so far.
    pub(in crate::service) fn count(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// Why work is not done, if it failed after the first `failures` failures.
    pub(in crate::service) fn reason_since(&self, failures: u64) -> Option<Tier1Error> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refused.clone().filter(|_| state.count > failures)
    }
}
