//! The nodes of a cluster and what each node stores: the answer of `GET /v1/cluster`.

use doppel_model::{PartitionId, RangeId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::EngineStatus;

/// State of the nodes and ranges of the cluster, and a list of problems.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterStatus {
    /// Name of the cluster; null for a single process, which has no nodes.
    pub cluster: Option<String>,
    /// Whether each range is replicated on other nodes.
    pub replicated: bool,
    /// Nodes of both tiers. Coordinators are not listed, because they do not know each other.
    pub nodes: Vec<ClusterNode>,
    /// Every range, in ascending order.
    pub ranges: Vec<ClusterRange>,
    /// The log that replicates the ranges; null if ranges are not replicated.
    pub engine: Option<EngineStatus>,
    /// Orders that wait in the index; null if the router of the index does not answer.
    pub orders_waiting: Option<u64>,
    /// Problems that need the operator's attention. Empty if all is well.
    pub attention: Vec<Attention>,
}

/// A tier of the cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// Tier 1, the system of record.
    Tier1,
    /// Tier 2, the index.
    Tier2,
}

/// A node of the cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterNode {
    /// Name of the node in the cluster description.
    pub name: String,
    /// Tier of the node.
    pub role: NodeRole,
    /// Address at which other nodes reach this node.
    pub address: String,
    /// Whether the node answered within three seconds.
    pub answers: bool,
    /// Why the node did not answer.
    pub reason: Option<String>,
    /// Whether the node runs the router of the index.
    pub router: bool,
    /// Partitions on a node of tier 2; null if the router does not answer.
    #[schema(value_type = Option<Vec<u32>>)]
    pub partitions: Option<Vec<PartitionId>>,
    /// Number of contents on a node of tier 2; null if the node does not answer.
    pub contents: Option<u64>,
    /// Orders that a node of tier 2 has yet to apply, for the range with the most. Null if the node does not
    /// answer, or has not been fed all its contents yet.
    pub lag: Option<u64>,
}

/// A range of shards.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterRange {
    /// Number of the range.
    #[schema(value_type = u16)]
    pub range: RangeId,
    /// First shard of the range.
    pub first_shard: u16,
    /// Last shard of the range.
    pub last_shard: u16,
    /// Name of the tier-1 node that owns the range; null if no owner is known.
    pub owner: Option<String>,
    /// Whether the owner answers for the range and accepts writes.
    pub served: bool,
    /// Number of the present ownership. It grows each time the owner starts and each time the owner changes.
    pub epoch: Option<u64>,
    /// Other nodes with a replica of the range. Empty if ranges are not replicated.
    pub standbys: Vec<Standby>,
    /// Number of replicas that the range should have, including the owner's.
    pub replicas: u64,
    /// Number of replicas that are available: the owner's if it answers, and those of the standbys that
    /// follow.
    pub live_replicas: u64,
    /// Number of live pages in the range.
    pub live: Option<u64>,
    /// Number of pages that are not decided yet.
    pub pending: Option<u64>,
}

/// A node that has a replica of a range and does not own the range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Standby {
    /// Name of the tier-1 node.
    pub node: String,
    /// Whether the node sent a beat in the last seconds and follows the log of the range.
    pub follows: bool,
    /// Records of the range's log that the owner has and the standby lacks. Null if the owner or the standby
    /// has not reported.
    pub lag: Option<u64>,
    /// Why the standby does not follow the log.
    pub reason: Option<String>,
}

/// A problem that needs the operator's attention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attention {
    /// Description of the problem.
    pub what: String,
    /// What the operator should do about the problem.
    pub remedy: String,
}
