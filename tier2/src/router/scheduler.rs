//! What changes the mapping, one step after the other, between passes.
//!
//! First nodes that were started anew are told what they have; then comes what was begun, then the dropping of what it
//! left behind, then what an operator requests, then what the load asks for.

use std::sync::atomic::Ordering;

use doppel_partitioning::Plan;
use doppel_protocol::{RebalanceOutcome, RebalanceProgress, RebalanceRequest};

use super::migration::Migration;
use super::stored_plan::LearnedFrom;
use super::stored_requests::Requested;
use super::{Router, RouterError, learn, lock, planning};

/// A map is learned again when the contents have grown by this factor since.
const GROWTH: u64 = 2;

/// With several nodes a map is learned again only while there are fewer contents per node than this: everything is
/// dealt anew then. Later the plan follows the load with few moves.
const DEALT_MAX: u64 = 1_000;

/// What became of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It was made; there may be another one.
    Made,
    /// There is nothing to do.
    Idle,
    /// A node or tier 1 does not do its part now; later it may.
    Later,
}

impl Router {
    /// Does what is due after a pass of so many orders. Called by the worker alone.
    pub(crate) fn maintain(&self, orders: usize) {
        // Faster than passes change what was copied.
        let mut steps = 1 + 2 * orders.div_ceil(self.config.step);
        while steps > 0 && self.work() == Step::Made {
            steps -= 1;
            std::thread::yield_now();
        }
    }

    /// How far the present change is; without counts while a request waits; none when there is neither.
    pub(crate) fn progress(&self) -> Option<RebalanceProgress> {
        let plan_version = self.plan().map().version();
        // Before the change itself, so that a request is never between the two.
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

    /// One step of what changes the mapping.
    pub(crate) fn work(&self) -> Step {
        if self.is_stopping() {
            return Step::Idle;
        }
        match self.step() {
            Ok(made) => {
                self.failures.store(0, Ordering::Relaxed);
                if made { Step::Made } else { Step::Idle }
            }
            Err(RouterError::Stopping) => Step::Idle,
            Err(error) => {
                let times = 1 + self.failures.fetch_add(1, Ordering::Relaxed);
                // A node that stays away would fill the log.
                if times.is_power_of_two() {
                    tracing::warn!(%error, times, "a step of the mapping waits");
                }
                Step::Later
            }
        }
    }

    fn step(&self) -> Result<bool, RouterError> {
        if self.has_lost() {
            if let Some(migration) = self.migration().take() {
                tracing::warn!("a node was lost: the change of the plan begins anew");
                migration.give_up(self);
            }
            self.feed_lost()?;
            return Ok(true);
        }
        if self.migrate()? || self.drop_some()? {
            return Ok(true);
        }
        self.store_again()?;
        // To make a plan takes a while, for which no lock is held.
        if let Some(requested) = self.requested() {
            self.carry_out(&requested)?;
            return Ok(true);
        }
        let Some((plan, learned)) = self.due()? else { return Ok(false) };
        self.begin(plan, learned, None)
    }

    /// A step of what was begun; whether there was anything.
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

    /// Drops some of what no plan says that there is; whether there was any.
    fn drop_some(&self) -> Result<bool, RouterError> {
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

    /// Begins what is requested, or ends it where that is not possible or done.
    pub(crate) fn carry_out(&self, requested: &Requested) -> Result<(), RouterError> {
        let Requested { request, planned } = requested;
        let (request, present) = (*request, self.plan());
        if planned.as_ref().is_some_and(|(plan, _)| *plan == *present) {
            // It was made the present one, and then the process ended.
            self.end_without(requested, None);
            return Ok(());
        }
        let planned = planned.as_ref().filter(|(plan, _)| plan.check_succeeds(&present).is_ok());
        let next = match planned {
            Some(planned) => Some(planned.clone()),
            None => match self.plan_again(request) {
                Err(RouterError::Mapping(error)) => {
                    tracing::warn!(?request, %error, "what was requested is not possible any more");
                    self.end_without(requested, Some(error.to_string()));
                    return Ok(());
                }
                next => next?,
            },
        };
        let Some((plan, learned)) = next else {
            self.end_without(requested, None);
            return Ok(());
        };
        match self.begin(plan, learned, Some(requested)) {
            Err(RouterError::Mapping(error)) => {
                tracing::error!(%error, "a plan cannot be carried out");
                self.end_without(requested, Some(format!("its plan cannot be carried out: {error}")));
                Ok(())
            }
            begun => begun.map(drop),
        }
    }

    /// The plan of a request that has none, or one of before another start.
    fn plan_again(&self, request: RebalanceRequest) -> Result<Option<(Plan, LearnedFrom)>, RouterError> {
        // Contents are even on a new map, and are not copied twice.
        let map_due = request == RebalanceRequest::Balance && self.is_map_due();
        planning::requested(self, if map_due { RebalanceRequest::Learn } else { request })
    }

    /// Ends a request that changes nothing, unless it was cancelled meanwhile.
    fn end_without(&self, requested: &Requested, failed: Option<String>) {
        // Nobody cancels a request or makes one while this is held.
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

    /// Begins a change, unless another one has come first, or the request was cancelled meanwhile; whether it has begun.
    pub(crate) fn begin(
        &self,
        plan: Plan,
        learned: LearnedFrom,
        requested: Option<&Requested>,
    ) -> Result<bool, RouterError> {
        let mut migration = self.migration();
        if migration.is_some() || self.requested().as_ref() != requested {
            return Ok(true);
        }
        let request = requested.map(|requested| requested.request);
        let (plan_version, partitions) = (plan.map().version(), plan.map().partitions());
        let begun = Migration::begin(self, plan, learned, request)?;
        let to_copy = begun.progress(plan_version).contents;
        tracing::info!(plan_version, partitions, to_copy, "a new plan begins");
        *migration = Some(begun);
        Ok(true)
    }

    /// The plan that the load asks for, if any.
    fn due(&self) -> Result<Option<(Plan, LearnedFrom)>, RouterError> {
        if self.is_map_due() {
            let learned = learn::learned_from(self);
            return match learn::learn(self) {
                Ok(next) => Ok(Some((next.plan, learned))),
                Err(RouterError::Mapping(error)) => {
                    tracing::error!(%error, "cannot learn a partition map");
                    lock(&self.mapped).learned = Some(learned);
                    Ok(None)
                }
                Err(error) => Err(error),
            };
        }
        let Some(learned) = self.mapped().learned.filter(|_| planning::is_due(self)) else { return Ok(None) };
        Ok(planning::next_plan(self)?.map(|plan| (plan, learned)))
    }

    fn is_map_due(&self) -> bool {
        let (wanted, contents) = (self.config.wanted(), self.contents());
        let enough = wanted > 1 && contents >= learn::contents_min(wanted) as u64;
        match self.mapped().learned {
            None => enough,
            Some(learned) => {
                let nodes = self.nodes.len() as u64;
                let deals = nodes == 1 || contents < DEALT_MAX * nodes;
                let grown = deals && contents >= GROWTH * learned.contents as u64;
                enough && (learned.partitions != wanted || grown)
            }
        }
    }
}
