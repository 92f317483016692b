//! Why the log servers cannot be used.

use crate::log::LogError;

/// Oldest supported version of the servers.
pub(crate) const OLDEST: (u32, u32, u32) = (2, 9, 10);

/// Why the log servers cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The program has no client of the servers.
    #[error(
        "this program was built without support for replicated clusters; build it without --no-default-features"
    )]
    WithoutNats,
    /// No server answers at any address.
    #[error("no log server answers at {servers}: {why}")]
    Unreachable {
        /// Addresses of the servers.
        servers: String,
        /// What failed, in words.
        why: String,
    },
    /// The server does not have JetStream enabled.
    #[error(
        "the log server {name} at {servers} has no JetStream: start it with `jetstream` in its configuration, or with -js"
    )]
    NoJetStream {
        /// Addresses of the servers.
        servers: String,
        /// Name of the server.
        name: String,
    },
    /// The version of the server is too old, or cannot be parsed.
    #[error("the log server {name} has version {version}; at least {}.{}.{} is required", OLDEST.0, OLDEST.1, OLDEST.2)]
    Version {
        /// Name of the server.
        name: String,
        /// Version of the server.
        version: String,
    },
    /// A stream of this name already exists.
    #[error("the stream {0} already exists; a stream is never reused for another cluster")]
    Exists(String),
    /// The settings of a stream were changed after its creation.
    #[error("the settings of the stream {stream} were changed: {what}")]
    Changed {
        /// Name of the stream.
        stream: String,
        /// The setting that is wrong, in words.
        what: String,
    },
    /// The stream cannot be created.
    #[error("the stream {stream} cannot be created: {why}")]
    NotMade {
        /// Name of the stream.
        stream: String,
        /// The reason in the words of the server.
        why: String,
    },
    /// A request to the stream failed, usually because the stream does not answer or does not exist.
    #[error(transparent)]
    Log(#[from] LogError),
}
