//! The seam of tier 2's mapping: how its partitions lie on nodes, and how that is changed while it serves.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::index_error::IndexError;

use doppel_model::signature::Signature;
use doppel_partitioning::{MappingError, Plan, PlanChange, PlannedMove};

/// What is requested of the mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
pub enum RebalanceRequest {
    /// Even load with few moves.
    Balance,
    /// A map learned anew from the present contents: less fan-out, for which nearly everything moves.
    Learn,
    /// Nothing on this node any more.
    Drain {
        /// The node, from 0.
        node: u32,
    },
    /// One partition goes to another node.
    Move {
        /// The partition's id.
        partition: u32,
        /// The node, from 0.
        node: u32,
    },
    /// This node may have partitions again, and gets its part.
    Join {
        /// The node, from 0.
        node: u32,
    },
}

/// What a change of the mapping would do, or does now.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalancePlan {
    /// The version of the present plan.
    pub plan_version: u64,
    /// Whether it is being carried out.
    pub started: bool,
    /// Why there is nothing to do; null where there is something.
    pub nothing: Option<String>,
    /// Partitions that are cut in two.
    pub splits: u32,
    /// Pairs of partitions that become one.
    pub joins: u32,
    /// Partitions that go to another node, in the order of the map.
    pub moves: Vec<PartitionMove>,
    /// Contents that change their node, about. Those of partitions that are split or joined where they are have to be
    /// copied as well, so [`RebalanceProgress`] has more.
    pub contents_moved: u64,
    /// All contents.
    pub contents: u64,
    /// Most over mean of contents per serving node, before.
    pub imbalance_before: f64,
    /// The same, of the nodes that serve then.
    pub imbalance_after: f64,
    /// Share of fan-out to nodes saved against comparing every content on every serving node, 0 to 1, before; null but
    /// for a map that is learned anew.
    pub fan_out_saved_before: Option<f64>,
    /// The same, after.
    pub fan_out_saved_after: Option<f64>,
}

/// A box that goes to another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct PartitionMove {
    /// The partition's id in the new plan.
    pub partition: u32,
    /// The node it is on.
    pub from: u32,
    /// The node it goes to.
    pub to: u32,
    /// Its contents, about.
    pub contents: u64,
}

impl From<PlannedMove> for PartitionMove {
    fn from(planned: PlannedMove) -> Self {
        let PlannedMove { partition, from, to, contents } = planned;
        Self { partition, from, to, contents }
    }
}

impl From<PlanChange> for RebalancePlan {
    /// Not started.
    fn from(change: PlanChange) -> Self {
        Self {
            plan_version: change.plan_version,
            started: false,
            nothing: None,
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

/// How far a change of the mapping is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalanceProgress {
    /// The version of the plan that is served until the end.
    pub plan_version: u64,
    /// The version of the plan that comes after it.
    pub next_version: u64,
    /// Contents copied so far.
    pub copied: u64,
    /// Contents to copy.
    pub contents: u64,
    /// Contents that changed after they were copied, and are copied again.
    pub changed: u64,
    /// Seconds since the beginning.
    pub seconds: f64,
}

/// How a request ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RebalanceOutcome {
    /// What was requested.
    #[serde(flatten)]
    pub request: RebalanceRequest,
    /// Why it was not carried out; null where it was.
    pub failed: Option<String>,
    /// Whether that is because somebody cancelled it.
    #[serde(default)]
    pub cancelled: bool,
    /// The version of the plan that was served at its end.
    pub plan_version: u64,
    /// Contents copied.
    pub copied: u64,
    /// Seconds since it was begun.
    pub seconds: f64,
}

/// Why the mapping is not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RebalanceError {
    /// One change at a time.
    #[error("a change of the mapping is under way (to plan {0}); wait for its end")]
    Busy(u64),
    /// There is no such plan.
    #[error(transparent)]
    Mapping(#[from] MappingError),
    /// The request cannot be stored.
    #[error("the request cannot be stored: {0}")]
    Store(String),
    /// Nothing is requested that is not done.
    #[error("there is no request to cancel: none is under way")]
    NothingToCancel,
    /// The index does not answer now.
    #[error(transparent)]
    Unavailable(#[from] IndexError),
}

/// Tier 2's mapping as the coordinator sees it.
pub trait MappingApi: Send + Sync {
    /// The plan that is served.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn plan(&self) -> Result<Plan, IndexError>;

    /// Signatures of at most `limit` contents, those with the least hashes: the same for the same collection.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn sample(&self, limit: usize) -> Result<Vec<Arc<Signature>>, IndexError>;

    /// Plans what is requested, and unless `dry_run` begins to carry that plan out while everything goes on. What has
    /// begun is not forgotten when the process ends.
    ///
    /// # Errors
    /// See [`RebalanceError`]. While there is a change under way also of a dry run: the plan it would start from is
    /// about to go.
    fn rebalance(&self, request: RebalanceRequest, dry_run: bool) -> Result<RebalancePlan, RebalanceError>;

    /// Ends the present request before it is done: the plan that is served stays.
    ///
    /// # Errors
    /// [`RebalanceError::NothingToCancel`] where there is none, or it is done already.
    fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError>;

    /// How far the present change is; none when there is none.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn progress(&self) -> Result<Option<RebalanceProgress>, IndexError>;

    /// The request that is being carried out or comes next.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn request(&self) -> Result<Option<RebalanceRequest>, IndexError>;

    /// How the last request ended since the start; none where there was none.
    ///
    /// # Errors
    /// See [`IndexError`].
    fn outcome(&self) -> Result<Option<RebalanceOutcome>, IndexError>;
}
