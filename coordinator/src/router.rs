//! Builds the routes, and the OpenAPI document that describes them, from one source.

use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Gate;
use crate::app::App;
use crate::front::{Front, POLICY};
use crate::operations::OpenApiJson;
use crate::problem::Problem;
use crate::{
    assets, backup, changes, cluster, contract, explain, groups, load, mapping, middleware, operations,
    pages, readiness, repair, repairs, reports, sample, status, winners,
};

/// The public contract.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Doppel",
        description = "Incremental near-duplicate service for collections of web pages that never stop changing. The header `doppel-policy` of \
            every answer names the policy of the collection, and so what `similarity` measures. An error is a problem document, whose type \
            is stable; a path that is not here is a 404, and a method that is not here a 405. Unknown fields and parameters are \
            refused, and may come in answers with any release.",
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

/// Returns all routes with their descriptions.
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
        .routes(routes!(load::history))
        .routes(routes!(cluster::cluster))
        .routes(routes!(cluster::take_over))
        .routes(routes!(mapping::what_if))
        .routes(routes!(sample::sample))
        .routes(routes!(reports::quality))
        .routes(routes!(reports::groups))
        .routes(routes!(reports::savings))
        .routes(routes!(mapping::present, mapping::rebalance, mapping::cancel))
        .routes(routes!(operations::flush))
        .routes(routes!(backup::backup))
        .routes(routes!(operations::healthz))
        .routes(routes!(readiness::readyz))
        .routes(routes!(operations::metrics))
        .routes(routes!(operations::openapi))
        .routes(routes!(assets::page))
        .routes(routes!(assets::asset))
}

/// Returns the OpenAPI document of the public contract.
#[must_use]
pub fn openapi() -> utoipa::openapi::OpenApi {
    described(routes()).1
}

fn described(routes: OpenApiRouter<App>) -> (Router<App>, utoipa::openapi::OpenApi) {
    let (router, mut document) = routes.split_for_parts();
    contract::complete(&mut document);
    (router, document)
}

/// Builds the coordinator's HTTP interface as one service.
pub(crate) fn app(state: App, gate: Gate) -> Front {
    let (router, document) = described(routes());
    let document = serde_json::to_vec(&document).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot serialise the OpenAPI document; /openapi.json is empty");
        Vec::new()
    });
    let policy = HeaderValue::from_str(&state.policy().to_string());
    let policy = policy.unwrap_or_else(|error| {
        tracing::error!(%error, "the policy name is not a valid header value; answers name it `unknown`");
        HeaderValue::from_static("unknown")
    });
    let routes = router
        .fallback(no_route)
        .method_not_allowed_fallback(no_method)
        .layer(Extension(OpenApiJson(document.into())))
        .layer(from_fn_with_state((state.clone(), gate.clone()), middleware::guard))
        .layer(CatchPanicLayer::custom(middleware::panicked))
        .layer(SetResponseHeaderLayer::overriding(POLICY, policy.clone()))
        .layer(from_fn_with_state(state.clone(), middleware::observe))
        .with_state(state.clone());
    Front::new(state, (gate, policy), routes)
}

async fn no_route(uri: Uri) -> Problem {
    Problem::not_found(format!("there is nothing at {}; /openapi.json lists what there is", uri.path()))
}

async fn no_method(method: Method, uri: Uri) -> Problem {
    Problem::method_not_allowed(format!("{method} is not for {}; /openapi.json lists what is", uri.path()))
}
