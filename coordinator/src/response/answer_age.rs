//! Repeats an answer that is too old by the time it is complete.
//!
//! Replicas and owners report how old their data is. If the combined age of an answer exceeds the bound, the
//! coordinator computes the answer again. The number of attempts and the total time are limited.

use std::time::{Duration, Instant};

use doppel_protocol::{AgeError, Tier1Error};

use crate::limits::ANSWER_ATTEMPTS;
use crate::problem::Problem;

/// Attempts that are left for an answer, and the time at which the attempts end.
pub(crate) struct AnswerAttempts {
    left: u32,
    until: Instant,
}

impl AnswerAttempts {
    /// Creates the attempts for a caller that waits for `time`.
    pub(crate) fn new(time: Duration) -> Self {
        Self { left: ANSWER_ATTEMPTS, until: Instant::now() + time }
    }

    /// Records an answer, or a part of an answer, that was too old.
    ///
    /// A second attempt is always worthwhile, because the first may have been slow only because records were
    /// not in memory. Every further attempt is worthwhile only if `is_less_left`: fewer parts remain to be
    /// asked for.
    ///
    /// # Errors
    /// If no attempt is left.
    pub(crate) fn record_too_old(&mut self, too_old: AgeError, is_less_left: bool) -> Result<(), Problem> {
        let is_first = self.left == ANSWER_ATTEMPTS;
        self.left = self.left.saturating_sub(1);
        if self.left == 0 || Instant::now() >= self.until || !is_first && !is_less_left {
            return Err(Tier1Error::from(too_old).into());
        }
        Ok(())
    }
}

/// Converts the age of an answer to whole milliseconds, rounded up, for the answer's JSON.
pub(crate) fn millis(age: Duration) -> u64 {
    u64::try_from(age.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}
