//! The mapping as an operator and the load change it: what comes next, dry or carried out.

use std::sync::Arc;

use doppel_common::api::{MappingApi, Moving, PartitionMove, Rebalance, RebalanceError, Rebalanced};
use doppel_common::mapping::{Follow, Followed, LengthVector, MappingError, MappingLoad, Plan};
use doppel_common::signature::Signature;

use crate::cluster::{Address, Cluster};
use crate::service::{Order, Tier2};

/// Length vectors that a next plan is made from, at most.
const VECTORS_MAX: usize = 200_000;

/// Contents read under one lock for a sample.
const SAMPLE_STEP: usize = 256;

/// Share of the contents that must have come since a plan was looked for in vain before it is looked for again.
const NEWS: usize = 50;

/// Whether the load may ask for another plan: quickly found out.
pub(crate) fn is_due(cluster: &Cluster) -> bool {
    let plan = &cluster.plan;
    if plan.nodes() == 1 {
        return false;
    }
    let stored = node_contents(cluster);
    let starved = plan.serving().any(|node| stored[node as usize] == 0);
    let uneven = imbalance(plan, &stored) > settings(cluster).limit;
    let drained = plan.places().iter().any(|place| plan.drained().contains(&place.node));
    let contents = cluster.len();
    let news = contents.abs_diff(cluster.followed) * NEWS > contents;
    news && (uneven || starved || drained)
}

/// The next plan that the load asks for.
pub(crate) fn follow(cluster: &Cluster) -> Option<Plan> {
    next(cluster, &cluster.plan).map(|followed| followed.plan)
}

/// Contents of every node.
fn node_contents(cluster: &Cluster) -> Vec<u64> {
    cluster.nodes.iter().map(|index| index.tables.len() as u64).collect()
}

fn settings(cluster: &Cluster) -> Follow {
    let partitions = cluster.learned.map_or(1, |learned| learned.partitions);
    let nodes = cluster.plan.serving().count() as u32;
    Follow { each: partitions.div_ceil(nodes).max(1), ..Follow::default() }
}

/// The plan after `plan` for the contents as they are.
fn next(cluster: &Cluster, plan: &Plan) -> Option<Followed> {
    let weight = cluster.len().div_ceil(VECTORS_MAX).max(1);
    let mut lengths = Vec::with_capacity(cluster.len() / weight);
    for index in &cluster.nodes {
        for partition in index.tables.serving() {
            let vectors =
                partition.columns.slots().map(|slot| LengthVector::new(partition.columns.lengths(slot)));
            lengths.extend(vectors.step_by(weight).filter_map(Result::ok));
        }
    }
    settings(cluster).next(plan, &lengths, weight as u64)
}

/// The plan that a wish asks for, and what it takes; none where everything is as it is wished.
fn wished(cluster: &Cluster, wish: Rebalance) -> Result<Option<Followed>, MappingError> {
    let mut plan = (*cluster.plan).clone();
    match wish {
        Rebalance::Balance => {}
        Rebalance::Drain { node } => plan.set_drained(node, true)?,
        Rebalance::Join { node } => plan.set_drained(node, false)?,
        Rebalance::Move { partition, node } => {
            let number = plan.number(partition).ok_or(MappingError::Partition(partition))?;
            plan.place(number, node)?;
            return Ok((plan != *cluster.plan).then(|| by_hand(cluster, plan)));
        }
    }
    if let Some(followed) = next(cluster, &plan) {
        return Ok(Some(followed));
    }
    // Nothing moves, but a node is marked.
    Ok((plan != *cluster.plan).then(|| by_hand(cluster, plan)))
}

