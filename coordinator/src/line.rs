//! A page's state as the export and the feed write it.

use doppel_model::{GroupId, PageUrl};
use doppel_protocol::{Change, Line, Status, Unresolved};
use serde::{Serialize, Serializer};
use utoipa::ToSchema;

/// A line of the export: these five fields and no others.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExportLine<'l> {
    /// The page.
    url: &'l str,
    /// What it is.
    status: Status,
    /// The group it is in, if any, such as `g12-0`.
    #[serde(serialize_with = "group_text")]
    #[schema(value_type = Option<String>)]
    group: Option<GroupId>,
    /// That group's winner.
    winner: Option<&'l str>,
    /// Jaccard coefficient with the winner; none for winners, unique pages and redirects.
    similarity: Option<f64>,
}

/// An event of the feed: the newest state of a page.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChangeLine {
    /// The page.
    url: String,
    /// What it is.
    status: Status,
    /// The group it is in, if any, such as `g12-0`.
    group: Option<String>,
    /// That group's winner.
    winner: Option<String>,
    /// Jaccard coefficient with the winner; none for winners, unique pages and redirects.
    similarity: Option<f64>,
    /// Why a redirect is unresolved.
    reason: Option<Unresolved>,
    /// Newest fetch, RFC 3339.
    fetched_at: String,
}

impl<'l> From<&'l Line> for ExportLine<'l> {
    fn from(line: &'l Line) -> Self {
        Self {
            url: line.url.as_str(),
            status: line.status,
            group: line.group,
            winner: line.winner.as_ref().map(PageUrl::as_str),
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
            similarity: line.similarity,
            reason: line.reason,
            fetched_at: fetched_at.to_string(),
        }
    }
}

fn group_text<S: Serializer>(group: &Option<GroupId>, serializer: S) -> Result<S::Ok, S::Error> {
    match group {
        Some(group) => serializer.collect_str(group),
        None => serializer.serialize_none(),
    }
}
