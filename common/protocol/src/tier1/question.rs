//! The age of an answer: how old the data behind it may be, and whether owners or replicas supplied it.
//!
//! A replica asks the range's log for its end, and then copies the log up to that end. From then on the
//! replica has everything that was acknowledged before the request, so its age counts from the request. The
//! age of an owner's data counts from the caller's request. If another node may have deposed the owner
//! without its knowledge, a fixed bound is added. An answer that combines several reads has the greatest of
//! their ages.
//!
//! Invariant: an age never omits time. A reader counts from the moment when it sent its request, and the
//! caller checks the clock again when the answer is complete. An answer that is then older than promised
//! becomes an error, whichever node gave it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Tier1Error;

/// Maximum age of an answer; an older answer becomes an error. A cluster promises that an answer was true at
/// some moment within this time. The limit allows for two delays: an owner answers up to a second after its
/// log's last response. A log server that is cut off may take some seconds to notice that it no longer leads.
pub const AGE_MAX: Duration = Duration::from_secs(5);

/// How long an owner that can be deposed keeps answering after the last response of its log.
pub const LEASE: Duration = Duration::from_secs(1);

/// How far the answer of an owner that can be deposed may lag behind the request. This is the owner's lease
/// plus the time that a log server needs to notice that it is cut off.
pub const OWNERS_LAG: Duration = Duration::from_secs(LEASE.as_secs() + 3);

/// Which node a question is put to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum ReadTarget {
    /// The owner of the range. A replica answers only if the owner does not respond.
    Owner,
    /// Any node with a replica, in place of an owner that does not respond.
    Replica,
}

/// An answer with an upper bound on its age.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedAnswer<T> {
    /// The answer to the question.
    pub answer: T,
    /// Upper bound on the age of the answer; `None` if only owners have answered.
    pub age: Option<Duration>,
}

impl<T> DatedAnswer<T> {
    /// Wraps an answer that only owners have given.
    pub fn of_owner(answer: T) -> Self {
        Self { answer, age: None }
    }
}

/// The earliest times to which the data of an answer dates back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnswerTimes {
    /// Earliest time to which the data of replicas dates back.
    replicas: Option<Instant>,
    /// Time of the first request to an owner.
    owners: Option<Instant>,
    /// Whether other nodes may depose the owners.
    may_change: bool,
}

/// An answer is older than promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AgeError {
    /// The data of a replica is too old.
    #[error("{}", explain_age(*.0))]
    Replica(Duration),
    /// The data of an owner is too old.
    #[error("reading the data for the answer took {:.1} s, and the first part may have changed meanwhile: ask again, and request less at a time if this persists", .0.as_secs_f64())]
    Owner(Duration),
}

impl From<AgeError> for Tier1Error {
    fn from(error: AgeError) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl AnswerTimes {
    /// Creates the times of a read from owners that nobody can depose, sent at `asked`.
    #[must_use]
    pub fn of_owners(asked: Instant) -> Self {
        Self { owners: Some(asked), ..Self::default() }
    }

    /// Combines the times of two sets of reads.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let earliest = |a: Option<Instant>, b: Option<Instant>| a.into_iter().chain(b).min();
        Self {
            replicas: earliest(self.replicas, other.replicas),
            owners: earliest(self.owners, other.owners),
            may_change: self.may_change || other.may_change,
        }
    }

    /// Returns the age of an answer; `None` if only owners have answered.
    ///
    /// # Errors
    /// If the age may exceed [`AGE_MAX`].
    pub fn age(self) -> Result<Option<Duration>, AgeError> {
        let of = |moment: Option<Instant>| moment.map(|moment| moment.elapsed());
        let (replicas, owners) = (of(self.replicas), of(self.owners));
        let lag = if self.may_change { OWNERS_LAG } else { Duration::ZERO };
        match (replicas, owners) {
            (Some(age), _) if age > AGE_MAX => Err(AgeError::Replica(age)),
            (_, Some(age)) if age + lag > AGE_MAX => Err(AgeError::Owner(age)),
            _ => Ok(replicas.map(|age| age.max(owners.unwrap_or_default()))),
        }
    }
}

/// A question of a caller. It records which node it is put to, and how old the data read so far is. Clones
/// share this record.
#[derive(Debug, Clone)]
pub struct Question {
    target: ReadTarget,
    is_patient: bool,
    read: Arc<Mutex<AnswerTimes>>,
}

impl Default for Question {
    fn default() -> Self {
        Self::with_target(ReadTarget::Owner)
    }
}

impl Question {
    /// Creates a question that is put to `target`, for which nothing was read so far.
    #[must_use]
    pub fn with_target(target: ReadTarget) -> Self {
        Self { target, is_patient: false, read: Arc::default() }
    }

    /// Returns a clone of this question that is put to `target`.
    #[must_use]
    pub fn to(&self, target: ReadTarget) -> Self {
        Self { target, is_patient: false, read: Arc::clone(&self.read) }
    }

