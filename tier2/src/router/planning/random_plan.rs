//! Random changes of the plan, for tests and the simulation.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{NodeId, stable_hash64};
use doppel_partitioning::{MappingError, PartitionIndex, Plan, PlanSize};

use super::sample;
use crate::router::migration::Migration;
use crate::router::persistence::stored_plan::LearningBasis;
use crate::router::{Router, RouterError};

impl Router {
    /// Begins a random change of the plan, unless a change is under way. Returns whether it began one.
    pub(crate) fn begin_random_change(&self, dice: u64) -> Result<bool, RouterError> {
        let mut migration = self.migration();
        if migration.is_some() {
            return Ok(false);
        }
        let sample = sample::take(self, usize::MAX)?;
        let plan = random_plan(&self.plan(), &sample, dice)?;
        let learned =
            LearningBasis { contents: self.contents() as usize, partitions: self.config.partitions_wanted() };
        *migration = Some(Migration::begin(self, plan, learned, None)?);
        Ok(true)
    }
}

/// Returns a plan that can follow the present one. Either it has a few partitions split, joined and moved, or
/// it is learned anew.
fn random_plan(present: &Plan, sample: &[Arc<Signature>], dice: u64) -> Result<Plan, MappingError> {
    let map = present.map();
    let plan_version = map.version() + 1;
    if dice.is_multiple_of(4) {
        let size = PlanSize { nodes: present.nodes(), each: 1 + (dice >> 8) as u32 % 8 };
        let plan = Plan::learn(sample, size, map.tau(), map.lexicon().dimensions(), plan_version)?;
        return Ok(plan.after(present));
    }
    let mut plan = present.clone();
    for change in 0..1 + dice % 5 {
        let dice = stable_hash64(&dice.wrapping_add(change).to_le_bytes());
        let partition = PartitionIndex((dice >> 8) as u32 % plan.map().partitions() as u32);
        match dice % 3 {
            0 => plan.place(partition, NodeId((dice >> 40) as u32 % plan.nodes()))?,
            // Without a sibling, or with too many, the partition stays as it is.
            1 => drop(plan.join(partition)),
            _ => {
                let total = sample.get((dice >> 20) as usize % sample.len().max(1)).map_or(40, |s| s.size());
                drop(plan.split(partition, 0, i64::from(total)));
            }
        }
    }
    plan.set_version(plan_version);
    Ok(plan)
}
