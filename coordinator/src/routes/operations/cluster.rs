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

/// Which nodes are there, what do they have, and what needs attention?
#[utoipa::path(get, path = "/v1/cluster", operation_id = "get_cluster", tag = "operations", responses(
        (status = 200, description = "Nodes, ranges and the log; a single process has none of them", body = ClusterStatus),
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

/// Who is to own a range.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"range": 0, "to": "record-2"})))]
pub(crate) struct TakeOverBody {
    /// The range.
    #[schema(value_type = u16, minimum = 0, maximum = 65_535)]
    range: RangeId,
    /// The node of tier 1, which must have a replica of it.
    to: String,
}

/// Have a node own a range. It begins to take the range over; `GET /v1/cluster` shows when it has.
#[utoipa::path(post, path = "/v1/cluster/takeover", operation_id = "take_over_range", tag = "operations", request_body = TakeOverBody,
    responses((status = 202, description = "The node takes the range over"),
        (status = 400, description = "No such range, or no replica of it there"),
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
