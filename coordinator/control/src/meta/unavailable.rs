//! Errors for an operator whose process cannot read the description of its cluster from the log.
//!
//! A message names the servers that were asked, and what to do, the most likely cause first. A missing
//! stream, for example, is most often a wrong `cluster` in the file.

use std::path::PathBuf;

use doppel_shared_log::{EngineError, LogError};

use crate::description::file::ClusterFile;
use crate::meta::MetaError;

/// Why the description of a cluster cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum MetaUnavailable {
    /// No server of the log can be reached.
    #[error(
        "no log server answers at {servers}: {why}. Start them, and check that this machine reaches them; if they have moved, \
         correct `servers` below [log] in {}",
        file.display()
    )]
    Unreachable {
        /// Addresses of the servers.
        servers: String,
        /// Why the servers cannot be reached.
        why: String,
        /// The file that names the servers.
        file: PathBuf,
    },
    /// The servers can be reached, but the log does not answer.
    #[error(
        "{error}. Start those of the log servers {servers} that do not run: more than half of the servers that keep the \
         stream have to run"
    )]
    Silent {
        /// Addresses of the servers.
        servers: String,
        /// Error of the last attempt to read the description.
        error: LogError,
    },
    /// The log has no stream of this cluster.
    #[error(
        "the stream {stream} is not there, at the log servers {servers}. Check that `cluster` in {} is what `doppel init` has \
         written there, and that `servers` below [log] are the log servers of this cluster. If these have just been started, \
         wait some seconds. Otherwise the stream is lost: put it back with `nats stream restore`, or start the \
         cluster anew (docs/guides/grow-and-repair-a-cluster.md)",
        file.display()
    )]
    Missing {
        /// Name of the stream.
        stream: String,
        /// Addresses of the servers.
        servers: String,
        /// The file that names the cluster.
        file: PathBuf,
    },
    /// The log cannot be used.
    #[error(transparent)]
    Engine(EngineError),
    /// The description cannot be used.
    #[error(transparent)]
    Meta(MetaError),
}

impl MetaUnavailable {
    /// Explains an error that occurred while connecting to the servers of a file or opening META.
    pub fn opening(file: &ClusterFile, error: EngineError) -> Self {
        match error {
            EngineError::Unreachable { servers, why } => {
                Self::Unreachable { servers, why, file: file.path.clone() }
            }
            EngineError::Log(error) => Self::reading(file, error.into()),
            other => Self::Engine(other),
        }
    }

    /// Explains an error that occurred while reading META.
    pub fn reading(file: &ClusterFile, error: MetaError) -> Self {
        let servers = file.servers().unwrap_or_default().join(", ");
        match error {
            MetaError::Log(LogError::Missing { log: stream }) => {
                Self::Missing { stream, servers, file: file.path.clone() }
            }
            MetaError::Log(error @ LogError::Unavailable { .. }) => Self::Silent { servers, error },
            other => Self::Meta(other),
        }
    }
}
