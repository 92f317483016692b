//! The log of a range: what each commit changed, in order, durable before anybody is answered.
//!
//! A record counts only if it continues the chain: its index is the next, and it names the hash of the record before
//! it. [`Local`] keeps the log in files beside the database of the range. Where the range is [replicated](crate::replica), its
//! records are copies of those of a shared log, with their positions, so that every replica has the same.
//!
//! | module | what |
//! |---|---|
//! | `record`, `rows` | a record as bytes |
//! | `local`, `replay` | the log in files; reading it at a start |
//! | `since` | reading it again while it goes on |

mod local;
mod record;
mod replay;
pub(crate) mod rows;
mod since;
#[cfg(test)]
mod tests;

pub(crate) use local::Local;
pub(crate) use record::{Origin, Payload, Record};

use serde::{Deserialize, Serialize};

use crate::store::StoreError;

/// A number that no other log has. Records of another log are never taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LogId(pub(crate) u64);

/// The last record that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Position {
    /// Of the owner that wrote it; 0 before the first.
    pub(crate) epoch: u64,
    /// Records so far.
    pub(crate) index: u64,
    /// Of its bytes.
    pub(crate) hash: u128,
}

/// How far a log goes, or what was made of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Reached {
    /// The last record.
    pub(crate) position: Position,
    /// Where that is in the shared log of which it is a copy; 0 where it is none.
    pub(crate) sequence: u64,
}

/// A record of a shared log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Copied<'r> {
    pub(crate) position: Position,
    /// The hash of the record before it.
    pub(crate) previous: u128,
    /// Its place in the shared log.
    pub(crate) sequence: u64,
    pub(crate) payload: Payload<'r>,
}

/// What became of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Appended {
    /// It counts, and survives a crash.
    Done(Position),
    /// The log goes on elsewhere: this is its last record.
    Refused(Position),
}

/// A log.
pub(crate) trait Log: Send {
    /// The last record.
    fn last(&self) -> Position;

    /// Appends a record behind `expected`, under an epoch that is not below that one.
    ///
    /// # Errors
    /// When it cannot be written. It may count or not then: the log takes nothing more.
    fn append(
        &mut self,
        expected: Position,
        epoch: u64,
        payload: &Payload<'_>,
    ) -> Result<Appended, StoreError>;

    /// Appends the copy of a record behind the last one; false where it does not continue that.
    ///
    /// # Errors
    /// The same.
    fn copy(&mut self, copied: &Copied<'_>) -> Result<bool, StoreError>;

    /// Lets go of records up to an index, as far as that is easy. Those after `kept` stay as long as there is room.
    ///
    /// # Errors
    /// When the files cannot be removed. Nothing is lost then.
    fn trim(&mut self, through: u64, kept: u64) -> Result<(), StoreError>;

    /// Bytes that it holds.
    fn bytes(&self) -> u64;
}
