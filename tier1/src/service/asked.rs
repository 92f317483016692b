//! Reads that answer a question of a caller: from the owner of the range, or else from a replica with the age
//! of its answer.
//!
//! A range has no owner for some seconds after its node has died, and an owner may not answer while its log
//! does not. In both cases replicas have everything that was acknowledged up to a known moment, and the
//! caller is told how long ago that moment was.
//!
//! Invariants:
//! - a replica answers only from records that count, because its database contains no others;
//! - the age of an answer counts from before the rows were read, and is checked again afterwards;
//! - only questions are answered this way, never the work of the service itself.

use std::time::Instant;

use doppel_model::RangeId;
use doppel_protocol::range_owner::{PeerError, RangeOwner};
use doppel_protocol::{AGE_MAX, Aged, Question, Whom, too_old};

use super::ranges::Ranges;
use crate::peers;
use crate::store::Store;
use crate::txn::Row;

/// Rows in the order of their keys.
type Found = Vec<Option<Vec<u8>>>;

type Answer<T> = Result<T, PeerError>;

/// A read of rows in this process.
type Here<'r, T> = dyn Fn(&dyn Store) -> Answer<T> + 'r;

/// A read at another node, which may give an old answer, or none soon.
type There<'r, T> = dyn Fn(&dyn RangeOwner, Whom) -> Answer<Aged<T>> + 'r;

/// A read at another node that owns the range, with all the time that a read has.
type Patiently<'r, T> = dyn Fn(&dyn RangeOwner) -> Answer<T> + 'r;

/// One read in the three ways in which it can be made.
struct Reading<'r, T> {
    here: &'r Here<'r, T>,
    there: &'r There<'r, T>,
    patiently: &'r Patiently<'r, T>,
}

/// The first error so far. It is the answer of the owner, if the owner gave one.
struct Failed(Option<PeerError>);

impl Failed {
    /// Notes an error. Fails if no other node could answer instead.
    fn note(&mut self, error: PeerError) -> Result<(), PeerError> {
        if !error.is_away() {
            return Err(error);
        }
        self.0.get_or_insert(error);
        Ok(())
    }
}

impl Ranges {
    /// Reads rows like [`Peers::rows`](crate::peers::Peers::rows).
    pub(super) fn rows_for(
        &self,
        question: &Question,
        range: RangeId,
        keys: &[Vec<u8>],
    ) -> Result<Found, PeerError> {
        self.ask(
            question,
            range,
            &Reading {
                here: &|store| peers::rows_of(store, keys),
                there: &|node, whom| node.rows_for_question(range, keys, whom),
                patiently: &|node| node.rows(range, keys),
            },
        )
    }

    /// Reads rows like [`Peers::scan`](crate::peers::Peers::scan).
    pub(super) fn scan_for(
        &self,
        question: &Question,
        range: RangeId,
        (from, to): (&[u8], &[u8]),
        limit: usize,
    ) -> Result<Vec<Row>, PeerError> {
        self.ask(
            question,
            range,
            &Reading {
                here: &|store| peers::piece_of(store, from, to, limit),
                there: &|node, whom| node.scan_for_question(range, (from, to), limit, whom),
                patiently: &|node| node.scan(range, from, to, limit),
            },
        )
    }

    /// Asks the owner, then every replica.
    ///
    /// A node that is asked in place of an owner looks at its own replica first. If no other node can answer,
    /// the read waits for the owner.
    fn ask<T>(&self, question: &Question, range: RangeId, reading: &Reading<'_, T>) -> Result<T, PeerError> {
        let mut failed = Failed(None);
        if self.here(range).is_some() {
            let asked = Instant::now();
            match self.of_owner(range, reading.here) {
                Ok(found) => return Ok(question.take(Aged::of_owner(found), asked)),
                Err(error) => failed.note(error)?,
            }
        }
        let replica_here = || {
            let asked = Instant::now();
            Ok(question.take(self.of_replica(range, reading.here)?, asked))
        };
        if question.whom() == Whom::Replica
            && let Ok(found) = replica_here()
        {
            return Ok(found);
        }
        let there = |node: &dyn RangeOwner, whom| {
            let sent = Instant::now();
            Ok(question.take((reading.there)(node, whom)?, sent))
        };
        let owner = self.directory.present_owner(range);
        if let Some(owner) = &owner {
            match there(&**owner, Whom::Owner) {
                Ok(found) => return Ok(found),
                Err(error) => failed.note(error)?,
            }
        }
        match replica_here() {
            Ok(found) => return Ok(found),
            Err(error) => failed.note(error)?,
        }
        for node in self.directory.replicas(range) {
            match there(&*node, Whom::Replica) {
                Ok(found) => return Ok(found),
                Err(error) => failed.note(error)?,
            }
        }
        match owner.filter(|_| question.whom() == Whom::Owner) {
            Some(owner) => {
                let sent = Instant::now();
                Ok(question.take(Aged::of_owner((reading.patiently)(&*owner)?), sent))
            }
            None => Err(failed.0.unwrap_or_else(|| PeerError::unreachable(range, "nobody has it"))),
        }
    }

    /// Reads from the owner in this process, if it may answer.
    fn of_owner<T>(
        &self,
        range: RangeId,
        read: impl FnOnce(&dyn Store) -> Result<T, PeerError>,
    ) -> Result<T, PeerError> {
        let owner = self.own(range)?;
        let found = read(&*owner.store)?;
        owner.check()?;
        Ok(found)
    }

    /// Reads from the replica in this process, if it is not too old.
    pub(super) fn of_replica<T>(
        &self,
        range: RangeId,
        read: impl FnOnce(&dyn Store) -> Result<T, PeerError>,
    ) -> Result<Aged<T>, PeerError> {
        let none = |why: &str| PeerError::unreachable(range, why);
        let replica = self.replica(range).ok_or_else(|| none("this node has no replica of it"))?;
        // A replica that has not noticed a take-over may follow entries that no longer count.
        if self.directory.epoch(range).is_some_and(|last| replica.owner().0 < last) {
            return Err(none("the replica here does not know of its last owner"));
        }
        let since =
            replica.complete_as_of().ok_or_else(|| none("the replica here does not have everything yet"))?;
        let age = || {
            let age = since.elapsed();
            if age <= AGE_MAX { Ok(age) } else { Err(none(&too_old(age))) }
        };
        age()?;
        if replica.has_failed() {
            return Err(none("the replica here has failed"));
        }
        let answer = read(&**replica.database())?;
        Ok(Aged { answer, age: Some(age()?) })
    }

    /// Reads in this process to answer a question that another node was asked.
    pub(super) fn asked_for<T>(
        &self,
        range: RangeId,
        whom: Whom,
        read: impl Fn(&dyn Store) -> Result<T, PeerError>,
    ) -> Result<Aged<T>, PeerError> {
        let of_owner = self.of_owner(range, &read).map(Aged::of_owner);
        match (of_owner, whom) {
            (Err(error), Whom::Replica) if error.is_away() => self.of_replica(range, read),
            (answer, _) => answer,
        }
    }
}
