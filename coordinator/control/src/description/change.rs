//! Changes that an operator can make to the description of a cluster with a log, and the reasons to refuse
//! them.
//!
//! A change is a function of the description and of the present reports of the nodes. If another change comes
//! first, the command can therefore apply its own change again.
//!
//! No change removes the last complete copy of a range. Before replicas are removed, the owner of the range
//! must be heard, and enough of the remaining replicas must follow it. The description alone is no proof of a
//! copy: a node that was never started stores nothing. A node of the index can leave only when it has no
//! partitions, so that no search waits for them. If machines are lost and these conditions cannot be checked,
//! the operator passes `--force` and answers for them.

#[cfg(test)]
mod tests;

use std::time::Duration;

use doppel_model::RangeId;
use doppel_protocol::Settlement;
use doppel_protocol::beats::ReportedReplica;
use doppel_wire::NodeName;

use crate::description::placement;
use crate::description::steps::{ROUTERS, table};
use crate::description::{Description, Tier1Node, Tier2Node};

/// Number of log records by which a replica may be behind its owner and still count as following it.
/// Under load, every replica is a little behind.
const LAG: u64 = 1_000;

/// A replica counts only if its node sent its last report less than this time ago.
const REPORTED_WITHIN: Duration = Duration::from_secs(1);

/// The reports that a change needs besides the description.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeededReports {
    /// The change needs no reports.
    Nothing,
    /// The present reports of the nodes of tier 1 about their replicas.
    Replicas,
    /// The numbers of partitions of the nodes of tier 2.
    Partitions,
}

/// Reports of the nodes that decide whether a change is safe, and whether the operator overrides them.
#[derive(Debug, Clone, Default)]
pub struct NodeReports {
    /// Replicas of each range, as their nodes report them. The index is the number of the range.
    pub replicas: Vec<Vec<ReportedReplica>>,
    /// Number of partitions of each node of tier 2, in the order of the plan. `None` if the router did not
    /// report it.
    pub partitions: Option<Vec<usize>>,
    /// Whether the operator passed `--force`.
    pub force: bool,
}

impl NodeReports {
    /// Reports of a range's replicas whose nodes were heard recently.
    fn of(&self, range: RangeId) -> impl Iterator<Item = &ReportedReplica> {
        let all = self.replicas.get(usize::from(range.0)).into_iter().flatten();
        all.filter(|replica| replica.age < REPORTED_WITHIN)
    }

    fn owner_of(&self, range: RangeId) -> Option<&ReportedReplica> {
        // A deposed owner that has not noticed yet has an earlier epoch.
        self.of(range).filter(|replica| replica.claim.owns).max_by_key(|replica| replica.claim.epoch)
    }

    /// The node that owns a range at present.
    pub fn owner(&self, range: RangeId) -> Option<&str> {
        self.owner_of(range).map(|replica| &*replica.node)
    }

    /// The owner of a range and the nodes that follow it, at most [`LAG`] records behind.
    fn follow(&self, range: RangeId) -> Vec<&str> {
        let Some(owner) = self.owner_of(range).map(|owner| &owner.claim) else { return Vec::new() };
        let follows = |ReportedReplica { claim, .. }: &&ReportedReplica| {
            let is_near = claim.index.saturating_add(LAG) >= owner.index;
            claim.known && claim.trouble.is_none() && claim.epoch == owner.epoch && is_near
        };
        self.of(range).filter(follows).map(|replica| &*replica.node).collect()
    }

