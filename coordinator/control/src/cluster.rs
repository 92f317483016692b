//! A cluster as its processes know it: its id, its secret, its collection, its log, and the nodes of both
//! tiers with their addresses.

#[cfg(test)]
pub(crate) mod tests;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use doppel_contract::answer::Attention;
use doppel_model::pairwise::Policy;
use doppel_model::{NodeId, RangeId, ShardId};
use doppel_protocol::beats::ClusterMembership;
use doppel_protocol::{RangeMap, WinnerOrder};
use doppel_shared_log::LogEngine;
use doppel_wire::index_node::RemoteNode;
use doppel_wire::range_owner::RemoteRanges;
use doppel_wire::tier2::RoutedTier2;
use doppel_wire::{Identity, NodeName, Peer, Runtime, Secret};
use reqwest::header::InvalidHeaderValue;

use crate::description::file::ClusterFile;
use crate::description::{Description, Tier1Node, Tier2Node};
use crate::log::{self, LogSettings};
use crate::status::log::LogAt;
use crate::status::processes::Processes;
use crate::status::{ClusterNodes, IndexAt, RecordAt, Replicas};

/// A cluster by its description, with what the file of this process adds: the secret and replaced addresses.
#[derive(Debug)]
pub struct Cluster {
    /// Unique id of the cluster.
    pub id: Arc<str>,
    /// Policy by which contents are compared.
    pub policy: Policy,
    /// Rules by which winners are elected.
    pub winners: WinnerOrder,
    /// Description of the cluster.
    pub description: Description,
    map: RangeMap,
    reach: BTreeMap<NodeName, String>,
    secret: Secret,
}

/// Why a description cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The shards cannot be divided into ranges as the description says.
    #[error("the description of the cluster: {0}")]
    Ranges(String),
    /// No node of this role has the name.
    #[error("there is no {role} node {name} in the cluster; it has {known}")]
    Unknown {
        /// Role of the node.
        role: &'static str,
        /// The name that is not known.
        name: NodeName,
        /// Names of the nodes that have the role.
        known: String,
    },
    /// The secret file beside the cluster file has another secret than the cluster.
    #[error("the secret beside the file is not that of the cluster: copy it from a machine that takes part")]
    Secret,
    /// The id of the cluster cannot be sent in a header.
    #[error("the id of the cluster cannot be sent in a header: {0}")]
    Name(#[from] InvalidHeaderValue),
}

/// Reports of the other processes, which arrive through the log of the cluster.
pub struct ClusterNews {
    /// Reports of the nodes of tier 1 about their replicas.
    pub membership: Arc<ClusterMembership>,
    /// Presences of all processes. Each names the version of the description that the process runs with.
    pub processes: Arc<Processes>,
    /// Client of the log.
    pub engine: LogEngine,
    /// Addresses of the servers of the log.
    pub servers: Vec<String>,
}

impl Cluster {
    /// Creates the cluster from its cluster file and its description.
    ///
    /// # Errors
    /// If the secret file beside the cluster file has another secret than the description expects, or the
    /// shards cannot be divided into the ranges.
    pub fn new(file: &ClusterFile, description: Description) -> Result<Self, ClusterError> {
        if !description.is_secret(&file.secret) {
            return Err(ClusterError::Secret);
        }
        let map = RangeMap::new(description.shards, description.ranges)
            .map_err(|error| ClusterError::Ranges(error.to_string()))?;
        let (id, secret, reach) = (Arc::clone(&file.id), file.secret.clone(), file.reach());
        let Description { policy, winners, .. } = description;
        Ok(Self { id, policy, winners, description, map, reach, secret })
    }

    /// Identity with which a process of this cluster calls the others.
    pub fn identity(&self, node: &NodeName) -> Identity {
        Identity { cluster: Arc::clone(&self.id), node: node.clone(), secret: self.secret.clone() }
    }

    /// A warning about lines of the table `reach` that name unknown nodes, such as nodes that were removed.
    /// Such lines have no effect and do not prevent a start.
    pub(crate) fn idle_reach(&self) -> Option<Attention> {
        let is_in = |name: &NodeName| self.description.nodes().any(|(other, _)| other == name);
        let idle: Vec<&str> = self.reach.keys().filter(|name| !is_in(name)).map(NodeName::as_str).collect();
        let known: Vec<&str> = self.description.nodes().map(|(name, _)| name.as_str()).collect();
        (!idle.is_empty()).then(|| Attention {
            what: format!(
                "the table [reach] in the cluster file of this process names {}, and the cluster has no such node; it has {}",
                idle.join(", "),
                known.join(", ")
            ),
            remedy: "remove the line from the file, or correct the name: until then the line has no effect".to_owned(),
        })
    }

    /// Settings of the log. `None` if the cluster has no log, so that nothing is replicated.
    pub fn log(&self) -> Option<&LogSettings> {
        self.description.log.as_ref()
    }

    /// Name of the stream that is the log of a range.
    pub fn stream(&self, range: RangeId) -> String {
        log::stream(&self.id, range)
    }

    /// Finds a node of tier 1 by its name.
    ///
    /// # Errors
    /// [`ClusterError::Unknown`] if no node of tier 1 has the name.
    pub fn tier1_node(&self, name: &NodeName) -> Result<&Tier1Node, ClusterError> {
        let nodes = self.tier1_nodes();
        find(nodes.iter().map(|node| &node.name), "tier-1", name).map(|at| &nodes[at])
    }

