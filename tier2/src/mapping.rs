//! The mapping as an operator and the load change it: what comes next, dry or carried out.

use std::sync::Arc;

use doppel_common::api::{MappingApi, Moving, PartitionMove, Rebalance, RebalanceError, Rebalanced};
use doppel_common::mapping::{Follow, Followed, LengthVector, MappingError, MappingLoad, Plan};
use doppel_common::signature::Signature;

use crate::cluster::{Address, Cluster, Moved};
use crate::index::Index;
use crate::service::{Order, Shared, Tier2};
use crate::tables::Place;

/// Length vectors that a next plan is made from, at most.
const VECTORS_MAX: usize = 200_000;

/// Bytes of a sample's signatures, about: a hundred thousand of common length.
const SAMPLE_BYTES: usize = 256 << 20;

/// Contents read under one lock for a sample.
const SAMPLE_STEP: usize = 256;

/// What may move is counted anew when the collection has grown by one in so many.
const GROWTH: usize = 5;

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

/// The next plan that the load asks for. What may move is counted until the collection has grown by a part.
pub(crate) fn follow(shared: &Shared) -> Option<Plan> {
    let (stored, mut moved) = {
        let cluster = shared.read();
        (Stored::of(&cluster), cluster.moved)
    };
    let contents: u64 = stored.by_node.iter().sum();
    if contents > (moved.since + moved.since / GROWTH) as u64 {
        moved = Moved { since: contents as usize, contents: 0 };
    }
    let follow = stored.follow.having_moved(moved.contents as f64 / contents.max(1) as f64);
    let followed = follow.next(&stored.plan, &stored.lengths, stored.weight);
    moved.contents += followed.as_ref().map_or(0, |followed| followed.change.contents_moved);
    let mut cluster = shared.write();
    cluster.moved = moved;
    // More rounds may be needed; none where nothing can be made better.
    cluster.followed = if followed.is_some() { 0 } else { contents as usize };
    followed.map(|followed| followed.plan)
}

/// The next plan that somebody wishes, of the contents as they are now.
pub(crate) fn wished(shared: &Shared, wish: Rebalance) -> Option<Plan> {
    let stored = Stored::of(&shared.read());
    stored.wished(wish).ok().flatten().map(|followed| followed.plan)
}

/// Signatures that were read, and how many bytes they have.
#[derive(Default)]
pub(crate) struct Sample {
    pub(crate) signatures: Vec<Arc<Signature>>,
    bytes: usize,
    buffer: Vec<u8>,
}

impl Sample {
    /// Whether there may be more of them.
    pub(crate) fn has_room(&self) -> bool {
        self.bytes < SAMPLE_BYTES
    }

    pub(crate) fn read(&mut self, index: &Index, place: Place) {
        if let Some(read) = index.read(place, &mut self.buffer) {
            self.bytes += read.signature.as_bytes().len();
            self.signatures.push(read.signature);
        }
    }
}

/// Contents of every node.
pub(crate) fn node_contents(cluster: &Cluster) -> Vec<u64> {
    cluster.nodes.iter().map(|index| index.tables.len() as u64).collect()
}

fn settings(cluster: &Cluster) -> Follow {
    let partitions = cluster.learned.map_or(1, |learned| learned.partitions);
    let nodes = cluster.plan.serving().count() as u32;
    Follow { each: partitions.div_ceil(nodes).max(1), ..Follow::default() }
}

/// What a next plan is made from. It takes a while, so nothing is locked meanwhile.
struct Stored {
    plan: Arc<Plan>,
    lengths: Vec<LengthVector>,
    /// Contents for each of the length vectors.
    weight: u64,
    follow: Follow,
    by_node: Vec<u64>,
    /// By partition of the map.
    by_partition: Vec<u64>,
}

impl Stored {
    fn of(cluster: &Cluster) -> Self {
        let weight = cluster.len().div_ceil(VECTORS_MAX).max(1);
        let mut lengths = Vec::with_capacity(cluster.len() / weight);
        let mut by_partition = Vec::new();
        for (number, place) in (0..).zip(cluster.plan.places()) {
            let tables = &cluster.node(place.node).tables;
            let Some(local) = tables.local(number) else { continue };
            let columns = &tables.partitions[local as usize].columns;
            by_partition.push(columns.len() as u64);
            let vectors = columns.slots().map(|slot| LengthVector::new(columns.lengths(slot)));
            lengths.extend(vectors.step_by(weight).filter_map(Result::ok));
        }
        Self {
            plan: Arc::clone(&cluster.plan),
            lengths,
            weight: weight as u64,
            follow: settings(cluster),
            by_node: node_contents(cluster),
            by_partition,
        }
    }

