//! The scheduler: decides which step of a plan change the router makes next, between passes.
//!
//! The first due item of this list determines the step:
//! - Nodes that were lost are told what to host, and fed.
//! - A migration that is under way makes a step.
//! - Nodes drop partitions that no plan assigns to them.
//! - State that may not be stored is stored again.
//! - A change that an operator has requested begins.
//! - A change to the plan that the load requires begins.

use std::sync::atomic::Ordering;

use doppel_contract::{RebalanceOutcome, RebalanceProgress, RebalanceRequest};
use doppel_partitioning::Plan;

use super::migration::Migration;
use super::persistence::stored_plan::LearningBasis;
use super::persistence::stored_requests::StoredRequest;
use super::planning::{self, learn};
use super::{Router, RouterError, lock};

/// A map is learned again when the contents have grown by this factor since the last time.
const GROWTH: u64 = 2;

/// With several nodes, a map is learned again only while there are fewer contents per node than this, because
/// learning moves nearly all contents to other partitions. Beyond that, the plan follows the load with few
/// moves.
const RELEARN_MAX: u64 = 1_000;

/// Result of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StepOutcome {
    /// The step was made, and another one may follow.
    Advanced,
    /// There is nothing to do.
    Idle,
    /// A node or tier 1 does not do its part now. The caller tries again later.
    Retry,
}

impl Router {
    /// Makes the steps that are due after a pass of `orders` orders. Only the worker thread calls this.
    pub(crate) fn maintain(&self, orders: usize) {
        // Each step copies `config.step` contents. The steps copy twice as many contents as the pass can have
        // changed, so the migration makes progress.
        let mut steps = 1 + 2 * orders.div_ceil(self.config.step);
        while steps > 0 && self.run_step() == StepOutcome::Advanced {
            steps -= 1;
            std::thread::yield_now();
        }
    }

