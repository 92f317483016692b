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
use doppel_protocol::{AGE_MAX, DatedAnswer, Question, ReadTarget, explain_age};

use crate::peers;
use crate::service::ownership::ranges::RangeRegistry;
use crate::storage::store::Store;
use doppel_protocol::range_owner::EncodedRow;

/// Rows in the order of their keys.
type KeyedRows = Vec<Option<Vec<u8>>>;

type Answer<T> = Result<T, PeerError>;

/// A read of rows in this process.
type LocalRead<'r, T> = dyn Fn(&dyn Store) -> Answer<T> + 'r;

/// A read at another node, which may give an old answer, or none soon.
type RemoteRead<'r, T> = dyn Fn(&dyn RangeOwner, ReadTarget) -> Answer<DatedAnswer<T>> + 'r;

/// A read at another node that owns the range, with all the time that a read has.
type PatientRead<'r, T> = dyn Fn(&dyn RangeOwner) -> Answer<T> + 'r;

/// One read in the three ways in which it can be made.
struct RangeRead<'r, T> {
    local: &'r LocalRead<'r, T>,
    remote: &'r RemoteRead<'r, T>,
    patient: &'r PatientRead<'r, T>,
}

/// The first error so far. It is the answer of the owner, if the owner gave one.
struct FirstError(Option<PeerError>);

impl FirstError {
    /// Notes an error. Fails if no other node could answer instead.
    fn note(&mut self, error: PeerError) -> Result<(), PeerError> {
        if !error.is_away() {
            return Err(error);
        }
        self.0.get_or_insert(error);
        Ok(())
    }
}

impl RangeRegistry {
    /// Reads rows like [`Peers::rows`](crate::peers::Peers::rows).
    pub(in crate::service) fn rows_for(
        &self,
        question: &Question,
        range: RangeId,
        keys: &[Vec<u8>],
    ) -> Result<KeyedRows, PeerError> {
        self.ask(
            question,
            range,
            &RangeRead {
                local: &|store| peers::rows_of(store, keys),
                remote: &|node, whom| node.rows_for_question(range, keys, whom),
                patient: &|node| node.rows(range, keys),
            },
        )
    }

    /// Reads rows like [`Peers::scan`](crate::peers::Peers::scan).
    pub(in crate::service) fn scan_for(
        &self,
        question: &Question,
        range: RangeId,
        (from, to): (&[u8], &[u8]),
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError> {
        self.ask(
            question,
            range,
            &RangeRead {
                local: &|store| peers::piece_of(store, from, to, limit),
                remote: &|node, whom| node.scan_for_question(range, (from, to), limit, whom),
                patient: &|node| node.scan(range, from, to, limit),
            },
        )
    }

    /// Asks the owner, then every replica.
    ///
    /// A node that is asked in place of an owner looks at its own replica first. If no other node can answer,
    /// the read waits for the owner.
    fn ask<T>(&self, question: &Question, range: RangeId, read: &RangeRead<'_, T>) -> Result<T, PeerError> {
        let mut first_error = FirstError(None);
        if self.local_owner(range).is_some() {
            let asked = Instant::now();
            match self.read_owner(range, read.local) {
                Ok(found) => return Ok(question.take(DatedAnswer::of_owner(found), asked)),
                Err(error) => first_error.note(error)?,
            }
        }
        let replica_here = || {
            let asked = Instant::now();
            Ok(question.take(self.read_replica(range, read.local)?, asked))
        };
        if question.target() == ReadTarget::Replica
            && let Ok(found) = replica_here()
        {
            return Ok(found);
        }
        let there = |node: &dyn RangeOwner, whom| {
            let sent = Instant::now();
            Ok(question.take((read.remote)(node, whom)?, sent))
        };
        let owner = self.directory.present_owner(range);
        if let Some(owner) = &owner {
            match there(&**owner, ReadTarget::Owner) {
                Ok(found) => return Ok(found),
                Err(error) => first_error.note(error)?,
            }
        }
        match replica_here() {
            Ok(found) => return Ok(found),
            Err(error) => first_error.note(error)?,
        }
        for node in self.directory.replicas(range) {
            match there(&*node, ReadTarget::Replica) {
                Ok(found) => return Ok(found),
                Err(error) => first_error.note(error)?,
            }
        }
        match owner.filter(|_| question.target() == ReadTarget::Owner) {
            Some(owner) => {
                let sent = Instant::now();
                Ok(question.take(DatedAnswer::of_owner((read.patient)(&*owner)?), sent))
            }
            None => Err(first_error
                .0
                .unwrap_or_else(|| PeerError::unreachable(range, "no node has a replica of it"))),
        }
    }

    /// Reads from the owner in this process, if it may answer.
    fn read_owner<T>(
        &self,
        range: RangeId,
        read: impl FnOnce(&dyn Store) -> Result<T, PeerError>,
    ) -> Result<T, PeerError> {
        let owner = self.answering_owner(range)?;
        let found = read(&*owner.store)?;
        owner.check()?;
        Ok(found)
    }

    /// Reads from the replica in this process, if it is not too old.
    pub(in crate::service) fn read_replica<T>(
        &self,
        range: RangeId,
        read: impl FnOnce(&dyn Store) -> Result<T, PeerError>,
    ) -> Result<DatedAnswer<T>, PeerError> {
        let none = |why: &str| PeerError::unreachable(range, why);
        let replica = self.replica(range).ok_or_else(|| none("this node has no replica of it"))?;
        // A replica that has not noticed a take-over may follow entries that no longer count.
        if self.directory.epoch(range).is_some_and(|last| replica.owner().0 < last) {
            return Err(none("the replica here has not seen the take-over of its last owner"));
        }
        let since = replica
            .complete_as_of()
            .ok_or_else(|| none("the replica here has not read its log to the end yet"))?;
        let age = || {
            let age = since.elapsed();
            if age <= AGE_MAX { Ok(age) } else { Err(none(&explain_age(age))) }
        };
        age()?;
        if replica.has_failed() {
            return Err(none("the replica here has failed"));
        }
        let answer = read(&**replica.database())?;
        Ok(DatedAnswer { answer, age: Some(age()?) })
    }

    /// Reads in this process to answer a question that another node was asked.
    pub(in crate::service) fn answer_for_node<T>(
        &self,
        range: RangeId,
        whom: ReadTarget,
        read: impl Fn(&dyn Store) -> Result<T, PeerError>,
    ) -> Result<DatedAnswer<T>, PeerError> {
        let of_owner = self.read_owner(range, &read).map(DatedAnswer::of_owner);
        match (of_owner, whom) {
            (Err(error), ReadTarget::Replica) if error.is_away() => self.read_replica(range, read),
            (answer, _) => answer,
        }
    }
}
