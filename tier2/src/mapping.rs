//! The mapping as an operator and the load change it: what comes next, dry or carried out.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_partitioning::{LengthVector, MappingError, NextPlan, Plan, PlanChange, PlannedMove, Rebalancer};
use doppel_protocol::{
    MappingApi, RebalanceError, RebalanceOutcome, RebalancePlan, RebalanceProgress, RebalanceRequest,
};

use crate::cluster::{Cluster, Moved};
use crate::map_file::LearnedFrom;
use crate::service::{Order, Shared, Tier2};
use crate::{learn, sample};

/// Length vectors that a next plan is made from, at most.
const VECTORS_MAX: usize = 200_000;

/// What may move is counted anew when the collection has grown by one in so many.
const GROWTH: usize = 5;

/// Share of the contents that must have come since a plan was sought in vain before it is sought again.
const NEWS: usize = 50;

/// Whether the load may ask for another plan: quickly found out.
pub(crate) fn is_due(cluster: &Cluster) -> bool {
    let contents = cluster.len();
    let news = contents.abs_diff(cluster.declined_at) * NEWS > contents;
    news && cluster.plan.nodes() > 1
        && settings(&cluster.plan, cluster.learned).is_due(&cluster.plan, &node_contents(cluster))
}

/// The next plan that the load asks for. What may move is counted until the collection has grown by a part.
pub(crate) fn next_plan(shared: &Shared) -> Option<Plan> {
    let (stored, mut moved) = (Stored::of(shared), shared.read().moved);
    let contents: u64 = stored.by_node.iter().sum();
    if contents > (moved.since + moved.since / GROWTH) as u64 {
        moved = Moved { since: contents as usize, contents: 0 };
    }
    let rebalancer =
        settings(&stored.plan, stored.learned).having_moved(moved.contents as f64 / contents.max(1) as f64);
    let next = rebalancer.next(&stored.plan, &stored.lengths, stored.weight);
    moved.contents += next.as_ref().map_or(0, |next| next.change.contents_moved);
    let mut cluster = shared.write();
    cluster.moved = moved;
    // More rounds may be needed; none where nothing can be made better.
    cluster.declined_at = if next.is_some() { 0 } else { contents as usize };
    next.map(|next| next.plan)
}

/// The next plan that somebody requests, of the contents as they are now; none where there is nothing to do.
pub(crate) fn requested(
    shared: &Shared,
    request: RebalanceRequest,
) -> Result<Option<(Plan, LearnedFrom)>, MappingError> {
    if request == RebalanceRequest::Learn {
        return learn::learn(shared).map(|next| Some((next.plan, learn::learned_from(shared))));
    }
    let planned = Stored::of(shared).requested(request)?;
    // A map that was never learned is still due after it.
    let learned = shared.read().learned.unwrap_or(LearnedFrom { contents: 0, partitions: 0 });
    Ok(planned.map(|next| (next.plan, learned)))
}

/// Contents of every node.
pub(crate) fn node_contents(cluster: &Cluster) -> Vec<u64> {
    cluster.nodes.iter().map(|index| index.tables.len() as u64).collect()
}

/// For as many partitions as are wanted, shared by the nodes that may have some under this plan.
fn settings(plan: &Plan, learned: Option<LearnedFrom>) -> Rebalancer {
    let partitions = learned.map_or(1, |learned| learned.partitions);
    let nodes = plan.serving().count() as u32;
    Rebalancer { each: partitions.div_ceil(nodes).max(1), ..Rebalancer::default() }
}

/// What a next plan is made from. It takes a while, so nothing is locked meanwhile.
struct Stored {
    plan: Arc<Plan>,
    lengths: Vec<LengthVector>,
    /// Contents for each of the length vectors.
    weight: u64,
    learned: Option<LearnedFrom>,
    by_node: Vec<u64>,
    /// By partition of the map.
    by_partition: Vec<u64>,
}

