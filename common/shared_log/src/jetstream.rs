//! The log as a stream of NATS JetStream. Each publication names the last sequence number of the stream. The
//! leader of the stream refuses the publication if the number is wrong.
//!
//! The log uses only features of nats-server 2.9. Measurements with versions 2.9.10 and 2.15.1:
//! - Reads go to the leader (`STREAM.MSG.GET`). Other servers, and direct reads, may lag behind.
//! - Message ids do not make it safe to repeat an append: the versions answer a duplicate differently.
//! - While there is no leader, for some seconds, publications fail as if the stream did not exist. Only the
//!   answer to `STREAM.INFO` distinguishes the two cases.

mod announcements;
mod engine;
mod news_channel;
mod readers;
mod sent_bytes;
mod state;

use std::time::Duration;

use async_nats::jetstream::context::{GetStreamErrorKind, PublishError, PublishErrorKind};
use async_nats::jetstream::message::{PublishMessage, StreamMessage};
use async_nats::jetstream::stream::{Info, RawMessageErrorKind, State};
use async_nats::jetstream::{Context, Error, ErrorCode};
use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::time::timeout;

use crate::engine_state::LED;
use crate::log::{AppendError, Extent, LogEntry, LogError, Sequence, SharedLog};
use announcements::Announcements;
pub use engine::LogEngine;
pub use news_channel::{NewsChannel, NewsSubscription};
use readers::Readers;
use sent_bytes::SentBytes;

/// How long a call waits for the leader of the stream: much longer than an append takes, and shorter than an
/// election.
const ANSWER: Duration = Duration::from_secs(2);

/// Maximum time for a request other than an append, including its wait for room in the queue to the servers.
/// The client has no timeout of its own for this wait. Without a connection, the client does not empty the
/// queue, so the queue fills.
const REQUEST: Duration = Duration::from_millis(2_500);

/// Size of a message beyond the entry, in bytes: the header with the expected sequence number.
const HEAD_BYTES: usize = 256;

/// A log that is stored in a stream.
pub struct JetStreamLog {
    name: String,
    context: Context,
    handle: Handle,
    announcements: Announcements,
    readers: Readers,
    sent: SentBytes,
}

/// Awaits a request with a time limit.
///
/// # Errors
/// If the request takes longer than [`REQUEST`], for example because it finds no room in the queue to the
/// servers.
async fn limited<T>(log: &str, request: impl IntoFuture<Output = T>) -> Result<T, LogError> {
    let late = |_| LogError::Unavailable {
        log: log.to_owned(),
        why: format!("a request was not answered in {} s", REQUEST.as_secs_f32()),
    };
    timeout(REQUEST, request).await.map_err(late)
}

impl JetStreamLog {
    fn new(name: String, context: Context, handle: Handle, sent: SentBytes) -> Self {
        let announcements = Announcements::start(&handle, context.client(), &name, sent.clone());
        let readers = Readers::start(&handle, context.client(), &name, sent.clone());
        Self { name, context, handle, announcements, readers, sent }
    }

