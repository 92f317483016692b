//! Describes a change of the description in words, and lists the processes that the operator must start,
//! restart or stop afterwards, in order.
//!
//! A process runs with the description that it was started with. It must therefore be restarted if its
//! [`part`] of the description has changed. If nodes or replicas are added, the coordinators are restarted
//! first, because they report when the others follow. If nodes or replicas are only removed, the coordinators
//! are restarted last.

use std::fmt;

use doppel_model::RangeId;
use doppel_wire::NodeName;
use serde::{Deserialize, Serialize};

use crate::description::{Description, Tier1Node};

/// A kind of process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessRole {
    /// A node of tier 1.
    Tier1,
    /// A node of tier 2.
    Tier2,
    /// A coordinator, which answers clients.
    Coordinator,
}

impl fmt::Display for ProcessRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tier1 => "tier-1 node",
            Self::Tier2 => "tier-2 node",
            Self::Coordinator => "coordinator",
        })
    }
}

impl ProcessRole {
    /// Whether a process of this role and name may take part. A description does not list the coordinators,
    /// so every coordinator may.
    pub(crate) fn is_in(self, description: &Description, name: &str) -> bool {
        match self {
            Self::Tier1 => description.tier1.iter().any(|node| node.name.as_str() == name),
            Self::Tier2 => description.tier2.iter().any(|node| node.name.as_str() == name),
            Self::Coordinator => true,
        }
    }
}

/// The range whose owner runs the router of the index, and so has the plan.
pub const ROUTERS: RangeId = RangeId(0);

/// The part of the description that concerns a process. A change outside this part needs no restart of the
/// process.
pub(crate) fn part(description: &Description, role: ProcessRole, name: &str) -> Description {
    let mut part = description.clone();
    match role {
        ProcessRole::Coordinator => {}
        ProcessRole::Tier1 => {
            let own = part.tier1.iter().find(|node| node.name.as_str() == name).cloned();
            let has = |range: &RangeId| own.as_ref().is_some_and(|own| own.has(*range));
            for node in &mut part.tier1 {
                node.ranges.retain(has);
                node.standby.retain(has);
            }
            // Only the router calls the index, and only a node with a replica of its range can run the
            // router.
            if !has(&ROUTERS) {
                part.tier2.clear();
            }
        }
        ProcessRole::Tier2 => {
            part.log = None;
            part.tier2.retain(|node| node.name.as_str() == name);
            for node in &mut part.tier1 {
                (node.ranges, node.standby) = (Vec::new(), Vec::new());
            }
        }
    }
    part
}

/// A change as the operator reads it: the new version, what has changed, and what to do next.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeReport {
    /// Version of the description after the change.
    pub version: u64,
    /// Differences from the description before, in words.
    pub changes: Vec<String>,
    /// Steps that the operator must take, in order.
    pub steps: Vec<String>,
}

/// Describes in words how the second description differs from the first.
pub fn changes(before: &Description, after: &Description) -> Vec<String> {
    let mut changes = Vec::new();
    for role in [ProcessRole::Tier1, ProcessRole::Tier2] {
        let (old, new) = (nodes(before, role), nodes(after, role));
        for (name, address) in &new {
            match old.iter().find(|(other, _)| other == name) {
                None => changes.push(format!("{role} {name} at {address} joins")),
                Some((_, other)) if other != address => {
                    changes.push(format!("{role} {name} moves from {other} to {address}"));
                }
                Some(_) => {}
            }
        }
        let gone = old.iter().filter(|(name, _)| !new.iter().any(|(other, _)| other == name));
        changes.extend(gone.map(|(name, _)| format!("{role} {name} leaves")));
    }
    for range in (0..after.ranges).map(RangeId) {
        let (old, new) = (replicas(before, range), replicas(after, range));
        if old != new {
            let alone = after.replicas_of(range).len() == 1;
            let warning = if alone { ". With a single replica, no other node can take over" } else { "" };
            changes.push(format!(
                "range {range}: replicas at {new}, before at {old}; the first node becomes the owner{warning}"
            ));
        }
    }
    if let (Some(old), Some(new)) = (&before.log, &after.log) {
        if old.settlement != new.settlement {
            changes.push(
                format!("settlement: {:?} instead of {:?}", new.settlement, old.settlement).to_lowercase(),
            );
        }
        if old.monitors != new.monitors {
            changes.push(format!("monitors of the log servers: {}", new.monitors.join(", ")));
        }
        if old.window_minutes != new.window_minutes {
            changes.push(format!("the log is kept for {} minutes", new.window_minutes));
        }
    }
    changes
}

