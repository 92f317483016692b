//! The connection to the servers, and the making of streams.

use std::time::Duration;

use async_nats::jetstream::context::{CreateStreamErrorKind, GetStreamErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy, Info, RetentionPolicy, StorageType};
use async_nats::jetstream::{Context, ContextBuilder, ErrorCode};
use async_nats::{Client, ConnectOptions, ServerInfo};
use tokio::runtime::Handle;
use tokio::time::timeout;

use super::sent::Sent;
use super::{ANSWER, Bulletin, JetStreamLog, limited};
use crate::log::LogError;

/// The time in which a connection has to stand.
const CONNECT: Duration = Duration::from_secs(5);

/// The longest pause between two attempts to connect again.
const RECONNECT: Duration = Duration::from_millis(500);

/// News of a subject that wait to be heard. More are lost, which does no harm.
const NEWS_MAX: usize = 256;

/// The oldest version that streams are kept on.
const OLDEST: (u32, u32, u32) = (2, 9, 10);

/// Why the engine cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// No server answers.
    #[error("no log server answers at {servers}: {why}")]
    Unreachable {
        /// The addresses.
        servers: String,
        /// What failed.
        why: String,
    },
    /// It is another kind of server.
    #[error(
        "the log server {name} at {servers} has no JetStream: start it with `jetstream` in its configuration, or with -js"
    )]
    NoJetStream {
        /// The addresses.
        servers: String,
        /// Its name.
        name: String,
    },
    /// Its version is too old, or unreadable.
    #[error("the log server {name} has version {version}, and at least {}.{}.{} is needed", OLDEST.0, OLDEST.1, OLDEST.2)]
    Version {
        /// Its name.
        name: String,
        /// Its version.
        version: String,
    },
    /// A stream of that name is there already.
    #[error("there is a stream {0} already; streams are never used for another cluster")]
    Exists(String),
    /// A stream is not as it was made.
    #[error("the stream {stream} was changed: {what}")]
    Changed {
        /// Its name.
        stream: String,
        /// What is not as it should be.
        what: String,
    },
    /// A stream cannot be made.
    #[error("the stream {stream} cannot be made: {why}")]
    NotMade {
        /// Its name.
        stream: String,
        /// What the engine says of it.
        why: String,
    },
    /// A stream does not answer or is not there.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// How a stream is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StreamSettings {
    /// Servers that have a copy, 1 to 5; an odd number.
    pub replicas: usize,
    /// Bytes past which appends are refused.
    pub max_bytes: u64,
}

/// A server of the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Server {
    /// Its name.
    pub name: String,
    /// Its version, as in 2.15.1.
    pub version: (u32, u32, u32),
    /// The longest message that it takes, in bytes.
    pub message_bytes_max: usize,
}

/// A connection to the engine. It is made again by itself when it breaks.
#[derive(Clone)]
pub struct Engine {
    context: Context,
    handle: Handle,
    sent: Sent,
}

impl Engine {
    /// Connects to the first server that answers, as `name`. `servers` are URLs such as `nats://10.0.0.7:4222`.
    ///
    /// # Errors
    /// When none answers within seconds, or one is too old.
    pub fn connect(handle: Handle, servers: &[String], name: &str) -> Result<Self, EngineError> {
        Self::connect_within(handle, servers, name, Duration::MAX)
    }

    /// The same for a caller who does not wait any longer, however many servers there are.
    ///
    /// # Errors
    /// The same, and when the time is over.
    pub fn connect_within(
        handle: Handle,
        servers: &[String],
        name: &str,
        limit: Duration,
    ) -> Result<Self, EngineError> {
        let pause = |attempts| {
            RECONNECT.min(Duration::from_millis(10) * u32::try_from(attempts).unwrap_or(u32::MAX).min(50))
        };
        // Its own news would be as long as all that it appends.
        let options = ConnectOptions::new().name(name).no_echo().subscription_capacity(NEWS_MAX);
        let options = options.connection_timeout(CONNECT).reconnect_delay_callback(pause);
        let unreachable = |why: String| EngineError::Unreachable { servers: servers.join(", "), why };
        // It resolves and connects within its own time for each server.
        let connected = handle.block_on(async { timeout(limit, options.connect(servers)).await });
        let late = |_| unreachable("no answer in time".to_owned());
        let client = connected.map_err(late)?.map_err(|error| unreachable(error.to_string()))?;
        let info = client.server_info();
        if !info.jetstream {
            return Err(EngineError::NoJetStream { servers: servers.join(", "), name: info.server_name });
        }
        let server = server(&info)?;
        tracing::debug!(server = server.name, version = info.version, "connected to the engine");
        let context = {
            // It starts a task.
            let _entered = handle.enter();
            context(client)
        };
        Ok(Self { context, handle, sent: Sent::default() })
    }

    /// The server that it is connected to.
    ///
    /// # Errors
    /// When its version cannot be used.
    pub fn server(&self) -> Result<Server, EngineError> {
        server(&self.context.client().server_info())
    }

    /// Makes a stream for a log that has never been.
    ///
    /// # Errors
    /// When there is one of that name, or it cannot be made.
    pub fn create(&self, name: &str, settings: StreamSettings) -> Result<JetStreamLog, EngineError> {
        let config = Config {
            name: name.to_owned(),
            subjects: vec![name.to_owned()],
            retention: RetentionPolicy::Limits,
            // It refuses when it is full: nothing that was not applied everywhere may go.
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
        let made = self.handle.block_on(limited(name, self.context.create_stream(config)))?;
        let made = made.map_err(|error| match error.kind() {
            CreateStreamErrorKind::JetStream(refusal)
                if refusal.error_code() == ErrorCode::STREAM_NAME_EXIST =>
            {
                EngineError::Exists(name.to_owned())
            }
            _ => EngineError::NotMade { stream: name.to_owned(), why: error.to_string() },
        })?;
        check(made.cached_info(), settings.replicas)?;
        Ok(self.log(name))
    }

    /// Opens a stream that was made before with so many replicas at least.
    ///
    /// # Errors
    /// When it is not there, does not answer, or was changed in a way that would lose entries.
    pub fn open(&self, name: &str, replicas: usize) -> Result<JetStreamLog, EngineError> {
        let info = self.stream(name)?.ok_or_else(|| LogError::Missing { log: name.to_owned() })?;
        check(&info, replicas)?;
        Ok(self.log(name))
    }

    /// A subject for news between processes.
    #[must_use]
    pub fn bulletin(&self, subject: &str) -> Bulletin {
        Bulletin::new(self.context.client(), self.handle.clone(), subject.to_owned(), self.sent.clone())
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn handle(&self) -> &Handle {
        &self.handle
    }

    pub(super) fn sent(&self) -> &Sent {
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

/// Ensures that a stream loses nothing by itself.
fn check(info: &Info, replicas: usize) -> Result<(), EngineError> {
    let Config { retention, discard, storage, num_replicas, max_age, max_messages, .. } = &info.config;
    let wrong = [
        (*retention != RetentionPolicy::Limits, "its retention is not `limits`"),
        (*discard != DiscardPolicy::New, "it discards old messages"),
        (*storage != StorageType::File, "it is not in files"),
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

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("server", &self.context.client().server_info().server_name).finish()
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
