//! The log as a stream of NATS JetStream: a publication that names the last sequence of the stream is refused by the leader of
//! the stream when that is another one.
//!
//! Only what nats-server 2.9 has is used. What was measured with 2.9.10 and 2.15.1:
//! - reads go to the leader (`STREAM.MSG.GET`): others, and direct reads, may be behind;
//! - message ids do not make an append safe to repeat: the versions answer a duplicate differently;
//! - for some seconds without a leader nobody takes publications, which looks as if there were no stream; only the answer to
//!   `STREAM.INFO` tells.

mod bulletin;
mod engine;
mod hints;
mod readers;
mod sent;
mod state;

use std::time::Duration;

use async_nats::jetstream::context::{GetStreamErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{Info, RawMessageErrorKind, State};
use async_nats::jetstream::{Context, Error, ErrorCode};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::log::{AppendError, Entry, Extent, LogError, Sequence, SharedLog};
pub use bulletin::{Bulletin, Listening};
pub use engine::{Engine, EngineError, Server, StreamSettings};
use hints::Hints;
use readers::Readers;
use sent::Sent;
pub use state::{EngineState, Follower, Greeting, ServerState, StreamContents, StreamState};

/// A leader that has not heard from a server for so long does not reach it: it hears from each once a second, and others elect
/// another one after four at the earliest.
pub const LED: Duration = Duration::from_secs(3);

/// How long a call waits for the leader of the stream: much longer than an append takes, and shorter than an election.
const ANSWER: Duration = Duration::from_secs(2);

/// How long a request may take that has no limit before it is in the queue to the servers: nobody takes anything out of that
/// without a connection, and it fills.
const REQUEST: Duration = Duration::from_millis(2_500);

/// Bytes of a message that are not the entry: the head that names the expected sequence.
const HEAD_BYTES: usize = 256;

/// A log that is a stream.
pub struct JetStreamLog {
    name: String,
    context: Context,
    handle: Handle,
    hints: Hints,
    readers: Readers,
    sent: Sent,
}

/// What a request comes to.
///
/// # Errors
/// When it finds no place in the queue to the servers, or something else keeps it longer than an answer takes.
async fn limited<T>(log: &str, request: impl IntoFuture<Output = T>) -> Result<T, LogError> {
    let late = |_| LogError::Unavailable {
        log: log.to_owned(),
        why: format!("nothing came of a request in {} s", REQUEST.as_secs_f32()),
    };
    timeout(REQUEST, request).await.map_err(late)
}

impl JetStreamLog {
    fn new(name: String, context: Context, handle: Handle, sent: Sent) -> Self {
        let hints = Hints::start(&handle, context.client(), &name, sent.clone());
        let readers = Readers::start(&handle, context.client(), &name, sent.clone());
        Self { name, context, handle, hints, readers, sent }
    }

    /// The name of the stream, which is its subject, too.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn unavailable(&self, why: &dyn ToString) -> LogError {
        LogError::Unavailable { log: self.name.clone(), why: why.to_string() }
    }

    /// What an answer of the engine says that is no success.
    fn refused(&self, error: &Error) -> LogError {
        let log = self.name.clone();
        match error.error_code() {
            ErrorCode::STREAM_NOT_FOUND => LogError::Missing { log },
            ErrorCode::STREAM_STORE_FAILED
            | ErrorCode::STORAGE_RESOURCES_EXCEEDED
            | ErrorCode::ACCOUNT_RESOURCES_EXCEEDED
            | ErrorCode::INSUFFICIENT_RESOURCES => LogError::Full { log, why: error.to_string() },
            _ => self.unavailable(error),
        }
    }

    fn not_appended(&self, error: &PublishError, entry: &Bytes) -> AppendError {
        match error.kind() {
            PublishErrorKind::WrongLastSequence => AppendError::Refused,
            PublishErrorKind::MaxPayloadExceeded => AppendError::Failed(LogError::TooLong {
                log: self.name.clone(),
                bytes: entry.len(),
                limit: self.context.client().max_payload().saturating_sub(HEAD_BYTES),
            }),
            // Without a leader nobody takes it.
            PublishErrorKind::StreamNotFound => {
                AppendError::Failed(self.unavailable(&"the stream has no leader, or is not there"))
            }
            _ => {
                let source = std::error::Error::source(error);
                match source.and_then(|source| source.downcast_ref::<Error>()) {
                    Some(refusal) => match self.refused(refusal) {
                        full @ LogError::Full { .. } => AppendError::Failed(full),
                        other => AppendError::Unknown(other),
                    },
                    None => AppendError::Unknown(self.unavailable(error)),
                }
            }
        }
    }

    /// The first entry from a place on.
    async fn from(&self, first: Sequence) -> Result<Option<StreamMessage>, LogError> {
        let stream = self.context.get_stream_no_info(&self.name).await;
        let stream = stream.map_err(|error| self.unavailable(&error))?;
        let request = stream.raw_message_builder().sequence(first.0).next_by_subject(&self.name);
        match limited(&self.name, request.send()).await? {
            Ok(message) => Ok(Some(message)),
            Err(error) => match error.kind() {
                RawMessageErrorKind::NoMessageFound => Ok(None),
                RawMessageErrorKind::JetStream(refusal) => Err(self.refused(&refusal)),
                _ => Err(self.unavailable(&error)),
            },
        }
    }

    async fn info(&self) -> Result<Info, LogError> {
        match limited(&self.name, self.context.get_stream(&self.name)).await? {
            Ok(stream) => {
                let info = stream.cached_info().clone();
                if is_led(&info) {
                    return Ok(info);
                }
                Err(self.unavailable(&"the server that answers for it does not reach most of the others"))
            }
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(refusal) => Err(self.refused(&refusal)),
                _ => Err(self.unavailable(&error)),
            },
        }
    }
}

