//! The plan that follows another when its contents are no longer even: few splits, whole partitions moved, cold ones
//! joined, and never everything dealt anew.
//!
//! A round goes on until no node has more than the target.
//! 1. Hot partitions of nodes that have too much are split into pieces of about the wanted size, by the same joint cuts
//!    as those of a learned map.
//! 2. Of all pieces of the fullest node, and all nodes with room, the move comes first that costs the least fan-out per
//!    content: a piece goes where its neighbours are. Pieces of what was hot go before all others, for that is
//!    where the next contents come, and they are spread then without another move.
//! 3. Where nothing fits, the largest partitions are halved, and it goes on with 2.
//! 4. Partitions move where that saves the most fan-out, as far as it may be done.
//! 5. Cold siblings are joined, so that there are about as many partitions as before.
//!
//! What moves is bounded; what did not fit into a round is left for the next one.
//!
//! Invariants: every content has one home before and after; a partition keeps its id if and only if it keeps its box; no
//! round makes the fullest serving node fuller, but for what comes from drained nodes; the plan is a function of
//! the arguments alone.

mod change;
mod fan_out;
mod leaves;
mod round;
#[cfg(test)]
mod tests;

use super::{LengthVector, Plan};
pub use change::{PlanChange, PlannedMove};
use leaves::Leaves;
use round::Round;

/// When a plan is due, and what it may take.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rebalancer {
    /// Most over mean of contents per serving node past which a plan is due, above 1.
    pub limit: f64,
    /// What the fullest node is brought down to, times the mean; from 1 to `limit`.
    pub target: f64,
    /// Largest share of all contents that may change its node, 0 to 1.
    pub moved_max: f64,
    /// The part of it, 0 to `moved_max`, that may be spent on less fan-out once the nodes are even.
    pub tidied_max: f64,
    /// Partitions of a node, about: twice as many at most.
    pub each: u32,
}

impl Default for Rebalancer {
    fn default() -> Self {
        Self { limit: 1.15, target: 1.1, moved_max: 0.2, tidied_max: 0.1, each: 8 }
    }
}

/// A plan, and what it takes to come to it.
#[derive(Debug, Clone, PartialEq)]
pub struct NextPlan {
    /// The plan, of the next version.
    pub plan: Plan,
    /// What changes.
    pub change: PlanChange,
}

impl Rebalancer {
    /// Contents per serving node below which nothing but drained nodes is looked after: imbalance is chance.
    pub const CONTENTS_MIN: u64 = 32;

    /// Whether a plan is due for nodes that have so many contents: one that serves has more than the limit or less than
    /// half of the mean, or a drained one has a partition.
    #[must_use]
    pub fn is_due(&self, plan: &Plan, by_node: &[u64]) -> bool {
        let is_drained = |node: u32| plan.drained().binary_search(&node).is_ok();
        plan.assignments().iter().any(|assignment| is_drained(assignment.node))
            || round::starved(plan, by_node).next().is_some()
            || (round::has_enough(plan, by_node) && plan.imbalance(by_node) > self.limit)
    }

    /// The same when this share of the contents has moved already, of what may move in some time: what is left comes
    /// off the least fan-out first.
    #[must_use]
    pub fn having_moved(self, share: f64) -> Self {
        let left = |most: f64| (most - share.max(0.0)).max(0.0);
        Self { moved_max: left(self.moved_max), tidied_max: left(self.tidied_max), ..self }
    }

    /// The same for an operator who requests it: whatever is above the target is due, and everything may move.
    #[must_use]
    pub fn requested(self) -> Self {
        Self { limit: self.target, moved_max: 1.0, ..self }
    }

    /// The plan that follows `plan` for contents of these lengths, each of which stands for `weight` contents; none when
    /// none is [due](Self::is_due), or nothing can be made better.
    #[must_use]
    pub fn next(&self, plan: &Plan, lengths: &[LengthVector], weight: u64) -> Option<NextPlan> {
        let leaves = Leaves::new(plan, lengths);
        if !self.is_due(plan, &leaves.loads) {
            return None;
        }
        let mut round = Round::new(*self, leaves);
        let before = round.imbalance();
        round.run();
        let after = round.imbalance();
        let moves = round.leaves.moves(weight);
        if moves.is_empty() {
            return None;
        }
        let Leaves { mut plan, splits, joins, .. } = round.leaves;
        let plan_version = plan.map().version();
        plan.set_version(plan_version + 1);
        let change = PlanChange {
            plan_version,
            splits,
            joins,
            contents_moved: moves.iter().map(|one| one.contents).sum(),
            moves,
            contents: lengths.len() as u64 * weight,
            imbalance_before: before,
            imbalance_after: after,
            ..PlanChange::default()
        };
        Some(NextPlan { plan, change })
    }
}
