//! Answers that were too old when they were complete are made again, a few times and not for long.

use std::time::{Duration, Instant};

use doppel_protocol::{Tier1Error, TooOld};

use crate::limits::ANSWER_ATTEMPTS;
use crate::problem::Problem;

/// How often, and up to when, an answer is made.
pub(crate) struct Turns {
    left: u32,
    until: Instant,
}

impl Turns {
    /// For a caller that waits for so long.
    pub(crate) fn new(time: Duration) -> Self {
        Self { left: ANSWER_ATTEMPTS, until: Instant::now() + time }
    }

    /// Takes note of an answer that is too old.
    ///
    /// # Errors
    /// When that was the last one.
    pub(crate) fn next(&mut self, too_old: TooOld) -> Result<(), Problem> {
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || Instant::now() >= self.until {
            return Err(Tier1Error::from(too_old).into());
        }
        Ok(())
    }
}
