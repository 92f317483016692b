//! The outcomes of submitted pages: the answers of `/v1/pages` and `/v1/purge`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Outcome;

/// A page that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({"url": "https://example.org/hours", "outcome": "pending"})))]
pub struct Taken {
    /// The page: its URL as given, without the fragment.
    pub url: String,
    /// The durable outcome. `unchanged`: nothing but dates changed. `confirmed`: decided at once, because the page is
    /// still like its group's winner (without a group: like its own last content), is dead or has no words. `pending`:
    /// accepted, and still to be compared. `stale`: not accepted, because a newer version is on record, or one of the
    /// same date that comes later: a redirect comes before a content, and a content before a death.
    pub outcome: Outcome,
}

/// The answer to one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum LineAnswer {
    /// The line was accepted.
    Taken(Taken),
    /// The line was not accepted.
    NotTaken(NotTaken),
}

/// A line that was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "line": 4, "url": "https://example.org/hours",
    "error": {"code": "invalid", "field": "fetched_at", "reason": "more than 24 hours in the future"},
})))]
pub struct NotTaken {
    /// The number of the line, counted from 1.
    pub line: usize,
    /// The URL of its page, if that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What is wrong.
    pub error: LineError,
}

/// Why a line was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineError {
    /// The kind of error.
    pub code: LineCode,
    /// The field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// The reason in words.
    pub reason: String,
}

/// The kinds of [`LineError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineCode {
    /// The line is not a valid page.
    Invalid,
    /// The service accepts no more at the moment. Send the line again later.
    Retry,
    /// The service failed on this line. Its log says more.
    Internal,
}

/// The result of a purge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Purged {
    /// The number of pages that were deleted from the record.
    pub purged: u64,
}