    /// Returns a clone of this question that is put to owners and waits as long as a call may take.
    #[must_use]
    pub fn with_patience(&self) -> Self {
        Self { is_patient: true, ..self.to(ReadTarget::Owner) }
    }

    /// Which node the question is put to.
    #[must_use]
    pub fn target(&self) -> ReadTarget {
        self.target
    }

    /// Whether the question waits for an answer as long as a call may take. An impatient question may go to
    /// another node sooner.
    #[must_use]
    pub fn is_patient(&self) -> bool {
        self.is_patient
    }

    fn lock(&self) -> MutexGuard<'_, AnswerTimes> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that other nodes may depose the owners that answer this question.
    pub fn note_deposable_owners(&self) {
        self.lock().may_change = true;
    }

    /// Records an answer to a request that was sent at `sent`, and returns the answer.
    pub fn take<T>(&self, DatedAnswer { answer, age }: DatedAnswer<T>, sent: Instant) -> T {
        // Right after the system clock begins, this subtraction can underflow. No answer can be that old
        // then.
        let moment = |age| sent.checked_sub(age).unwrap_or(sent);
        let of = match age {
            Some(age) => AnswerTimes { replicas: Some(moment(age)), ..AnswerTimes::default() },
            None => AnswerTimes::of_owners(sent),
        };
        let mut read = self.lock();
        *read = read.with(of);
        answer
    }

    /// Returns the times to which the data read so far dates back.
    #[must_use]
    pub fn moments(&self) -> AnswerTimes {
        *self.lock()
    }

    /// Returns the times of the data read so far, and starts a new part of the answer with its own times.
    pub fn next_part(&self) -> AnswerTimes {
        let mut read = self.lock();
        let next = AnswerTimes { may_change: read.may_change, ..AnswerTimes::default() };
        std::mem::replace(&mut *read, next)
    }

    /// Adds the age of all data read so far to the finished answer.
    ///
    /// # Errors
    /// If the age may exceed [`AGE_MAX`].
    pub fn dated_answer<T>(&self, answer: T) -> Result<DatedAnswer<T>, Tier1Error> {
        Ok(DatedAnswer { answer, age: self.moments().age()? })
    }
}

/// Explains why the answer of a replica is too old.
#[must_use]
pub fn explain_age(age: Duration) -> String {
    let (age, most) = (age.as_secs_f64(), AGE_MAX.as_secs());
    format!(
        "the owner does not answer, and the data of a replica may be {age:.1} s old; the limit is {most} s"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_age_counts_and_grows_with_time() {
        let question = Question::default();
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        assert_eq!(question.take(DatedAnswer::of_owner(1), now), 1);
        assert_eq!(question.dated_answer(()), Ok(DatedAnswer::of_owner(())));
        for age in [second, 3 * second, 2 * second] {
            question.to(ReadTarget::Replica).take(DatedAnswer { answer: (), age: Some(age) }, now);
        }
        assert_eq!(question.moments().replicas, Some(now - 3 * second));
        assert!(question.dated_answer(()).unwrap().age.is_some_and(|age| age >= 3 * second));
        // This answer was sent long ago.
        question.take(DatedAnswer { answer: (), age: Some(second) }, now - 5 * second);
        assert!(matches!(question.dated_answer(()), Err(Tier1Error::Unavailable(_))));
        assert_eq!(question.next_part().replicas, Some(now - 6 * second));
        assert_eq!(
            (question.moments(), question.dated_answer(())),
            (AnswerTimes::default(), Ok(DatedAnswer::of_owner(())))
        );
    }

    #[test]
    fn answers_of_owners_age_too_and_sooner_if_owners_can_be_deposed() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let asked = |ago: Duration, may_change| {
            let question = Question::default();
            if may_change {
                question.note_deposable_owners();
            }
            question.take(DatedAnswer::of_owner(()), now);
            question.with_patience().take(DatedAnswer::of_owner(()), now - ago);
            question.take(DatedAnswer::of_owner(()), now);
            question
        };
        assert_eq!(asked(4 * second, false).dated_answer(()), Ok(DatedAnswer::of_owner(())));
        assert!(matches!(asked(5 * second, false).moments().age(), Err(AgeError::Owner(_))));
        assert_eq!(asked(second / 2, true).dated_answer(()), Ok(DatedAnswer::of_owner(())));
        let late = asked(second, true);
        assert!(matches!(late.dated_answer(()), Err(Tier1Error::Unavailable(_))));
        // The next part has its own times, but the same owners.
        late.next_part();
        late.take(DatedAnswer::of_owner(()), now - second / 2);
        assert_eq!(late.dated_answer(()), Ok(DatedAnswer::of_owner(())));
        // If owners and replicas have answered, the greatest age counts.
        let both = asked(4 * second, false);
        both.take(DatedAnswer { answer: (), age: Some(second) }, now);
        assert!(both.dated_answer(()).unwrap().age.is_some_and(|age| age >= 4 * second));
        let both = AnswerTimes::of_owners(now - 6 * second).with(asked(second, false).moments());
        assert!(matches!(both.age(), Err(AgeError::Owner(_))));
    }
}
