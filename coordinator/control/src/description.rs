//! The description of a cluster: its collection, its log, and the nodes of both tiers with their addresses
//! and ranges. [`Description::check`] tests whether its parts are consistent.
//!
//! All processes of a cluster use the same description. A cluster with a log stores it in META; a cluster
//! without a log stores it in the file of the cluster.

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

/// Description of a cluster, which all its processes share.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// Id of the cluster: 32 hex digits.
    pub cluster: String,
    /// Mark of the cluster's secret. `None` if the file of the cluster stores the description beside the
    /// secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_mark: Option<String>,
    /// Policy by which contents are compared.
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
    /// The nodes of tier 2, in the order of their numbers in the plan of the index.
    pub tier2: Vec<Tier2Node>,
}

/// A node of tier 2, by its name and address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier2Node {
    /// Name of the node of tier 2.
    pub name: NodeName,
    /// Host and port at which the other nodes reach it.
    pub address: String,
}

/// A node of tier 1, and the ranges of which it stores a replica.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tier1Node {
    /// Name of the node of tier 1.
    pub name: NodeName,
    /// Host and port at which the other nodes reach it.
    pub address: String,
    /// Ranges that the node owns. In a cluster with a log, another replica can become the owner later.
    #[serde(default)]
    pub ranges: Vec<RangeId>,
    /// Ranges that the node follows: another node owns them, and this one stores a replica.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub standby: Vec<RangeId>,
}

impl Tier1Node {
    /// Whether the node stores a replica of a range.
    pub(crate) fn has(&self, range: RangeId) -> bool {
        self.ranges.contains(&range) || self.standby.contains(&range)
    }
}

/// Whether a text is the id of a cluster: 32 hex digits.
pub(super) fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whether a text is a host and a port, in the spelling of a URL.
pub(super) fn is_address(text: &str) -> bool {
    is_url("http://", text)
}

/// The unspecified IP address (`0.0.0.0` or `::`) of an address, or `None` if its host is another one.
///
/// A process can listen at an unspecified address, but no other machine can reach it there.
pub fn unspecified(address: &str) -> Option<IpAddr> {
    let (host, _) = address.rsplit_once(':')?;
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host.parse::<IpAddr>().ok().filter(|ip| ip.to_canonical().is_unspecified())
}

impl Description {
    /// Whether a secret has the mark of the description. A description without a mark accepts every secret.
    pub(crate) fn is_secret(&self, secret: &Secret) -> bool {
        self.secret_mark.as_ref().is_none_or(|mark| *mark == secret.mark())
    }

    /// Checks that the parts of the description are consistent.
    ///
    /// # Errors
    /// The reason, if two parts contradict each other or a value is out of range.
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

    /// Checks that every range has one owner, and that its other replicas are on other nodes.
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
                    return Err(format!("{name}: standby: range {range} is listed twice"));
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

    /// Checks that every range has as many replicas as the settlement of commits needs.
    fn check_copies(&self, log: &LogSettings) -> Result<(), String> {
        let alone = |range: &RangeId| self.replicas_of(*range).len() < 2;
        match (log.settlement, (0..self.ranges).map(RangeId).find(alone)) {
            (Settlement::Standby, Some(range)) => Err(format!(
                "range {range} is on one node alone: with settlement `standby` a write counts when a second node \
                 has it on its disk; give the range to a second node"
            )),
            _ => Ok(()),
        }
    }

    /// The nodes of both tiers.
    pub fn nodes(&self) -> impl Iterator<Item = (&NodeName, &String)> {
        let tier1 = self.tier1.iter().map(|node| (&node.name, &node.address));
        tier1.chain(self.tier2.iter().map(|node| (&node.name, &node.address)))
    }

    /// The nodes that store a replica of a range. The owner that the description names is first.
    ///
    /// The others follow in the order of the nodes, beginning after the owner. If a node is lost, different
    /// nodes therefore take over its ranges.
    pub fn replicas_of(&self, range: RangeId) -> Vec<NodeName> {
        let owner = self.tier1.iter().position(|node| node.ranges.contains(&range));
        let Some(owner) = owner else { return Vec::new() };
        let (before, from) = self.tier1.split_at(owner);
        from.iter().chain(before).filter(|node| node.has(range)).map(|node| node.name.clone()).collect()
    }

    /// All ranges of which a node stores a replica, in ascending order.
    pub fn ranges_of(&self, name: &NodeName) -> Vec<RangeId> {
        let node = self.tier1.iter().find(|node| node.name == *name);
        let ranges = (0..self.ranges).map(RangeId);
        node.map(|node| ranges.filter(|range| node.has(*range)).collect()).unwrap_or_default()
    }
}
