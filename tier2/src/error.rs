//! Errors of opening an index.

use std::io;
use std::path::{Path, PathBuf};

use doppel_model::NodeId;
use doppel_partitioning::MappingError;
use doppel_protocol::index_node::NodeError;
use doppel_protocol::{IndexStateError, SourceError};

/// Why an index cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refuses an operation.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// The operation, as a verb with its object.
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// Error of the file system. The message contains it, so it is not also reported as the source.
        reason: io::Error,
    },
    /// Another process has the index open.
    #[error("the index in {} is in use by another process; stop it first", .0.display())]
    InUse(PathBuf),
    /// The number of dimensions, partitions or nodes is out of range.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// A setting that must be at least 1 is 0.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// Tier 1 does not answer which contents it has.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The plan or the requests to change it cannot be loaded or stored.
    #[error(transparent)]
    State(#[from] IndexStateError),
    /// A node does not carry out a call.
    #[error("node {0}: {1}")]
    Node(NodeId, NodeError),
    /// The snapshot of a new index cannot be written.
    #[error("cannot write a snapshot in {}: {}", .0.display(), .1)]
    SnapshotNotWritten(PathBuf, String),
    /// A thread of tier 2 cannot be started.
    #[error("cannot start the threads of tier 2: {0}")]
    Threads(String),
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, reason: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), reason }
    }
}
