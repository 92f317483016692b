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

    /// Takes note of an answer that is too old, or a part of it. The first may have been slow for what was not in memory; then
    /// another one is worth it only where there is less left to ask for.
    ///
    /// # Errors
    /// When that was the last one.
    pub(crate) fn next(&mut self, too_old: TooOld, is_less_left: bool) -> Result<(), Problem> {
        let is_first = self.left == ANSWER_ATTEMPTS;
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || Instant::now() >= self.until || !is_first && !is_less_left {
            return Err(Tier1Error::from(too_old).into());
        }
        Ok(())
    }
}

/// The age of an answer as it is told.
pub(crate) fn millis(age: Duration) -> u64 {
    u64::try_from(age.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
