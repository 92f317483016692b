//! The record of a page, as tier 1 returns it.

use doppel_contract::UnresolvedReason;
use doppel_contract::answer::Advice;
use doppel_model::{ContentHash, PageId, PageUrl, Timestamp};
use serde::{Deserialize, Serialize};

use super::Line;
use crate::winner_order::Rank;

/// The record of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PageView {
    /// State of the page, as in the feed.
    pub line: Line,
    /// Time of the newest fetch.
    pub fetched_at: Timestamp,
    /// The attributes that the winner order compares.
    pub rank: Rank,
    /// Content of the page; `None` if the page has no content.
    pub content: Option<ContentHash>,
    /// Language of the content.
    pub language: Option<Box<str>>,
    /// Target of `<link rel=canonical>`.
    pub canonical: Option<PageUrl>,
    /// URL to which the page redirects.
    pub redirect_to: Option<PageUrl>,
    /// The page that `redirect_to` stands for, by its last trace. Either its URL is spelled exactly so, or it
    /// has the same normalised form.
    pub stands_for: Option<PageId>,
    /// The page at the end of the redirects, if that page has content.
    pub target: Option<PageId>,
    /// Why the redirect is unresolved.
    pub unresolved: Option<UnresolvedReason>,
    /// The page that this page duplicates, in the state in which the two were compared.
    pub duplicate_of: Option<ComparedPage>,
}

impl PageView {
    /// Returns the advice according to this record alone. The caller must verify the advice before it answers
    /// `duplicate`.
    #[must_use]
    pub fn recorded_advice(&self) -> Advice {
        Advice {
            status: self.line.status,
            group: self.line.group.map(|group| group.to_string()),
            winner: self.line.winner.clone(),
            fetched_at: Some(self.fetched_at.to_string()),
            reason: self.unresolved,
            redirect_to: self.redirect_to.clone(),
            ..Advice::unknown(self.rank.url.to_string())
        }
    }
}

/// A page in the state in which another page was compared with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ComparedPage {
    /// Id of the page.
    pub page: PageId,
    /// Content of the page at that time.
    pub content: ContentHash,
}
