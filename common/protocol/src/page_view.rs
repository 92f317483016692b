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
    /// The page that `redirect_to` stands for, by its last trace: one that is spelled so, or another of the same normalised form.
    pub stands_for: Option<PageId>,
    /// The page at the end of its redirects, if that page has a content.
    pub target: Option<PageId>,
    /// Why its redirect is unresolved.
    pub unresolved: Option<Unresolved>,
    /// The page that it is a duplicate of, as it was when the two were compared.
    pub duplicate_of: Option<Compared>,
}

/// A page as it was when another was compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Compared {
    /// The page.
    pub page: PageId,
    /// Its content then.
    pub content: ContentHash,
}
