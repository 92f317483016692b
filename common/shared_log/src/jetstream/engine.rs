//! The connection to the log servers, and the creation of streams.

use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, RetentionPolicy, StorageType};
use async_nats::jetstream::{Context, ContextBuilder, ErrorCode};
use async_nats::{Client, ConnectOptions, ServerInfo};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::sent_bytes::SentBytes;
use super::{ANSWER, JetStreamLog, NewsChannel, limited};
use crate::engine_error::{EngineError, OLDEST};
use crate::engine_state::{Server, StreamSettings};
use crate::log::LogError;

/// Timeout for establishing a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Longest pause between two attempts to reconnect.
const RECONNECT: Duration = Duration::from_millis(500);

/// Maximum number of news messages of a subject that wait for processing. More are dropped, which does no
/// harm.
const NEWS_MAX: usize = 256;

/// A connection to the log servers. It reconnects automatically.
#[derive(Clone)]
pub struct LogEngine {
    context: Context,
    handle: Handle,
    sent: SentBytes,
}

impl LogEngine {
    /// Connects to the first server that answers. `servers` are URLs such as `nats://10.0.0.7:4222`, and
    /// `name` identifies this client.
    ///
    /// # Errors
    /// If no server answers within seconds, or if the server is too old or has JetStream disabled.
    pub fn connect(handle: Handle, servers: &[String], name: &str) -> Result<Self, EngineError> {
        Self::connect_within(handle, servers, name, Duration::MAX)
    }

    /// Like [`connect`](Self::connect), but waits at most `limit`, however many servers there are.
    ///
    /// # Errors
    /// Fails as [`connect`](Self::connect) does, and if the time limit passes.
    pub fn connect_within(
        handle: Handle,
        servers: &[String],
        name: &str,
        limit: Duration,
    ) -> Result<Self, EngineError> {
        let pause = |attempts| {
            RECONNECT.min(Duration::from_millis(10) * u32::try_from(attempts).unwrap_or(u32::MAX).min(50))
        };
        // Without `no_echo`, the client would receive all entries that it appends as news.
        let options = ConnectOptions::new().name(name).no_echo().subscription_capacity(NEWS_MAX);
        let options = options.connection_timeout(CONNECT).reconnect_delay_callback(pause);
        let unreachable = |why: String| EngineError::Unreachable { servers: servers.join(", "), why };
        // The client resolves and connects with its own timeout for each server.
        let connected = handle.block_on(async { timeout(limit, options.connect(servers)).await });
        let late = |_| unreachable("no answer in time".to_owned());
        let client = connected.map_err(late)?.map_err(|error| unreachable(error.to_string()))?;
        let info = client.server_info();
        if !info.jetstream {
            return Err(EngineError::NoJetStream { servers: servers.join(", "), name: info.server_name });
        }
        let server = server(&info)?;
        tracing::debug!(server = server.name, version = info.version, "connected to a log server");
        let context = {
            // Building the context starts a task.
            let _entered = handle.enter();
            context(client)
        };
        Ok(Self { context, handle, sent: SentBytes::default() })
    }

    /// Returns the server that this client is connected to.
    ///
    /// # Errors
    /// If the version of the server is not supported.
    pub fn server(&self) -> Result<Server, EngineError> {
        server(&self.context.client().server_info())
    }

    /// Creates the stream of a new log.
    ///
    /// # Errors
    /// If a stream of this name exists, the stream cannot be created, or the servers do not answer.
    pub fn create(&self, name: &str, settings: StreamSettings) -> Result<JetStreamLog, EngineError> {
        let config = Config {
            name: name.to_owned(),
            subjects: vec![name.to_owned()],
            retention: RetentionPolicy::Limits,
            // A full stream refuses entries: no entry may disappear before all replicas have applied it.
            discard: DiscardPolicy::New,
            storage: StorageType::File,
            num_replicas: settings.replicas,
            max_bytes: i64::try_from(settings.max_bytes).unwrap_or(i64::MAX),
            deny_delete: true,
            ..Config::default()
        };
        if self.stream(name)?.is_some() {
            return Err(EngineError::Exists(name.to_owned()));
        }
        let created = self.handle.block_on(limited(name, self.context.create_stream(config)))?;
        let created = created.map_err(|error| match error.kind() {
            CreateStreamErrorKind::JetStream(refusal)
                if refusal.error_code() == ErrorCode::STREAM_NAME_EXIST =>
            {
                EngineError::Exists(name.to_owned())
            }
            _ => EngineError::NotMade { stream: name.to_owned(), why: error.to_string() },
        })?;
        check(created.cached_info(), settings.replicas)?;
        Ok(self.log(name))
    }

