//! The state of a page that tier 1 publishes, and the events of the change feed.

use doppel_contract::answer::{ChangeLine, ChangesAnswer, ExportLine};
use doppel_contract::{Status, UnresolvedReason};
use doppel_model::{GroupId, PageUrl, Timestamp};
use serde::{Deserialize, Serialize};

/// State of a page, as in the export and the change feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// URL of the page.
    pub url: PageUrl,
    /// Status of the page.
    pub status: Status,
    /// Group of the page; `None` if the page is in no group.
    pub group: Option<GroupId>,
    /// Winner of the group.
    pub winner: Option<PageUrl>,
    /// The kept page that this page duplicates.
    pub duplicate_of: Option<PageUrl>,
    /// Similarity between the page and `duplicate_of`, by the measure of the policy. `None` for redirects.
    pub similarity: Option<f64>,
    /// Why the redirect is unresolved. The export omits this field.
    pub reason: Option<UnresolvedReason>,
}

/// An event of the change feed: the newest state of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeedEvent {
    /// State of the page.
    pub line: Line,
    /// Time of the newest fetch of the page.
    pub fetched_at: Timestamp,
}

/// A batch of events from the change feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FeedBatch {
    /// Events from the feed. Events of the same URL are in order.
    pub changes: Vec<FeedEvent>,
    /// Opaque cursor to continue from.
    pub cursor: String,
    /// Whether the batch reached the end of the feed at the time of the call.
    pub at_end: bool,
}

impl<'l> From<&'l Line> for ExportLine<'l> {
    fn from(line: &'l Line) -> Self {
        Self {
            url: line.url.as_str().into(),
            status: line.status,
            group: line.group,
            winner: line.winner.as_ref().map(|winner| PageUrl::as_str(winner).into()),
            duplicate_of: line.duplicate_of.as_ref().map(|kept| PageUrl::as_str(kept).into()),
            similarity: line.similarity,
        }
    }
}

impl From<FeedEvent> for ChangeLine {
    fn from(FeedEvent { line, fetched_at }: FeedEvent) -> Self {
        Self {
            url: line.url.into(),
            status: line.status,
            group: line.group.map(|group| group.to_string()),
            winner: line.winner.map(String::from),
            duplicate_of: line.duplicate_of.map(String::from),
            similarity: line.similarity,
            reason: line.reason,
            fetched_at: fetched_at.to_string(),
        }
    }
}

impl From<FeedBatch> for ChangesAnswer {
    fn from(FeedBatch { changes, cursor, at_end }: FeedBatch) -> Self {
        Self { changes: changes.into_iter().map(ChangeLine::from).collect(), cursor, at_end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_becomes_the_public_line() {
        let line = Line {
            url: PageUrl::parse("http://a/").unwrap(),
            status: Status::Dead,
            group: None,
            winner: None,
            duplicate_of: None,
            similarity: None,
            reason: Some(UnresolvedReason::Loop),
        };
        let fetched_at = "2026-01-31T08:00:00Z".parse().unwrap();
        let written = serde_json::to_string(&ChangeLine::from(FeedEvent { line, fetched_at })).unwrap();
        assert_eq!(
            written,
            r#"{"url":"http://a/","status":"dead","group":null,"winner":null,"duplicate_of":null,"similarity":null,"reason":"loop","fetched_at":"2026-01-31T08:00:00Z"}"#
        );
    }
}
