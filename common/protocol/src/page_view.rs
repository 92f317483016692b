//! The record of a page, as tier 1 shows it.

use doppel_model::{ContentHash, PageId, PageUrl, Timestamp};
use serde::{Deserialize, Serialize};

use super::{Line, Rank, Unresolved};

/// The record of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageView {
    /// Its state, as in the feed.
    pub line: Line,
    /// The time of the newest fetch.
    pub fetched_at: Timestamp,
    /// The attributes that the winner order compares.
    pub rank: Rank,
    /// The content, if it has one.
    pub content: Option<ContentHash>,
    /// The language of the content.
    pub language: Option<Box<str>>,
    /// The target of `<link rel=canonical>`.
    pub canonical: Option<PageUrl>,
    /// The URL that it redirects to.
    pub redirect_to: Option<PageUrl>,
    /// The page at the end of its redirects, if that page has a content.
    pub target: Option<PageId>,
    /// Why its redirect is unresolved.
    pub unresolved: Option<Unresolved>,
    /// The winner, as this page's shard last heard.
    pub winner: Option<WinnerView>,
}

/// The winner of a group, as the shard of a member knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WinnerView {
    /// The page.
    pub page: PageId,
    /// Its content at the time when the shard heard of it.
    pub content: ContentHash,
}
