//! The record of a page, as tier 1 shows it.

use doppel_model::{ContentHash, PageId, PageUrl, Timestamp};

use super::{Line, Rank, Unresolved};

/// A page's record.
#[derive(Debug, Clone, PartialEq)]
pub struct PageView {
    /// Its state as the feed has it.
    pub line: Line,
    /// Newest fetch; none for a URL that was purged.
    pub fetched_at: Timestamp,
    /// What the winner order looks at.
    pub rank: Rank,
    /// The content, when it has one.
    pub content: Option<ContentHash>,
    /// Language of the content.
    pub language: Option<Box<str>>,
    /// `<link rel=canonical>`.
    pub canonical: Option<PageUrl>,
    /// Where it redirects to.
    pub redirect_to: Option<PageUrl>,
    /// The page at the end of its redirects, when that has a content.
    pub target: Option<PageId>,
    /// Why its redirect is unresolved.
    pub unresolved: Option<Unresolved>,
    /// The winner as last told to this page's shard.
    pub winner: Option<WinnerView>,
}

/// A group's winner as a member's shard knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WinnerView {
    /// The page.
    pub page: PageId,
    /// Its content when it was told.
    pub content: ContentHash,
}
