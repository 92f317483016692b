//! META: the stream in which a cluster with a log has its description, the same for everybody.
//!
//! Every entry is a whole description with its version. `doppel init` writes the first, and each change appends the next,
//! which names the last entry that it has seen: of two changes of one description only one is made. Everybody folds the stream
//! by one rule, so everybody agrees: an entry counts if it is whole, of this cluster, and of a greater version than the one
//! that counted before; the last that counts is the description. All else is void. An entry of a newer form is not passed over,
//! but refused, for an older description must not be taken for the present one.
//!
//! Older entries are removed in time, the last one never is. A stream that is not there is never made anew.

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

/// What an entry begins with.
const MARK: &str = "doppel-meta";

/// The form of entries.
const FORM: u32 = 1;

/// The longest entry: hundreds of nodes have room in it.
const ENTRY_BYTES_MAX: usize = 256 << 10;

/// Entries that are kept, the last one among them.
const KEPT: u64 = 32;

/// Bytes that the stream may have: twice what is kept.
pub(super) const STREAM_BYTES: u64 = 2 * KEPT * ENTRY_BYTES_MAX as u64;

/// Bytes that are read at once.
const READ: usize = 1 << 20;

/// How long it is tried to find out what became of a change.
const PATIENCE: Duration = Duration::from_secs(10);

/// Reads that begin anew because entries were removed meanwhile.
const READS: usize = 8;

/// The description of a cluster at a moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Described {
    /// The number of the description, from 1 on.
    pub version: u64,
    /// The description of the cluster.
    pub description: Description,
    /// The last entry that was seen.
    end: Sequence,
}

/// Why META does not say what the cluster is, or a change was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MetaError {
    /// The log cannot be read or written.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The stream has no description.
    #[error(
        "the stream {0} has no description of the cluster: it is not the one that `doppel init` has made. Restore the cluster \
         from a backup, or name its own log servers"
    )]
    Empty(String),
    /// The description has a newer form than this program reads.
    #[error(
        "the stream {log} has a description in form {form}, and this program reads form {FORM}: use the release that has \
         written it"
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
        /// The reason.
        reason: String,
    },
    /// Another change of the description was made first.
    #[error("another change of the cluster came first, and this one was not made: look at it, and try again")]
    Outrun,
    /// The append failed, and whether the log has taken it is not known.
    #[error(
        "whether the change was made is not known: {0}; see with `doppel cluster show`, and make it again if it is not there"
    )]
    Unsure(LogError),
    /// The description is longer than an entry of the log may be, in bytes.
    #[error("the description has {0} bytes, and {ENTRY_BYTES_MAX} are the most")]
    TooLong(usize),
}

impl MetaError {
    /// Whether the same call may succeed later: a stream is not known for some seconds after its servers were started.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Log(LogError::Unavailable { .. } | LogError::Missing { .. }))
    }
}

/// What an entry says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Change {
    version: u64,
    /// Drawn anew, so that the same change by two operators is two.
    change: u64,
    description: Description,
}

/// The stream of a cluster.
#[derive(Clone)]
pub struct Meta {
    name: String,
    cluster: Arc<str>,
    log: Arc<dyn SharedLog>,
}

impl Meta {
    /// The META of a cluster, in this log.
    pub fn new(cluster: Arc<str>, log: Arc<dyn SharedLog>) -> Self {
        Self { name: log::meta(&cluster), cluster, log }
    }

    /// Opens the stream that was made before.
    ///
    /// # Errors
    /// When it is not there, does not answer, or loses entries by itself.
    pub fn open(engine: &LogEngine, cluster: Arc<str>) -> Result<Self, EngineError> {
        let log = engine.open(&log::meta(&cluster), 1)?;
        Ok(Self::new(cluster, Arc::new(log)))
    }

    /// Writes the first description.
    ///
    /// # Errors
    /// When there is one, or the log does not take it.
    pub fn begin(&self, description: &Description) -> Result<(), MetaError> {
        self.append(Sequence(0), 1, description).map(drop)
    }

    /// The present description.
    ///
    /// # Errors
    /// When the log does not answer, or does not say it.
    pub fn read(&self) -> Result<Described, MetaError> {
        let mut attempts = 0..READS;
        loop {
            match self.read_all() {
                Err(MetaError::Log(LogError::Trimmed { .. })) if attempts.next().is_some() => {}
                read => return read,
            }
        }
    }

    /// The present description, where it is another one than this.
    ///
    /// # Errors
    /// The same.
    pub(crate) fn read_behind(&self, seen: &Described) -> Result<Option<Described>, MetaError> {
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

    /// Makes a change of the description that was read, unless another one came first.
    ///
    /// # Errors
    /// [`MetaError::Outrun`] in that case; else when the log does not take it.
    pub fn change(&self, seen: &Described, description: &Description) -> Result<Described, MetaError> {
        let version = seen.version + 1;
        let end = self.append(seen.end, version, description)?;
        let old = Sequence(end.0.saturating_sub(KEPT));
        if let Err(error) = self.log.trim(old) {
            tracing::debug!(%error, "old descriptions are left");
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

/// What was found so far.
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

/// An entry: a line with the mark, the form and a checksum, then JSON.
fn encode(change: &Change) -> serde_json::Result<Bytes> {
    Ok(framed(FORM, &serde_json::to_string(change)?))
}

fn framed(form: u32, body: &str) -> Bytes {
    let sealed = format!("{form}\n{body}");
    Bytes::from(format!("{MARK} {:016x} {sealed}", stable_hash64(sealed.as_bytes())))
}

/// The form and the body of an entry; none where it is not whole.
fn open(entry: &[u8]) -> Option<(u32, &[u8])> {
    let rest = entry.strip_prefix(MARK.as_bytes())?.strip_prefix(b" ")?;
    let (sum, sealed) = (rest.get(..16)?, rest.get(16..)?.strip_prefix(b" ")?);
    let sum = u64::from_str_radix(std::str::from_utf8(sum).ok()?, 16).ok()?;
    let line = sealed.iter().position(|byte| *byte == b'\n')?;
    let form = std::str::from_utf8(&sealed[..line]).ok()?.parse().ok()?;
    (stable_hash64(sealed) == sum).then_some((form, &sealed[line + 1..]))
}
