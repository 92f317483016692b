//! What was told of the inputs of a run, so that commands that read them several times tell it once.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// What was told of the inputs of a run in the passes so far.
#[derive(Debug, Default)]
pub struct ShownMessages {
    inputs: AtomicBool,
    /// Reasons for which pages could not be used.
    reasons: Mutex<BTreeSet<String>>,
}

impl ShownMessages {
    /// Whether it is now to be told what is in the inputs: it was not before.
    pub fn begin(&self) -> bool {
        !self.inputs.swap(true, Ordering::Relaxed)
    }

    /// Takes note of reasons that were told in a pass.
    pub fn note(&self, reasons: impl Iterator<Item = String>) {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).extend(reasons);
    }

    /// Whether a reason was told in an earlier pass.
    pub fn knows(&self, reason: &str) -> bool {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner).contains(reason)
    }
}