    /// Opens a stream that was created with at least `replicas` replicas.
    ///
    /// # Errors
    /// If the stream does not exist, does not answer, or has changed settings that could lose entries.
    pub fn open(&self, name: &str, replicas: usize) -> Result<JetStreamLog, EngineError> {
        let info = self.stream(name)?.ok_or_else(|| LogError::Missing { log: name.to_owned() })?;
        check(&info, replicas)?;
        Ok(self.log(name))
    }

    /// Creates a subject for news between processes.
    #[must_use]
    pub fn news_channel(&self, subject: &str) -> NewsChannel {
        NewsChannel::new(self.context.client(), self.handle.clone(), subject.to_owned(), self.sent.clone())
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(super) fn sent(&self) -> &SentBytes {
        &self.sent
    }

    fn log(&self, name: &str) -> JetStreamLog {
        JetStreamLog::new(name.to_owned(), self.context.clone(), self.handle.clone(), self.sent.clone())
    }

    fn stream(&self, name: &str) -> Result<Option<Info>, EngineError> {
        match self.handle.block_on(limited(name, self.context.get_stream(name)))? {
            Ok(stream) => Ok(Some(stream.cached_info().clone())),
            Err(error) => match error.kind() {
                GetStreamErrorKind::JetStream(refusal)
                    if refusal.error_code() == ErrorCode::STREAM_NOT_FOUND =>
                {
                    Ok(None)
                }
                _ => Err(LogError::Unavailable { log: name.to_owned(), why: error.to_string() }.into()),
            },
        }
    }
}

fn context(client: Client) -> Context {
    ContextBuilder::new().timeout(ANSWER).ack_timeout(ANSWER).build(client)
}

fn server(info: &ServerInfo) -> Result<Server, EngineError> {
    let ServerInfo { server_name: name, version, max_payload, .. } = info;
    let refused = || EngineError::Version { name: name.clone(), version: version.clone() };
    let numbers = version.split(['.', '-']).map_while(|part| part.parse().ok()).collect::<Vec<u32>>();
    let [major, minor, patch, ..] = *numbers else { return Err(refused()) };
    let version = (major, minor, patch);
    if version < OLDEST {
        return Err(refused());
    }
    Ok(Server { name: name.clone(), version, message_bytes_max: *max_payload })
}

/// Ensures that the settings of a stream cannot lose entries.
fn check(info: &Info, replicas: usize) -> Result<(), EngineError> {
    let Config { retention, discard, storage, num_replicas, max_age, max_messages, .. } = &info.config;
    let wrong = [
        (*retention != RetentionPolicy::Limits, "its retention is not `limits`"),
        (*discard != DiscardPolicy::New, "it discards old messages"),
        (*storage != StorageType::File, "it is not stored in files"),
        (!max_age.is_zero(), "its messages expire"),
        (*max_messages > 0, "the number of its messages is limited"),
        (info.config.subjects != [info.config.name.as_str()], "it has other subjects"),
        (info.config.allow_direct, "it allows direct reads"),
        (*num_replicas < replicas, "it has fewer replicas"),
    ];
    match wrong.into_iter().find(|(is_wrong, _)| *is_wrong) {
        Some((_, what)) => {
            Err(EngineError::Changed { stream: info.config.name.clone(), what: what.to_owned() })
        }
        None => Ok(()),
    }
}

impl std::fmt::Debug for LogEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogEngine").field("server", &self.context.client().server_info().server_name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let of = |version: &str| {
            let info = ServerInfo { version: version.to_owned(), ..ServerInfo::default() };
            server(&info).map(|server| server.version).ok()
        };
        assert_eq!(of("2.9.10"), Some((2, 9, 10)));
        assert_eq!(of("2.15.1-RC.2"), Some((2, 15, 1)));
        assert_eq!(of("2.10.1"), Some((2, 10, 1)));
        for refused in ["2.9.9", "2.8.20", "1.99.99", "", "two"] {
            assert_eq!(of(refused), None, "{refused}");
        }
    }
}
