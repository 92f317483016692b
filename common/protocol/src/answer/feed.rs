//! A page's state as the export and the feed write it.

use std::borrow::Cow;

use doppel_model::{GroupId, PageUrl};
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use super::{GroupIdForm, SimilarityForm, TimeForm};
use crate::{Change, Changes, Line, Status, Unresolved};

/// A line of the export: these six fields and no others.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ExportLine<'l> {
    /// The page.
    #[serde(borrow)]
    #[schema(value_type = String)]
    pub url: Cow<'l, str>,
    /// Its status.
    pub status: Status,
    /// The group it is in, if any, such as `g12-0`.
    #[serde(serialize_with = "write_group", deserialize_with = "read_group")]
    #[schema(value_type = Option<GroupIdForm>)]
    pub group: Option<GroupId>,
    /// That group's winner.
    #[schema(value_type = Option<String>)]
    pub winner: Option<Cow<'l, str>>,
    /// The kept page that it is a duplicate of.
    #[schema(value_type = Option<String>)]
    pub duplicate_of: Option<Cow<'l, str>>,
    /// How similar it is to that page, by the policy's measure; none for redirects.
    #[schema(value_type = Option<SimilarityForm>)]
    pub similarity: Option<f64>,
}

/// An event of the feed: the newest state of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangeLine {
    /// The page.
    pub url: String,
    /// Its status.
    pub status: Status,
    /// The group it is in, if any, such as `g12-0`.
    #[schema(value_type = Option<GroupIdForm>)]
    pub group: Option<String>,
    /// That group's winner.
    pub winner: Option<String>,
    /// The kept page that it is a duplicate of.
    pub duplicate_of: Option<String>,
    /// How similar it is to that page, by the policy's measure; none for redirects.
    #[schema(value_type = Option<SimilarityForm>)]
    pub similarity: Option<f64>,
    /// Why a redirect is unresolved. `unknown_target`: a page of the chain is not on record. `dead_target`: a page of the chain is dead;
    /// once its record is dropped (`--keep-dead`), the reason is `unknown_target`. `loop`, `too_many_hops`: the chain comes to no end.
    pub reason: Option<Unresolved>,
    /// The time of the newest fetch, RFC 3339.
    #[schema(value_type = TimeForm)]
    pub fetched_at: String,
}

/// A section of the feed.
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
    /// Events, ordered per URL.
    pub changes: Vec<ChangeLine>,
    /// Where to continue; an opaque text.
    pub cursor: String,
    /// Whether the feed had nothing more at that moment.
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

impl From<Change> for ChangeLine {
    fn from(Change { line, fetched_at }: Change) -> Self {
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

impl From<Changes> for ChangesAnswer {
    fn from(Changes { changes, cursor, at_end }: Changes) -> Self {
        Self { changes: changes.into_iter().map(ChangeLine::from).collect(), cursor, at_end }
    }
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
