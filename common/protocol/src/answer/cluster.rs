//! The nodes of a cluster and what they have: the answer of `GET /v1/cluster`.

use doppel_model::{PartitionId, RangeId};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::EngineStatus;

/// The nodes, the ranges, and what is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterStatus {
    /// The name of the cluster; null for a single process, which has no nodes.
    pub cluster: Option<String>,
    /// Whether other nodes have copies of a range.
    pub replicated: bool,
    /// The nodes of both tiers. Front doors are not known to each other.
    pub nodes: Vec<ClusterNode>,
    /// Every range, in order.
    pub ranges: Vec<ClusterRange>,
    /// The log; null where nothing is replicated.
    pub engine: Option<EngineStatus>,
    /// Orders that wait in the index; null when its router does not answer.
    pub orders_waiting: Option<u64>,
    /// What is not as it should be; empty when all is well.
    pub attention: Vec<Attention>,
}

/// A tier of a cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum NodeRole {
    /// The system of record.
    Tier1,
    /// The index.
    Tier2,
}

/// A node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterNode {
    /// Its name in the description of the cluster.
    pub name: String,
    /// Its tier.
    pub role: NodeRole,
    /// Where the others reach it.
    pub address: String,
    /// Whether it has answered, within three seconds.
    pub answers: bool,
    /// Why not.
    pub reason: Option<String>,
    /// Whether it has the router of the index.
    pub router: bool,
    /// The partitions of a node of tier 2; null when the router does not say.
    #[schema(value_type = Option<Vec<u32>>)]
    pub partitions: Option<Vec<PartitionId>>,
    /// The contents of a node of tier 2; null when it does not say.
    pub contents: Option<u64>,
    /// Orders that a node of tier 2 has not applied, of the range that is furthest ahead; null when it is still to be told
    /// what it has, or does not say.
    pub lag: Option<u64>,
}

/// A range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterRange {
    /// The range.
    #[schema(value_type = u16)]
    pub range: RangeId,
    /// Its first shard.
    pub first_shard: u16,
    /// Its last shard.
    pub last_shard: u16,
    /// The node of tier 1 that owns it; null where none is known to.
    pub owner: Option<String>,
    /// Whether the owner answers for it and takes writes.
    pub served: bool,
    /// Number of this ownership: it grows with every start of the owner, and with every other owner.
    pub epoch: Option<u64>,
    /// The other nodes that have a replica; empty where ranges are not replicated.
    pub standbys: Vec<Standby>,
    /// Replicas that are to be there, that of the owner among them.
    pub replicas: u64,
    /// Replicas whose nodes are there: that of an owner who answers, and those of standbys that follow.
    pub live_replicas: u64,
    /// Live pages.
    pub live: Option<u64>,
    /// Pages that are not decided yet.
    pub pending: Option<u64>,
}

/// A node that has a replica of a range that it does not own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Standby {
    /// The node of tier 1.
    pub node: String,
    /// Whether it was heard of in the last seconds, and follows.
    pub follows: bool,
    /// Records of the range's log that the owner has and it has not; null when one of the two was not heard of.
    pub lag: Option<u64>,
    /// Why it does not follow.
    pub reason: Option<String>,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attention {
    /// What it is.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}