impl Stored {
    /// The lock is given up between partitions; when the plan changes meanwhile it is begun again.
    fn of(shared: &Shared) -> Self {
        loop {
            let mut stored = {
                let cluster = shared.read();
                Self {
                    plan: Arc::clone(&cluster.plan),
                    lengths: Vec::new(),
                    weight: cluster.len().div_ceil(VECTORS_MAX).max(1) as u64,
                    learned: cluster.learned,
                    by_node: vec![0; cluster.nodes.len()],
                    by_partition: Vec::new(),
                }
            };
            let partitions = 0..stored.plan.assignments().len() as u32;
            if partitions.into_iter().all(|number| stored.add(&shared.read(), number)) {
                return stored;
            }
        }
    }

    /// Adds a partition; false when the plan is another one by now.
    fn add(&mut self, cluster: &Cluster, number: u32) -> bool {
        let node = self.plan.node(number);
        let tables = &cluster.node(node).tables;
        let Some(local) = tables.local(number).filter(|_| Arc::ptr_eq(&cluster.plan, &self.plan)) else {
            return false;
        };
        let columns = &tables.partitions[local as usize].columns;
        // Every so many of all contents, wherever a partition begins.
        let before: u64 = self.by_node.iter().sum();
        let skipped = before.next_multiple_of(self.weight) - before;
        let slots = columns.slots().skip(skipped as usize).step_by(self.weight as usize);
        self.lengths.extend(slots.filter_map(|slot| LengthVector::new(columns.lengths(slot)).ok()));
        self.by_partition.push(columns.len() as u64);
        self.by_node[node as usize] += columns.len() as u64;
        true
    }

    /// The plan that a request asks for, and what it takes; none where everything is as it is requested.
    fn requested(&self, request: RebalanceRequest) -> Result<Option<NextPlan>, MappingError> {
        let mut plan = (*self.plan).clone();
        match request {
            RebalanceRequest::Balance | RebalanceRequest::Learn => {}
            RebalanceRequest::Drain { node } => plan.set_drained(node, true)?,
            RebalanceRequest::Join { node } => plan.set_drained(node, false)?,
            RebalanceRequest::Move { partition, node } => {
                let number = plan.number(partition).ok_or(MappingError::Partition(partition))?;
                if plan.drained().contains(&node) {
                    return Err(MappingError::Drained(node));
                }
                plan.place(number, node)?;
                return Ok((plan != *self.plan).then(|| self.by_hand(plan)));
            }
        }
        let rebalancer = settings(&plan, self.learned).requested();
        if let Some(mut next) = rebalancer.next(&plan, &self.lengths, self.weight) {
            // Of the nodes that serve now, and not of those that will.
            next.change.imbalance_before = self.plan.imbalance(&self.by_node);
            return Ok(Some(next));
        }
        // Nothing moves, but a node is marked.
        Ok((plan != *self.plan).then(|| self.by_hand(plan)))
    }

    /// A plan of the same partitions with other places or marks.
    fn by_hand(&self, mut plan: Plan) -> NextPlan {
        let mut by_node = self.by_node.clone();
        let mut moves = Vec::new();
        let assignments = self.plan.assignments().iter().zip(plan.assignments());
        for ((before, after), contents) in
            assignments.zip(&self.by_partition).filter(|((a, b), _)| a.node != b.node)
        {
            by_node[before.node as usize] -= contents;
            by_node[after.node as usize] += contents;
            let contents = *contents;
            moves.push(PlannedMove { partition: after.id, from: before.node, to: after.node, contents });
        }
        let change = PlanChange {
            contents_moved: moves.iter().map(|one| one.contents).sum(),
            imbalance_after: plan.imbalance(&by_node),
            moves,
            ..self.present()
        };
        plan.set_version(plan.map().version() + 1);
        NextPlan { plan, change }
    }

    /// The change to the plan that is there.
    fn present(&self) -> PlanChange {
        let imbalance = self.plan.imbalance(&self.by_node);
        PlanChange {
            plan_version: self.plan.map().version(),
            contents: self.by_node.iter().sum(),
            imbalance_before: imbalance,
            imbalance_after: imbalance,
            ..PlanChange::default()
        }
    }

