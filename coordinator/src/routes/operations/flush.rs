//! `POST /v1/flush`: has the service decide all pending pages, and waits for that if the client wants it.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use doppel_contract::answer::FlushResult;
use doppel_protocol::Tier1Error;
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::contract::refusals;
use crate::limits::{FLUSH_DEFAULT_S, FLUSH_S};
use crate::problem::Problem;
use crate::request::extract::{Query, number};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FlushQuery {
    /// Whether to wait until every page accepted before the call is decided. Default: false.
    #[serde(default)]
    wait: bool,
    /// Maximum number of seconds to wait, 1 to 3,600. Default: 60. Without `wait=true` it has no effect.
    #[param(minimum = 1, maximum = 3_600)]
    timeout: Option<u64>,
}

/// Decide every page that was accepted before the call.
///
/// By default the call does not wait. It starts the decisions, and answers at once with what is left to do.
/// With `wait=true` the call waits until every page is decided, or until `timeout` is over. `done` says
/// whether every page is decided.
///
/// A flush waits for the pages of all clients. A large backlog of one client therefore delays the flushes of
/// the others.
#[utoipa::path(
    post, path = "/v1/flush", operation_id = "flush", tag = "operations", params(FlushQuery),
    responses(
        (status = 200, description = "Whether every page is decided, and the remaining backlog", body = FlushResult),
        (status = 400, description = "A parameter is invalid"),
        refusals::WritesAndIndex,
    ),
)]
pub(crate) async fn flush(
    State(app): State<App>,
    caller: Caller,
    Query(FlushQuery { wait, timeout }): Query<FlushQuery>,
) -> Result<Json<FlushResult>, Problem> {
    let seconds = number("timeout", timeout, FLUSH_DEFAULT_S, 1, FLUSH_S)?;
    let places = if wait { Some(Arc::new((caller.enter_flush()?, app.enter_flush()?))) } else { None };
    let limit = if wait { Duration::from_secs(seconds) } else { Duration::ZERO };
    decided(&app, limit, places).await.map(Json)
}

/// Waits until everything is decided, up to `limit`.
///
/// The wait is split into short steps. The thread and the permits are therefore free soon after the client
/// disconnects, which drops this future, and soon after the service starts to drain. A step holds the permits
/// until it ends, so a client that disconnects repeatedly never has more steps running than permits.
async fn decided<P: Send + Sync + 'static>(
    app: &App,
    limit: Duration,
    places: Option<Arc<P>>,
) -> Result<FlushResult, Problem> {
    let end = Instant::now() + limit;
    let mut is_first = true;
    loop {
        if app.is_draining() && !is_first {
            return Err(Tier1Error::Stopping.into());
        }
        let left = end.saturating_duration_since(Instant::now());
        let step = left.min(app.limits().poll_step);
        let is_last = left <= step;
        let places = places.clone();
        let wait = move |app: &App| {
            let _places = places;
            if is_first {
                app.tier2().flush_batch()?;
            }
            let done = match app.tier1().flush(step) {
                // A range that does not answer in this step may answer in the next.
                Ok(false) | Err(Tier1Error::Unavailable(_)) if !is_last => return Ok(None),
                answer => answer?,
            };
            Ok(Some(FlushResult { done, backlog: app.tier1().totals()?.backlog }))
        };
        if let Some(flushed) = app.blocking_within(step + app.limits().call_time, wait).await? {
            return Ok(flushed);
        }
        is_first = false;
    }
}
