//! Builds the routes, and the OpenAPI document that describes them, from one source.

pub(crate) mod advice;
pub(crate) mod feed;
pub(crate) mod groups;
pub(crate) mod operations;
pub(crate) mod operator_page;
pub(crate) mod pages;
pub(crate) mod reports;

use axum::http::{HeaderValue, Method, Uri};
use axum::middleware::from_fn_with_state;
use axum::{Extension, Router};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::set_header::SetResponseHeaderLayer;
use utoipa::OpenApi;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::AdmissionCheck;
use crate::app::App;
use crate::server::fast_path::{HttpService, POLICY};

use crate::contract;
use crate::problem::Problem;
use crate::server::middleware;

/// Title, description, licence and tags of the OpenAPI document. [`routes()`] adds the operations.
#[derive(OpenApi)]
#[openapi(
    info(
        title = "Doppel",
        description = "Incremental near-duplicate service for collections of web pages that never stop changing. The header \
            `doppel-policy` of every answer names the policy of the collection, which defines what `similarity` measures. Every error \
            is a problem document with a stable type. A path that this document does not list gets 404, and a method that it does not \
            list gets 405. The service refuses unknown fields and parameters in requests. Answers may get new fields with any release.",
        license(name = "MIT OR Apache-2.0", identifier = "MIT OR Apache-2.0"),
    ),
    tags(
        (name = "pages", description = "Record, delete and purge pages"),
        (name = "advice", description = "Look up whether a page is a duplicate, and of which page"),
        (name = "feed", description = "Export the collection and follow its changes"),
        (name = "groups", description = "Inspect and repair groups"),
        (name = "reports", description = "Load, quality, group sizes and savings"),
        (name = "operations", description = "Flush, rebalancing, backup, health, metrics"),
    ),
)]
struct Contract;

/// Returns all routes with their descriptions.
fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::with_openapi(Contract::openapi())
        .routes(routes!(pages::post, pages::delete))
        .routes(routes!(pages::purge))
        .routes(routes!(advice::status::get, advice::status::post))
        .routes(routes!(advice::probe::probe))
        .routes(routes!(advice::explain::get))
        .routes(routes!(advice::winners::get))
        .routes(routes!(feed::changes::get))
        .routes(routes!(feed::export::export))
        .routes(routes!(groups::list))
        .routes(routes!(groups::get))
        .routes(routes!(groups::repair::repair))
        .routes(routes!(groups::repair::repair_many))
        .routes(routes!(groups::repair_trail::list))
        .routes(routes!(groups::repair_trail::get))
        .routes(routes!(reports::load_balance::load_balance))
        .routes(routes!(reports::load_balance::history))
        .routes(routes!(operations::cluster::cluster))
        .routes(routes!(operations::cluster::take_over))
        .routes(routes!(operations::rebalance::what_if))
        .routes(routes!(reports::sample::sample))
        .routes(routes!(reports::quality))
        .routes(routes!(reports::groups))
        .routes(routes!(reports::savings))
        .routes(routes!(
            operations::rebalance::present,
            operations::rebalance::rebalance,
            operations::rebalance::cancel
        ))
        .routes(routes!(operations::flush::flush))
        .routes(routes!(operations::backup::backup))
        .routes(routes!(operations::healthz))
        .routes(routes!(operations::readiness::readyz))
        .routes(routes!(operations::metrics))
        .routes(routes!(operations::openapi))
        .routes(routes!(operator_page::page))
        .routes(routes!(operator_page::asset))
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
pub(crate) fn http_service(state: App, admission: AdmissionCheck) -> HttpService {
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
        .layer(Extension(operations::OpenApiJson(document.into())))
        .layer(from_fn_with_state((state.clone(), admission.clone()), middleware::guard))
        .layer(CatchPanicLayer::custom(middleware::panic_response))
        .layer(SetResponseHeaderLayer::overriding(POLICY, policy.clone()))
        .layer(from_fn_with_state(state.clone(), middleware::observe))
        .with_state(state.clone());
    HttpService::new(state, (admission, policy), routes)
}

async fn no_route(uri: Uri) -> Problem {
    Problem::not_found(format!("the path {} does not exist; /openapi.json lists all paths", uri.path()))
}

async fn no_method(method: Method, uri: Uri) -> Problem {
    Problem::method_not_allowed(format!(
        "the path {} does not support {method}; /openapi.json lists the methods",
        uri.path()
    ))
}
