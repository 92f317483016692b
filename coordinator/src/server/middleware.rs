//! Middleware around every request of the routes: the request id, the measurements, access control, the
//! limits on requests in progress, and the answer to a panic.
//!
//! Invariants: every answer has exactly one request id, which a problem document repeats, and every request
//! is counted once.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use doppel_http::ClientAddress;

use crate::access::role::{self, Role};
use crate::access::{AdmissionCheck, hosts};
use crate::app::App;
use crate::app::blocking_calls::{RequestPermits, with_permits};
use crate::problem::Problem;
use crate::request::id::REQUEST_ID;
use crate::response::held_body;
#[cfg(feature = "otel")]
use crate::server::tracing_context;

/// Route label of requests that match no route.
pub(crate) const UNMATCHED: &str = "unmatched";

/// Assigns an id to a request, and counts and times the request. The id appears in the log span, in a header
/// of the answer, and in a problem document.
///
/// The span contains only the id, because every request pays for its span. The log line about the answer
/// names the method and the route.
pub(crate) async fn observe(
    State(app): State<App>,
    matched: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let id = app.request_ids().id_of(request.headers());
    let span = tracing::info_span!("request", id = id.as_str());
    #[cfg(feature = "otel")]
    tracing_context::adopt(&span, request.headers(), method_name(request.method()), route(matched.as_ref()));
    let response = respond_and_record(&app, matched.as_ref(), request, next).instrument(span).await;
    let mut response = Problem::of_request(response, &id);
    response.headers_mut().insert(REQUEST_ID, id.into_header());
    response
}

/// Answers a request, and logs, counts and times the answer.
async fn respond_and_record(
    app: &App,
    matched: Option<&MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let begin = Instant::now();
    let method = request.method().clone();
    let response = next.run(request).await;
    let (method, route) = (method_name(&method), route(matched));
    let (status, took) = (response.status(), begin.elapsed());
    let seconds = took.as_secs_f64();
    // The cause of a 500 was logged earlier, but without method and route. This line adds them at the error
    // level.
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(method, route, status = status.as_u16(), seconds, "answered");
    } else {
        tracing::debug!(method, route, status = status.as_u16(), seconds, "answered");
    }
    app.metrics().answered(method, route, status.as_u16(), took);
    response
}

/// Returns the pattern of the route that a request matched. All paths without a route share one name, because
/// every name becomes a label of the metrics.
fn route(matched: Option<&MatchedPath>) -> &str {
    matched.map_or(UNMATCHED, MatchedPath::as_str)
}

/// Returns the name of a common HTTP method. All other methods share the name `other`, because a client can
/// invent any number of methods, and every name becomes a label of the metrics.
pub(crate) fn method_name(method: &Method) -> &str {
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::DELETE,
        Method::PATCH,
        Method::OPTIONS,
    ];
    if known.contains(method) { method.as_str() } else { "other" }
}

/// Checks the token that an operation needs, limits the requests in progress of each client and of all
/// clients, and refuses writes that a page of another site sends from an operator's browser.
///
/// The limits apply to paths under `/v1/` only. Health checks and metrics are therefore answered even under
/// full load, if the token allows it.
pub(crate) async fn guard(
    State((app, admission)): State<(App, AdmissionCheck)>,
    matched: Option<MatchedPath>,
    mut request: Request,
    next: Next,
) -> Response {
    // A path without a route needs no role, because it does nothing.
    let required =
        matched.as_ref().and_then(|path| role::required(role_method(request.method()), path.as_str()));
    let token = match admission.admit(request.headers(), required, app.arrival_clock().now()) {
        Ok(token) => token,
        Err(refused) => return refused.into_response(),
    };
    let address = request.extensions().get::<ClientAddress>().map(|remote| remote.0);
    let caller = admission.clients().caller(token, address);
    request.extensions_mut().insert(caller.clone());
    if !request.uri().path().starts_with("/v1/") {
        return next.run(request).await;
    }
    // Over plain HTTP, browsers send `Sec-Fetch-Site` only to host names of their own machine, but they send
    // `Origin` to every host. The guard therefore checks both.
    let site = request.headers().get(HeaderName::from_static("sec-fetch-site"));
    let is_foreign = site.is_some_and(|site| site == "cross-site" || site == "same-site")
        || hosts::is_of_another_origin(&request);
    if is_foreign && !request.method().is_safe() {
        return Problem::cross_site().into_response();
    }
    let permits: RequestPermits = match caller.enter().and_then(|own| Ok((own, app.enter()?))) {
        Ok(permits) => Arc::new(permits),
        Err(busy) => return busy.into_response(),
    };
    if required == Some(Role::Operate) {
        // The line is logged before the operation, because the operation continues even if its client
        // disconnects.
        let by = caller.name().map_or_else(|| "anonymous".to_owned(), ToString::to_string);
        tracing::info!(by, method = %request.method(), route = route(matched.as_ref()), "an operator's request");
    }
    let (parts, body) = with_permits(Arc::clone(&permits), next.run(request)).await.into_parts();
    // A request counts as in progress until its answer is sent.
    Response::from_parts(parts, held_body::until_sent(body, permits))
}

/// Returns the method whose role applies. `HEAD` needs the role of `GET`.
fn role_method(method: &Method) -> &str {
    if *method == Method::HEAD { Method::GET.as_str() } else { method.as_str() }
}

/// Builds the answer (500) after a panic of a handler. The panic hook logs the message of the panic; the
/// client learns only that an internal error occurred.
pub(crate) fn panic_response(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a request handler panicked; the request gets 500");
    Problem::internal().into_response()
}