fn nodes(description: &Description, role: ProcessRole) -> Vec<(NodeName, String)> {
    let tier1 = description.tier1.iter().map(|node| (node.name.clone(), node.address.clone()));
    let tier2 = description.tier2.iter().map(|node| (node.name.clone(), node.address.clone()));
    if role == ProcessRole::Tier1 { tier1.collect() } else { tier2.collect() }
}

fn replicas(description: &Description, range: RangeId) -> String {
    let names: Vec<String> = description.replicas_of(range).iter().map(ToString::to_string).collect();
    names.join(", ")
}

/// The steps that the operator must take after a change, in order. `file` is the operator's path of the
/// cluster file.
pub fn steps(before: &Description, after: &Description, file: &str) -> Vec<String> {
    let mut steps = Vec::new();
    for (role, command) in [(ProcessRole::Tier1, "tier1"), (ProcessRole::Tier2, "tier2")] {
        let old = nodes(before, role);
        let new =
            nodes(after, role).into_iter().filter(|(name, _)| !old.iter().any(|(other, _)| other == name));
        steps.extend(new.map(|(name, _)| {
            format!("start the new node: doppel {command} --cluster {file} --name {name} --data DIR")
        }));
    }
    let coordinators = "restart the coordinators".to_owned();
    // A coordinator stores nothing, and shows and asks only the nodes of the description that it was started
    // with.
    let all = nodes(after, ProcessRole::Tier1);
    let is_more = !steps.is_empty() || all.iter().any(|(name, _)| has_more(before, after, name));
    if is_more {
        steps.push(format!("{coordinators}, which show only the nodes that they were started with"));
    }
    let stays = |role: ProcessRole, name: &NodeName| role.is_in(after, name.as_str());
    let concerned = |role: ProcessRole| {
        let both =
            nodes(before, role).into_iter().map(|(name, _)| name).filter(move |name| stays(role, name));
        both.filter(move |name| part(before, role, name.as_str()) != part(after, role, name.as_str()))
    };
    // Nodes that gain replicas come first, so that no range has fewer copies meanwhile.
    let mut tier1: Vec<NodeName> = concerned(ProcessRole::Tier1).collect();
    let (gains, loses) =
        (|name: &NodeName| has_more(before, after, name), |name: &NodeName| has_more(after, before, name));
    tier1.sort_by_key(|name| (!gains(name), loses(name)));
    if !tier1.is_empty() {
        let wait = if tier1.iter().any(gains) {
            "; if a node gains a range, also wait until it follows that range"
        } else {
            ""
        };
        steps.push(format!(
            "restart the nodes of tier 1 {}, one after the other, each when `doppel cluster status` says that the one \
             before follows{wait}",
            listed(&tier1)
        ));
    }
    let gone = |role| {
        let gone = nodes(before, role).into_iter().map(|(name, _)| name);
        gone.filter(move |name| !stays(role, name)).collect::<Vec<NodeName>>()
    };
    for name in gone(ProcessRole::Tier1).into_iter().chain(gone(ProcessRole::Tier2)) {
        steps.push(format!("stop {name}; it cannot be started again"));
    }
    let tier2: Vec<NodeName> = concerned(ProcessRole::Tier2).collect();
    if !tier2.is_empty() {
        steps.push(format!("restart the nodes of tier 2 {}", listed(&tier2)));
    }
    if !is_more && before != after {
        steps.push(coordinators);
    }
    steps
}

/// Whether a node has a replica in the second description that it does not have in the first.
fn has_more(before: &Description, after: &Description, name: &NodeName) -> bool {
    let old = before.ranges_of(name);
    after.ranges_of(name).iter().any(|range| !old.contains(range))
}

fn listed(names: &[NodeName]) -> String {
    names.iter().map(NodeName::as_str).collect::<Vec<_>>().join(", ")
}

/// The nodes of each range, in the form that [`placement`](crate::description::placement) works with.
pub(crate) fn table(description: &Description) -> Vec<Vec<usize>> {
    let place = |name: &NodeName| description.tier1.iter().position(|node: &Tier1Node| node.name == *name);
    let of = |range| description.replicas_of(range).iter().filter_map(place).collect();
    (0..description.ranges).map(RangeId).map(of).collect()
}
