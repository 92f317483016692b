//! The plan of a start.

use doppel_partitioning::{PartitionIndex, PartitionMap, Plan};
use doppel_protocol::{IndexState, IndexStateError, RebalanceRequest};

use super::requests::Requests;
use super::stored_plan::{self, LearnedFrom};
use super::stored_requests::{self, Requested};
use crate::config::Config;
use crate::error::Error;

/// The stored plan where it is one for this configuration, or the one to begin with; and what is requested.
pub(super) fn plan(
    config: &Config,
    state: &dyn IndexState,
) -> Result<(Plan, Option<LearnedFrom>, Requests), Error> {
    let mut queue = stored_requests::load(state)?;
    let usable = |plan: &Plan| {
        let map = plan.map();
        map.tau() == config.policy.metric() && map.lexicon().dimensions() == config.dimensions
    };
    let map = PartitionMap::one(config.dimensions, config.policy.metric())?;
    let (before, learned) = match stored_plan::load(state)? {
        Some((plan, learned)) if usable(&plan) && plan.nodes() == config.nodes => {
            return Ok((plan, Some(learned), Requests::new(queue)));
        }
        Some((plan, learned)) => (plan, learned),
        None => return Ok((Plan::on_first(map, config.nodes)?, None, Requests::new(queue))),
    };
    // Nodes that are drained stay so, and another plan has another number.
    let plan_version = before.map().version() + 1;
    if !usable(&before) {
        let mut plan = Plan::on_first(map, config.nodes)?;
        for node in before.drained() {
            // A node that is no more, or that would be the last one, is not drained.
            let _ = plan.set_drained(*node, true);
        }
        let first = plan.serving().next().unwrap_or_default();
        plan.place(PartitionIndex(0), first)?;
        plan.set_version(plan_version);
        return Ok((plan, None, Requests::new(queue)));
    }
    let mut plan = before.over_nodes(config.nodes)?;
    plan.set_version(plan_version);
    if !queue.iter().any(|requested| requested.request == RebalanceRequest::Balance) {
        queue.push_back(Requested { request: RebalanceRequest::Balance, planned: None });
    }
    // The request is first, so that it is not missing where the plan is there.
    let stored =
        stored_requests::store(state, &queue).and_then(|()| stored_plan::store(state, &plan, learned));
    match stored {
        Err(error @ IndexStateError::Unavailable(_)) => return Err(error.into()),
        Err(error) => {
            tracing::error!(%error, "the plan for another number of nodes is not stored; the next start makes it again");
        }
        Ok(()) => {}
    }
    Ok((plan, Some(learned), Requests::new(queue)))
}
