//! Errors of the index.

use std::io;
use std::path::{Path, PathBuf};

use doppel_model::NodeId;
use doppel_partitioning::MappingError;
use doppel_protocol::index_node::NodeError;
use doppel_protocol::{IndexStateError, SourceError};

/// Why an index cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refuses.
    #[error("cannot {action} {}: {reason}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not; it is in the text, so it is not named as the source again.
        reason: io::Error,
    },
    /// Another process has the index open.
    #[error("the index in {} is in use by another process", .0.display())]
    InUse(PathBuf),
    /// The number of dimensions or partitions is out of range.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// A setting that must not be zero is.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// Tier 1 does not say what there is.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// What the router keeps cannot be read or written.
    #[error(transparent)]
    State(#[from] IndexStateError),
    /// A node does not do what it is asked.
    #[error("node {0}: {1}")]
    Node(NodeId, NodeError),
    /// The threads of the comparison cannot be started.
    #[error("cannot start the threads of tier 2: {0}")]
    Threads(String),
}

impl Error {
    pub(crate) fn io(action: &'static str, path: &Path, reason: io::Error) -> Self {
        Self::Io { action, path: path.to_owned(), reason }
    }
}
