//! The state of a page as the export and the change feed write it.

use std::borrow::Cow;

use doppel_model::GroupId;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use super::{GroupIdForm, SimilarityForm, TimeForm};
use crate::status::{Status, UnresolvedReason};

/// A line of the export. It has exactly these six fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExportLine<'l> {
    /// URL of the page.
    #[serde(borrow)]
    #[schema(value_type = String)]
    pub url: Cow<'l, str>,
    /// Status of the page.
    pub status: Status,
    /// Group of the page, such as `g12-0`; null if the page is in no group.
    #[serde(serialize_with = "write_group", deserialize_with = "read_group")]
    #[schema(value_type = Option<GroupIdForm>)]
    pub group: Option<GroupId>,
    /// Winner of the group; null if the page is in no group.
    #[schema(value_type = Option<String>)]
    pub winner: Option<Cow<'l, str>>,
    /// The kept page that this page duplicates; null if the page is not a duplicate.
    #[schema(value_type = Option<String>)]
    pub duplicate_of: Option<Cow<'l, str>>,
    /// Similarity between the page and `duplicate_of`, by the measure of the policy. Null for redirects.
    #[schema(value_type = Option<SimilarityForm>)]
    pub similarity: Option<f64>,
}

/// An event of the change feed: the newest state of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeLine {
    /// URL of the page.
    pub url: String,
    /// Status of the page.
    pub status: Status,
    /// Group of the page, such as `g12-0`; null if the page is in no group.
    #[schema(value_type = Option<GroupIdForm>)]
    pub group: Option<String>,
    /// Winner of the group; null if the page is in no group.
    pub winner: Option<String>,
    /// The kept page that this page duplicates; null if the page is not a duplicate.
    pub duplicate_of: Option<String>,
    /// Similarity between the page and `duplicate_of`, by the measure of the policy. Null for redirects.
    #[schema(value_type = Option<SimilarityForm>)]
    pub similarity: Option<f64>,
    /// Why the redirect is unresolved. `unknown_target`: a page of the redirect chain is not on record.
    /// `dead_target`: a page of the chain is dead; after retention drops its record (`--keep-dead`), the
    /// reason becomes `unknown_target`. `loop` and `too_many_hops`: the chain has no end, or is too long to
    /// follow.
    pub reason: Option<UnresolvedReason>,
    /// Time of the newest fetch of the page (RFC 3339).
    #[schema(value_type = TimeForm)]
    pub fetched_at: String,
}

/// A batch of events from the change feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "changes": [{
        "url": "https://mirror.example.org/hours", "status": "duplicate", "group": "g12-0",
        "winner": "https://example.org/hours", "duplicate_of": "https://example.org/hours", "similarity": 0.8701, "reason": null,
        "fetched_at": "2026-01-31T08:00:00Z",
    }],
    "cursor": "1b7.2f.0", "at_end": true,
})))]
pub struct ChangesAnswer {
    /// Events from the feed. Events of the same URL are in order.
    pub changes: Vec<ChangeLine>,
    /// Opaque cursor to continue from.
    pub cursor: String,
    /// Whether the batch reached the end of the feed at the time of the request.
    pub at_end: bool,
}

fn write_group<S: Serializer>(group: &Option<GroupId>, serializer: S) -> Result<S::Ok, S::Error> {
    match group {
        Some(group) => serializer.collect_str(group),
        None => serializer.serialize_none(),
    }
}

fn read_group<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<GroupId>, D::Error> {
    let text = Option::<Cow<'_, str>>::deserialize(deserializer)?;
    text.map(|text| text.parse().map_err(D::Error::custom)).transpose()
}