    /// The plan that a wish asks for, and what it takes; none where everything is as it is wished.
    fn wished(&self, wish: Rebalance) -> Result<Option<Followed>, MappingError> {
        let mut plan = (*self.plan).clone();
        match wish {
            Rebalance::Balance => {}
            Rebalance::Drain { node } => plan.set_drained(node, true)?,
            Rebalance::Join { node } => plan.set_drained(node, false)?,
            Rebalance::Move { partition, node } => {
                let number = plan.number(partition).ok_or(MappingError::Partition(partition))?;
                if plan.drained().contains(&node) {
                    return Err(MappingError::Node(node));
                }
                plan.place(number, node)?;
                return Ok((plan != *self.plan).then(|| self.by_hand(plan)));
            }
        }
        if let Some(followed) = self.follow.wished().next(&plan, &self.lengths, self.weight) {
            return Ok(Some(followed));
        }
        // Nothing moves, but a node is marked.
        Ok((plan != *self.plan).then(|| self.by_hand(plan)))
    }

    /// A plan of the same partitions with other places or marks.
    fn by_hand(&self, mut plan: Plan) -> Followed {
        let mut by_node = self.by_node.clone();
        let mut moves = Vec::new();
        let places = self.plan.places().iter().zip(plan.places());
        for ((before, after), contents) in
            places.zip(&self.by_partition).filter(|((a, b), _)| a.node != b.node)
        {
            by_node[before.node as usize] -= contents;
            by_node[after.node as usize] += contents;
            let contents = *contents;
            moves.push(PartitionMove { partition: after.id, from: before.node, to: after.node, contents });
        }
        let change = Rebalanced {
            contents_moved: moves.iter().map(|one| one.contents).sum(),
            imbalance_after: imbalance(&plan, &by_node),
            moves,
            ..self.unchanged()
        };
        plan.set_epoch(plan.map().epoch() + 1);
        Followed { plan, change }
    }

    fn unchanged(&self) -> Rebalanced {
        let imbalance = imbalance(&self.plan, &self.by_node);
        Rebalanced {
            epoch: self.plan.map().epoch(),
            started: false,
            splits: 0,
            joins: 0,
            moves: Vec::new(),
            contents_moved: 0,
            contents: self.by_node.iter().sum(),
            imbalance_before: imbalance,
            imbalance_after: imbalance,
        }
    }
}

/// Most over mean of contents on the nodes that serve.
pub(crate) fn imbalance(plan: &Plan, by_node: &[u64]) -> f64 {
    let stored = plan.serving().map(|node| by_node[node as usize]).collect();
    MappingLoad { stored, received: Vec::new() }.imbalance()
}

impl MappingApi for Tier2 {
    fn plan(&self) -> Plan {
        (*self.shared.read().plan).clone()
    }

    fn sample(&self, limit: usize) -> Vec<Arc<Signature>> {
        let chosen = choose(&self.shared.read(), limit);
        let mut sample = Sample::default();
        for some in chosen.chunks(SAMPLE_STEP) {
            let cluster = self.shared.read();
            for (Address { node, place }, birth) in some {
                let index = cluster.node(*node);
                if sample.has_room() && index.tables.is_alive(*place, *birth) {
                    sample.read(index, *place);
                }
            }
        }
        sample.signatures
    }

    fn rebalance(&self, wish: Rebalance, dry_run: bool) -> Result<Rebalanced, RebalanceError> {
        if let Some(moving) = self.moving().filter(|_| !dry_run) {
            return Err(RebalanceError::Busy(moving.next_epoch));
        }
        let stored = Stored::of(&self.shared.read());
        let Some(Followed { plan, change }) = stored.wished(wish)? else { return Ok(stored.unchanged()) };
        if dry_run {
            return Ok(change);
        }
        let next_epoch = plan.map().epoch();
        if !self.shared.wish(wish) {
            return Err(RebalanceError::Busy(next_epoch));
        }
        self.order(Order::Wake).map_err(|_| RebalanceError::Stopping)?;
        Ok(Rebalanced { started: true, ..change })
    }

    fn moving(&self) -> Option<Moving> {
        let epoch = self.shared.read().plan.map().epoch();
        // Before the change itself, so that a wish is never between the two.
        let wished = self.shared.wished();
        let moving = self.shared.handover().as_ref().map(|handover| handover.progress(epoch));
        let planned =
            Moving { epoch, next_epoch: epoch + 1, copied: 0, contents: 0, changed: 0, seconds: 0.0 };
        moving.or(wished.map(|_| planned))
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
