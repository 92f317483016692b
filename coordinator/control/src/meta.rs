//! META: the stream in which a cluster with a log stores its description, for all processes.
//!
//! Every entry is a whole description with its version. `doppel init` writes the first entry. Each change
//! appends the next one, on condition that the last entry is still the one that the change has read. Of two
//! changes of one description, only one is therefore made.
//!
//! All processes fold the stream by the same rule, so they agree on the description. An entry counts if it is
//! whole, belongs to this cluster, and has a greater version than the entry that counted before. The last
//! entry that counts is the description; all others are ignored. An entry in a newer form is an error: to
//! ignore it would mean to take an older description for the present one.
//!
//! Old entries are removed in time, but never the last one. A missing stream is never created again.

pub mod unavailable;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use doppel_model::{random_number, stable_hash64};
use doppel_shared_log::{
    AppendError, EngineError, LogEngine, LogEntry, LogError, Sequence, SharedLog, append_surely,
};
use serde::{Deserialize, Serialize};

use crate::description::Description;
use crate::log;

/// First bytes of every entry.
const MARK: &str = "doppel-meta";

/// Version of the format of entries.
const FORM: u32 = 1;

/// Longest entry, in bytes: enough for hundreds of nodes.
const ENTRY_BYTES_MAX: usize = 256 << 10;

/// Number of entries that are kept, including the last one.
const KEPT: u64 = 32;

/// Size limit of the stream, in bytes: twice the size of the kept entries.
pub(super) const STREAM_BYTES: u64 = 2 * KEPT * ENTRY_BYTES_MAX as u64;

/// Number of bytes to read at once.
const READ: usize = 1 << 20;

/// Time limit for finding out whether a change was made.
const PATIENCE: Duration = Duration::from_secs(10);

/// Number of times that a read begins anew because entries were removed meanwhile.
const READS: usize = 8;

/// A description of a cluster with its version, as it was read from META.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The number of the description, from 1 on.
    pub version: u64,
    /// The description of the cluster.
    pub description: Description,
    /// Last entry of the stream when the description was read.
    end: Sequence,
}

/// Why the description cannot be read from META, or a change was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The stream has no description.
    #[error(
        "the stream {0} has no description of the cluster: it is not the stream that `doppel init` has created. Name the \
         log servers of the cluster, or start it anew (docs/guides/grow-and-repair-a-cluster.md)"
    )]
    Empty(String),
    /// The description has a newer form than this program reads.
    #[error(
        "the stream {log} has a description in form {form}, and this program reads form {FORM}: use the release that \
         wrote it"
    )]
    Form {
        /// Name of the stream.
        log: String,
        /// The form of the description.
        form: u32,
    },
    /// The description cannot be used.
    #[error("the description of the cluster in the stream {log} cannot be used: {reason}")]
    Content {
        /// Name of the stream.
        log: String,
        /// Why the description cannot be used.
        reason: String,
    },
    /// Another change of the description was made first.
    #[error(
        "another change of the cluster came first, so this one was not made: see `doppel cluster show`, and try again"
    )]
    Outrun,
    /// The append failed, and it is not known whether the log has stored the entry.
    #[error(
        "it is not known whether the change was made: {0}; run `doppel cluster show`, and repeat the change if it is missing"
    )]
    Unsure(LogError),
    /// The description is longer than an entry of the log may be, in bytes.
    #[error("the description of the cluster has {0} bytes, and at most {ENTRY_BYTES_MAX} are allowed")]
    TooLong(usize),
}

impl MetaError {
    /// Whether the same call may succeed later. For some seconds after a start, servers do not know their
    /// streams.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Log(LogError::Unavailable { .. } | LogError::Missing { .. }))
    }
}

/// The body of an entry.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    version: u64,
    /// A random number, so that the same change by two operators makes two different entries.
    change: u64,
    description: Description,
}

/// The META stream of a cluster.
#[derive(Clone)]
pub struct Meta {
    name: String,
    cluster: Arc<str>,
    log: Arc<dyn SharedLog>,
}

impl Meta {
    /// Uses a log as the META stream of a cluster.
    pub fn new(cluster: Arc<str>, log: Arc<dyn SharedLog>) -> Self {
        Self { name: log::meta(&cluster), cluster, log }
    }

    /// Opens the existing stream.
    ///
    /// # Errors
    /// If the stream does not exist, does not answer, or is set to drop entries by itself.
    pub fn open(engine: &LogEngine, cluster: Arc<str>) -> Result<Self, EngineError> {
        let log = engine.open(&log::meta(&cluster), 1)?;
        Ok(Self::new(cluster, Arc::new(log)))
    }

    /// Writes the first description.
    ///
    /// # Errors
    /// [`MetaError::Outrun`] if the stream has an entry already; otherwise if the append fails.
    pub fn begin(&self, description: &Description) -> Result<(), MetaError> {
        self.append(Sequence(0), 1, description).map(drop)
    }