    /// Checks that a range loses no data when only the nodes `stay` still store a replica: two of them, or
    /// the only one, must follow the owner. With [`Self::force`], the check always succeeds.
    ///
    /// # Errors
    /// The reason, and what the operator can do.
    fn check(&self, range: RangeId, stay: &[&NodeName]) -> Result<(), String> {
        if self.force {
            return Ok(());
        }
        if self.owner(range).is_none() {
            return Err(format!(
                "no owner of range {range} is heard, so the removed replica may be the only copy of its last pages; \
                 first make sure that the range has an owner. If that is impossible because machines are lost, pass \
                 --force"
            ));
        }
        let needed = stay.len().min(2);
        let follow = self.follow(range);
        let have: Vec<&str> =
            stay.iter().map(|name| name.as_str()).filter(|name| follow.contains(name)).collect();
        if have.len() >= needed {
            return Ok(());
        }
        let names: Vec<&str> = stay.iter().map(|name| name.as_str()).collect();
        let have = if have.is_empty() { "none".to_owned() } else { have.join(", ") };
        Err(format!(
            "{needed} of the remaining nodes of range {range}, which are {}, have to follow it; now {have} does. Start \
             or restart the others, and wait until `doppel cluster status` shows that they follow. If that is \
             impossible because machines are lost, pass --force",
            names.join(", ")
        ))
    }
}

/// A change of the description of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClusterChange {
    /// A node of tier 1 joins and follows some ranges.
    AddTier1 {
        /// The new node.
        node: Tier2Node,
        /// Ranges that the node follows; `None` leaves the choice to the placement.
        follow: Option<Vec<RangeId>>,
    },
    /// A node of tier 2 joins, as the last one in the order of the plan.
    AddTier2(Tier2Node),
    /// A node of either tier leaves.
    Remove(NodeName),
    /// A node of either tier moves to another address.
    Address(Tier2Node),
    /// The replicas of a range move to other nodes. The first node becomes the owner.
    Replicas {
        /// Range whose replicas move.
        range: RangeId,
        /// Nodes that store a replica after the change.
        nodes: Vec<NodeName>,
    },
    /// The settings of the log change; `None` leaves a setting as it is.
    Log {
        /// When a commit is settled.
        settlement: Option<Settlement>,
        /// Addresses at which the servers of the log report their settings.
        monitors: Option<Vec<String>>,
        /// Minutes for which the log keeps an entry.
        window_minutes: Option<u16>,
    },
}

impl ClusterChange {
    /// Returns the description with this change.
    ///
    /// # Errors
    /// If the change is refused; the message gives the reason and what to do.
    pub fn apply(&self, before: &Description, reports: &NodeReports) -> Result<Description, String> {
        let mut after = before.clone();
        match self {
            Self::AddTier1 { node, follow } => add(&mut after, node, follow.as_deref())?,
            Self::AddTier2(node) => after.tier2.push(node.clone()),
            Self::Remove(name) => remove(&mut after, name, reports)?,
            Self::Address(Tier2Node { name, address }) => {
                let tier1 = after.tier1.iter_mut().map(|node| (&node.name, &mut node.address));
                let mut nodes =
                    tier1.chain(after.tier2.iter_mut().map(|node| (&node.name, &mut node.address)));
                let (_, found) =
                    nodes.find(|(other, _)| *other == name).ok_or_else(|| unknown(before, name))?;
                address.clone_into(found);
            }
            Self::Replicas { range, nodes } => replicas(&mut after, *range, nodes, reports)?,
            Self::Log { settlement, monitors, window_minutes } => {
                let log = after.log.as_mut().ok_or("the cluster has no log")?;
                log.settlement = settlement.unwrap_or(log.settlement);
                log.monitors = monitors.clone().unwrap_or_else(|| log.monitors.clone());
                log.window_minutes = window_minutes.unwrap_or(log.window_minutes);
            }
        }
        after.check()?;
        if after == *before {
            return Err("nothing to change: the description is so already".to_owned());
        }
        Ok(after)
    }

    /// Advice for the operator after the change, beyond the [steps](crate::description::steps::steps).
    /// `force` says whether the operator passed `--force`.
    pub fn note(&self, before: &Description, force: bool) -> Option<String> {
        match self {
            Self::Remove(name) if force && is_index(before, name) => {
                Some(format!("if {name} has partitions, {FILLED_IN}"))
            }
            Self::Address(Tier2Node { name, .. }) => Some(format!(
                "{name} has to listen at its new address from its next start on; the other processes use the old \
                 address until they are restarted"
            )),
            _ => None,
        }
    }

