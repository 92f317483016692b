//! Rows that are read to answer a question of a caller: of the owner of their range, or else of a replica, with its age.
//!
//! A range has no owner for some seconds after its node has died, and an owner may not answer while its log does not. Their
//! replicas have what was acknowledged up to a moment that they know, and whoever asks is told how long ago that is.
//!
//! Invariants:
//! - what a replica answers is in records that count, for its database has nothing else;
//! - its age is counted from before the rows were read, and looked at again afterwards;
//! - nothing but questions comes here.

use std::time::Instant;

use doppel_model::RangeId;
use doppel_protocol::range_owner::{PeerError, RangeOwner};
use doppel_protocol::{AGE_MAX, Aged, Question, Whom, too_old};

use super::ranges::Ranges;
use crate::peers;
use crate::store::Store;
use crate::txn::Row;

/// Rows by key.
type Found = Vec<Option<Vec<u8>>>;

type Answer<T> = Result<T, PeerError>;

/// Reads of the rows of this process.
type Here<'r, T> = dyn Fn(&dyn Store) -> Answer<T> + 'r;

/// Reads of another node, which may give an old answer, or none soon.
type There<'r, T> = dyn Fn(&dyn RangeOwner, Whom) -> Answer<Aged<T>> + 'r;

/// Reads of another node that owns the range, with all the time that a read has.
type Patiently<'r, T> = dyn Fn(&dyn RangeOwner) -> Answer<T> + 'r;

/// How something is read.
struct Reading<'r, T> {
    here: &'r Here<'r, T>,
    there: &'r There<'r, T>,
    patiently: &'r Patiently<'r, T>,
}

/// Why nobody has answered so far: what was said first, which is the owner's word if it said something.
struct Failed(Option<PeerError>);

impl Failed {
    /// Goes on where somebody else may answer.
    fn note(&mut self, error: PeerError) -> Result<(), PeerError> {
        if !error.is_away() {
            return Err(error);
        }
        self.0.get_or_insert(error);
        Ok(())
    }
}

impl Ranges {
    /// Rows as [`Peers::rows`](crate::peers::Peers::rows) gives them.
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

    /// Rows as [`Peers::scan`](crate::peers::Peers::scan) gives them.
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

    /// Asks the owner, then whoever has a replica. A node that is asked in the place of an owner looks at what it has first.
    /// Where nobody else can answer, the owner is waited for.
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

    /// What the owner here reads, where it may answer.
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

    /// What the replica here has, if it is not too old.
    pub(super) fn of_replica<T>(
        &self,
        range: RangeId,
        read: impl FnOnce(&dyn Store) -> Result<T, PeerError>,
    ) -> Result<Aged<T>, PeerError> {
        let none = |why: &str| PeerError::unreachable(range, why);
        let replica = self.replica(range).ok_or_else(|| none("this node has no replica of it"))?;
        // One that has not noticed a take-over may follow entries that do not count any more.
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

    /// What this process reads to answer a question of another node.
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
