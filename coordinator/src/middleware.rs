//! What surrounds every request: its id, its measurement, the limit on requests in work, and the answer to a panic.
//!
//! Invariants: every answer of the routes has exactly one id, and a problem document has the same one; every request is
//! counted once.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use doppel_http::Remote;

use crate::access::role::{self, Role};
use crate::access::{Gate, hosts};
use crate::app::App;
use crate::calls::{HeldPlaces, holding};
use crate::held;
use crate::problem::Problem;
use crate::request_id::REQUEST_ID;
#[cfg(feature = "otel")]
use crate::tracing_context;

/// The route of requests without one.
pub(crate) const UNMATCHED: &str = "unmatched";

/// Gives a request its id: in the span of what it logs, in the header of its answer, and in a problem document. Counts
/// and times it.
///
/// Every request that comes here pays for the span, so it has the id alone; method and route are in the line of the log about the answer.
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
    let response = measured(&app, matched.as_ref(), request, next).instrument(span).await;
    let mut response = Problem::of_request(response, &id);
    response.headers_mut().insert(REQUEST_ID, id.into_header());
    response
}

/// Answers a request, and counts and times it.
async fn measured(app: &App, matched: Option<&MatchedPath>, request: Request, next: Next) -> Response {
    let begin = Instant::now();
    let method = request.method().clone();
    let response = next.run(request).await;
    let (method, route) = (method_name(&method), route(matched));
    let (status, took) = (response.status(), begin.elapsed());
    let seconds = took.as_secs_f64();
    // The cause was logged before, without method and route.
    if status == StatusCode::INTERNAL_SERVER_ERROR {
        tracing::error!(method, route, status = status.as_u16(), seconds, "answered");
    } else {
        tracing::debug!(method, route, status = status.as_u16(), seconds, "answered");
    }
    app.metrics().answered(method, route, status.as_u16(), took);
    response
}

/// The pattern of the route that a request took. All paths without a route have one name, because every name is a label
/// of the metrics.
fn route(matched: Option<&MatchedPath>) -> &str {
    matched.map_or(UNMATCHED, MatchedPath::as_str)
}

/// The name of a method, if it is one of the usual ones. All others have one name, because a client can invent as many
/// as it likes, and every name is a label of the metrics.
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

/// Asks for the token that an operation needs, bounds the requests in work, of a client and of all, and keeps other sites' pages in an
/// operator's browser from changing anything. Health and metrics are always answered to whoever may ask.
pub(crate) async fn guard(
    State((app, gate)): State<(App, Gate)>,
    matched: Option<MatchedPath>,
    mut request: Request,
    next: Next,
) -> Response {
    // What has no route does nothing.
    let required = matched.as_ref().and_then(|path| role::required(verb(request.method()), path.as_str()));
    let token = match gate.admit(request.headers(), required, app.arrivals().now()) {
        Ok(token) => token,
        Err(refused) => return refused.into_response(),
    };
    let address = request.extensions().get::<Remote>().map(|remote| remote.0);
    let caller = gate.clients().caller(token, address);
    request.extensions_mut().insert(caller.clone());
    if !request.uri().path().starts_with("/v1/") {
        return next.run(request).await;
    }
    // Browsers send the former to names of plain HTTP only where they are the machine's own, and the latter to all.
    let site = request.headers().get(HeaderName::from_static("sec-fetch-site"));
    let is_foreign = site.is_some_and(|site| site == "cross-site" || site == "same-site")
        || hosts::is_of_another_origin(&request);
    if is_foreign && !request.method().is_safe() {
        return Problem::cross_site().into_response();
    }
    let places: HeldPlaces = match caller.enter().and_then(|own| Ok((own, app.enter()?))) {
        Ok(places) => Arc::new(places),
        Err(busy) => return busy.into_response(),
    };
    if required == Some(Role::Operate) {
        // Now, because it goes on when its caller goes.
        let by = caller.name().map_or_else(|| "anonymous".to_owned(), ToString::to_string);
        tracing::info!(by, method = %request.method(), route = route(matched.as_ref()), "an operator's request");
    }
    let (parts, body) = holding(Arc::clone(&places), next.run(request)).await.into_parts();
    // An answer that is being sent is in work.
    Response::from_parts(parts, held::until_sent(body, places))
}

/// A request for the head of an answer needs what one for the answer needs.
fn verb(method: &Method) -> &str {
    if *method == Method::HEAD { Method::GET.as_str() } else { method.as_str() }
}

/// The message of a panic is in the log by the panic hook; the caller learns that there was one.
pub(crate) fn panicked(_: Box<dyn Any + Send>) -> Response {
    tracing::error!("a handler panicked");
    Problem::internal().into_response()
}