    fn unchanged(&self, nothing: String) -> RebalancePlan {
        RebalancePlan { nothing: Some(nothing), ..self.present().into() }
    }

    /// Why no map can be learned.
    fn too_few(&self, shared: &Shared) -> Option<String> {
        let (contents, partitions): (u64, u32) = (self.by_node.iter().sum(), shared.config.wanted());
        let least = learn::contents_min(partitions);
        if partitions == 1 {
            return Some(
                "one partition is wanted, and one needs no map; start with more --partitions".to_owned(),
            );
        }
        (contents < least as u64).then(|| {
            format!("a map of {partitions} partitions is learned from {least} contents or more, and there are {contents}")
        })
    }

    /// Why there is nothing to do for a request.
    fn nothing(&self, request: RebalanceRequest) -> String {
        let contents: u64 = self.by_node.iter().sum();
        let serving = self.plan.serving().count() as u64;
        match request {
            RebalanceRequest::Move { partition, node } => {
                format!("partition {partition} is on node {node} already")
            }
            RebalanceRequest::Drain { node } => {
                format!("node {node} is drained already and has no partition")
            }
            _ if serving == 1 => "there is one node that may have partitions, and it has them all".to_owned(),
            _ if contents < serving * Rebalancer::CONTENTS_MIN => format!(
                "below {} contents a node imbalance is chance, and there are {contents} on {serving} nodes",
                Rebalancer::CONTENTS_MIN
            ),
            _ if settings(&self.plan, self.learned).requested().is_due(&self.plan, &self.by_node) => {
                "no partition can go where that would make the nodes more even".to_owned()
            }
            _ => format!(
                "the nodes are even: none has more than {} times the mean, or less than half of it",
                Rebalancer::default().target
            ),
        }
    }
}

impl MappingApi for Tier2 {
    fn plan(&self) -> Plan {
        (*self.shared.read().plan).clone()
    }

    fn sample(&self, limit: usize) -> Vec<Arc<Signature>> {
        sample::take(&self.shared, limit)
    }

    fn rebalance(&self, request: RebalanceRequest, dry_run: bool) -> Result<RebalancePlan, RebalanceError> {
        if let Some(progress) = self.progress() {
            return Err(RebalanceError::Busy(progress.next_version));
        }
        let stored = Stored::of(&self.shared);
        let planned = match (request, stored.too_few(&self.shared)) {
            (RebalanceRequest::Learn, Some(why)) => return Ok(stored.unchanged(why)),
            (RebalanceRequest::Learn, None) => Some(learn::learn(&self.shared)?),
            _ => stored.requested(request)?,
        };
        let Some(NextPlan { plan, change }) = planned else {
            return Ok(stored.unchanged(stored.nothing(request)));
        };
        if dry_run {
            return Ok(change.into());
        }
        if !self.shared.request(request).map_err(|error| RebalanceError::Store(error.to_string()))? {
            return Err(RebalanceError::Busy(plan.map().version()));
        }
        // It is stored: where the worker has gone by now, the next start does it.
        let _ = self.order(Order::Wake);
        Ok(RebalancePlan { started: true, ..change.into() })
    }

    fn request(&self) -> Option<RebalanceRequest> {
        self.shared.requested()
    }

    fn outcome(&self) -> Option<RebalanceOutcome> {
        self.shared.outcome()
    }

    fn progress(&self) -> Option<RebalanceProgress> {
        let plan_version = self.shared.read().plan.map().version();
        // Before the change itself, so that a request is never between the two.
        let requested = self.shared.requested();
        let progress = self.shared.migration().as_ref().map(|migration| migration.progress(plan_version));
        let planned = RebalanceProgress {
            plan_version,
            next_version: plan_version + 1,
            copied: 0,
            contents: 0,
            changed: 0,
            seconds: 0.0,
        };
        progress.or(requested.map(|_| planned))
    }
}
