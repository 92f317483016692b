//! The outcomes of submitted pages and of purges: the answers of `/v1/pages` and `/v1/purge`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::outcome::SubmissionOutcome;

/// A page that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"url": "https://example.org/hours", "outcome": "pending"})))]
#[schema(as = Taken)]
pub struct AcceptedPage {
    /// URL of the page, as submitted but without the fragment.
    pub url: String,
    /// The durable outcome of the submission. `unchanged`: at most dates changed. `confirmed`: decided at
    /// once, because the page is dead, has no words, or is still a near-duplicate of its group's winner. A
    /// page without a group is compared with its own last content. `pending`: accepted, and waiting for
    /// comparison. `stale`: not accepted, because a newer version is on record. Among versions of the same
    /// date, a content is newer than a redirect, and a death is newer than both.
    pub outcome: SubmissionOutcome,
}

/// The answer to a submitted line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum LineAnswer {
    /// The line was accepted.
    Accepted(AcceptedPage),
    /// The line was not accepted.
    Rejected(RejectedLine),
}

/// A line that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "line": 4, "url": "https://example.org/hours",
    "error": {"code": "invalid", "field": "fetched_at", "reason": "more than 24 hours in the future"},
})))]
#[schema(as = NotTaken)]
pub struct RejectedLine {
    /// Number of the line, counted from 1.
    pub line: usize,
    /// URL of the page on the line; absent if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The error on this line.
    pub error: LineError,
}

/// Why a line was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineError {
    /// The kind of error.
    pub code: LineCode,
    /// The field with the error; absent if no single field is at fault.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The reason for the error, in words.
    pub reason: String,
}

/// A kind of error on a submitted line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineCode {
    /// The line is not a valid page.
    Invalid,
    /// The service cannot accept more at the moment. Send the line again later.
    Retry,
    /// The service failed to process the line. Its log contains the cause.
    Internal,
}

/// The result of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Purged)]
pub struct PurgeResult {
    /// Number of pages whose records were deleted.
    pub purged: u64,
}