/// Whether whoever answers for a stream has lately heard from most of the servers that have a copy. One that is cut off goes on
/// for 10 to 20 seconds (nats-server, `lostQuorumInterval`), while the others elect another after 4.
fn is_led(info: &Info) -> bool {
    let Some(cluster) = &info.cluster else { return true };
    let reached = cluster.replicas.iter().filter(|peer| state::has_been_heard(peer, LED)).count();
    reached >= cluster.replicas.len().div_ceil(2)
}

impl SharedLog for JetStreamLog {
    fn append(&self, expected: Sequence, entry: &Bytes) -> Result<Sequence, AppendError> {
        self.sent.count(entry.len());
        let message = PublishMessage::build().payload(entry.clone()).expected_last_sequence(expected.0);
        let appended = self.handle.block_on(async {
            let sent = self.context.send_publish(self.name.clone(), message).await?;
            sent.await
        });
        let appended = appended.map_err(|error| self.not_appended(&error, entry))?;
        let sequence = Sequence(appended.sequence);
        self.hints.tell(sequence, entry);
        Ok(sequence)
    }

    fn read(&self, after: Sequence, bytes: usize) -> Result<Vec<Entry>, LogError> {
        self.hints.forget(after);
        let told = self.hints.last();
        let read = self.handle.block_on(async {
            let (mut entries, mut read): (Vec<Entry>, usize) = (Vec::new(), 0);
            while entries.is_empty() || read < bytes {
                let wanted = entries.last().map_or(after, |last| last.sequence).next();
                let found = match self.from(wanted).await {
                    // What was read is not read again for an answer that is lost.
                    Err(_) if !entries.is_empty() => break,
                    found => found?,
                };
                let Some(StreamMessage { sequence, payload, .. }) = found else { break };
                if sequence != wanted.0 {
                    let (log, first) = (self.name.clone(), Sequence(sequence));
                    return Err(LogError::Trimmed { log, after: Sequence(wanted.0 - 1), first });
                }
                read += payload.len();
                entries.push(Entry { sequence: wanted, bytes: payload });
                // Whoever reads on finds out whether there is more.
                if self.hints.last() == Some(sequence) {
                    break;
                }
            }
            Ok(entries)
        });
        if read.as_ref().is_ok_and(Vec::is_empty) {
            self.hints.note_end(after, told);
        }
        read
    }

    fn told(&self, after: Sequence) -> Vec<Entry> {
        self.hints.told(after)
    }

    fn extent(&self) -> Result<Extent, LogError> {
        let Info { config, state, .. } = self.handle.block_on(self.info())?;
        let State { bytes, first_sequence, last_sequence, .. } = state;
        // An empty stream says 0.
        let trimmed = Sequence(first_sequence.saturating_sub(1));
        let bytes_max = u64::try_from(config.max_bytes).ok().filter(|max| *max > 0);
        Ok(Extent { trimmed, end: Sequence(last_sequence), bytes, bytes_max })
    }

    fn wait(&self, after: Sequence, limit: Duration) {
        self.hints.wait(after.0, limit);
    }

    fn report(&self, reader: &str, report: &Bytes) {
        self.readers.report(reader, report);
    }

    fn await_report(&self, limit: Duration, is_wanted: &dyn Fn(&str, &Bytes) -> bool) -> bool {
        self.readers.wait(limit, is_wanted)
    }

    fn trim(&self, through: Sequence) -> Result<(), LogError> {
        self.handle.block_on(async {
            let State { first_sequence, last_sequence, .. } = self.info().await?.state;
            let first = through.next().0.min(last_sequence);
            if first <= first_sequence {
                return Ok(());
            }
            let stream = self.context.get_stream_no_info(&self.name).await;
            let stream = stream.map_err(|error| self.unavailable(&error))?;
            let purged = limited(&self.name, stream.purge().sequence(first)).await?;
            purged.map(drop).map_err(|error| self.unavailable(&error))
        })
    }
}

impl std::fmt::Debug for JetStreamLog {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("JetStreamLog").field("name", &self.name).finish_non_exhaustive()
    }
}
