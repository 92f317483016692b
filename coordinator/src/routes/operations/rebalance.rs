//! `/v1/rebalance` and `GET /v1/reports/load-balance/what-if`: how an operator inspects and changes the
//! partition map.
//!
//! Making a plan takes seconds, so the service makes one plan at a time. What-if figures are cached, so that
//! a client that asks for them repeatedly does not keep others from making a plan. Tier 2 carries out a plan
//! while it continues to answer (guarantee G7).

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use doppel_contract::answer::{PresentMapping, WhatIfReport};
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

/// A request to change the partition map, or to show what a change would do.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"action": "balance", "dry_run": true}), json!({"action": "drain", "node": 1, "dry_run": true})))]
pub(crate) struct RebalanceBody {
    /// Action to perform. `balance` evens out the load with few moves. `learn` learns a new map from the
    /// contents. `drain` removes all partitions from a node. `join` gives a drained node its share again.
    /// `move` moves one partition to another node.
    action: RebalanceAction,
    /// Number of the node to drain, to join, or to move the partition to. The first node is 0.
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 2_147_483_647)]
    node: Option<NodeId>,
    /// Id of the partition to move.
    #[schema(value_type = Option<u32>, minimum = 0, maximum = 2_147_483_647)]
    partition: Option<PartitionId>,
    /// Whether to only report what the request would do.
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

/// Outcome of a request to change the partition map, with the fields of the request.
#[derive(ToSchema)]
#[schema(as = RebalanceOutcome)]
#[expect(
    dead_code,
    reason = "describes RebalanceOutcome; generators make nothing of an enumeration in another object"
)]
pub(crate) struct RebalanceOutcomeSchema {
    /// Action that was requested.
    action: RebalanceAction,
    /// Node to drain, to join, or to move the partition to. Absent if the action concerned all nodes.
    #[schema(nullable = false)]
    node: Option<u32>,
    /// Partition to move. Absent if the request named no partition.
    #[schema(nullable = false)]
    partition: Option<u32>,
    /// Reason why the request was not carried out. Null if it was carried out.
    #[schema(required = true)]
    failed: Option<String>,
    /// Whether the request was cancelled.
    cancelled: bool,
    /// Version of the plan that was in force when the request ended.
    plan_version: u64,
    /// Number of contents that were copied.
    copied: u64,
    /// Duration of the request in seconds.
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
                Err(Problem::field("node", "this action concerns all nodes; leave out node"))
            }
            (RebalanceAction::Drain | RebalanceAction::Join | RebalanceAction::Move, None, _) => {
                Err(Problem::field("node", "missing; this action needs the number of a node, from 0"))
            }
            (RebalanceAction::Move, _, None) => {
                Err(Problem::field("partition", "missing; a move needs the id of a partition"))
            }
            (
                RebalanceAction::Balance
                | RebalanceAction::Learn
                | RebalanceAction::Drain
                | RebalanceAction::Join,
                _,
                Some(_),
            ) => Err(Problem::field("partition", "only a move concerns one partition; leave out partition")),
        }
    }
}

/// Returns the interface to the partition map.
///
/// # Errors
/// 404 if the map of this service cannot be changed.
pub(crate) fn partition_map(app: &App) -> Result<&dyn MappingApi, Problem> {
    let none = || Problem::not_found("the index of this service has no partition map that can be changed");
    app.mapping().ok_or_else(none)
}

/// Show the partition plan and the progress of a change.
#[utoipa::path(
    get, path = "/v1/rebalance", operation_id = "get_rebalance", tag = "operations",
    responses(
        (status = 200, description = "The plan in force, and the progress and outcome of the latest request", body = PresentMapping),
        (status = 404, description = "The index has no partition map that can be changed"),
        refusals::Index,
    ),
)]
pub(crate) async fn present(State(app): State<App>) -> Result<Json<PresentMapping>, Problem> {
    app.blocking(|app| {
        let mapping = partition_map(app)?;
        // The progress is read before the plan. If a change ends between the two reads, the plan is then the
        // changed one.
        let progress = mapping.progress()?;
        let plan = mapping.plan()?;
        let (plan_version, nodes, drained) = (plan.map().version(), plan.nodes(), plan.drained().to_vec());
        let (request, outcome) = (mapping.request()?, mapping.outcome()?);
        Ok(Json(PresentMapping { plan_version, nodes, drained, progress, request, outcome }))
    })
    .await
}

