//! The file of a cluster: its name, its secret, its collection, its log, and the nodes of both tiers with their addresses.
//!
//! `doppel init` writes it once, beside the secret; every process of the cluster reads a copy of both. It is TOML of at most
//! [`BYTES_MAX`] bytes. What is unknown, repeated or out of bounds is refused with its line.

pub(crate) mod log;
pub(crate) mod node_dir;
pub(crate) mod streams;
#[cfg(test)]
mod tests;
mod written;

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use doppel_model::{NodeId, RangeId, ShardId, Tau};
use doppel_protocol::WinnerOrder;
use doppel_protocol::membership::Membership;
use doppel_shared_log::Engine;
use doppel_tier1::RangeMap;
use doppel_wire::index_node::RemoteNode;
use doppel_wire::range_owner::RemoteRanges;
use doppel_wire::tier2::RoutedTier2;
use doppel_wire::{Identity, NodeName, Peer, Runtime, Secret, SecretError};
use reqwest::header::InvalidHeaderValue;
use serde::{Deserialize, Serialize};

use crate::manifest::Wanted;
use crate::wire::cluster_status::log::LogAt;
use crate::wire::cluster_status::{ClusterNodes, IndexAt, RecordAt, Replicas};
pub(crate) use log::LogSettings;
pub(crate) use written::Written;

/// The largest file that is read: hundreds of nodes have room in it.
const BYTES_MAX: u64 = 256 << 10;

/// A cluster as its file describes it.
#[derive(Debug)]
pub(crate) struct Cluster {
    /// Names it: no other cluster has the same.
    pub(crate) id: Arc<str>,
    /// The pairwise function's threshold.
    pub(crate) tau: Tau,
    /// By which rules winners are elected.
    pub(crate) winners: WinnerOrder,
    log: Option<LogSettings>,
    map: RangeMap,
    tier1: Vec<Tier1Node>,
    tier2: Vec<Node>,
    secret: Secret,
}

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Node {
    pub(crate) name: NodeName,
    /// Host and port at which the other nodes reach it.
    pub(crate) address: String,
}

/// A node of tier 1, and the ranges that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tier1Node {
    pub(crate) name: NodeName,
    /// Host and port at which the other nodes reach it.
    pub(crate) address: String,
    /// Those that it owns; with a log, at first.
    #[serde(default)]
    pub(crate) ranges: Vec<RangeId>,
    /// Those of other nodes that it has a replica of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) standby: Vec<RangeId>,
}

