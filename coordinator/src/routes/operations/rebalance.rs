//! `/v1/rebalance` and `GET /v1/reports/load-balance/what-if`: how an operator inspects and changes the
//! partition map.
//!
//! Making a plan takes seconds, so the service makes one plan at a time. What-if figures are cached, so that
//! a client that asks for them repeatedly does not keep others from making a plan. Tier 2 carries out a plan
//! while it continues to answer (guarantee G7).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use doppel_contract::answer::{Present, WhatIfs};
use doppel_contract::{RebalanceOutcome, RebalancePlan, RebalanceRequest};
use doppel_model::signature::Signature;
use doppel_model::{NodeId, PartitionId};
use doppel_partitioning::{LengthVector, MappingLoad, Plan, WhatIf, what_if as figures};
use doppel_protocol::MappingApi;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::contract::refusals;
use crate::limits::{LONG_CALL_TIME, SAMPLE_CONTENTS};
use crate::problem::Problem;
use crate::request::extract::JsonBody;
use crate::routes::reports;

/// What is requested.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"action": "balance", "dry_run": true}), json!({"action": "drain", "node": 1, "dry_run": true})))]
pub(crate) struct RebalanceBody {
    /// `balance` makes the load even with few moves, `learn` learns the map anew, `drain` takes everything from a node,
    /// `join` gives a node its part again, and `move` puts one partition on another node.
    action: RebalanceAction,
    /// The node that is drained, joined or moved to, from 0.
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 2_147_483_647)]
    node: Option<NodeId>,
    /// The id of the partition that is moved.
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 2_147_483_647)]
    partition: Option<PartitionId>,
    /// Only say what would be done.
    #[serde(default)]
    dry_run: bool,
}

#[derive(Debug, Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RebalanceAction {
    Balance,
    Learn,
    Drain,
    Join,
    Move,
}

/// How a request to change the mapping ended: the fields of the request, and what became of it.
#[derive(ToSchema)]
#[schema(as = RebalanceOutcome)]
#[expect(
    dead_code,
    reason = "describes RebalanceOutcome; generators make nothing of an enumeration in another object"
)]
pub(crate) struct OutcomeSchema {
    /// What was requested.
    action: RebalanceAction,
    /// The node that was to be drained, joined or moved to; absent where all nodes were meant.
    #[schema(nullable = false)]
    node: Option<u32>,
    /// The partition that was to be moved; absent where none was named.
    #[schema(nullable = false)]
    partition: Option<u32>,
    /// Why it was not carried out; null if it was.
    #[schema(required = true)]
    failed: Option<String>,
    /// Whether it was not carried out because somebody cancelled it.
    cancelled: bool,
    /// The version of the plan in force when the request ended.
    plan_version: u64,
    /// The number of contents copied.
    copied: u64,
    /// Seconds from the beginning to the end.
    seconds: f64,
}

impl RebalanceBody {
    fn request(&self) -> Result<RebalanceRequest, Problem> {
        match (self.action, self.node, self.partition) {
            (RebalanceAction::Balance, None, None) => Ok(RebalanceRequest::Balance),
            (RebalanceAction::Learn, None, None) => Ok(RebalanceRequest::Learn),
            (RebalanceAction::Drain, Some(node), None) => Ok(RebalanceRequest::Drain { node }),
            (RebalanceAction::Join, Some(node), None) => Ok(RebalanceRequest::Join { node }),
            (RebalanceAction::Move, Some(node), Some(partition)) => {
                Ok(RebalanceRequest::Move { partition, node })
            }
            (RebalanceAction::Balance | RebalanceAction::Learn, Some(_), _) => {
                Err(Problem::field("node", "this is for all nodes; name none"))
            }
            (RebalanceAction::Drain | RebalanceAction::Join | RebalanceAction::Move, None, _) => {
                Err(Problem::field("node", "which node? a number from 0"))
            }
            (RebalanceAction::Move, _, None) => Err(Problem::field("partition", "which partition? its id")),
            (
                RebalanceAction::Balance
                | RebalanceAction::Learn
                | RebalanceAction::Drain
                | RebalanceAction::Join,
                _,
                Some(_),
            ) => Err(Problem::field("partition", "only a move is of one partition; name none")),
        }
    }
}

/// Returns the interface to the partition map.
///
/// # Errors
/// 404 if the map of this service cannot be changed.
pub(crate) fn mapping(app: &App) -> Result<&dyn MappingApi, Problem> {
    let none = || Problem::not_found("this service's index has no mapping that can be changed");
    app.mapping().ok_or_else(none)
}

/// Is the mapping being changed?
#[utoipa::path(
    get, path = "/v1/rebalance", operation_id = "get_rebalance", tag = "operations",
    responses(
        (status = 200, description = "The plan that is served, and what becomes of it", body = Present),
        (status = 404, description = "The index has no mapping that can be changed"),
        refusals::Index,
    ),
)]
pub(crate) async fn present(State(app): State<App>) -> Result<Json<Present>, Problem> {
    app.blocking(|app| {
        let mapping = mapping(app)?;
        // The progress is read before the plan. If a change ends between the two reads, the plan is then the
        // changed one.
        let progress = mapping.progress()?;
        let plan = mapping.plan()?;
        let (plan_version, nodes, drained) = (plan.map().version(), plan.nodes(), plan.drained().to_vec());
        let (request, outcome) = (mapping.request()?, mapping.outcome()?);
        Ok(Json(Present { plan_version, nodes, drained, progress, request, outcome }))
    })
    .await
}

