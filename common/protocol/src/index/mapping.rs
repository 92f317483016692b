//! The interface for tier 2's mapping of partitions to nodes, and for changes of the mapping during
//! operation.

use std::sync::Arc;

use doppel_contract::{RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest};
use doppel_model::signature::Signature;
use doppel_partitioning::{MappingError, Plan};
use serde::{Deserialize, Serialize};

use super::IndexError;

/// Why a request to change the mapping failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum RebalanceError {
    /// Another change is under way. Only one change can run at a time.
    #[error("a change of the mapping is under way (to plan {0}); wait for its end")]
    Busy(u64),
    /// No valid plan fulfils the request.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// The request cannot be stored.
    #[error("the request cannot be stored: {0}")]
    Store(String),
    /// There is no unfinished request.
    #[error("there is no request to cancel; automatic changes cannot be cancelled")]
    NothingToCancel,
    /// The index cannot answer now.
    #[error(transparent)]
    Unavailable(#[from] IndexError),
}

/// Tier 2's mapping as the coordinator sees it.
pub trait MappingApi: Send + Sync {
    /// Returns the plan in force.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn plan(&self) -> Result<Plan, IndexError>;

    /// Returns the signatures of at most `limit` contents. They are the contents with the smallest hashes, so
    /// the sample depends only on the collection.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn sample(&self, limit: usize) -> Result<Vec<Arc<Signature>>, IndexError>;

    /// Plans a requested change. Unless `dry_run`, begins to carry it out during normal operation. The
    /// request is stored, so that it continues after a restart.
    ///
    /// # Errors
    /// See [`RebalanceError`]. While another change is under way, a dry run fails too, because the plan that
    /// it would start from is about to be replaced.
    fn rebalance(&self, request: RebalanceRequest, dry_run: bool) -> Result<RebalancePlan, RebalanceError>;

    /// Cancels the present request. The plan in force stays in force.
    ///
    /// # Errors
    /// [`RebalanceError::NothingToCancel`] if there is no request, or if the request has already ended.
    fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError>;

    /// Returns the progress of the present change; `None` if there is no change.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn progress(&self) -> Result<Option<RebalanceProgress>, IndexError>;

    /// Returns the request that is being carried out or comes next.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn request(&self) -> Result<Option<RebalanceRequest>, IndexError>;

    /// Returns the outcome of the last request that ended since the start of the process.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn outcome(&self) -> Result<Option<RebalanceOutcome>, IndexError>;
}