    /// The reports that [`Self::apply`] needs for this change.
    pub fn needed_reports(&self, before: &Description) -> NeededReports {
        match self {
            Self::Remove(name) if is_index(before, name) => NeededReports::Partitions,
            Self::Remove(_) | Self::Replicas { .. } => NeededReports::Replicas,
            _ => NeededReports::Nothing,
        }
    }
}

fn is_index(description: &Description, name: &NodeName) -> bool {
    description.tier2.iter().any(|node| node.name == *name)
}

/// Text that says what happens to the partitions of a node of tier 2 that leaves with them.
const FILLED_IN: &str = "the other nodes get them from tier 1 as soon as the owner of range 0 is restarted; until \
                         then new pages stay pending, and probes get 503";

fn unknown(description: &Description, name: &NodeName) -> String {
    let known: Vec<&str> = description.nodes().map(|(name, _)| name.as_str()).collect();
    format!("there is no node {name} in the cluster; it has {}", known.join(", "))
}

fn names(description: &Description) -> Vec<&str> {
    description.tier1.iter().map(|node| node.name.as_str()).collect()
}

fn add(after: &mut Description, node: &Tier2Node, follow: Option<&[RangeId]>) -> Result<(), String> {
    let Tier2Node { name, address } = node.clone();
    if after.nodes().any(|(other, _)| *other == name) {
        return Err(format!(
            "there is a node {name} already; to change its address, use `doppel cluster address`"
        ));
    }
    let standby = follow.map(<[RangeId]>::to_vec).unwrap_or_else(|| {
        let names = [names(after), vec![name.as_str()]].concat();
        let ranges = placement::for_new_node(&table(after), &names);
        ranges.into_iter().map(|range| RangeId(range as u16)).collect()
    });
    after.tier1.push(Tier1Node { name, address, ranges: Vec::new(), standby });
    Ok(())
}

fn remove(after: &mut Description, name: &NodeName, reports: &NodeReports) -> Result<(), String> {
    if let Some(at) = after.tier2.iter().position(|node| node.name == *name) {
        if at + 1 < after.tier2.len() {
            return Err(format!(
                "{name} is not the last node of tier 2, and only the last one can leave, because the plan of the \
                 index numbers them in order; drain the node and let it run"
            ));
        }
        if at == 0 {
            return Err(format!(
                "{name} is the only node of tier 2, and a cluster needs one; add another one first"
            ));
        }
        match reports.partitions.as_ref().map(|all| all.get(at).copied().unwrap_or_default()) {
            _ if reports.force => {}
            Some(0) => {}
            Some(partitions) => {
                return Err(format!(
                    "{name} has {partitions} of the partitions of the index; have it emptied before: \
                     `doppel rebalance --drain {at} --wait`. If its machine is lost, pass --force: {FILLED_IN}"
                ));
            }
            None => {
                return Err(format!(
                    "it is not known whether {name} has partitions of the index, because the owner of range \
                     {ROUTERS}, which has the plan, did not report it; check that the owner runs and that this \
                     machine reaches it, or pass --force: if {name} has partitions, {FILLED_IN}"
                ));
            }
        }
        after.tier2.remove(at);
        return Ok(());
    }
    let at = after.tier1.iter().position(|node| node.name == *name).ok_or_else(|| unknown(after, name))?;
    let all: Vec<RangeId> = (0..after.ranges).map(RangeId).collect();
    let owned: Vec<&RangeId> =
        all.iter().filter(|range| reports.owner(**range) == Some(name.as_str())).collect();
    if let Some(range) = owned.first() {
        let other = after.replicas_of(**range).into_iter().find(|other| other != name);
        let to = other.map_or("NODE".to_owned(), |other| other.to_string());
        return Err(format!(
            "{name} owns {} at present; first let other nodes take over each of them: \
             `doppel cluster takeover --range {range} --to {to}`",
            listed(&owned)
        ));
    }
    let ranges = after.ranges_of(name);
    let needed =
        if after.log.as_ref().is_some_and(|log| log.settlement == Settlement::Standby) { 2 } else { 1 };
    let short: Vec<&RangeId> =
        ranges.iter().filter(|range| after.replicas_of(**range).len() <= needed).collect();
    if !short.is_empty() {
        let commands: Vec<String> = short.iter().map(|range| more(after, **range, at)).collect();
        return Err(format!(
            "without {name} {} would have too few replicas. First give them to other nodes, restart those nodes, and \
             wait until they follow:\n  {}",
            listed(&short),
            commands.join("\n  ")
        ));
    }
    for range in &ranges {
        let replicas = after.replicas_of(*range);
        let stay: Vec<&NodeName> = replicas.iter().filter(|other| *other != name).collect();
        reports.check(*range, &stay)?;
    }
    let node = after.tier1.remove(at);
    for range in node.ranges {
        // The present owner, or the first follower if no owner is heard.
        let owner = reports.owner(range);
        let is_heir = |other: &Tier1Node| {
            other.standby.contains(&range) && owner.is_none_or(|owner| owner == other.name.as_str())
        };
        let heir = after.tier1.iter().position(is_heir);
        let heir = heir.or_else(|| after.tier1.iter().position(|other| other.standby.contains(&range)));
        let heir = heir.ok_or_else(|| format!("range {range} is at no other node than {name}"))?;
        let heir = &mut after.tier1[heir];
        heir.standby.retain(|other| *other != range);
        heir.ranges.push(range);
        heir.ranges.sort_unstable();
    }
    Ok(())
}