/// Change the mapping while everything goes on, or say what that would take.
///
/// While a change is under way a dry run is refused, too.
#[utoipa::path(
    post, path = "/v1/rebalance", operation_id = "rebalance", tag = "operations", request_body = RebalanceBody,
    responses(
        (status = 200, description = "What is done, or would be, or why there is nothing to do; GET says how far it is", body = RebalancePlan),
        (status = 400, description = "No such node or partition, a drained node, or the last that may have partitions"),
        (status = 404, description = "The index has no mapping that can be changed"),
        refusals::Rebalances,
    ),
)]
pub(crate) async fn rebalance(
    State(app): State<App>,
    JsonBody(body, _share): JsonBody<RebalanceBody>,
) -> Result<Json<RebalancePlan>, Problem> {
    let (request, dry_run) = (body.request()?, body.dry_run);
    let permit = app.enter_planning()?;
    app.blocking_within(LONG_CALL_TIME, move |app| {
        let _permit = permit;
        let answer = mapping(app)?.rebalance(request, dry_run)?;
        let (started, moved) = (answer.started, answer.contents_moved);
        tracing::info!(
            ?request,
            dry_run,
            started,
            moved,
            plan_version = answer.plan_version,
            "rebalance requested"
        );
        Ok(Json(answer))
    })
    .await
}

/// Cancel the present request: what it has begun is given up, and the plan that is served stays.
#[utoipa::path(
    delete, path = "/v1/rebalance", operation_id = "cancel_rebalance", tag = "operations",
    responses(
        (status = 200, description = "It is cancelled; `outcome` of GET says so, too", body = RebalanceOutcome),
        (status = 404, description = "The index has no mapping that can be changed"),
        refusals::Cancels,
    ),
)]
pub(crate) async fn cancel(State(app): State<App>) -> Result<Json<RebalanceOutcome>, Problem> {
    app.blocking(|app| {
        let outcome = mapping(app)?.cancel()?;
        tracing::info!(request = ?outcome.request, copied = outcome.copied, "rebalance cancelled");
        Ok(Json(outcome))
    })
    .await
}

/// What would other numbers of sub-dictionaries and nodes make of the present contents?
///
/// Takes some seconds, so one is made at a time. The answer may be 10 seconds old, and older where making it takes long: `age_ms` says how old. Only policies that bound lengths have one: `jaccard`, `content` and `copies`.
#[utoipa::path(
    get, path = "/v1/reports/load-balance/what-if", operation_id = "get_load_balance_what_if", tag = "reports",
    responses(
        (status = 200, description = "The figures of the present plan and of others", body = WhatIfs),
        (status = 404, description = "The index has no mapping"),
        (status = 422, description = "The collection's policy does not bound lengths, so every search goes to all nodes"),
        refusals::Index,
    ),
)]
pub(crate) async fn what_if(State(app): State<App>) -> Result<Json<WhatIfs>, Problem> {
    // This check comes first, because it needs no permit.
    let Some(tau) = app.policy().metric() else {
        let reason =
            "has no bound on lengths, so every search goes to all nodes, however contents are divided";
        return Err(Problem::not_by_policy(app.policy(), reason));
    };
    let make = move |app: &App| {
        let _permit = app.enter_planning()?;
        let mapping = mapping(app)?;
        let (plan, sample) = (mapping.plan()?, mapping.sample(SAMPLE_CONTENTS)?);
        let rows = figures(&sample, tau).map_err(|error| {
            tracing::error!(%error, "cannot make the what-if report; the request gets 500");
            Problem::internal()
        })?;
        let (contents, present) = (sample.len() as u64, of_plan(&plan, &sample));
        Ok(WhatIfs { sample: contents, present, rows, age_ms: None })
    };
    let (report, age_ms) = reports::kept(&app, &app.reports().what_if, make).await?;
    Ok(Json(WhatIfs { age_ms, ..WhatIfs::clone(&report) }))
}

/// Computes the what-if figures of an existing plan.
fn of_plan(plan: &Plan, sample: &[Arc<Signature>]) -> WhatIf {
    let lengths: Vec<LengthVector> = sample.iter().map(|one| plan.map().lexicon().lengths(one)).collect();
    let all = plan.measure(&lengths);
    // A node that is being drained counts as long as it has partitions.
    let serving: Vec<usize> = plan.serving().map(NodeId::index).collect();
    let has_part = |node: &usize| serving.contains(node) || all.stored[*node] > 0;
    let having: Vec<usize> = (0..all.stored.len()).filter(has_part).collect();
    let of = |counts: &[u64]| having.iter().map(|node| counts[*node]).collect();
    let load = MappingLoad { stored: of(&all.stored), received: of(&all.received) };
    let nodes = having.len();
    WhatIf {
        dimensions: plan.map().lexicon().dimensions() as u32,
        nodes: nodes as u32,
        imbalance: load.imbalance(),
        imbalance_floor: MappingLoad::at_random(nodes, sample.len() as u64).imbalance(),
        fan_out_saved: load.fan_out_saved(),
        speed_up: load.speed_up(),
    }
}
