//! What became of pages that were sent: the answers of `/v1/pages` and `/v1/purge`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::Outcome;

/// A page that was taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Taken {
    /// The page: its URL as given, without the fragment.
    pub url: String,
    /// What became of it, durably. `unchanged`: nothing but dates changed. `confirmed`: settled at once, as it
    /// is still like its group's winner (a page on its own: like its last content), or is dead, or has no
    /// words. `pending`: accepted, and to be compared. `stale`: a newer version is on record, and it was not
    /// taken.
    pub outcome: Outcome,
}

/// The answer to one line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum LineAnswer {
    /// It was taken.
    Taken(Taken),
    /// It was not.
    NotTaken(NotTaken),
}

/// A line that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NotTaken {
    /// Its number, the first line of the body being 1.
    pub line: usize,
    /// Its page, where that can be told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What is wrong.
    pub error: LineError,
}

/// Why a line was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineError {
    /// Whether the line is at fault or the moment.
    pub code: LineCode,
    /// The field that is wrong.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field: Option<String>,
    /// In words.
    pub reason: String,
}

/// The kinds of [`LineError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LineCode {
    /// The line is no page.
    Invalid,
    /// The service takes no more at the moment; send the line again later.
    Retry,
    /// The service failed on this line; its log says more.
    Internal,
}

/// What a purge did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Purged {
    /// Pages that were on record and are not any more.
    pub purged: u64,
}
