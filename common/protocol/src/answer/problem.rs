//! The public form of an error: `application/problem+json` (RFC 9457).

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// An error as an answer. If a proxy made it, it may have nothing but a detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "type": "urn:doppel:problem:bad-request", "title": "Bad Request", "status": 400, "detail": "0 is not from 1 to 1000",
    "field": "limit", "request_id": "nightly-17",
})))]
pub struct Problem {
    /// A stable name of the kind of error, `urn:doppel:problem:<name>`.
    #[serde(rename = "type", default)]
    #[schema(required = true, pattern = "^urn:doppel:problem:[a-z-]+$")]
    pub kind: String,
    /// The HTTP status in words.
    #[serde(default)]
    #[schema(required = true)]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    #[schema(required = true, minimum = 400, maximum = 599)]
    pub status: u16,
    /// What is wrong with this request, or with the service.
    pub detail: String,
    /// The parameter or field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// Seconds after which to try again, also sent as `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<u32>,
    /// The id of the request, as in the header `x-request-id` and in the service's log.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}
