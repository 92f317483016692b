//! Remembers which messages about the inputs were shown. A command that reads its inputs several times shows
//! each message once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Messages about the inputs that a run has shown in its passes so far.
#[derive(Debug, Default)]
pub struct ShownMessages {
    inputs: AtomicBool,
    /// Reasons for which pages could not be used, and which were shown.
    reasons: Mutex<BTreeSet<String>>,
}

impl ShownMessages {
    /// Returns whether the messages about the inputs are to be shown. True only in the first call.
    pub fn begin(&self) -> bool {
        !self.inputs.swap(true, Ordering::Relaxed)
    }

    /// Adds reasons that a pass has shown.
    pub fn note(&self, reasons: impl Iterator<Item = String>) {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).extend(reasons);
    }

    /// Whether an earlier pass has shown the reason.
    pub fn knows(&self, reason: &str) -> bool {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).contains(reason)
    }
}