    /// Returns the name of the stream, which is also its subject.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    fn unavailable(&self, why: &dyn ToString) -> LogError {
        LogError::Unavailable { log: self.name.clone(), why: why.to_string() }
    }

    /// Converts an error answer of a log server.
    fn error_of(&self, error: &Error) -> LogError {
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

    fn append_error(&self, error: &PublishError, entry: &Bytes) -> AppendError {
        match error.kind() {
            PublishErrorKind::WrongLastSequence => AppendError::Refused,
            PublishErrorKind::MaxPayloadExceeded => AppendError::Failed(LogError::TooLong {
                log: self.name.clone(),
                bytes: entry.len(),
                limit: self.context.client().max_payload().saturating_sub(HEAD_BYTES),
            }),
            // Without a leader, no server accepts the publication.
            PublishErrorKind::StreamNotFound => {
                AppendError::Failed(self.unavailable(&"the stream has no leader, or does not exist"))
            }
            _ => {
                let source = std::error::Error::source(error);
                match source.and_then(|source| source.downcast_ref::<Error>()) {
                    Some(refusal) => match self.error_of(refusal) {
                        full @ LogError::Full { .. } => AppendError::Failed(full),
                        other => AppendError::Unknown(other),
                    },
                    None => AppendError::Unknown(self.unavailable(error)),
                }
            }
        }
    }

    /// Reads the first entry at or after a position.
    async fn next_entry(&self, first: Sequence) -> Result<Option<StreamMessage>, LogError> {
        let stream = self.context.get_stream_no_info(&self.name).await;
        let stream = stream.map_err(|error| self.unavailable(&error))?;
        let request = stream.raw_message_builder().sequence(first.0).next_by_subject(&self.name);
        match limited(&self.name, request.send()).await? {
            Ok(message) => Ok(Some(message)),
            Err(error) => match error.kind() {
                RawMessageErrorKind::NoMessageFound => Ok(None),
                RawMessageErrorKind::JetStream(refusal) => Err(self.error_of(&refusal)),
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
                Err(self.unavailable(&"the answering server does not reach most of the other servers"))
            }
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(refusal) => Err(self.error_of(&refusal)),
                _ => Err(self.unavailable(&error)),
            },
        }
    }
}

/// Whether the answering server has heard from at least half of the other servers with a copy within [`LED`],
/// so that they form a majority with it. A leader that is cut off continues for 10 to 20 seconds
/// (nats-server, `lostQuorumInterval`), while the other servers elect a new leader after 4 seconds.
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
        let appended = appended.map_err(|error| self.append_error(&error, entry))?;
        let sequence = Sequence(appended.sequence);
        self.announcements.announce(sequence, entry);
        Ok(sequence)
    }

    fn read(&self, after: Sequence, bytes: usize) -> Result<Vec<LogEntry>, LogError> {
        self.announcements.forget(after);
        let last_announced = self.announcements.last();
        let read = self.handle.block_on(async {
            let (mut entries, mut read): (Vec<LogEntry>, usize) = (Vec::new(), 0);
            while entries.is_empty() || read < bytes {
                let wanted = entries.last().map_or(after, |last| last.sequence).next();
                let found = match self.next_entry(wanted).await {
                    // If an answer is lost, return the entries that were already read.
                    Err(_) if !entries.is_empty() => break,
                    found => found?,
                };
                let Some(StreamMessage { sequence, payload, .. }) = found else { break };
                if sequence != wanted.0 {
                    let (log, first) = (self.name.clone(), Sequence(sequence));
                    return Err(LogError::Trimmed { log, after: Sequence(wanted.0 - 1), first });
                }
                read += payload.len();
                entries.push(LogEntry { sequence: wanted, bytes: payload });
                // The caller's next read finds out whether there is more.
                if self.announcements.last() == Some(sequence) {
                    break;
                }
            }
            Ok(entries)
        });
        if read.as_ref().is_ok_and(Vec::is_empty) {
            self.announcements.note_end(after, last_announced);
        }
        read
    }

    fn told(&self, after: Sequence) -> Vec<LogEntry> {
        self.announcements.entries_after(after)
    }

    fn extent(&self) -> Result<Extent, LogError> {
        let Info { config, state, .. } = self.handle.block_on(self.info())?;
        let State { bytes, first_sequence, last_sequence, .. } = state;
        // An empty stream has a first sequence of 0.
        let trimmed = Sequence(first_sequence.saturating_sub(1));
        let bytes_max = u64::try_from(config.max_bytes).ok().filter(|max| *max > 0);
        Ok(Extent { trimmed, end: Sequence(last_sequence), bytes, bytes_max })
    }

    fn wait(&self, after: Sequence, limit: Duration) {
        self.announcements.wait(after.0, limit);
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
