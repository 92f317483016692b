//! The interface of a log that processes share: its calls, its entries, and its errors.

use std::thread::sleep;
use std::time::{Duration, Instant};

use bytes::Bytes;

/// Sequence number of an entry, counted from 1. 0 is the position before the first entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Sequence(pub u64);

impl Sequence {
    /// Returns the next sequence number.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }
}

/// An entry that was read from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogEntry {
    /// Sequence number of the entry.
    pub sequence: Sequence,
    /// The bytes that were appended.
    pub bytes: Bytes,
}

/// What a log contains at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Sequence number before the first remaining entry.
    pub trimmed: Sequence,
    /// Sequence number of the last entry.
    pub end: Sequence,
    /// Size of the remaining entries and of the log's own data, in bytes.
    pub bytes: u64,
    /// Size above which the log refuses entries; `None` if there is no limit.
    pub bytes_max: Option<u64>,
}

/// Why a log did not carry out a call.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// The log does not answer now. It may answer later.
    #[error("the log {log} does not answer: {why}")]
    Unavailable {
        /// Name of the log.
        log: String,
        /// What failed, in words.
        why: String,
    },
    /// The log does not exist. It is never recreated automatically, because that would silently lose its
    /// entries.
    #[error(
        "the log {log} does not exist. If its servers have just started, it may reappear; otherwise start the \
         cluster anew (docs/guides/grow-and-repair-a-cluster.md)"
    )]
    Missing {
        /// Name of the log.
        log: String,
    },
    /// The next entries of a reader were trimmed.
    #[error("the log {log} begins with entry {first}, but the entries after {after} were requested", first = .first.0, after = .after.0)]
    Trimmed {
        /// Name of the log.
        log: String,
        /// Sequence number after which the reader wanted to read.
        after: Sequence,
        /// Sequence number of the first remaining entry.
        first: Sequence,
    },
    /// The log has no room for an entry.
    #[error("the log {log} is full: {why}")]
    Full {
        /// Name of the log.
        log: String,
        /// The reason in the words of the log server.
        why: String,
    },
    /// An entry exceeds the maximum length.
    #[error("an entry of {bytes} bytes is too long for the log {log}, whose limit is {limit}")]
    TooLong {
        /// Name of the log.
        log: String,
        /// Length of the entry in bytes.
        bytes: usize,
        /// Maximum length of an entry in bytes.
        limit: usize,
    },
}

/// Why an append did not succeed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AppendError {
    /// The last entry is not the expected one. This call added nothing, but an earlier call at the same
    /// position may have succeeded.
    #[error("the log has another last entry than the append expects")]
    Refused,
    /// The entry may or may not have been added, or may be added later. Read the entry after the expected
    /// one. If it is not this entry, append again at the same position.
    #[error("it is unknown whether the entry was added: {0}")]
    Unknown(LogError),
    /// The entry was not added.
    #[error(transparent)]
    Failed(#[from] LogError),
}

/// A log that processes share. Calls wait for the network, so they must not be made on a thread of an async
/// runtime.
pub trait SharedLog: Send + Sync {
    /// Appends an entry after `expected`, which must be the last entry. Returns the sequence number of the
    /// new entry.
    ///
    /// # Errors
    /// See [`AppendError`].
    fn append(&self, expected: Sequence, entry: &Bytes) -> Result<Sequence, AppendError>;

    /// Reads entries after a position, in order, until they have `bytes` bytes together. The result may be
    /// shorter. If it is empty, no entry after the position was acknowledged before the call.
    ///
    /// # Errors
    /// If the log does not answer, or the entry after `after` was trimmed.
    fn read(&self, after: Sequence, bytes: usize) -> Result<Vec<LogEntry>, LogError>;

    /// Returns announced entries after a position, in order and without a gap. The call does not ask the log,
    /// and may drop announced entries up to the position. If the result is empty, the log may still have more
    /// entries. If the log has lost its tail, it may contain other entries at these positions.
    fn told(&self, after: Sequence) -> Vec<LogEntry>;

    /// Returns what the log contains. It includes every append that was acknowledged before the call. Unlike
    /// a read, this call requires that the answering server reaches most of the copies.
    ///
    /// # Errors
    /// If the log does not answer, or has no leader.
    fn extent(&self) -> Result<Extent, LogError>;

    /// Returns the sequence number of the last entry.
    ///
    /// # Errors
    /// Fails as [`extent`](Self::extent) does.
    fn end(&self) -> Result<Sequence, LogError> {
        Ok(self.extent()?.end)
    }

    /// Waits at most `limit` until there may be an entry after a position. The call may return earlier
    /// without a reason.
    fn wait(&self, after: Sequence, limit: Duration);

    /// Reports a reader's progress to the processes that share the log. The reader chooses the encoding, and
    /// its last report counts. A report may be lost, so a reader repeats it. This process does not
    /// necessarily receive its own report.
    fn report(&self, reader: &str, report: &Bytes);

    /// Waits at most `limit` until the last report of some reader satisfies `is_wanted`. Returns whether such
    /// a report has arrived.
    fn await_report(&self, limit: Duration, is_wanted: &dyn Fn(&str, &Bytes) -> bool) -> bool;

    /// Removes the entries up to `through`, but never the last entry. Sequence numbers do not change.
    ///
    /// # Errors
    /// If the log does not answer.
    fn trim(&self, through: Sequence) -> Result<(), LogError>;
}

/// First pause of [`append_surely`] between two attempts. Each further pause is twice as long.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest pause of [`append_surely`] between two attempts.
const PAUSE_MAX: Duration = Duration::from_millis(500);

/// Appends an entry to a log. If no answer arrives, determines whether the append succeeded.
/// [`AppendError::Refused`] means that the log has another entry after `expected`, and this entry was not
/// added.
///
/// # Errors
/// See [`AppendError`]. While the log is unavailable, the call repeats its attempts for at most `limit`, and
/// then returns [`LogError::Unavailable`]. If an attempt may have added the entry, the call returns
/// [`AppendError::Unknown`] instead of any other error, unless it reads another entry after `expected`.
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
            // An earlier call, whose answer was lost, may have added the entry.
            Err(AppendError::Refused) => AppendError::Refused,
            Err(AppendError::Unknown(error)) => {
                unsure = Some(error.clone());
                AppendError::Unknown(error)
            }
            Err(AppendError::Failed(error @ LogError::Unavailable { .. })) => AppendError::Failed(error),
            // An earlier call may have added the entry, or may still add it.
            Err(AppendError::Failed(error)) => {
                return Err(unsure.map_or(AppendError::Failed(error), AppendError::Unknown));
            }
        };
        match log.read(expected, 1) {
            Ok(behind) => match behind.first() {
                Some(first) if first.bytes == *entry => return Ok(first.sequence),
                Some(_) => return Err(AppendError::Refused),
                // A refusal may be due to an entry that becomes readable a moment later.
                None => {}
            },
            // The trimmed entry at this position may have been this one.
            Err(LogError::Trimmed { .. }) => {
                return Err(unsure.map_or(AppendError::Refused, AppendError::Unknown));
            }
            Err(LogError::Unavailable { .. }) => {}
            Err(error) => return Err(unsure.map_or(AppendError::Failed(error), AppendError::Unknown)),
        }
        if Instant::now() + pause >= deadline {
            return Err(match (failed, unsure) {
                // The refusal may be due to the entry that an earlier call added.
                (AppendError::Failed(_) | AppendError::Refused, Some(error)) => AppendError::Unknown(error),
                (failed, _) => failed,
            });
        }
        sleep(pause);
        pause = (pause * 2).min(PAUSE_MAX);
    }
}
