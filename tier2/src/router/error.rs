//! Errors of the router.

use doppel_model::NodeId;
use doppel_partitioning::MappingError;
use doppel_protocol::index_node::NodeError;
use doppel_protocol::{IndexError, IndexStateError, RebalanceError, SourceError};

use crate::error::Error;

/// Why the router could not complete an operation.
#[derive(Debug, Clone, thiserror::Error)]
pub(crate) enum RouterError {
    #[error("node {0}: {1}")]
    Node(NodeId, NodeError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Mapping(#[from] MappingError),
    #[error(transparent)]
    State(#[from] IndexStateError),
    /// The plan changed during every attempt.
    #[error("the plan changed during every attempt; try again later")]
    Replanned,
    #[error("the index is stopping")]
    Stopping,
}

impl From<RouterError> for IndexError {
    fn from(error: RouterError) -> Self {
        match error {
            RouterError::Stopping => Self::Stopping,
            RouterError::Node(_, NodeError::TooMuch { .. }) => Self::TooMuch(error.to_string()),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<RouterError> for RebalanceError {
    fn from(error: RouterError) -> Self {
        match error {
            RouterError::Mapping(error) => Self::Mapping(error),
            other => Self::Unavailable(other.into()),
        }
    }
}

impl From<RouterError> for Error {
    fn from(error: RouterError) -> Self {
        match error {
            RouterError::Node(node, error) => Self::Node(node, error),
            RouterError::Source(error) => error.into(),
            RouterError::Mapping(error) => error.into(),
            RouterError::State(error) => error.into(),
            other => Self::Threads(other.to_string()),
        }
    }
}
