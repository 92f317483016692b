//! The public form of an error: `application/problem+json` (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error as the answer to a request. An error from a proxy may contain only `detail`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "type": "urn:doppel:problem:bad-request", "title": "Bad Request", "status": 400, "detail": "0 is not from 1 to 1000",
    "field": "limit", "request_id": "nightly-17",
})))]
#[schema(as = Problem)]
pub struct ProblemDetails {
    /// Stable name of the kind of error, `urn:doppel:problem:<name>`.
    #[serde(rename = "type", default)]
    #[schema(required = true, pattern = "^urn:doppel:problem:[a-z-]+$")]
    pub kind: String,
    /// Name of the HTTP status.
    #[serde(default)]
    #[schema(required = true)]
    pub title: String,
    /// HTTP status code of the answer.
    #[serde(default)]
    #[schema(required = true, minimum = 400, maximum = 599)]
    pub status: u16,
    /// What is wrong with the request, or with the service.
    pub detail: String,
    /// The parameter or field with the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Number of seconds after which to try again. The header `Retry-After` has the same value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// Id of the request. The header `x-request-id` and the service's log contain the same id.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}
