//! Questions that a replica of a range may answer while its owner does not, and how old such an answer is.
//!
//! The age of what a replica has is the time since it asked the log of its range for the end that it has reached since: it has
//! everything that was acknowledged before. Whoever puts an answer together from several reads tells the greatest age.
//!
//! Invariant: an age never leaves out time. A reader counts from the moment when it sent its request, and an asker looks at
//! the clock again when the answer is complete.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Tier1Error;

/// An answer that may be older is none. A cluster promises that an answer is true of contents that were current at most so long
/// before: an owner answers within a second of its log's last answer, and a log server that is cut off may take some seconds to
/// notice that it leads no more.
pub const AGE_MAX: Duration = Duration::from_secs(5);

/// Whom something is asked of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Whom {
    /// Whoever owns a range, and a replica of it only where the owner does not answer.
    Owner,
    /// In the place of an owner that does not answer: whoever has a replica.
    Replica,
}

/// An answer, and how old it may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Aged<T> {
    /// The answer.
    pub answer: T,
    /// It is true of a moment no longer ago than this; none where owners alone have answered.
    pub age: Option<Duration>,
}

impl<T> Aged<T> {
    /// An answer of owners.
    pub fn of_owner(answer: T) -> Self {
        Self { answer, age: None }
    }
}

/// One question of a caller: whom it is put to, and from when what was read for it so far is. Clones are one question.
#[derive(Debug, Clone)]
pub struct Question {
    whom: Whom,
    is_patient: bool,
    oldest: Arc<Mutex<Option<Instant>>>,
}

impl Default for Question {
    fn default() -> Self {
        Self::put_to_anybody(Whom::Owner)
    }
}

impl Question {
    /// One that nobody has read anything for.
    #[must_use]
    pub fn put_to_anybody(whom: Whom) -> Self {
        Self { whom, is_patient: false, oldest: Arc::default() }
    }

    /// The same question, put to these.
    #[must_use]
    pub fn to(&self, whom: Whom) -> Self {
        Self { whom, is_patient: false, oldest: Arc::clone(&self.oldest) }
    }

    /// The same, put to owners, which get all the time that a call has.
    #[must_use]
    pub fn with_patience(&self) -> Self {
        Self { is_patient: true, ..self.to(Whom::Owner) }
    }

    /// Whom it is put to.
    #[must_use]
    pub fn whom(&self) -> Whom {
        self.whom
    }

    /// Whether an answer is waited for as long as a call may take. Otherwise somebody else may answer it as well.
    #[must_use]
    pub fn is_patient(&self) -> bool {
        self.is_patient
    }

    fn lock(&self) -> MutexGuard<'_, Option<Instant>> {
        self.oldest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes note of an answer to a request that was sent at some time.
    pub fn take<T>(&self, Aged { answer, age }: Aged<T>, sent: Instant) -> T {
        if let Some(age) = age {
            let mut oldest = self.lock();
            // A clock that has just begun has no moment so long ago; there is no such answer either.
            let moment = sent.checked_sub(age).unwrap_or(sent);
            *oldest = Some(oldest.map_or(moment, |oldest| oldest.min(moment)));
        }
        answer
    }

    /// The earliest moment of which something is true that was read so far; none where owners have answered everything.
    #[must_use]
    pub fn oldest(&self) -> Option<Instant> {
        *self.lock()
    }

    /// The same, and what is read from now on is counted by itself.
    pub fn next_part(&self) -> Option<Instant> {
        self.lock().take()
    }

    /// What was put together from what was read, with its age.
    ///
    /// # Errors
    /// When that is more than [`AGE_MAX`].
    pub fn answered<T>(&self, answer: T) -> Result<Aged<T>, Tier1Error> {
        Ok(Aged { answer, age: age_of(self.oldest())? })
    }
}

/// The age of what is true of a moment.
///
/// # Errors
/// When that is more than [`AGE_MAX`].
pub fn age_of(moment: Option<Instant>) -> Result<Option<Duration>, Tier1Error> {
    let age = moment.map(|moment| moment.elapsed());
    match age {
        Some(age) if age > AGE_MAX => Err(Tier1Error::Unavailable(too_old(age))),
        age => Ok(age),
    }
}

/// Why an answer is none.
#[must_use]
pub fn too_old(age: Duration) -> String {
    let (age, most) = (age.as_secs_f64(), AGE_MAX.as_secs());
    format!("its owner does not answer, and what a replica has may be {age:.1} s old; {most} s is the most")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_age_counts_and_time_goes_on() {
        let question = Question::default();
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        assert_eq!(question.take(Aged::of_owner(1), now), 1);
        assert_eq!(question.answered(()), Ok(Aged::of_owner(())));
        for age in [second, 3 * second, 2 * second] {
            question.to(Whom::Replica).take(Aged { answer: (), age: Some(age) }, now);
        }
        assert_eq!(question.oldest(), Some(now - 3 * second));
        assert!(question.answered(()).unwrap().age.is_some_and(|age| age >= 3 * second));
        // It was sent long ago.
        question.take(Aged { answer: (), age: Some(second) }, now - 5 * second);
        assert!(matches!(question.answered(()), Err(Tier1Error::Unavailable(_))));
        assert_eq!(question.next_part(), Some(now - 6 * second));
        assert_eq!((question.oldest(), age_of(None)), (None, Ok(None)));
    }
}
