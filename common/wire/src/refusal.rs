//! Why a request is not carried out.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::call::VERSION;

/// Says the version of whoever sends it.
pub(crate) const WIRE: HeaderName = HeaderName::from_static("doppel-wire");
/// Names the cluster that a request is for.
pub(crate) const CLUSTER: HeaderName = HeaderName::from_static("doppel-cluster");
/// Names the node that a request is for.
pub(crate) const NODE: HeaderName = HeaderName::from_static("doppel-node");
/// Names the node that a request comes from.
pub(crate) const FROM: HeaderName = HeaderName::from_static("doppel-from");
/// Names the kind of a refusal.
const REFUSAL: HeaderName = HeaderName::from_static("doppel-refusal");

/// Why a node does not carry out a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The secret is missing or another one.
    Secret,
    /// The caller speaks another version.
    Version,
    /// The request is for another cluster.
    Cluster,
    /// The request is for another node.
    Node,
    /// The node has no such call: it has another role.
    Call,
    /// The body is over its limit.
    RequestTooLarge,
    /// The answer would be over its limit.
    AnswerTooLarge,
    /// The body is not what the call takes, or did not come in time.
    Body,
    /// As many requests as possible are in work.
    Busy,
    /// The call failed in a way that it should not.
    Failed,
}

impl Refusal {
    const ALL: [(Self, &'static str, StatusCode); 10] = [
        (Self::Secret, "secret", StatusCode::UNAUTHORIZED),
        (Self::Version, "version", StatusCode::BAD_REQUEST),
        (Self::Cluster, "cluster", StatusCode::MISDIRECTED_REQUEST),
        (Self::Node, "node", StatusCode::MISDIRECTED_REQUEST),
        (Self::Call, "call", StatusCode::NOT_FOUND),
        (Self::RequestTooLarge, "request-too-large", StatusCode::PAYLOAD_TOO_LARGE),
        (Self::AnswerTooLarge, "answer-too-large", StatusCode::UNPROCESSABLE_ENTITY),
        (Self::Body, "body", StatusCode::BAD_REQUEST),
        (Self::Busy, "busy", StatusCode::SERVICE_UNAVAILABLE),
        (Self::Failed, "failed", StatusCode::INTERNAL_SERVER_ERROR),
    ];

    fn entry(self) -> &'static (Self, &'static str, StatusCode) {
        Self::ALL.iter().find(|(kind, ..)| *kind == self).unwrap_or(&Self::ALL[9])
    }

    /// The answer that says so, with the reason in words.
    pub(crate) fn because(self, reason: impl Into<String>) -> Response {
        let (_, name, status) = self.entry();
        let mut response = (*status, reason.into()).into_response();
        let headers = response.headers_mut();
        headers.insert(REFUSAL, HeaderValue::from_static(name));
        headers.insert(WIRE, HeaderValue::from(VERSION));
        response
    }

    /// The kind of a refusal that was received.
    pub(crate) fn of(headers: &reqwest::header::HeaderMap) -> Option<Self> {
        let name = headers.get(REFUSAL)?;
        Self::ALL.iter().find(|(_, known, _)| known.as_bytes() == name.as_bytes()).map(|(kind, ..)| *kind)
    }

    /// Whether the same request may be carried out later.
    pub(crate) fn may_pass(self) -> bool {
        matches!(self, Self::Busy)
    }
}
