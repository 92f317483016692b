//! Computes the next plan when the contents are no longer evenly distributed. It uses few splits, moves whole
//! partitions, joins cold ones, and never redistributes everything.
//!
//! A round tries to bring every node down to the target.
//! 1. Split hot partitions of overfull nodes into pieces of about the wanted size, with the same joint cuts
//!    as in a learned map.
//! 2. For the fullest node, consider all its pieces and all nodes with room. Make the move that costs the
//!    least fan-out per content, so that a piece goes where its neighbours are. Move pieces of hot partitions
//!    first, because the next contents are likely to arrive there. Once these pieces are spread, they need no
//!    further move.
//! 3. If nothing fits, halve the largest partitions, and repeat step 2.
//! 4. Move partitions where that saves the most fan-out, within the limits.
//! 5. Join cold siblings, so that the number of partitions stays about the same.
//!
//! The number of contents that move in a round is bounded. Moves beyond this bound are left for the next
//! round.
//!
//! Invariants:
//! - Every content has exactly one home before and after a round.
//! - A partition keeps its id if and only if it keeps its box.
//! - No round makes the fullest serving node fuller, except by contents of drained nodes.
//! - The new plan depends only on the arguments.

mod change;
mod fan_out;
mod leaves;
mod round;
#[cfg(test)]
mod tests;

use doppel_model::NodeId;

use crate::length_vector::LengthVector;
use crate::plan::Plan;
pub use change::{PlanChange, PlannedMove};
use leaves::Leaves;
use round::RebalanceRound;

/// When to rebalance, and how much may be moved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rebalancer {
    /// A new plan is due when the largest number of contents per serving node, divided by the mean, exceeds
    /// this; above 1.
    pub limit: f64,
    /// The fullest node is brought down to this multiple of the mean; from 1 to `limit`.
    pub target: f64,
    /// The largest share of all contents that may move to another node in a round, 0 to 1.
    pub moved_max: f64,
    /// The part of `moved_max` that may be spent on reducing fan-out after the nodes are even; 0 to
    /// `moved_max`.
    pub tidied_max: f64,
    /// The wanted number of partitions per node. There are at most twice as many.
    pub each: u32,
}

impl Default for Rebalancer {
    fn default() -> Self {
        Self { limit: 1.15, target: 1.1, moved_max: 0.2, tidied_max: 0.1, each: 8 }
    }
}

/// A new plan, and the changes that lead to it.
#[derive(Debug, Clone, PartialEq)]
pub struct NextPlan {
    /// The plan, with the next version.
    pub plan: Plan,
    /// The differences from the previous plan.
    pub change: PlanChange,
}

impl Rebalancer {
    /// The least number of contents per serving node from which on imbalance counts. Below this number,
    /// imbalance is chance, and only drained nodes are handled.
    pub const CONTENTS_MIN: u64 = 32;

    /// Whether a new plan is due, given the number of contents of each node. It is due if a drained node has
    /// a partition, or if a serving node has more contents than the limit allows, or less than half of the
    /// mean.
    #[must_use]
    pub fn is_due(&self, plan: &Plan, by_node: &[u64]) -> bool {
        let is_drained = |node: NodeId| plan.drained().binary_search(&node).is_ok();
        plan.assignments().iter().any(|assignment| is_drained(assignment.node))
            || round::underfull(plan, by_node).next().is_some()
            || (round::has_enough(plan, by_node) && plan.imbalance(by_node) > self.limit)
    }

    /// The settings that remain after `share` of all contents has already moved in the current period. The
    /// budget for reducing fan-out shrinks first.
    #[must_use]
    pub fn having_moved(self, share: f64) -> Self {
        let left = |most: f64| (most - share.max(0.0)).max(0.0);
        Self { moved_max: left(self.moved_max), tidied_max: left(self.tidied_max), ..self }
    }

    /// The settings for a rebalance that an operator requests: a plan is due for any node above the target,
    /// and all contents may move.
    #[must_use]
    pub fn requested(self) -> Self {
        Self { limit: self.target, moved_max: 1.0, ..self }
    }

    /// Computes the plan that follows `plan`, for contents with these lengths. Each length vector stands for
    /// `weight` contents. `None` if no plan is [due](Self::is_due) or nothing can be improved.
    #[must_use]
    pub fn next(&self, plan: &Plan, lengths: &[LengthVector], weight: u64) -> Option<NextPlan> {
        let leaves = Leaves::new(plan, lengths);
        if !self.is_due(plan, &leaves.loads) {
            return None;
        }
        let mut round = RebalanceRound::new(*self, leaves);
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
