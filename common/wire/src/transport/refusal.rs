//! Why a node refuses a request.

use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};

use crate::transport::call::VERSION;

/// Header with the protocol version of the sender.
pub(crate) const WIRE: HeaderName = HeaderName::from_static("doppel-wire");
/// Header with the cluster that a request is for.
pub(crate) const CLUSTER: HeaderName = HeaderName::from_static("doppel-cluster");
/// Header with the node that a request is for.
pub(crate) const NODE: HeaderName = HeaderName::from_static("doppel-node");
/// Header with the node that a request comes from.
pub(crate) const FROM: HeaderName = HeaderName::from_static("doppel-from");
/// Header with the kind of a refusal.
const REFUSAL: HeaderName = HeaderName::from_static("doppel-refusal");

/// Why a node refuses a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The secret is missing or wrong.
    Secret,
    /// The caller speaks another version of the protocol.
    Version,
    /// The request is for another cluster.
    Cluster,
    /// The request is for another node.
    Node,
    /// The node has no such call, because it has another role.
    Call,
    /// The body exceeds its size limit.
    RequestTooLarge,
    /// The answer would exceed its size limit.
    AnswerTooLarge,
    /// The body cannot be decoded, or did not arrive in time.
    Body,
    /// The node is already working on the maximum number of requests.
    Busy,
    /// The call failed unexpectedly, for example by a panic.
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

    /// Creates the answer for a refusal, with the reason in words.
    pub(crate) fn because(self, reason: impl Into<String>) -> Response {
        let (_, name, status) = self.entry();
        let mut response = (*status, reason.into()).into_response();
        let headers = response.headers_mut();
        headers.insert(REFUSAL, HeaderValue::from_static(name));
        headers.insert(WIRE, HeaderValue::from(VERSION));
        response
    }

    /// Reads the kind of a refusal from the headers of an answer.
    pub(crate) fn of(headers: &reqwest::header::HeaderMap) -> Option<Self> {
        let name = headers.get(REFUSAL)?;
        Self::ALL.iter().find(|(_, known, _)| known.as_bytes() == name.as_bytes()).map(|(kind, ..)| *kind)
    }

    /// Whether the refusal says that the same request may succeed later. Other refusals may pass as well, but say nothing of it.
    pub(crate) fn is_transient(self) -> bool {
        matches!(self, Self::Busy)
    }
}
