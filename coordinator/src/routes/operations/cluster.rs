//! `/v1/cluster`: reports the nodes of the cluster and their faults, and lets an operator move the ownership
//! of a range.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use doppel_contract::answer::ClusterStatus;
use doppel_model::RangeId;
use doppel_protocol::{TakeOverError, Tier1Error};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::contract::refusals;
use crate::problem::Problem;
use crate::request::extract::JsonBody;

/// Show the nodes of the cluster, the ranges, and the faults that need attention.
#[utoipa::path(get, path = "/v1/cluster", operation_id = "get_cluster", tag = "operations", responses(
        (status = 200, description = "The nodes, the ranges and the log; none of these for a single process", body = ClusterStatus),
        refusals::Waits,
    ))]
pub(crate) async fn cluster(State(app): State<App>) -> Result<Json<ClusterStatus>, Problem> {
    app.blocking(|app| {
        Ok(Json(match app.cluster() {
            Some(cluster) => cluster.status(),
            None => ClusterStatus {
                cluster: None,
                replicated: false,
                nodes: Vec::new(),
                ranges: Vec::new(),
                engine: None,
                orders_waiting: app.tier2().waiting().ok().map(|waiting| waiting as u64),
                attention: Vec::new(),
            },
        }))
    })
    .await
}

/// A request to move the ownership of a range to a node.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"range": 0, "to": "record-2"})))]
pub(crate) struct TakeOverBody {
    /// Number of the range.
    #[schema(value_type = u16, minimum = 0, maximum = 65_535)]
    range: RangeId,
    /// Name of the tier-1 node that takes over the range. The node must have a replica of the range.
    to: String,
}

/// Make a node the owner of a range.
///
/// The answer means that the node has begun to take over the range. `GET /v1/cluster` shows when the node
/// owns it.
#[utoipa::path(post, path = "/v1/cluster/takeover", operation_id = "take_over_range", tag = "operations", request_body = TakeOverBody,
    responses((status = 202, description = "The node has begun to take over the range"),
        (status = 400, description = "The range does not exist, or the node has no replica of it"),
        refusals::Orders,
    ))]
pub(crate) async fn take_over(
    State(app): State<App>,
    JsonBody(body, share): JsonBody<TakeOverBody>,
) -> Result<StatusCode, Problem> {
    app.blocking(move |app| {
        let _share = share;
        let cluster = app.cluster().ok_or(TakeOverError::NotReplicated);
        cluster.and_then(|cluster| cluster.take_over(body.range, &body.to))?;
        Ok(StatusCode::ACCEPTED)
    })
    .await
}

impl From<TakeOverError> for Problem {
    fn from(error: TakeOverError) -> Self {
        match &error {
            TakeOverError::NotReplicated => Self::bad_request(error.to_string()),
            TakeOverError::NoRange(_) => Self::field("range", error.to_string()),
            TakeOverError::NoReplica { .. } => Self::field("to", error.to_string()),
            TakeOverError::Unavailable(why) => Tier1Error::Unavailable(why.clone()).into(),
        }
    }
}