/// Why the file of a cluster cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ClusterError {
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: io::Error },
    #[error("{} has more than {BYTES_MAX} bytes", .0.display())]
    TooLarge(PathBuf),
    #[error("{}, line {line}: {reason}", path.display())]
    Line { path: PathBuf, line: usize, reason: String },
    #[error("{}: {reason}", path.display())]
    Content { path: PathBuf, reason: String },
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error("there is no {role} node {name} in the cluster; it has {known}")]
    Unknown { role: &'static str, name: NodeName, known: String },
    #[error("the name of the cluster cannot be sent: {0}")]
    Name(#[from] InvalidHeaderValue),
}

impl Cluster {
    /// Reads the file and the secret beside it.
    ///
    /// # Errors
    /// When one of them cannot be used; the message names file, line and reason.
    pub(crate) fn read(path: &Path) -> Result<Self, ClusterError> {
        let failed = |source| ClusterError::Io { path: path.to_owned(), source };
        let mut text = String::new();
        let read = File::open(path).and_then(|file| file.take(BYTES_MAX + 1).read_to_string(&mut text));
        read.map_err(failed)?;
        if text.len() as u64 > BYTES_MAX {
            return Err(ClusterError::TooLarge(path.to_owned()));
        }
        let written: Written = toml::from_str(&text).map_err(|error| {
            let line = 1 + text[..error.span().map_or(0, |span| span.start)].matches('\n').count();
            let reason = error.message().trim().replace('\n', ", ");
            ClusterError::Line { path: path.to_owned(), line, reason }
        })?;
        written.check().map_err(|reason| ClusterError::Content { path: path.to_owned(), reason })?;
        let secret = path.parent().unwrap_or(Path::new("")).join(&written.secret);
        let Written { cluster, tau, shards, ranges, winners, log, tier1, tier2, .. } = written;
        let map = RangeMap::new(shards, ranges)
            .map_err(|error| ClusterError::Content { path: path.to_owned(), reason: error.to_string() })?;
        let secret = Secret::read(&secret)?;
        Ok(Self { id: cluster.into(), tau, winners, log, map, tier1, tier2, secret })
    }

    /// A process of this cluster.
    pub(crate) fn identity(&self, node: &NodeName) -> Identity {
        Identity { cluster: Arc::clone(&self.id), node: node.clone(), secret: self.secret.clone() }
    }

    /// What a node of tier 1 opens its directory with.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted {
            tau: Some(self.tau),
            shards: Some(self.map.shards()),
            ranges: Some(self.map.count() as u16),
            winners: Some(self.winners),
        }
    }

    /// A node of tier 1 by its name.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn tier1_node(&self, name: &NodeName) -> Result<&Tier1Node, ClusterError> {
        let nodes = self.tier1.iter().map(|node| &node.name);
        find(nodes, "tier-1", name).map(|at| &self.tier1[at])
    }

    /// All nodes of tier 1.
    pub(crate) fn tier1_nodes(&self) -> &[Tier1Node] {
        &self.tier1
    }

    /// Which range has which shards.
    pub(crate) fn map(&self) -> RangeMap {
        self.map
    }

    fn replica_names(&self, range: RangeId) -> Vec<String> {
        self.replicas_of(range).iter().map(ToString::to_string).collect()
    }

    /// The node of tier 1 that owns each shard; with a log, at first.
    pub(crate) fn owners(&self) -> Vec<usize> {
        let of_range = |range| self.tier1.iter().position(|node| node.ranges.contains(&range)).unwrap_or(0);
        (0..self.map.shards()).map(|shard| of_range(self.map.of_shard(ShardId(shard)))).collect()
    }

    /// The node of tier 1 that tells the index what to compare: the owner of the first range.
    pub(crate) fn router(&self) -> &Tier1Node {
        &self.tier1[self.owners().first().copied().unwrap_or(0)]
    }

    /// A node of tier 2 by its name, with its number in the plan.
    ///
    /// # Errors
    /// When there is none.
    pub(crate) fn tier2_node(&self, name: &NodeName) -> Result<(NodeId, &Node), ClusterError> {
        let nodes = self.tier2.iter().map(|node| &node.name);
        find(nodes, "tier-2", name).map(|at| (NodeId(at as u32), &self.tier2[at]))
    }

    /// All nodes of tier 2, in the order of the plan.
    pub(crate) fn index_nodes(&self) -> &[Node] {
        &self.tier2
    }

    /// All nodes, as a front door asks them how they are.
    ///
    /// # Errors
    /// When the cluster's name cannot be sent.
    pub(crate) fn nodes(
        &self,
        runtime: &Runtime,
        own: &Identity,
        router: Arc<RoutedTier2>,
        heard: Option<(&Arc<Membership>, &Engine)>,
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
        let index = |node: &Node| {
            let (name, address) = (node.name.to_string(), node.address.clone());
            let peer = self.peer(runtime, own, &node.name, &node.address)?;
            Ok(IndexAt { name, address, node: Arc::new(RemoteNode::new(peer.clone())), peer })
        };
        let log = |(_, engine): (_, &Engine)| {
            let LogSettings { servers, replicas, .. } = self.log()?;
            let (engine, servers, copies) = (engine.clone(), servers.clone(), u64::from(*replicas));
            Some(LogAt { engine, servers, streams: self.streams(), copies })
        };
        Ok(ClusterNodes {
            cluster: Arc::clone(&self.id),
            map: self.map,
            tier1: self.tier1.iter().map(record).collect::<Result<_, ClusterError>>()?,
            tier2: self.tier2.iter().map(index).collect::<Result<_, ClusterError>>()?,
            router,
            replicas: heard.map(|(membership, _)| Replicas {
                membership: Arc::clone(membership),
                nodes: self.map.ranges().map(|range| self.replica_names(range)).collect(),
            }),
            log: heard.and_then(log),
            own: (own.node.to_string(), runtime.traffic().clone()),
            last: Mutex::default(),
        })
    }

    /// Another node, as this process asks it.
    ///
    /// # Errors
    /// When the cluster's name cannot be sent.
    pub(crate) fn peer(
        &self,
        runtime: &Runtime,
        own: &Identity,
        name: &NodeName,
        address: &str,
    ) -> Result<Peer, ClusterError> {
        Ok(Peer::new(runtime, own, name, address)?)
    }
}

/// The place of a name.
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
