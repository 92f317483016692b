//! Background work that failed. A flush is told why, and the work is tried again.

use std::sync::{Mutex, PoisonError};

use doppel_protocol::Tier1Error;

/// Why some work of a range could not be done when it was last tried.
#[derive(Debug, Default)]
pub(super) struct Stuck(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    refused: Option<Tier1Error>,
    failures: u64,
}

impl Stuck {
    /// Work has failed, for the first time or again.
    pub(super) fn failed(&self, refused: Tier1Error) {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refused = Some(refused);
        state.failures += 1;
    }

    /// All that had failed is done.
    pub(super) fn cleared(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).refused = None;
    }

    /// How often work has failed.
    pub(super) fn failures(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).failures
    }

    /// Why work is not done that was tried since there were so many failures.
    pub(super) fn since(&self, failures: u64) -> Option<Tier1Error> {
        let state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        state.refused.clone().filter(|_| state.failures > failures)
    }
}
