//! What a log is to those that use it.

use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;

/// The place of an entry: 1 and on; 0 is the place before the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Sequence(pub u64);

impl Sequence {
    /// The next place.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// An entry that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its place.
    pub sequence: Sequence,
    /// What was appended.
    pub bytes: Bytes,
}

/// What a log has at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The place before the first entry that is left.
    pub trimmed: Sequence,
    /// The place of the last entry.
    pub end: Sequence,
    /// Bytes of the entries that are left, and of what the log has beside them.
    pub bytes: u64,
    /// Bytes past which it takes no more; none where there is no such limit.
    pub bytes_max: Option<u64>,
}

/// Why a log did not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// There is no answer; later there may be one.
    #[error("the log {log} does not answer: {why}")]
    Unavailable {
        /// Its name.
        log: String,
        /// What failed.
        why: String,
    },
    /// The log is not there. It is never made anew by itself: what was in it would be lost without a word.
    #[error(
        "the log {log} is not there. Where its servers have just been started it may come back; otherwise restore the \
         cluster from a backup"
    )]
    Missing {
        /// Its name.
        log: String,
    },
    /// The entries behind a place are not all there any more.
    #[error("the log {log} begins with entry {first}, and the entries behind {after} were asked for", first = .first.0, after = .after.0)]
    Trimmed {
        /// Its name.
        log: String,
        /// Where the reader is.
        after: Sequence,
        /// The first entry that is left.
        first: Sequence,
    },
    /// There is no room for an entry.
    #[error("the log {log} is full: {why}")]
    Full {
        /// Its name.
        log: String,
        /// What the log says of it.
        why: String,
    },
    /// An entry is longer than the log takes.
    #[error("an entry of {bytes} bytes is too long for the log {log}, which takes {limit}")]
    TooLong {
        /// Its name.
        log: String,
        /// Of the entry.
        bytes: usize,
        /// The longest that it takes.
        limit: usize,
    },
}

/// Why an append did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The last entry is another one than was expected. Nothing was added by this call; an earlier one in the same place may
    /// have.
    #[error("the log goes on elsewhere")]
    Refused,
    /// Nobody knows whether it was added, or will be: read behind the expected entry, and if it is not there append it again
    /// in the same place.
    #[error("whether the entry was added is not known: {0}")]
    Unknown(LogError),
    /// It was not added.
    #[error(transparent)]
    Failed(#[from] LogError),
}

/// A log. Calls wait for the network, so none is made on a thread of an asynchronous runtime.
pub trait SharedLog: Send + Sync {
    /// Adds an entry behind `expected`, which must be the last one; its place.
    ///
    /// # Errors
    /// See [`AppendError`].
    fn append(&self, expected: Sequence, entry: &Bytes) -> Result<Sequence, AppendError>;

    /// Entries behind a place, in order, until they have so many bytes together. It may end earlier, but where there are none
    /// nothing behind the place was acknowledged before the call.
    ///
    /// # Errors
    /// When the log does not answer, or the entry behind `after` was trimmed.
    fn read(&self, after: Sequence, bytes: usize) -> Result<Vec<Entry>, LogError>;

    /// Entries behind a place of which this process was told that they were acknowledged, in order and without a gap. Nothing is
    /// asked for: where there are none there may be some all the same, and a log that has lost its tail may have other ones.
    fn told(&self, after: Sequence) -> Vec<Entry>;

    /// What it has. An append that was acknowledged before the call is counted: unlike a read, whoever answers has to reach most
    /// of the copies.
    ///
    /// # Errors
    /// When the log does not answer, or nobody leads it.
    fn extent(&self) -> Result<Extent, LogError>;

    /// The place of the last entry.
    ///
    /// # Errors
    /// The same.
    fn end(&self) -> Result<Sequence, LogError> {
        Ok(self.extent()?.end)
    }

    /// Waits until there may be an entry behind a place, no longer than `limit`. It may return earlier for no reason.
    fn wait(&self, after: Sequence, limit: Duration);

    /// Tells the processes that share the log what a reader has of it, in words of its own; its last report is the one that
    /// counts. Like all news it may be lost, so a reader makes it again. This process itself need not hear it.
    fn report(&self, reader: &str, report: &Bytes);

    /// Waits until the last report of a reader is one that is wanted, no longer than `limit`; whether there is one.
    fn await_report(&self, limit: Duration, is_wanted: &dyn Fn(&str, &Bytes) -> bool) -> bool;

    /// Removes entries up to this one, but never the last. Places stay as they are.
    ///
    /// # Errors
    /// When the log does not answer.
    fn trim(&self, through: Sequence) -> Result<(), LogError>;
}

/// The pause before a log is asked again what became of an append.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Appends an entry, and where there is no answer finds out what became of it, until it is known. [`AppendError::Refused`]
/// means here that the log goes on otherwise behind `expected`, and this entry was not added.
///
/// # Errors
/// See [`AppendError`]; `Unknown` and [`LogError::Unavailable`] only when it is not known at the end of `limit`.
pub fn append_surely(
    log: &dyn SharedLog,
    expected: Sequence,
    entry: &Bytes,
    limit: Duration,
) -> Result<Sequence, AppendError> {
    let deadline = Instant::now() + limit;
    let (mut unsure, mut pause) = (None, PAUSE);
    loop {
        let failed = match log.append(expected, entry) {
            Ok(sequence) => return Ok(sequence),
            // An answer that is lost may have said that it was added.
            Err(AppendError::Refused) => AppendError::Refused,
            Err(AppendError::Unknown(error)) => {
                unsure = Some(error.clone());
                AppendError::Unknown(error)
            }
            Err(AppendError::Failed(error @ LogError::Unavailable { .. })) => AppendError::Failed(error),
            // An earlier call may have added it, or may do so yet.
            Err(AppendError::Failed(error)) => {
                return Err(unsure.map_or(AppendError::Failed(error), AppendError::Unknown));
            }
        };
        match log.read(expected, 1) {
            Ok(behind) => match behind.first() {
                Some(first) if first.bytes == *entry => return Ok(first.sequence),
                Some(_) => return Err(AppendError::Refused),
                // A refusal may count an entry that is to be read a moment later.
                None => {}
            },
            // What has gone from the place may have been this one.
            Err(LogError::Trimmed { .. }) => {
                return Err(unsure.map_or(AppendError::Refused, AppendError::Unknown));
            }
            Err(LogError::Unavailable { .. }) => {}
            Err(error) => return Err(unsure.map_or(AppendError::Failed(error), AppendError::Unknown)),
        }
        if Instant::now() + pause >= deadline {
            return Err(match (failed, unsure) {
                // It may have been refused for what an earlier call has added.
                (AppendError::Failed(_) | AppendError::Refused, Some(error)) => AppendError::Unknown(error),
                (failed, _) => failed,
            });
        }
        sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
