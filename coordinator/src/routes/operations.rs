//! The routes of the tag `operations`. This module itself answers for liveness, the metrics and the OpenAPI
//! document.

pub(crate) mod backup;
pub(crate) mod cluster;
pub(crate) mod flush;
pub(crate) mod readiness;
pub(crate) mod rebalance;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};

use crate::access::Caller;
use crate::app::App;
use crate::contract::refusals;
use crate::metrics::text;
use crate::problem::Problem;

/// Check whether the process is alive.
#[utoipa::path(get, path = "/healthz", operation_id = "get_health", tag = "operations", responses((status = 200, description = "The process is alive", body = str)))]
pub(crate) async fn healthz() -> &'static str {
    "ok\n"
}

/// Read the metrics.
///
/// The answer is in the OpenMetrics text format, or in the classic Prometheus text format if `Accept` prefers
/// `text/plain`.
#[utoipa::path(
    get, path = "/metrics", operation_id = "get_metrics", tag = "operations",
    responses(
        (status = 200, description = "The metrics", content(
            (str = "application/openmetrics-text"),
            (str = "text/plain"),
        ), headers(("vary" = String, description = "Names `Accept`, because that header selects the format"))),
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

/// Read this contract as an OpenAPI document.
#[utoipa::path(get, path = "/openapi.json", operation_id = "get_openapi", tag = "operations", responses((status = 200, description = "The OpenAPI document", body = Object)))]
pub(crate) async fn openapi(Extension(OpenApiJson(json)): Extension<OpenApiJson>) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], json).into_response()
}
