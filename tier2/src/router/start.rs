//! The plan at a start of the router.

use doppel_contract::RebalanceRequest;
use doppel_partitioning::{PartitionIndex, PartitionMap, Plan};
use doppel_protocol::{IndexState, IndexStateError};

use super::requests::Requests;
use super::stored_plan::{self, LearningBasis};
use super::stored_requests::{self, StoredRequest};
use crate::config::Config;
use crate::error::Error;

/// What a router starts with.
pub(super) struct InitialState {
    pub(super) plan: Plan,
    /// Basis of the plan's map. `None` if the map was not learned.
    pub(super) learned: Option<LearningBasis>,
    /// Requests that are not done.
    pub(super) requests: Requests,
}

/// Loads the stored plan if it fits the configuration, and otherwise makes an initial plan. Also loads the
/// stored requests.
pub(super) fn load(config: &Config, state: &dyn IndexState) -> Result<InitialState, Error> {
    let mut queue = stored_requests::load(state)?;
    let usable = |plan: &Plan| {
        let map = plan.map();
        map.tau() == config.policy.metric() && map.lexicon().dimensions() == config.dimensions
    };
    let map = PartitionMap::one(config.dimensions, config.policy.metric())?;
    let (before, learned) = match stored_plan::load(state)? {
        Some((plan, learned)) if usable(&plan) && plan.nodes() == config.nodes => {
            return Ok(InitialState { plan, learned: Some(learned), requests: Requests::new(queue) });
        }
        Some((plan, learned)) => (plan, learned),
        None => {
            let plan = Plan::on_first(map, config.nodes)?;
            return Ok(InitialState { plan, learned: None, requests: Requests::new(queue) });
        }
    };
    // Drained nodes stay drained. The new plan gets a new version.
    let plan_version = before.map().version() + 1;
    if !usable(&before) {
        let mut plan = Plan::on_first(map, config.nodes)?;
        for node in before.drained() {
            // This fails for a node that no longer exists, or that would be the last serving one. Then it is
            // not drained.
            let _ = plan.set_drained(*node, true);
        }
        let first = plan.serving().next().unwrap_or_default();
        plan.place(PartitionIndex(0), first)?;
        plan.set_version(plan_version);
        return Ok(InitialState { plan, learned: None, requests: Requests::new(queue) });
    }
    let mut plan = before.over_nodes(config.nodes)?;
    plan.set_version(plan_version);
    if !queue.iter().any(|requested| requested.request == RebalanceRequest::Balance) {
        queue.push_back(StoredRequest { request: RebalanceRequest::Balance, planned: None });
    }
    // The request is stored first. If the process ends in between, the next start must not find the new plan
    // without the request.
    let stored =
        stored_requests::store(state, &queue).and_then(|()| stored_plan::store(state, &plan, learned));
    match stored {
        Err(error @ IndexStateError::Unavailable(_)) => return Err(error.into()),
        Err(error) => {
            tracing::error!(
                %error,
                "cannot store the plan for another number of nodes; the next start makes it again"
            );
        }
        Ok(()) => {}
    }
    Ok(InitialState { plan, learned: Some(learned), requests: Requests::new(queue) })
}
