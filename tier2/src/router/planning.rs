//! The next plan: as an operator requests it, or the load asks for it.

use std::sync::Arc;

use doppel_partitioning::{
    LengthVector, MappingError, NextPlan, PartitionIndex, Plan, PlanChange, PlannedMove, Rebalancer,
};
use doppel_protocol::index_node::{NodeError, SampleRequest, Sampled};
use doppel_protocol::{RebalanceError, RebalancePlan, RebalanceRequest};

use super::requests::refused;
use super::stored_plan::LearnedFrom;
use super::stored_requests::Requested;
use super::{Moved, Router, RouterError, learn, lock};

/// Length vectors that a next plan is made from, at most.
const VECTORS_MAX: u64 = 200_000;

/// How often a plan is begun again because another one took its place.
const TRIES: u32 = 8;

/// The count of what has moved begins again when the collection has grown by this part of it.
const GROWTH: u64 = 5;

/// When no plan was found, one is sought again after this part of the contents has come or gone.
const NEWS: u64 = 50;

/// Whether the load may ask for another plan. This is a quick estimate.
pub(super) fn is_due(router: &Router) -> bool {
    let (contents, mapped, plan) = (router.contents(), router.mapped(), router.plan());
    let news = contents.abs_diff(mapped.contents_when_planned) * NEWS > contents;
    news && plan.nodes() > 1 && settings(&plan, mapped.learned).is_due(&plan, &router.node_contents())
}

/// The next plan that the load asks for. What has moved counts against the limit until the collection has grown.
pub(super) fn next_plan(router: &Router) -> Result<Option<Plan>, RouterError> {
    let (stored, mut moved) = (Stored::of(router)?, router.mapped().moved);
    let contents: u64 = stored.by_node.iter().sum();
    if contents > moved.since + moved.since / GROWTH {
        moved = Moved { since: contents, contents: 0 };
    }
    let rebalancer =
        settings(&stored.plan, stored.learned).having_moved(moved.contents as f64 / contents.max(1) as f64);
    let rebalanced_plan = rebalancer.next(&stored.plan, &stored.lengths, stored.weight);
    moved.contents += rebalanced_plan.as_ref().map_or(0, |next| next.change.contents_moved);
    let mut mapped = lock(&router.mapped);
    mapped.moved = moved;
    // More rounds may be needed; none where nothing can be made better.
    mapped.contents_when_planned = if rebalanced_plan.is_some() { 0 } else { contents };
    Ok(rebalanced_plan.map(|next| next.plan))
}

/// The requested plan for the present contents; none if there is nothing to do.
pub(super) fn requested(
    router: &Router,
    request: RebalanceRequest,
) -> Result<Option<(Plan, LearnedFrom)>, RouterError> {
    if request == RebalanceRequest::Learn {
        return Ok(Some((learn::learn(router)?.plan, learn::learned_from(router))));
    }
    let planned = Stored::of(router)?.requested(request)?;
    Ok(planned.map(|next| (next.plan, learned(router))))
}

/// A map that was never learned is still due after a request.
fn learned(router: &Router) -> LearnedFrom {
    router.mapped().learned.unwrap_or(LearnedFrom { contents: 0, partitions: 0 })
}

