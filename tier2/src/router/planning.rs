//! Planning: computes the next plan, as an operator requests it or as the load demands it.

pub(super) mod learn;
#[cfg(any(test, feature = "simulation"))]
pub(crate) mod random_plan;
mod sample;

use std::sync::Arc;

use doppel_contract::{RebalancePlan, RebalanceRequest};
use doppel_partitioning::{
    LengthVector, MappingError, NextPlan, PartitionIndex, Plan, PlanChange, PlannedMove, Rebalancer,
};
use doppel_protocol::RebalanceError;
use doppel_protocol::index_node::{NodeError, SampleAnswer, SampleRequest};

use super::persistence::stored_plan::LearningBasis;
use super::persistence::stored_requests::StoredRequest;
use super::requests::to_rebalance_error;
use super::{RecentMoves, Router, RouterError, lock};

/// Largest number of length vectors that a plan is made from.
const VECTORS_MAX: u64 = 200_000;

/// Number of attempts to read the length vectors while the plan changes.
const TRIES: u32 = 8;

/// The count of moved contents starts again when the collection has grown by one fifth.
const GROWTH_PART: u64 = 5;

/// If no better plan was found, the load is checked again after one fiftieth of the contents has come or
/// gone.
const CHANGED_PART: u64 = 50;

/// Whether the load may require another plan. A quick estimate.
pub(super) fn is_due(router: &Router) -> bool {
    let (contents, map_history, plan) = (router.contents(), router.map_history(), router.plan());
    let has_changed = contents.abs_diff(map_history.contents_when_planned) * CHANGED_PART > contents;
    has_changed
        && plan.nodes() > 1
        && settings(&plan, map_history.learned).is_due(&plan, &router.node_contents())
}

/// Makes the next plan that the load requires. `None` if the load requires no change. Contents that recent
/// plans have moved count against the limit of moves, until the collection has grown.
pub(super) fn next_plan(router: &Router) -> Result<Option<Plan>, RouterError> {
    let (input, mut moved) = (PlanningInput::of(router)?, router.map_history().moved);
    let contents: u64 = input.by_node.iter().sum();
    if contents > moved.since + moved.since / GROWTH_PART {
        moved = RecentMoves { since: contents, contents: 0 };
    }
    let rebalancer =
        settings(&input.plan, input.learned).having_moved(moved.contents as f64 / contents.max(1) as f64);
    let rebalanced_plan = rebalancer.next(&input.plan, &input.lengths, input.weight);
    moved.contents += rebalanced_plan.as_ref().map_or(0, |next| next.change.contents_moved);
    let mut map_history = lock(&router.map_history);
    map_history.moved = moved;
    // A found plan may need further rounds, so the load is checked again at once. Otherwise the check waits
    // for changes.
    map_history.contents_when_planned = if rebalanced_plan.is_some() { 0 } else { contents };
    Ok(rebalanced_plan.map(|next| next.plan))
}

/// Makes the requested plan for the present contents. `None` if there is nothing to do.
pub(super) fn plan_requested(
    router: &Router,
    request: RebalanceRequest,
) -> Result<Option<(Plan, LearningBasis)>, RouterError> {
    if request == RebalanceRequest::Learn {
        return Ok(Some((learn::learn(router)?.plan, learn::learning_basis(router))));
    }
    let planned = PlanningInput::of(router)?.plan_for(request)?;
    Ok(planned.map(|next| (next.plan, learned(router))))
}

/// Basis of the present map. If the map was never learned, the returned basis makes it due to be learned
/// after the request.
fn learned(router: &Router) -> LearningBasis {
    router.map_history().learned.unwrap_or(LearningBasis { contents: 0, partitions: 0 })
}

impl Router {
    /// Plans a request. Unless `dry_run`, stores the request with that plan, which is then carried out in
    /// steps.
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
            let input = PlanningInput::of(self)?;
            let planned = match (request, input.why_not_learnable(self)) {
                (RebalanceRequest::Learn, Some(why)) => return Ok(input.unchanged(why)),
                (RebalanceRequest::Learn, None) => Some((learn::learn(self)?, learn::learning_basis(self))),
                _ => input.plan_for(request)?.map(|next| (next, learned(self))),
            };
            let Some((NextPlan { plan, change }, learned)) = planned else {
                return Ok(input.unchanged(input.why_unchanged(request)));
            };
            let change: RebalancePlan = change.into();
            if dry_run {
                return Ok(change);
            }
            // No change begins while this is locked.
            let migration = self.migration();
            if migration.is_some() {
                continue;
            }
            if plan.check_succeeds(&self.plan()).is_err() {
                continue;
            }
            let requested = StoredRequest { request, planned: Some((plan, learned)) };
            let is_accepted = self.request(requested).map_err(to_rebalance_error)?;
            drop(migration);
            return if is_accepted {
                Ok(RebalancePlan { started: true, ..change })
            } else {
                Err(RebalanceError::Busy(next_version(self)))
            };
        }
        Err(RebalanceError::Busy(next_version(self)))
    }
}