/// The command that gives a replica of a range to one more node.
fn more(description: &Description, range: RangeId, leaving: usize) -> String {
    let mut nodes: Vec<String> = description.replicas_of(range).iter().map(ToString::to_string).collect();
    let names = names(description);
    let other = placement::replacement(&table(description), &names, usize::from(range.0), leaving);
    nodes.push(other.map_or("NODE", |other| names[other]).to_owned());
    format!("doppel cluster replicas --cluster FILE --range {range} --nodes {}", nodes.join(","))
}

fn replicas(
    after: &mut Description,
    range: RangeId,
    nodes: &[NodeName],
    reports: &NodeReports,
) -> Result<(), String> {
    if range.0 >= after.ranges {
        return Err(format!("there is no range {range}; they are 0 to {}", after.ranges - 1));
    }
    for (at, name) in nodes.iter().enumerate() {
        if !after.tier1.iter().any(|node| node.name == *name) {
            let known = names(after).join(", ");
            return Err(format!("there is no tier-1 node {name} in the cluster; it has {known}"));
        }
        if nodes[..at].contains(name) {
            return Err(format!("{name} is named twice"));
        }
    }
    let first = nodes.first().ok_or("at least one node is expected")?;
    let old = after.replicas_of(range);
    if !nodes.iter().any(|name| old.contains(name)) {
        let old: Vec<&str> = old.iter().map(NodeName::as_str).collect();
        return Err(format!(
            "none of these nodes has a replica of range {range}; keep one of {} until the others follow",
            old.join(", ")
        ));
    }
    if let Some(owner) = reports.owner(range)
        && !nodes.iter().any(|name| name.as_str() == owner)
    {
        return Err(format!(
            "{owner} owns range {range} at present; name it too, or first let another node take over the range: \
             `doppel cluster takeover --range {range} --to {first}`"
        ));
    }
    if old.iter().any(|name| !nodes.contains(name)) {
        reports.check(range, &nodes.iter().collect::<Vec<_>>())?;
    }
    for node in &mut after.tier1 {
        node.ranges.retain(|other| *other != range);
        node.standby.retain(|other| *other != range);
        let list = if node.name == *first { &mut node.ranges } else { &mut node.standby };
        if nodes.contains(&node.name) {
            list.push(range);
            list.sort_unstable();
        }
    }
    if let Some(idle) = after.tier1.iter().find(|node| node.ranges.is_empty() && node.standby.is_empty()) {
        return Err(format!(
            "{} would have no range; to remove it, leave it among the nodes, and run `doppel cluster remove {}` when \
             others follow",
            idle.name, idle.name
        ));
    }
    Ok(())
}

fn listed(ranges: &[&RangeId]) -> String {
    let numbers: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    match &*numbers {
        [one] => format!("range {one}"),
        all => format!("ranges {}", all.join(", ")),
    }
}
