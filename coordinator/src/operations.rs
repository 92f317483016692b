//! Routes of general operations: flush, export, liveness, metrics and the OpenAPI document.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use doppel_protocol::Tier1Error;
use doppel_protocol::answer::{ExportLine, Flushed, MarketForm};
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::changes::CURSOR;
use crate::contract::refusals;
use crate::extract::{Query, market, number};
use crate::limits::{FLUSH_DEFAULT_S, FLUSH_S, LONG_CALL_TIME};
use crate::metrics::text;
use crate::pages::NDJSON;
use crate::problem::Problem;
use crate::stream::stream;
use doppel_engine::export::Collected;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct FlushQuery {
    /// Wait until everything accepted before the call is decided.
    #[serde(default)]
    wait: bool,
    /// Seconds to wait at most, 1 to 3,600; 60 where none is given.
    #[param(minimum = 1, maximum = 3_600)]
    timeout: Option<u64>,
}

/// Decide everything accepted before the call.
///
/// The pages of all clients count, so one client's backlog delays the answer to all of them.
#[utoipa::path(
    post, path = "/v1/flush", operation_id = "flush", tag = "operations", params(FlushQuery),
    responses(
        (status = 200, description = "Whether all is decided, and what is left", body = Flushed),
        (status = 400, description = "A parameter is wrong"),
        refusals::WritesAndIndex,
    ),
)]
pub(crate) async fn flush(
    State(app): State<App>,
    caller: Caller,
    Query(FlushQuery { wait, timeout }): Query<FlushQuery>,
) -> Result<Json<Flushed>, Problem> {
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
) -> Result<Flushed, Problem> {
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
            Ok(Some(Flushed { done, backlog: app.tier1().totals()?.backlog }))
        };
        if let Some(flushed) = app.blocking_within(step + app.limits().call_time, wait).await? {
            return Ok(flushed);
        }
        is_first = false;
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer winners of
    /// such hosts.
    #[param(value_type = Option<MarketForm>)]
    market: Option<String>,
}

/// Every live page, sorted by URL.
///
/// The header `doppel-cursor` is where the change feed goes on. An answer that breaks off is incomplete.
#[utoipa::path(
    get, path = "/v1/export", operation_id = "export_pages", tag = "feed", params(ExportQuery),
    responses(
        (status = 400, description = "No market"),
        (status = 200, description = "Every live page, a line each", body = ExportLine, content_type = "application/x-ndjson",
            headers(("doppel-cursor" = String, description = "Where the change feed goes on")),
        ),
        refusals::Sorts,
    ),
)]
pub(crate) async fn export(
    State(app): State<App>,
    caller: Caller,
    Query(ExportQuery { market: asked }): Query<ExportQuery>,
) -> Result<Response, Problem> {
    let market = market(app.markets(), asked.as_deref())?;
    let permit = (caller.enter_export()?, app.enter_export()?);
    // The scan continues if the client disconnects, so it keeps the permit.
    let collect = move |app: &App| {
        let mut advisor = app.advisor(app.tier1(), market.as_ref()).unlimited();
        Ok((permit, Collected::present(app.tier1(), &mut advisor, app.temp_dir())?))
    };
    let (permit, collected) = app.blocking_within(LONG_CALL_TIME, collect).await?;
    let headers = [(header::CONTENT_TYPE, NDJSON.to_owned()), (CURSOR, collected.cursor().to_owned())];
    let body = stream(permit, ("export", None), move |out| collected.write(out).map(drop));
    Ok((headers, body).into_response())
}

/// Is the process alive?
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "operations", responses((status = 200, description = "It is", body = str)))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Metrics in the OpenMetrics text form, or in the classic text form of Prometheus where `Accept` prefers `text/plain`.
#[utoipa::path(
    get, path = "/metrics", operation_id = "get_metrics", tag = "operations",
    responses(
        (status = 200, description = "The metrics", content(
            (str = "application/openmetrics-text"),
            (str = "text/plain"),
        ), headers(("vary" = String, description = "That `Accept` chooses the form"))),
        refusals::Scrapes,
    ),
)]
pub(crate) async fn metrics(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let form = text::wanted(&headers);
    let _places = (caller.enter_scrape()?, app.enter_scrape()?);
    let text = app.blocking_for_health(move |app| text::encode(app.registry(), form)).await?;
    Ok(([(header::CONTENT_TYPE, form), (header::VARY, "accept")], text).into_response())
}

/// The OpenAPI document, as JSON.
#[derive(Debug, Clone)]
pub(crate) struct OpenApiJson(pub(crate) Bytes);

/// This contract as an OpenAPI document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "get_openapi", tag = "operations", responses((status = 200, description = "The document", body = Object)))]
pub(crate) async fn openapi(Extension(OpenApiJson(json)): Extension<OpenApiJson>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}