    /// Progress of the migration that is under way. Its counts are 0 while a request waits. `None` if there
    /// is neither.
    pub(crate) fn progress(&self) -> Option<RebalanceProgress> {
        let plan_version = self.plan().map().version();
        // Read before the migration, so that a request that begins meanwhile is seen in one of the two.
        let requested = self.requested();
        let progress = self.migration().as_ref().map(|migration| migration.progress(plan_version));
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

    /// Makes one step of what is due. Logs a failure.
    pub(crate) fn run_step(&self) -> StepOutcome {
        if self.is_stopping() {
            return StepOutcome::Idle;
        }
        match self.try_step() {
            Ok(made) => {
                self.failures.store(0, Ordering::Relaxed);
                if made { StepOutcome::Advanced } else { StepOutcome::Idle }
            }
            Err(RouterError::Stopping) => StepOutcome::Idle,
            Err(error) => {
                let times = 1 + self.failures.fetch_add(1, Ordering::Relaxed);
                // Logged with growing intervals. A node that stays away would fill the log.
                if times.is_power_of_two() {
                    tracing::warn!(%error, times, "a step of a plan change failed; trying again");
                }
                StepOutcome::Retry
            }
        }
    }

    fn try_step(&self) -> Result<bool, RouterError> {
        if self.has_lost_nodes() {
            if let Some(migration) = self.migration().take() {
                tracing::warn!("a node was lost; giving up the change of the plan, which begins again later");
                migration.give_up(self);
            }
            self.feed_lost_nodes()?;
            return Ok(true);
        }
        if self.migrate()? || self.drop_outgoing()? {
            return Ok(true);
        }
        self.store_unsure_state()?;
        // Planning takes a while, and holds no lock.
        if let Some(requested) = self.requested() {
            self.carry_out(&requested)?;
            return Ok(true);
        }
        let Some((plan, learned)) = self.due_plan()? else { return Ok(false) };
        self.begin(plan, learned, None)
    }

    /// Makes a step of the migration that is under way. Returns whether there is one.
    fn migrate(&self) -> Result<bool, RouterError> {
        let mut migration = self.migration();
        let Some(present) = migration.as_mut() else { return Ok(false) };
        let Some(is_stored) = present.step(self)? else { return Ok(true) };
        let failed =
            "the next plan could not be stored; the server's log says why, and the next start tries again";
        let outcome = present.outcome(&self.plan(), (!is_stored).then(|| failed.to_owned()), false);
        *migration = None;
        if let Some(outcome) = outcome {
            self.end_request(outcome, !is_stored);
        }
        Ok(true)
    }

    /// Has a node drop some entries that no plan assigns to it. Returns whether a node had such entries.
    fn drop_outgoing(&self) -> Result<bool, RouterError> {
        let plan = self.plan();
        for handle in self.nodes.iter().filter(|handle| handle.drops.load(Ordering::Relaxed)) {
            let limit = self.config.step;
            if self.call(handle.id, &plan, |node, call| node.drop_partition(call, limit))? {
                return Ok(true);
            }
            handle.drops.store(false, Ordering::Relaxed);
        }
        Ok(false)
    }

    /// Begins a request, or ends it if it is done or no longer possible.
    pub(crate) fn carry_out(&self, requested: &StoredRequest) -> Result<(), RouterError> {
        let StoredRequest { request, planned } = requested;
        let (request, present) = (*request, self.plan());
        if planned.as_ref().is_some_and(|(plan, _)| *plan == *present) {
            // The plan became the present one, and then the process ended.
            self.end_unchanged(requested, None);
            return Ok(());
        }
        let planned = planned.as_ref().filter(|(plan, _)| plan.check_succeeds(&present).is_ok());
        let next = match planned {
            Some(planned) => Some(planned.clone()),
            None => match self.plan_again(request) {
                Err(RouterError::Mapping(error)) => {
                    tracing::warn!(?request, %error, "a stored request is no longer possible; ending it");
                    self.end_unchanged(requested, Some(error.to_string()));
                    return Ok(());
                }
                next => next?,
            },
        };
        let Some((plan, learned)) = next else {
            self.end_unchanged(requested, None);
            return Ok(());
        };
        match self.begin(plan, learned, Some(requested)) {
            Err(RouterError::Mapping(error)) => {
                tracing::error!(%error, "cannot begin the plan of a request; ending the request");
                self.end_unchanged(requested, Some(format!("its plan cannot be carried out: {error}")));
                Ok(())
            }
            begun => begun.map(drop),
        }
    }

    /// Plans a request that has no plan, or whose plan cannot follow the present one.
    fn plan_again(&self, request: RebalanceRequest) -> Result<Option<(Plan, LearningBasis)>, RouterError> {
        // A new map is balanced already. With a plan of its own, the request would copy everything twice.
        let map_due = request == RebalanceRequest::Balance && self.is_map_due();
        planning::plan_requested(self, if map_due { RebalanceRequest::Learn } else { request })
    }

    /// Ends a request that changes nothing, unless it was cancelled meanwhile.
    fn end_unchanged(&self, requested: &StoredRequest, failed: Option<String>) {
        // No request is made or cancelled while this is locked.
        let _migration = self.migration();
        if self.requested().as_ref() != Some(requested) {
            return;
        }
        let request = requested.request;
        let plan_version = self.plan().map().version();
        let outcome =
            RebalanceOutcome { request, failed, cancelled: false, plan_version, copied: 0, seconds: 0.0 };
        self.end_request(outcome, false);
    }

    /// Begins a migration, unless another one is under way or the request was cancelled meanwhile. Always
    /// returns `true`: a step was made.
    pub(crate) fn begin(
        &self,
        plan: Plan,
        learned: LearningBasis,
        requested: Option<&StoredRequest>,
    ) -> Result<bool, RouterError> {
        let mut migration = self.migration();
        if migration.is_some() || self.requested().as_ref() != requested {
            return Ok(true);
        }
        let request = requested.map(|requested| requested.request);
        let (plan_version, partitions) = (plan.map().version(), plan.map().partitions());
        let begun = Migration::begin(self, plan, learned, request)?;
        let to_copy = begun.progress(plan_version).contents;
        tracing::info!(plan_version, partitions, to_copy, "beginning to change the plan");
        *migration = Some(begun);
        Ok(true)
    }

    /// The plan that the load requires, if any.
    fn due_plan(&self) -> Result<Option<(Plan, LearningBasis)>, RouterError> {
        if self.is_map_due() {
            let learned = learn::learning_basis(self);
            return match learn::learn(self) {
                Ok(next) => Ok(Some((next.plan, learned))),
                Err(RouterError::Mapping(error)) => {
                    tracing::error!(%error, "cannot learn a partition map; keeping the present one");
                    lock(&self.map_history).learned = Some(learned);
                    Ok(None)
                }
                Err(error) => Err(error),
            };
        }
        let Some(learned) = self.map_history().learned.filter(|_| planning::is_due(self)) else {
            return Ok(None);
        };
        Ok(planning::next_plan(self)?.map(|plan| (plan, learned)))
    }

    /// Whether a map has to be learned for the present contents.
    fn is_map_due(&self) -> bool {
        let (wanted, contents) = (self.config.partitions_wanted(), self.contents());
        let enough = wanted > 1 && contents >= learn::contents_min(wanted) as u64;
        match self.map_history().learned {
            None => enough,
            Some(learned) => {
                let nodes = self.nodes.len() as u64;
                let may_relearn = nodes == 1 || contents < RELEARN_MAX * nodes;
                let grown = may_relearn && contents >= GROWTH * learned.contents as u64;
                enough && (learned.partitions != wanted || grown)
            }
        }
    }
}
