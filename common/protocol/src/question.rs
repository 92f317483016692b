//! How old an answer is: when what was read for it was so, and whom it was read of.
//!
//! The age of what a replica has is the time since it asked the log of its range for the end that it has reached since: it has
//! everything that was acknowledged before. What an owner says is true of a moment after it was asked, less a bound where another
//! node may own the range without its knowing. Whoever puts an answer together from several reads tells the greatest age.
//!
//! Invariant: an age never leaves out time. A reader counts from the moment when it sent its request, and an asker looks at
//! the clock again when the answer is complete. One that is older then than promised is none, whoever gave it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Tier1Error;

/// An answer that may be older is none. A cluster promises that an answer is true of contents that were current at most so long
/// before: an owner answers within a second of its log's last answer, and a log server that is cut off may take some seconds to
/// notice that it leads no more.
pub const AGE_MAX: Duration = Duration::from_secs(5);

/// How long an owner that others may depose answers after its log has last answered it.
pub const LEASE: Duration = Duration::from_secs(1);

/// How much older an answer of such an owner may be than the request: its lease, and the time that a log server which is cut off may
/// take to notice.
pub const OWNERS_LAG: Duration = Duration::from_secs(LEASE.as_secs() + 3);

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

/// From when what was read for an answer is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Moments {
    /// The earliest moment of which something is true that replicas have said.
    replicas: Option<Instant>,
    /// When the first of the owners was asked.
    owners: Option<Instant>,
    /// Others may depose them.
    may_change: bool,
}

/// An answer that is older than promised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TooOld {
    /// What a replica has said for it.
    #[error("{}", too_old(*.0))]
    Replica(Duration),
    /// What an owner has said for it.
    #[error("it took {:.1} s to read all of it, and the first of that may have changed: ask again, and for less at a time if this goes on", .0.as_secs_f64())]
    Owner(Duration),
}

impl From<TooOld> for Tier1Error {
    fn from(error: TooOld) -> Self {
        Self::Unavailable(error.to_string())
    }
}

impl Moments {
    /// Of what owners say that nobody deposes, and that were asked then.
    #[must_use]
    pub fn of_owners(asked: Instant) -> Self {
        Self { owners: Some(asked), ..Self::default() }
    }

    /// Of both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let earliest = |a: Option<Instant>, b: Option<Instant>| a.into_iter().chain(b).min();
        Self {
            replicas: earliest(self.replicas, other.replicas),
            owners: earliest(self.owners, other.owners),
            may_change: self.may_change || other.may_change,
        }
    }

    /// The age of an answer; none where owners alone have answered.
    ///
    /// # Errors
    /// When it may be more than [`AGE_MAX`].
    pub fn age(self) -> Result<Option<Duration>, TooOld> {
        let of = |moment: Option<Instant>| moment.map(|moment| moment.elapsed());
        let (replicas, owners) = (of(self.replicas), of(self.owners));
        let lag = if self.may_change { OWNERS_LAG } else { Duration::ZERO };
        match (replicas, owners) {
            (Some(age), _) if age > AGE_MAX => Err(TooOld::Replica(age)),
            (_, Some(age)) if age + lag > AGE_MAX => Err(TooOld::Owner(age)),
            _ => Ok(replicas.map(|age| age.max(owners.unwrap_or_default()))),
        }
    }
}

/// One question of a caller: whom it is put to, and from when what was read for it so far is. Clones are one question.
#[derive(Debug, Clone)]
pub struct Question {
    whom: Whom,
    is_patient: bool,
    read: Arc<Mutex<Moments>>,
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
        Self { whom, is_patient: false, read: Arc::default() }
    }

    /// The same question, put to these.
    #[must_use]
    pub fn to(&self, whom: Whom) -> Self {
        Self { whom, is_patient: false, read: Arc::clone(&self.read) }
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

    fn lock(&self) -> MutexGuard<'_, Moments> {
        self.read.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// It is put to owners that others may depose.
    pub fn owners_may_change(&self) {
        self.lock().may_change = true;
    }

    /// Takes note of an answer to a request that was sent at some time.
    pub fn take<T>(&self, Aged { answer, age }: Aged<T>, sent: Instant) -> T {
        // A clock that has just begun has no moment so long ago; there is no such answer either.
        let moment = |age| sent.checked_sub(age).unwrap_or(sent);
        let of = match age {
            Some(age) => Moments { replicas: Some(moment(age)), ..Moments::default() },
            None => Moments::of_owners(sent),
        };
        let mut read = self.lock();
        *read = read.with(of);
        answer
    }

    /// From when what was read so far is.
    #[must_use]
    pub fn moments(&self) -> Moments {
        *self.lock()
    }

    /// The same, and what is read from now on is counted by itself.
    pub fn next_part(&self) -> Moments {
        let mut read = self.lock();
        let next = Moments { may_change: read.may_change, ..Moments::default() };
        std::mem::replace(&mut *read, next)
    }

    /// What was put together from what was read, with its age.
    ///
    /// # Errors
    /// When that may be more than [`AGE_MAX`].
    pub fn answered<T>(&self, answer: T) -> Result<Aged<T>, Tier1Error> {
        Ok(Aged { answer, age: self.moments().age()? })
    }
}

/// Why an answer of a replica is none.
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
        assert_eq!(question.moments().replicas, Some(now - 3 * second));
        assert!(question.answered(()).unwrap().age.is_some_and(|age| age >= 3 * second));
        // It was sent long ago.
        question.take(Aged { answer: (), age: Some(second) }, now - 5 * second);
        assert!(matches!(question.answered(()), Err(Tier1Error::Unavailable(_))));
        assert_eq!(question.next_part().replicas, Some(now - 6 * second));
        assert_eq!((question.moments(), question.answered(())), (Moments::default(), Ok(Aged::of_owner(()))));
    }

    #[test]
    fn what_owners_say_grows_old_too_and_sooner_where_they_may_have_been_deposed() {
        let (now, second) = (Instant::now(), Duration::from_secs(1));
        let asked = |ago: Duration, may_change| {
            let question = Question::default();
            if may_change {
                question.owners_may_change();
            }
            question.take(Aged::of_owner(()), now);
            question.with_patience().take(Aged::of_owner(()), now - ago);
            question.take(Aged::of_owner(()), now);
            question
        };
        assert_eq!(asked(4 * second, false).answered(()), Ok(Aged::of_owner(())));
        assert!(matches!(asked(5 * second, false).moments().age(), Err(TooOld::Owner(_))));
        assert_eq!(asked(second / 2, true).answered(()), Ok(Aged::of_owner(())));
        let late = asked(second, true);
        assert!(matches!(late.answered(()), Err(Tier1Error::Unavailable(_))));
        // The next part is by itself, of the same owners.
        late.next_part();
        late.take(Aged::of_owner(()), now - second / 2);
        assert_eq!(late.answered(()), Ok(Aged::of_owner(())));
        // Together with what a replica has, the greatest age is told.
        let both = asked(4 * second, false);
        both.take(Aged { answer: (), age: Some(second) }, now);
        assert!(both.answered(()).unwrap().age.is_some_and(|age| age >= 4 * second));
        let both = Moments::of_owners(now - 6 * second).with(asked(second, false).moments());
        assert!(matches!(both.age(), Err(TooOld::Owner(_))));
    }
}