/// A plan of the same partitions with other places or marks.
fn by_hand(cluster: &Cluster, mut plan: Plan) -> Followed {
    let mut stored = node_contents(cluster);
    let mut change = unchanged(cluster);
    let mut moves = Vec::new();
    for (number, (before, after)) in (0..).zip(cluster.plan.places().iter().zip(plan.places())) {
        let tables = &cluster.node(before.node).tables;
        let Some(local) = tables.local(number).filter(|_| before.node != after.node) else { continue };
        let contents = tables.partitions[local as usize].columns.len() as u64;
        stored[before.node as usize] -= contents;
        stored[after.node as usize] += contents;
        moves.push(PartitionMove { partition: after.id, from: before.node, to: after.node, contents });
    }
    change.contents_moved = moves.iter().map(|one| one.contents).sum();
    change.imbalance_after = imbalance(&plan, &stored);
    change.moves = moves;
    plan.set_epoch(plan.map().epoch() + 1);
    Followed { plan, change }
}

/// Most over mean of contents on the nodes that serve.
fn imbalance(plan: &Plan, stored: &[u64]) -> f64 {
    let stored = plan.serving().map(|node| stored[node as usize]).collect();
    MappingLoad { stored, received: Vec::new() }.imbalance()
}

fn unchanged(cluster: &Cluster) -> Rebalanced {
    let imbalance = imbalance(&cluster.plan, &node_contents(cluster));
    Rebalanced {
        epoch: cluster.plan.map().epoch(),
        started: false,
        splits: 0,
        joins: 0,
        moves: Vec::new(),
        contents_moved: 0,
        contents: cluster.len() as u64,
        imbalance_before: imbalance,
        imbalance_after: imbalance,
    }
}

impl MappingApi for Tier2 {
    fn plan(&self) -> Plan {
        (*self.shared.read().plan).clone()
    }

    fn sample(&self, limit: usize) -> Vec<Arc<Signature>> {
        let chosen = choose(&self.shared.read(), limit);
        let mut buffer = Vec::new();
        let mut sample = Vec::with_capacity(chosen.len());
        for some in chosen.chunks(SAMPLE_STEP) {
            let cluster = self.shared.read();
            for (Address { node, place }, birth) in some {
                let index = cluster.node(*node);
                if index.tables.is_alive(*place, *birth) {
                    sample.extend(index.read(*place, &mut buffer).map(|read| read.signature));
                }
            }
        }
        sample
    }

    fn rebalance(&self, wish: Rebalance, dry_run: bool) -> Result<Rebalanced, RebalanceError> {
        if let Some(moving) = self.moving().filter(|_| !dry_run) {
            return Err(RebalanceError::Busy(moving.next_epoch));
        }
        let cluster = self.shared.read();
        let Some(Followed { plan, change }) = wished(&cluster, wish)? else { return Ok(unchanged(&cluster)) };
        drop(cluster);
        if dry_run {
            return Ok(change);
        }
        let next_epoch = plan.map().epoch();
        if !self.shared.wish(plan) {
            return Err(RebalanceError::Busy(next_epoch));
        }
        self.order(Order::Wake).map_err(|_| RebalanceError::Stopping)?;
        Ok(Rebalanced { started: true, ..change })
    }

    fn moving(&self) -> Option<Moving> {
        let epoch = self.shared.read().plan.map().epoch();
        self.shared.handover().as_ref().map(|handover| handover.progress(epoch))
    }
}

/// The contents with the least hashes, ascending, each with its birth.
pub(crate) fn choose(cluster: &Cluster, limit: usize) -> Vec<(Address, u32)> {
    let content = |(address, _): &(Address, u32)| {
        cluster.node(address.node).tables.partition(address.place).columns.content(address.place.slot)
    };
    let mut places: Vec<(Address, u32)> = Vec::with_capacity(cluster.len());
    for (node, index) in (0..).zip(&cluster.nodes) {
        let tables = &index.tables;
        places.extend(tables.places().map(|place| (Address { node, place }, tables.birth(place))));
    }
    if places.len() > limit {
        places.select_nth_unstable_by_key(limit, content);
        places.truncate(limit);
    }
    places.sort_unstable_by_key(content);
    places
}