/// A rebalancer for the wanted number of partitions, divided among the nodes that serve under this plan.
fn settings(plan: &Plan, learned: Option<LearningBasis>) -> Rebalancer {
    let partitions = learned.map_or(1, |learned| learned.partitions);
    let nodes = plan.serving().count() as u32;
    Rebalancer { each: partitions.div_ceil(nodes).max(1), ..Rebalancer::default() }
}

/// What the next plan is made from. Reading it takes a while, and holds no lock.
struct PlanningInput {
    plan: Arc<Plan>,
    lengths: Vec<LengthVector>,
    /// Number of contents that each length vector stands for.
    weight: u64,
    learned: Option<LearningBasis>,
    by_node: Vec<u64>,
    /// Number of contents in each partition of the map.
    by_partition: Vec<u64>,
}

impl PlanningInput {
    /// Reads the length vectors from the nodes. Starts again if the plan changes meanwhile.
    fn of(router: &Router) -> Result<Self, RouterError> {
        for _ in 0..TRIES {
            let mut input = Self {
                plan: router.plan(),
                lengths: Vec::new(),
                weight: router.contents().div_ceil(VECTORS_MAX).max(1),
                learned: router.map_history().learned,
                by_node: vec![0; router.nodes.len()],
                by_partition: Vec::new(),
            };
            let mut partitions = PartitionIndex::first(input.plan.assignments().len());
            match partitions.try_for_each(|partition| input.add(router, partition)) {
                Ok(()) => return Ok(input),
                Err(RouterError::Node(_, NodeError::StalePlan { .. } | NodeError::NoPartition(_))) => {}
                Err(error) => return Err(error),
            }
        }
        Err(RouterError::Replanned)
    }

    /// Reads the length vectors of one partition.
    fn add(&mut self, router: &Router, partition: PartitionIndex) -> Result<(), RouterError> {
        let (node, partition) = Router::assignment(&self.plan, partition);
        // Takes every n-th content of all partitions together, so skip what remains of the last step.
        let before: u64 = self.by_node.iter().sum();
        let skip = before.next_multiple_of(self.weight) - before;
        let request = SampleRequest::Lengths { partition, skip, step: self.weight };
        let sampled = router.call(node, &self.plan, |node, call| node.sample(call, request))?;
        if let SampleAnswer::Lengths(lengths, contents) = sampled {
            self.lengths.extend(lengths);
            self.by_partition.push(contents);
            self.by_node[node.index()] += contents;
        }
        Ok(())
    }

    /// Makes the requested plan and lists its changes. `None` if the present plan already fulfils the
    /// request.
    fn plan_for(&self, request: RebalanceRequest) -> Result<Option<NextPlan>, MappingError> {
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
                return Ok((plan != *self.plan).then(|| self.with_assignments(plan)));
            }
        }
        let rebalancer = settings(&plan, self.learned).requested();
        if let Some(mut next) = rebalancer.next(&plan, &self.lengths, self.weight) {
            // Relative to the nodes that serve now. The plan may have more or fewer serving nodes.
            next.change.imbalance_before = self.plan.imbalance(&self.by_node);
            return Ok(Some(next));
        }
        // No partition moves, but a node is marked or unmarked as drained.
        Ok((plan != *self.plan).then(|| self.with_assignments(plan)))
    }

    /// Turns `plan`, which has the present partitions with other nodes or marks, into the next plan.
    fn with_assignments(&self, mut plan: Plan) -> NextPlan {
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
            ..self.without_changes()
        };
        plan.set_version(plan.map().version() + 1);
        NextPlan { plan, change }
    }

    /// A change that keeps the present plan.
    fn without_changes(&self) -> PlanChange {
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
        RebalancePlan { nothing_to_do: Some(why), ..self.without_changes().into() }
    }

    /// Why no map can be learned now. `None` if one can.
    fn why_not_learnable(&self, router: &Router) -> Option<String> {
        let (contents, partitions): (u64, u32) =
            (self.by_node.iter().sum(), router.config.partitions_wanted());
        let least = learn::contents_min(partitions);
        if partitions == 1 {
            return Some("a single partition needs no map; start with a larger --partitions".to_owned());
        }
        (contents < least as u64).then(|| {
            format!("a map of {partitions} partitions is learned from {least} contents or more, and there are {contents}")
        })
    }

    /// Why a request requires no change.
    fn why_unchanged(&self, request: RebalanceRequest) -> String {
        let contents: u64 = self.by_node.iter().sum();
        let serving = self.plan.serving().count() as u64;
        match request {
            RebalanceRequest::Move { partition, node } => {
                format!("partition {partition} is on node {node} already")
            }
            RebalanceRequest::Drain { node } => {
                format!("node {node} is drained already and has no partition")
            }
            _ if serving == 1 => "only one node may have partitions, and it has them all".to_owned(),
            _ if contents < serving * Rebalancer::CONTENTS_MIN => format!(
                "below {} contents per node, imbalance is chance; {serving} nodes have {contents} contents",
                Rebalancer::CONTENTS_MIN
            ),
            _ if settings(&self.plan, self.learned).requested().is_due(&self.plan, &self.by_node) => {
                "no move of a partition would balance the nodes better".to_owned()
            }
            _ => format!(
                "the nodes are balanced: none has more than {} times the mean, or less than half of it",
                Rebalancer::default().target
            ),
        }
    }
}
