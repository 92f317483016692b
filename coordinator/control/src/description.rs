//! The description of a cluster: its collection, its log, and the nodes of both tiers with their addresses and ranges; and
//! whether its parts go together.
//!
//! It is the same for all processes. A cluster with a log has it in META, one without has it in its file.

pub mod change;
pub mod file;
pub mod placement;
pub mod steps;

use std::net::IpAddr;

use doppel_model::RangeId;
use doppel_model::pairwise::Policy;
use doppel_model::tables::TablesHash;
use doppel_protocol::{Settlement, WinnerOrder};
use doppel_wire::{NodeName, Secret};
use serde::{Deserialize, Serialize};

use crate::log::{LogSettings, is_url};

/// What a cluster is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// 32 hex digits.
    pub cluster: String,
    /// That of the secret; none where each process has it beside the description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_mark: Option<String>,
    /// The pairwise function.
    pub policy: Policy,
    /// The tables of the policy, if it reads any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tables: Option<TablesHash>,
    /// Number of shards of tier 1.
    pub shards: u16,
    /// Number of ranges of tier 1.
    pub ranges: u16,
    /// The rules by which winners are elected.
    #[serde(default)]
    pub winners: WinnerOrder,
    /// Settings of the log; `None` if nothing is replicated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<LogSettings>,
    /// The nodes of tier 1.
    pub tier1: Vec<Tier1Node>,
    /// In the order of their numbers in the plan of the index.
    pub tier2: Vec<Tier2Node>,
}

/// A node of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier2Node {
    /// Name of the node of tier 2.
    pub name: NodeName,
    /// Host and port at which the other nodes reach it.
    pub address: String,
}

/// A node of tier 1, and the ranges that it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier1Node {
    /// Name of the node of tier 1.
    pub name: NodeName,
    /// Host and port at which the other nodes reach it.
    pub address: String,
    /// Those that it owns; with a log, at first.
    #[serde(default)]
    pub ranges: Vec<RangeId>,
    /// Those of other nodes that it has a replica of.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standby: Vec<RangeId>,
}

impl Tier1Node {
    /// Whether it has a replica of a range.
    pub(crate) fn has(&self, range: RangeId) -> bool {
        self.ranges.contains(&range) || self.standby.contains(&range)
    }
}

/// Whether a text names a cluster.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text is a host and a port, as they are in a URL.
pub(super) fn is_address(text: &str) -> bool {
    is_url("http://", text)
}

/// The IP address in an address that stands for all of a machine, where no other machine can reach anything.
pub fn unspecified(address: &str) -> Option<IpAddr> {
    let (host, _) = address.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse::<IpAddr>().ok().filter(|ip| ip.to_canonical().is_unspecified())
}

impl Description {
    /// Whether this is the secret of the cluster, as far as the description says it.
    pub(crate) fn is_secret(&self, secret: &Secret) -> bool {
        self.secret_mark.as_ref().is_none_or(|mark| *mark == secret.mark())
    }

    /// Whether its parts go together.
    ///
    /// # Errors
    /// When they do not; with the reason.
    pub fn check(&self) -> Result<(), String> {
        if !is_id(&self.cluster) {
            return Err("cluster: 32 hex digits are expected, as `doppel init` draws them".to_owned());
        }
        if self.policy.reads_tables() != self.tables.is_some() {
            return Err(format!(
                "tables: the policy {} {}",
                self.policy.name(),
                if self.tables.is_some() { "reads none" } else { "needs the hash of its tables" }
            ));
        }
        if !(1..=64).contains(&self.tier1.len()) {
            return Err("tier1: 1 to 64 nodes are expected".to_owned());
        }
        self.check_ranges()?;
        if let Some(log) = &self.log {
            log.check()?;
            self.check_copies(log)?;
        }
        if !(1..=128).contains(&self.tier2.len()) {
            return Err("tier2: 1 to 128 nodes are expected".to_owned());
        }
        let mut seen: Vec<(&NodeName, &String)> = Vec::new();
        for (name, address) in self.nodes() {
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

    /// Whether every range has one owner, and its replicas are on other nodes.
    fn check_ranges(&self) -> Result<(), String> {
        let mut owners = vec![None; usize::from(self.ranges)];
        for Tier1Node { name, ranges, standby, .. } in &self.tier1 {
            match (&self.log, ranges.is_empty(), standby.is_empty()) {
                (None, _, false) => {
                    return Err(format!("{name}: standby: without a table [log] nothing is replicated"));
                }
                (None, true, true) => return Err(format!("{name}: ranges: at least one is expected")),
                (Some(_), true, true) => {
                    return Err(format!("{name}: ranges or standby: at least one range is expected"));
                }
                _ => {}
            }
            for range in ranges {
                let owner = owners.get_mut(usize::from(range.0)).ok_or_else(|| {
                    format!("{name}: there is no range {range}; they are 0 to {}", self.ranges.max(1) - 1)
                })?;
                if let Some(other) = owner.replace(name) {
                    return Err(format!("range {range} is at {other} and at {name}"));
                }
            }
            for (at, range) in standby.iter().enumerate() {
                if range.0 >= self.ranges {
                    return Err(format!(
                        "{name}: standby: there is no range {range}; they are 0 to {}",
                        self.ranges.max(1) - 1
                    ));
                }
                if standby[..at].contains(range) {
                    return Err(format!("{name}: standby: range {range} is there twice"));
                }
                if ranges.contains(range) {
                    return Err(format!(
                        "{name}: standby: range {range} is among its own ranges; a standby is another node"
                    ));
                }
            }
        }
        match owners.iter().position(Option::is_none) {
            Some(range) => Err(format!("tier1: no node has range {range} in its ranges")),
            None => Ok(()),
        }
    }

    /// Whether every range has the replicas without which nothing of it could be settled.
    fn check_copies(&self, log: &LogSettings) -> Result<(), String> {
        let alone = |range: &RangeId| self.replicas_of(*range).len() < 2;
        match (log.settlement, (0..self.ranges).map(RangeId).find(alone)) {
            (Settlement::Standby, Some(range)) => Err(format!(
                "range {range} is on one node alone: with settlement `standby` a write counts when a second node has it on its \
                 disk, so that every range needs two"
            )),
            _ => Ok(()),
        }
    }

    /// The nodes of both tiers.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeName, &String)> {
        let tier1 = self.tier1.iter().map(|node| (&node.name, &node.address));
        tier1.chain(self.tier2.iter().map(|node| (&node.name, &node.address)))
    }

    /// The nodes that have a replica of a range: first the one that owns it unless something happens, then the others in
    /// the order of the nodes from that one on, so that the ranges of a node that is lost come to different nodes.
    pub fn replicas_of(&self, range: RangeId) -> Vec<NodeName> {
        let owner = self.tier1.iter().position(|node| node.ranges.contains(&range));
        let Some(owner) = owner else { return Vec::new() };
        let (before, from) = self.tier1.split_at(owner);
        from.iter().chain(before).filter(|node| node.has(range)).map(|node| node.name.clone()).collect()
    }

    /// All ranges that a node has a replica of, by their numbers.
    pub fn ranges_of(&self, name: &NodeName) -> Vec<RangeId> {
        let node = self.tier1.iter().find(|node| node.name == *name);
        let ranges = (0..self.ranges).map(RangeId);
        node.map(|node| ranges.filter(|range| node.has(*range)).collect()).unwrap_or_default()
    }
}
