//! The file of a cluster: its name, its secret, its collection, and the nodes of both tiers with their addresses.
//!
//! `doppel init` writes it once, beside the secret; every process of the cluster reads a copy of both. It is TOML of at most
//! [`BYTES_MAX`] bytes. What is unknown, repeated or out of bounds is refused with its line.

pub(crate) mod node_dir;
#[cfg(test)]
mod tests;

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use doppel_model::{NodeId, RangeId, ShardId, Tau};
use doppel_protocol::WinnerOrder;
use doppel_tier1::RangeMap;
use doppel_wire::index_node::RemoteNode;
use doppel_wire::range_owner::RemoteRanges;
use doppel_wire::tier2::RemoteTier2;
use doppel_wire::{Identity, NodeName, Peer, Runtime, Secret, SecretError};
use reqwest::header::InvalidHeaderValue;
use serde::{Deserialize, Serialize};

use crate::manifest::Wanted;
use crate::wire::cluster_status::{ClusterNodes, IndexAt, RecordAt};

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

/// A node of tier 1, and the ranges that it owns.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tier1Node {
    pub(crate) name: NodeName,
    /// Host and port at which the other nodes reach it.
    pub(crate) address: String,
    pub(crate) ranges: Vec<RangeId>,
}

/// The file as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Written {
    /// 32 hex digits.
    pub(crate) cluster: String,
    /// The file of the secret, beside this one.
    pub(crate) secret: PathBuf,
    pub(crate) tau: Tau,
    pub(crate) shards: u16,
    pub(crate) ranges: u16,
    #[serde(default)]
    pub(crate) winners: WinnerOrder,
    pub(crate) tier1: Vec<Tier1Node>,
    pub(crate) tier2: Vec<Node>,
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
        let Written { cluster, tau, shards, ranges, winners, tier1, tier2, .. } = written;
        let map = RangeMap::new(shards, ranges)
            .map_err(|error| ClusterError::Content { path: path.to_owned(), reason: error.to_string() })?;
        let secret = Secret::read(&secret)?;
        Ok(Self { id: cluster.into(), tau, winners, map, tier1, tier2, secret })
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

    /// The node of tier 1 that owns each shard.
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
        router: RemoteTier2,
    ) -> Result<ClusterNodes, ClusterError> {
        let record = |node: &Tier1Node| {
            Ok(RecordAt {
                name: node.name.to_string(),
                address: node.address.clone(),
                ranges: node.ranges.clone(),
                owner: RemoteRanges::new(self.peer(runtime, own, &node.name, &node.address)?),
            })
        };
        let index = |node: &Node| {
            let (name, address) = (node.name.to_string(), node.address.clone());
            let peer = self.peer(runtime, own, &node.name, &node.address)?;
            Ok(IndexAt { name, address, node: Arc::new(RemoteNode::new(peer)) })
        };
        Ok(ClusterNodes {
            cluster: Arc::clone(&self.id),
            map: self.map,
            tier1: self.tier1.iter().map(record).collect::<Result<_, ClusterError>>()?,
            tier2: self.tier2.iter().map(index).collect::<Result<_, ClusterError>>()?,
            router,
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

/// Whether a text is a host and a port, as they are in a URL.
fn is_address(text: &str) -> bool {
    let written = format!("http://{text}/");
    let url = reqwest::Url::parse(&written).ok().filter(|url| url.as_str() == written);
    // Port 80 is not written in a URL.
    let port = text.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok());
    port.is_some_and(|port| port > 0)
        && url.is_some_and(|url| url.port() == port && url.username().is_empty())
}

impl Written {
    /// Whether its parts go together.
    ///
    /// # Errors
    /// When they do not; with the reason.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_id = self.cluster.len() == 32 && self.cluster.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !is_id {
            return Err("cluster: 32 hex digits are expected, as `doppel init` draws them".to_owned());
        }
        if !(1..=64).contains(&self.tier1.len()) {
            return Err("tier1: 1 to 64 nodes are expected".to_owned());
        }
        let mut owners = vec![None; usize::from(self.ranges)];
        for node in &self.tier1 {
            if node.ranges.is_empty() {
                return Err(format!("{}: ranges: at least one is expected", node.name));
            }
            for range in &node.ranges {
                let owner = owners.get_mut(usize::from(range.0)).ok_or_else(|| {
                    format!(
                        "{}: there is no range {range}; they are 0 to {}",
                        node.name,
                        self.ranges.max(1) - 1
                    )
                })?;
                if let Some(other) = owner.replace(&node.name) {
                    return Err(format!("range {range} is at {other} and at {}", node.name));
                }
            }
        }
        if let Some(range) = owners.iter().position(Option::is_none) {
            return Err(format!("tier1: no node has range {range}"));
        }
        if !(1..=128).contains(&self.tier2.len()) {
            return Err("tier2: 1 to 128 nodes are expected".to_owned());
        }
        let tier1 = self.tier1.iter().map(|node| (&node.name, &node.address));
        let tier2 = self.tier2.iter().map(|node| (&node.name, &node.address));
        let mut seen: Vec<(&NodeName, &String)> = Vec::new();
        for (name, address) in tier1.chain(tier2) {
            if let Some((other, _)) = seen.iter().find(|other| other.0 == name || other.1 == address) {
                return Err(format!("{other} and {name} have the same name or address"));
            }
            if !is_address(address) {
                return Err(format!("{name}: {address:?} is no address such as 10.0.0.7:7801"));
            }
            seen.push((name, address));
        }
        Ok(())
    }

    /// Writes the file and a new secret beside it, which only its owner may read. Neither is replaced.
    ///
    /// # Errors
    /// When one of them is there, or cannot be written.
    pub(crate) fn create(&self, path: &Path, secret: &str) -> io::Result<()> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let put = |path: &Path, text: &str| {
            // Readable by its owner alone from the beginning on.
            let mut file = tempfile::NamedTempFile::new_in(dir)?;
            io::Write::write_all(&mut file, text.as_bytes())?;
            file.as_file().sync_all()?;
            file.persist_noclobber(path)?;
            Ok::<(), io::Error>(())
        };
        if path.exists() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let text = toml::to_string(self).map_err(io::Error::other)?;
        put(&dir.join(&self.secret), &format!("{secret}\n"))?;
        put(
            path,
            &format!(
                "# A cluster of Doppel. Every process reads a copy of this file and of the secret.\n{text}"
            ),
        )?;
        File::open(dir)?.sync_all()
    }
}