/// Change the partition map, or report what a change would do.
///
/// The service keeps answering during the change. While a change is in progress, the service refuses further
/// requests, including dry runs.
#[utoipa::path(
    post, path = "/v1/rebalance", operation_id = "rebalance", tag = "operations", request_body = RebalanceBody,
    responses(
        (status = 200, description = "The change that has started or would start, or the reason why no change is needed", body = RebalancePlan),
        (status = 400, description = "The node or partition does not exist, the node is drained, or it is the last node that may have partitions"),
        (status = 404, description = "The index has no partition map that can be changed"),
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
        let answer = partition_map(app)?.rebalance(request, dry_run)?;
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

/// Cancel the change of the partition map that is in progress.
///
/// The service discards the copies that the change has made, and keeps the plan in force.
#[utoipa::path(
    delete, path = "/v1/rebalance", operation_id = "cancel_rebalance", tag = "operations",
    responses(
        (status = 200, description = "The outcome of the cancelled change", body = RebalanceOutcome),
        (status = 404, description = "The index has no partition map that can be changed"),
        refusals::Cancels,
    ),
)]
pub(crate) async fn cancel(State(app): State<App>) -> Result<Json<RebalanceOutcome>, Problem> {
    app.blocking(|app| {
        let outcome = partition_map(app)?.cancel()?;
        tracing::info!(request = ?outcome.request, copied = outcome.copied, "rebalance cancelled");
        Ok(Json(outcome))
    })
    .await
}

/// Estimate the load balance for other numbers of sub-dictionaries and nodes.
///
/// The estimate is computed for the current contents. Making it takes some seconds, so the service makes one
/// at a time. The answer may be 10 seconds old, or older if making the report takes long; `age_ms` gives its
/// age. The report exists only for policies that bound lengths: `jaccard`, `content` and `copies`.
#[utoipa::path(
    get, path = "/v1/reports/load-balance/what-if", operation_id = "get_load_balance_what_if", tag = "reports",
    responses(
        (status = 200, description = "The figures of the plan in force and of other plans", body = WhatIfReport),
        (status = 404, description = "The index has no partition map"),
        (status = 422, description = "The policy of the collection does not bound lengths, so every search goes to all nodes"),
        refusals::Index,
    ),
)]
pub(crate) async fn what_if(State(app): State<App>) -> Result<Json<WhatIfReport>, Problem> {
    // This check comes first, because it needs no permit.
    let Some(tau) = app.policy().metric() else {
        let reason =
            "does not bound lengths, so every search goes to all nodes, however contents are divided";
        return Err(Problem::not_by_policy(app.policy(), reason));
    };
    let make = move |app: &App| {
        let _permit = app.enter_planning()?;
        let mapping = partition_map(app)?;
        let (plan, sample) = (mapping.plan()?, mapping.sample(SAMPLE_CONTENTS)?);
        let rows = figures(&sample, tau).map_err(|error| {
            tracing::error!(%error, "cannot make the what-if report; the request gets 500");
            Problem::internal()
        })?;
        let (contents, present) = (sample.len() as u64, figures_of_plan(&plan, &sample));
        Ok(WhatIfReport { sample: contents, present, rows, age_ms: None })
    };
    let (report, age_ms) = reports::cached_report(&app, &app.reports().what_if, make).await?;
    Ok(Json(WhatIfReport { age_ms, ..WhatIfReport::clone(&report) }))
}

/// Computes the what-if figures of an existing plan.
fn figures_of_plan(plan: &Plan, sample: &[Arc<Signature>]) -> WhatIf {
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
