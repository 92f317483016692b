//! The interface of tier 2's mapping: which node has which partition, and how this is changed during operation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::index_error::IndexError;

use doppel_model::signature::Signature;
use doppel_model::{NodeId, PartitionId};
use doppel_partitioning::{MappingError, Plan, PlanChange, PlannedMove};

/// A requested change of the mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum RebalanceRequest {
    /// Balances the load with few moves.
    Balance,
    /// Learns a new map from the present contents. This reduces the fan-out, but nearly everything moves.
    Learn,
    /// Moves everything away from a node.
    Drain {
        /// The node, from 0.
        #[schema(value_type = u32)]
        node: NodeId,
    },
    /// Moves one partition to another node.
    Move {
        /// The partition's id.
        #[schema(value_type = u32)]
        partition: PartitionId,
        /// The node, from 0.
        #[schema(value_type = u32)]
        node: NodeId,
    },
    /// Lets a node have partitions again and moves its share there.
    Join {
        /// The node, from 0.
        #[schema(value_type = u32)]
        node: NodeId,
    },
}

/// What a change of the mapping would do, or is doing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalancePlan {
    /// The version of the present plan.
    pub plan_version: u64,
    /// Whether the change is being carried out.
    pub started: bool,
    /// Why there is nothing to do; null if there is something to do.
    pub nothing_to_do: Option<String>,
    /// The number of partitions that are cut in two.
    pub splits: u32,
    /// The number of pairs of partitions that are joined into one.
    pub joins: u32,
    /// The partitions that move to another node, in the order of the map.
    pub moves: Vec<PartitionMove>,
    /// About how many contents change their node. [`RebalanceProgress`] counts more, because the contents of a
    /// partition that is split or joined on its node are copied as well.
    pub contents_moved: u64,
    /// The number of all contents.
    pub contents: u64,
    /// Imbalance before the change: the largest number of contents on a serving node, divided by the mean.
    pub imbalance_before: f64,
    /// Imbalance after the change, over the nodes that serve then.
    pub imbalance_after: f64,
    /// Share of fan-out saved before the change, 0 to 1, in relation to comparing every content on every serving node;
    /// null unless the map is learned anew.
    pub fan_out_saved_before: Option<f64>,
    /// The same after the change.
    pub fan_out_saved_after: Option<f64>,
}

/// A partition that moves to another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartitionMove {
    /// The partition's id in the new plan.
    #[schema(value_type = u32)]
    pub partition: PartitionId,
    /// The node that has it now.
    #[schema(value_type = u32)]
    pub from: NodeId,
    /// The node that it moves to.
    #[schema(value_type = u32)]
    pub to: NodeId,
    /// About how many contents it has.
    pub contents: u64,
}

impl From<PlannedMove> for PartitionMove {
    fn from(planned: PlannedMove) -> Self {
        let PlannedMove { partition, from, to, contents } = planned;
        Self { partition, from, to, contents }
    }
}

impl From<PlanChange> for RebalancePlan {
    /// The change, not started.
    fn from(change: PlanChange) -> Self {
        Self {
            plan_version: change.plan_version,
            started: false,
            nothing_to_do: None,
            splits: change.splits,
            joins: change.joins,
            moves: change.moves.into_iter().map(Into::into).collect(),
            contents_moved: change.contents_moved,
            contents: change.contents,
            imbalance_before: change.imbalance_before,
            imbalance_after: change.imbalance_after,
            fan_out_saved_before: change.fan_out_saved_before,
            fan_out_saved_after: change.fan_out_saved_after,
        }
    }
}

/// The progress of a change of the mapping.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalanceProgress {
    /// The version of the plan that is in force until the change is complete.
    pub plan_version: u64,
    /// The version of the plan that follows.
    pub next_version: u64,
    /// The number of contents copied so far.
    pub copied: u64,
    /// The number of contents to copy.
    pub contents: u64,
    /// The number of contents that changed after they were copied and are copied again.
    pub changed: u64,
    /// Seconds since the change began.
    pub seconds: f64,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalanceOutcome {
    /// The request.
    #[serde(flatten)]
    pub request: RebalanceRequest,
    /// Why it was not carried out; null if it was.
    pub failed: Option<String>,
    /// Whether it was not carried out because somebody cancelled it.
    #[serde(default)]
    pub cancelled: bool,
    /// The version of the plan in force when the request ended.
    pub plan_version: u64,
    /// The number of contents copied.
    pub copied: u64,
    /// Seconds from the beginning to the end.
    pub seconds: f64,
}

/// Why the mapping is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum RebalanceError {
    /// Another change is under way; there is only one at a time.
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
    /// The plan in force.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn plan(&self) -> Result<Plan, IndexError>;

    /// Signatures of at most `limit` contents. They are those with the smallest hashes, so the sample depends on the
    /// collection alone.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn sample(&self, limit: usize) -> Result<Vec<Arc<Signature>>, IndexError>;

    /// Plans a requested change and, unless `dry_run`, begins to carry it out during normal operation. The request is
    /// stored, so that it is continued after a restart.
    ///
    /// # Errors
    /// See [`RebalanceError`]. While a change is under way, a dry run fails as well, because the plan that it would
    /// start from is about to be replaced.
    fn rebalance(&self, request: RebalanceRequest, dry_run: bool) -> Result<RebalancePlan, RebalanceError>;

    /// Cancels the present request. The plan in force stays.
    ///
    /// # Errors
    /// [`RebalanceError::NothingToCancel`] if there is no request or it is already done.
    fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError>;

    /// The progress of the present change, if there is one.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn progress(&self) -> Result<Option<RebalanceProgress>, IndexError>;

    /// The request that is being carried out or is next.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn request(&self) -> Result<Option<RebalanceRequest>, IndexError>;

    /// The outcome of the last request that ended since the start of the process, if there was one.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn outcome(&self) -> Result<Option<RebalanceOutcome>, IndexError>;
}