impl Router {
    /// Plans what is requested, and unless `dry_run` stores that very plan, to be carried out while everything goes on.
    pub(crate) fn rebalance(
        &self,
        request: RebalanceRequest,
        dry_run: bool,
    ) -> Result<RebalancePlan, RebalanceError> {
        let next_version = |router: &Self| router.plan().map().version() + 1;
        let busy = |router: &Self| {
            let under_way = router.migration().as_ref().map(|one| one.progress(0).next_version);
            under_way.or_else(|| router.requested().map(|_| next_version(router)))
        };
        for _ in 0..TRIES {
            if let Some(next) = busy(self) {
                return Err(RebalanceError::Busy(next));
            }
            let stored = Stored::of(self)?;
            let planned = match (request, stored.too_few(self)) {
                (RebalanceRequest::Learn, Some(why)) => return Ok(stored.unchanged(why)),
                (RebalanceRequest::Learn, None) => Some((learn::learn(self)?, learn::learned_from(self))),
                _ => stored.requested(request)?.map(|next| (next, learned(self))),
            };
            let Some((NextPlan { plan, change }, learned)) = planned else {
                return Ok(stored.unchanged(stored.nothing(request)));
            };
            let change: RebalancePlan = change.into();
            if dry_run {
                return Ok(change);
            }
            // Nothing begins meanwhile.
            let migration = self.migration();
            if migration.is_some() {
                continue;
            }
            if plan.check_succeeds(&self.plan()).is_err() {
                continue;
            }
            let requested = Requested { request, planned: Some((plan, learned)) };
            let stored = self.request(requested).map_err(refused)?;
            drop(migration);
            return if stored {
                Ok(RebalancePlan { started: true, ..change })
            } else {
                Err(RebalanceError::Busy(next_version(self)))
            };
        }
        Err(RebalanceError::Busy(next_version(self)))
    }
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
    /// When the plan changes meanwhile it is begun again.
    fn of(router: &Router) -> Result<Self, RouterError> {
        for _ in 0..TRIES {
            let mut stored = Self {
                plan: router.plan(),
                lengths: Vec::new(),
                weight: router.contents().div_ceil(VECTORS_MAX).max(1),
                learned: router.mapped().learned,
                by_node: vec![0; router.nodes.len()],
                by_partition: Vec::new(),
            };
            let mut partitions = PartitionIndex::first(stored.plan.assignments().len());
            match partitions.try_for_each(|partition| stored.add(router, partition)) {
                Ok(()) => return Ok(stored),
                Err(RouterError::Node(_, NodeError::StalePlan { .. } | NodeError::NoPartition(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Err(RouterError::Replanned)
    }

    /// Adds a partition.
    fn add(&mut self, router: &Router, partition: PartitionIndex) -> Result<(), RouterError> {
        let (node, partition) = Router::place(&self.plan, partition);
        // Every so many of all contents, wherever a partition begins.
        let before: u64 = self.by_node.iter().sum();
        let skip = before.next_multiple_of(self.weight) - before;
        let request = SampleRequest::Lengths { partition, skip, step: self.weight };
        let sampled = router.call(node, &self.plan, |node, call| node.sample(call, request))?;
        if let Sampled::Lengths(lengths, contents) = sampled {
            self.lengths.extend(lengths);
            self.by_partition.push(contents);
            self.by_node[node.index()] += contents;
        }
        Ok(())
    }

    /// The requested plan and its changes; none if everything is as requested already.
    fn requested(&self, request: RebalanceRequest) -> Result<Option<NextPlan>, MappingError> {
        let mut plan = (*self.plan).clone();
        match request {
            RebalanceRequest::Balance | RebalanceRequest::Learn => {}
            RebalanceRequest::Drain { node } => plan.set_drained(node, true)?,
            RebalanceRequest::Join { node } => plan.set_drained(node, false)?,
            RebalanceRequest::Move { partition, node } => {
                let place = plan.find(partition).ok_or(MappingError::Partition(partition))?;
                if plan.drained().contains(&node) {
                    return Err(MappingError::Drained(node));
                }
                plan.place(place, node)?;
                return Ok((plan != *self.plan).then(|| self.by_hand(plan)));
            }
        }
        let rebalancer = settings(&plan, self.learned).requested();
        if let Some(mut next) = rebalancer.next(&plan, &self.lengths, self.weight) {
            // Over the nodes that serve now, not over those that will.
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
        let entries = self.plan.assignments().iter().zip(plan.assignments());
        for ((before, after), contents) in
            entries.zip(&self.by_partition).filter(|((a, b), _)| a.node != b.node)
        {
            by_node[before.node.index()] -= contents;
            by_node[after.node.index()] += contents;
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

    fn unchanged(&self, why: String) -> RebalancePlan {
        RebalancePlan { nothing_to_do: Some(why), ..self.present().into() }
    }

    /// Why no map can be learned.
    fn too_few(&self, router: &Router) -> Option<String> {
        let (contents, partitions): (u64, u32) = (self.by_node.iter().sum(), router.config.wanted());
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
