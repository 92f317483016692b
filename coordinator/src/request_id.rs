//! The id of a request: taken from its `x-request-id`, or made; in the span of its logs, in the header of its answer,
//! and in the answer itself where that is a problem.
//!
//! Invariants: every answer of the routes has exactly one id, and a problem the same one; an id has at most
//! [`REQUEST_ID_BYTES`] visible characters of ASCII, so that whoever sends it cannot forge a line of the log; no two
//! requests of a process are given the same one.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument;

use crate::app::App;
use crate::limits::REQUEST_ID_BYTES;
use crate::metrics::method_name;
use crate::problem::Problem;

/// The header, of requests and of answers.
pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The id of one request.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(HeaderValue);

/// The ids that a process makes: numbers that follow a random one.
#[derive(Debug)]
pub(crate) struct RequestIds(AtomicU64);

impl Default for RequestIds {
    fn default() -> Self {
        // Its keys are random; so two processes that log to one place hardly make the same ids.
        Self(AtomicU64::new(RandomState::new().hash_one(())))
    }
}

impl RequestIds {
    /// The id that the request came with, if it can be taken; or a new one.
    fn of(&self, headers: &HeaderMap) -> RequestId {
        let is_sane = |value: &&HeaderValue| {
            let bytes = value.as_bytes();
            (1..=REQUEST_ID_BYTES).contains(&bytes.len()) && bytes.iter().all(u8::is_ascii_graphic)
        };
        let given = headers.get(REQUEST_ID).filter(is_sane).cloned();
        RequestId(given.unwrap_or_else(|| self.0.fetch_add(1, Ordering::Relaxed).into()))
    }
}

impl RequestId {
    pub(crate) fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Gives the request its id, in everything that is said about it.
pub(crate) async fn identify(
    State(app): State<App>,
    matched: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let id = app.request_ids().of(request.headers());
    let route = matched.as_ref().map_or("unmatched", MatchedPath::as_str);
    let span =
        tracing::info_span!("request", id = id.as_str(), method = method_name(request.method()), route);
    let response = next.run(request).instrument(span).await;
    let mut response = Problem::of_request(response, &id);
    response.headers_mut().insert(REQUEST_ID, id.0);
    response
}