    /// Reads the present description.
    ///
    /// # Errors
    /// If the log does not answer, or has no description that can be used.
    pub fn read(&self) -> Result<Described, MetaError> {
        let mut attempts = 0..READS;
        loop {
            match self.read_all() {
                Err(MetaError::Log(LogError::Trimmed { .. })) if attempts.next().is_some() => {}
                read => return read,
            }
        }
    }

    /// Reads the description if the stream has new entries since `seen`; otherwise returns `None`.
    ///
    /// # Errors
    /// See [`Self::read`].
    pub(crate) fn read_if_newer(&self, seen: &Described) -> Result<Option<Described>, MetaError> {
        if self.log.end()? == seen.end { Ok(None) } else { self.read().map(Some) }
    }

    fn read_all(&self) -> Result<Described, MetaError> {
        let begin = self.log.extent()?.trimmed;
        let mut fold = Fold { cluster: &self.cluster, log: &self.name, found: None, end: begin };
        loop {
            let entries = self.log.read(fold.end, READ)?;
            if entries.is_empty() {
                let Fold { found, end, .. } = fold;
                let (version, description) = found.ok_or_else(|| MetaError::Empty(self.name.clone()))?;
                return Ok(Described { version, description, end });
            }
            entries.iter().try_for_each(|entry| fold.take(entry))?;
        }
    }

    /// Writes a changed description, unless another change came after `seen`.
    ///
    /// # Errors
    /// [`MetaError::Outrun`] if another change came first; otherwise if the append fails.
    pub fn change(&self, seen: &Described, description: &Description) -> Result<Described, MetaError> {
        let version = seen.version + 1;
        let end = self.append(seen.end, version, description)?;
        let old = Sequence(end.0.saturating_sub(KEPT));
        if let Err(error) = self.log.trim(old) {
            tracing::debug!(%error, "cannot remove old descriptions from META");
        }
        Ok(Described { version, description: description.clone(), end })
    }

    fn append(
        &self,
        expected: Sequence,
        version: u64,
        description: &Description,
    ) -> Result<Sequence, MetaError> {
        let entry = encode(&Change { version, change: random_number(), description: description.clone() })
            .map_err(|error| self.unusable(error.to_string()))?;
        if entry.len() > ENTRY_BYTES_MAX {
            return Err(MetaError::TooLong(entry.len()));
        }
        append_surely(&*self.log, expected, &entry, PATIENCE).map_err(|error| match error {
            AppendError::Refused => MetaError::Outrun,
            AppendError::Unknown(error) => MetaError::Unsure(error),
            AppendError::Failed(error) => MetaError::Log(error),
        })
    }

    fn unusable(&self, reason: String) -> MetaError {
        MetaError::Content { log: self.name.clone(), reason }
    }
}

/// State of a fold over the stream: the newest valid description so far with its version, and the sequence
/// number of the last entry read.
struct Fold<'m> {
    cluster: &'m str,
    log: &'m str,
    found: Option<(u64, Description)>,
    end: Sequence,
}

impl Fold<'_> {
    fn take(&mut self, entry: &LogEntry) -> Result<(), MetaError> {
        self.end = entry.sequence;
        let Some((form, body)) = open(&entry.bytes) else { return Ok(()) };
        let unusable = |reason| MetaError::Content { log: self.log.to_owned(), reason };
        if form != FORM {
            return Err(MetaError::Form { log: self.log.to_owned(), form });
        }
        let Change { version, description, .. } =
            serde_json::from_slice(body).map_err(|error| unusable(error.to_string()))?;
        let is_next = self.found.as_ref().is_none_or(|(before, _)| version > *before);
        if is_next && description.cluster == self.cluster {
            description.check().map_err(unusable)?;
            self.found = Some((version, description));
        }
        Ok(())
    }
}

/// Encodes an entry: a line with the mark, a checksum and the form, then JSON.
fn encode(change: &Change) -> serde_json::Result<Bytes> {
    Ok(framed(FORM, &serde_json::to_string(change)?))
}

fn framed(form: u32, body: &str) -> Bytes {
    let sealed = format!("{form}\n{body}");
    Bytes::from(format!("{MARK} {:016x} {sealed}", stable_hash64(sealed.as_bytes())))
}

/// Returns the form and the body of an entry, or `None` if the entry is not whole.
fn open(entry: &[u8]) -> Option<(u32, &[u8])> {
    let rest = entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b" ")?;
    let (sum, sealed) = (rest.get(..16)?, rest.get(16..)?.strip_prefix(b" ")?);
    let sum = u64::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    let line = sealed.iter().position(|byte| *byte == b'\n')?;
    let form = std::str::from_utf8(&sealed[..line]).ok()?.parse().ok()?;
    (stable_hash64(sealed) == sum).then_some((form, &sealed[line + 1..]))
}
