//! The routes and the document that describes them, from one source; what surrounds every request.

use std::any::Any;

use axum::extract::{Request, State};
use axum::http::{HeaderName, Method, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;
use crate::operations::OpenApiJson;
use crate::problem::Problem;
use crate::{
    backup, changes, explain, groups, load, mapping, metrics, operations, pages, repair, repairs, reports,
    request_id, sample, status, winners,
};

/// The public contract.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Doppel",
        description = "Incremental near-duplicate service for collections of web pages that never stop changing",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    tags(
        (name = "pages", description = "What a pipeline tells Doppel"),
        (name = "advice", description = "Is this page a duplicate, and of which winner?"),
        (name = "feed", description = "Changes and the whole"),
        (name = "groups", description = "Inspect and repair groups"),
        (name = "reports", description = "Load, quality and sizes"),
        (name = "operations", description = "Flush, rebalancing, backup, health, metrics"),
    ),
)]
struct Contract;

/// Every route with its description.
fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Contract::openapi())
        .routes(routes!(pages::post, pages::delete))
        .routes(routes!(pages::purge))
        .routes(routes!(status::get, status::post))
        .routes(routes!(status::probe))
        .routes(routes!(explain::get))
        .routes(routes!(winners::get))
        .routes(routes!(changes::get))
        .routes(routes!(operations::export))
        .routes(routes!(groups::list))
        .routes(routes!(groups::get))
        .routes(routes!(repair::repair))
        .routes(routes!(repair::repair_many))
        .routes(routes!(repairs::list))
        .routes(routes!(repairs::get))
        .routes(routes!(load::load_balance))
        .routes(routes!(mapping::what_if))
        .routes(routes!(sample::sample))
        .routes(routes!(reports::quality))
        .routes(routes!(reports::groups))
        .routes(routes!(mapping::present, mapping::rebalance, mapping::cancel))
        .routes(routes!(operations::flush))
        .routes(routes!(backup::backup))
        .routes(routes!(operations::healthz))
        .routes(routes!(operations::readyz))
        .routes(routes!(operations::metrics))
        .routes(routes!(operations::openapi))
        .routes(routes!(operations::page))
}

/// The OpenAPI document of the public contract.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    routes().into_openapi()
}

/// The whole front door as one service.
pub fn app(state: App) -> Router {
    let (router, document) = routes().split_for_parts();
    let document = serde_json::to_vec(&document).unwrap_or_else(|error| {
        tracing::error!(%error, "the OpenAPI document was not written");
        Vec::new()
    });
    router
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(Extension(OpenApiJson(document.into())))
        .layer(middleware::from_fn_with_state(state.clone(), guard))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(middleware::from_fn_with_state(state.clone(), metrics::track))
        .layer(middleware::from_fn_with_state(state.clone(), request_id::identify))
        .with_state(state)
}

async fn no_route(uri: Uri) -> Problem {
    Problem::not_found(format!("there is nothing at {}; /openapi.json lists what there is", uri.path()))
}

async fn no_method(method: Method, uri: Uri) -> Problem {
    Problem::method_not_allowed(format!("{method} is not for {}; /openapi.json lists what is", uri.path()))
}

/// Bounds the requests in work, and keeps other sites' pages in an operator's browser from changing
/// anything. Health and metrics are always answered.
async fn guard(State(app): State<App>, request: Request, next: Next) -> Response {
    if !request.uri().path().starts_with("/v1/") {
        return next.run(request).await;
    }
    let site = request.headers().get(HeaderName::from_static("sec-fetch-site"));
    if site.is_some_and(|site| site == "cross-site" || site == "same-site") && !request.method().is_safe() {
        return Problem::cross_site().into_response();
    }
    match app.enter() {
        Ok(_place) => next.run(request).await,
        Err(busy) => busy.into_response(),
    }
}

/// The message of a panic is in the log by the panic hook; the caller learns that there was one.
fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    Problem::internal().into_response()
}
