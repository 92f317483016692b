//! The public answer about a page.

use std::fmt;

use serde::{Deserialize, Serialize};

use doppel_model::{GroupId, PageUrl};

/// The status of a page.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The page was never submitted.
    Unknown,
    /// Accepted but not decided yet. Keep it.
    Pending,
    /// Live, with no near-duplicate.
    Unique,
    /// The page that represents its group.
    Winner,
    /// A near-duplicate of a page that is kept, which is named; verified on the current contents of both (G5). It can be
    /// dropped.
    Duplicate,
    /// In the group of another winner, and no duplicate of a page that is kept. Keep it.
    Secondary,
    /// A redirect whose target is unknown, dead, in a loop or too many hops away.
    Unresolved,
    /// The page is gone.
    Dead,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Why a redirect is unresolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unresolved {
    /// A page in the redirect chain is not on record: it is unknown, was purged, or has been dead for longer than dead pages are kept.
    UnknownTarget,
    /// A page in the redirect chain is dead. When retention drops its record, the reason becomes `unknown_target`.
    DeadTarget,
    /// The redirect chain contains a loop.
    Loop,
    /// The redirect chain has more than 20 hops.
    TooManyHops,
}

/// The state of one page, as in the export and the change feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The page.
    pub url: PageUrl,
    /// Its status.
    pub status: Status,
    /// The group of the page, if it is in one.
    pub group: Option<GroupId>,
    /// The winner of that group.
    pub winner: Option<PageUrl>,
    /// The kept page that it is a duplicate of.
    pub duplicate_of: Option<PageUrl>,
    /// How similar it is to that page, by the policy's measure. `None` for redirects.
    pub similarity: Option<f64>,
    /// Why a redirect is unresolved. Not part of the export.
    pub reason: Option<Unresolved>,
}