    /// All nodes of tier 1.
    pub fn tier1_nodes(&self) -> &[Tier1Node] {
        &self.description.tier1
    }

    /// The names of all nodes of tier 1, in their order.
    pub fn tier1_names(&self) -> Vec<NodeName> {
        self.tier1_nodes().iter().map(|node| node.name.clone()).collect()
    }

    /// The division of the shards into ranges.
    pub fn map(&self) -> RangeMap {
        self.map
    }

    /// The nodes that store a replica of a range. The owner that the description names is first.
    pub fn replicas_of(&self, range: RangeId) -> Vec<NodeName> {
        self.description.replicas_of(range)
    }

    /// All ranges of which a node stores a replica, in ascending order.
    pub fn ranges_of(&self, name: &NodeName) -> Vec<RangeId> {
        self.description.ranges_of(name)
    }

    fn replica_names(&self, range: RangeId) -> Vec<String> {
        self.replicas_of(range).iter().map(ToString::to_string).collect()
    }

    /// The position of the node of tier 1 that owns each shard by the description. In a cluster with a log,
    /// another replica can become the owner later.
    pub fn owners(&self) -> Vec<usize> {
        let nodes = self.tier1_nodes();
        let of_range = |range| nodes.iter().position(|node| node.ranges.contains(&range)).unwrap_or(0);
        (0..self.map.shards()).map(|shard| of_range(self.map.of_shard(ShardId(shard)))).collect()
    }

    /// The node of tier 1 that runs the router of the index: the owner of the first range.
    pub fn router(&self) -> &Tier1Node {
        &self.tier1_nodes()[self.owners().first().copied().unwrap_or(0)]
    }

    /// Finds a node of tier 2 by its name; returns it with its number in the plan.
    ///
    /// # Errors
    /// [`ClusterError::Unknown`] if no node of tier 2 has the name.
    pub fn tier2_node(&self, name: &NodeName) -> Result<(NodeId, &Tier2Node), ClusterError> {
        let nodes = self.index_nodes();
        find(nodes.iter().map(|node| &node.name), "tier-2", name).map(|at| (NodeId(at as u32), &nodes[at]))
    }

    /// All nodes of tier 2, in the order of the plan.
    pub fn index_nodes(&self) -> &[Tier2Node] {
        &self.description.tier2
    }

    /// Connections to all nodes, through which a coordinator asks for their status. `news` has the reports
    /// that arrive through the log; without them nothing is known about replicas.
    ///
    /// # Errors
    /// If the id of the cluster cannot be sent in a header.
    pub fn nodes(
        &self,
        runtime: &Runtime,
        own: &Identity,
        router: Arc<RoutedTier2>,
        news: Option<ClusterNews>,
    ) -> Result<ClusterNodes, ClusterError> {
        let record = |node: &Tier1Node| {
            let peer = self.peer(runtime, own, &node.name, &node.address)?;
            Ok(RecordAt {
                name: node.name.to_string(),
                address: node.address.clone(),
                ranges: node.ranges.clone(),
                owner: RemoteRanges::new(peer.clone()),
                peer,
            })
        };
        let index = |node: &Tier2Node| {
            let (name, address) = (node.name.to_string(), node.address.clone());
            let peer = self.peer(runtime, own, &node.name, &node.address)?;
            Ok(IndexAt { name, address, node: Arc::new(RemoteNode::new(peer.clone())), peer })
        };
        let log = |ClusterNews { engine, servers, .. }: &ClusterNews| {
            let (engine, servers) = (engine.clone(), servers.clone());
            let streams = self.map.ranges().map(|range| self.stream(range)).collect();
            let (meta, copies) = (log::meta(&self.id), u64::from(self.log()?.replicas));
            Some(LogAt { engine, servers, streams, meta, copies })
        };
        let log = news.as_ref().and_then(log);
        Ok(ClusterNodes {
            cluster: Arc::clone(&self.id),
            map: self.map,
            tier1: self.tier1_nodes().iter().map(record).collect::<Result<_, ClusterError>>()?,
            tier2: self.index_nodes().iter().map(index).collect::<Result<_, ClusterError>>()?,
            router,
            replicas: news.map(|ClusterNews { membership, processes, .. }| Replicas {
                membership,
                processes,
                nodes: self.map.ranges().map(|range| self.replica_names(range)).collect(),
            }),
            log,
            file: self.idle_reach(),
            own: (own.node.to_string(), runtime.traffic().clone()),
            last: Mutex::default(),
        })
    }

    /// The connection of this process to another node, at `address` or at the address that the file gives
    /// instead.
    ///
    /// # Errors
    /// If the id of the cluster cannot be sent in a header.
    pub fn peer(
        &self,
        runtime: &Runtime,
        own: &Identity,
        name: &NodeName,
        address: &str,
    ) -> Result<Peer, ClusterError> {
        let address = self.reach.get(name).map_or(address, String::as_str);
        Ok(Peer::new(runtime, own, name, address)?)
    }
}

/// Position of a name in the list.
fn find<'n>(
    names: impl Iterator<Item = &'n NodeName> + Clone,
    role: &'static str,
    name: &NodeName,
) -> Result<usize, ClusterError> {
    names.clone().position(|other| other == name).ok_or_else(|| {
        let known: Vec<&str> = names.map(NodeName::as_str).collect();
        ClusterError::Unknown { role, name: name.clone(), known: known.join(", ") }
    })
}
