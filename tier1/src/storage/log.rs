//! The log of a range: the changes of each commit, in order. A record is on disk before anybody is answered.
//!
//! Invariant: a record counts only if it continues the chain. Its index is the next one, and it names the
//! hash of the record before it.
//!
//! [`FileLog`] keeps the log in files beside the database of the range. If the range is
//! [replicated](crate::replica), its records are copies of the records of a shared log and have the same
//! positions. So every replica has the same log.
//!
//! | module | responsibility |
//! |---|---|
//! | `record`, `rows` | encoding a record as bytes |
//! | `file_log`, `replay` | the log in files; reading the log at a start |
//! | `log_reader` | reading the log while commits append to it |

mod file_log;
mod log_reader;
mod record;
mod replay;
pub(crate) mod rows;
#[cfg(test)]
mod tests;

pub(crate) use file_log::FileLog;
pub(crate) use record::{Origin, Payload, Record};

use serde::{Deserialize, Serialize};

use crate::storage::store::StoreError;

/// Identifies a log. No two logs share a number, and a log refuses records of another log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogId(pub(crate) u64);

/// Names a record: the owner's epoch, the index, and the hash. The default is the position before the first
/// record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Epoch of the owner that wrote the record; 0 before the first record.
    pub(crate) epoch: u64,
    /// Number of records up to and including this one.
    pub(crate) index: u64,
    /// XXH3-128 hash of the record's bytes.
    pub(crate) hash: u128,
}

/// A position, with the sequence of its record in the shared log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct SequencedPosition {
    /// Position of the record.
    pub(crate) position: Position,
    /// Sequence of the record in the shared log; 0 if the record is no copy.
    pub(crate) sequence: u64,
}

/// A record of a shared log, to be copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SharedRecord<'r> {
    pub(crate) position: Position,
    /// Hash of the record before this one.
    pub(crate) previous: u128,
    /// Sequence of the record in the shared log.
    pub(crate) sequence: u64,
    pub(crate) payload: Payload<'r>,
}

/// Outcome of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppendOutcome {
    /// The record counts and survives a crash.
    Appended(Position),
    /// The log has another last record, which is named here. The record was not written.
    Refused(Position),
}

/// A log of a range.
pub(crate) trait Log: Send {
    /// Returns the position of the last record.
    fn last(&self) -> Position;

    /// Appends a record after the record `expected`. The epoch must not be smaller than the epoch of
    /// `expected`.
    ///
    /// # Errors
    /// Fails if the record cannot be written. The record may or may not count then, and the log refuses every
    /// further record.
    fn append(
        &mut self,
        expected: Position,
        epoch: u64,
        payload: &Payload<'_>,
    ) -> Result<AppendOutcome, StoreError>;

    /// Appends the copy of a record of the shared log. Returns `false` if the record does not continue the
    /// last one.
    ///
    /// # Errors
    /// Like [`append`](Self::append).
    fn copy(&mut self, copied: &SharedRecord<'_>) -> Result<bool, StoreError>;

    /// Deletes files whose records all have an index of at most `through`. Records after `kept` stay as long
    /// as the log is not too large.
    ///
    /// # Errors
    /// Fails if a file cannot be removed. No record that is still needed is lost.
    fn trim(&mut self, through: u64, kept: u64) -> Result<(), StoreError>;

    /// Returns the size of the log in bytes.
    fn bytes(&self) -> u64;
}
