//! Failures of background work. A flush reports the reason, and the worker tries the work again.

use std::sync::{Mutex, PoisonError};

use doppel_protocol::Tier1Error;

/// Why work of a range failed when the worker last tried it.
#[derive(Debug, Default)]
pub(super) struct Stuck(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    refused: Option<Tier1Error>,
    failures: u64,
}

impl Stuck {
    /// Notes that work has failed, for the first time or again.
    pub(super) fn failed(&self, refused: Tier1Error) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refused = Some(refused);
        state.failures += 1;
    }

    /// Notes that all work that had failed is done.
    pub(super) fn cleared(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).refused = None;
    }

    /// Number of failures so far.
    pub(super) fn failures(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failures
    }

    /// Why work is not done, if it failed after the first `failures` failures.
    pub(super) fn since(&self, failures: u64) -> Option<Tier1Error> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refused.clone().filter(|_| state.failures > failures)
    }
}
