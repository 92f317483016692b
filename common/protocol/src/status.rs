//! The public answer about a page.

use std::fmt;

use serde::{Deserialize, Serialize};

use doppel_model::{GroupId, PageUrl};

/// What Doppel says of a page.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Never heard of.
    Unknown,
    /// Accepted, not yet decided. Keep it.
    Pending,
    /// Live, with no near-duplicate.
    Unique,
    /// The page its group is represented by.
    Winner,
    /// F with the winner was verified on the current contents of both (G5). Drop it.
    Duplicate,
    /// In the group, but not a verified duplicate of the winner. Keep it.
    Member,
    /// A redirect whose target is not known, dead, in a loop or too far.
    Unresolved,
    /// Gone.
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
    /// A page on the way is not known.
    UnknownTarget,
    /// A page on the way is dead.
    DeadTarget,
    /// The chain comes back to itself.
    Loop,
    /// More than 20 hops.
    TooManyHops,
}

/// One page as the export and the change feed state it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// The page.
    pub url: PageUrl,
    /// What it is.
    pub status: Status,
    /// The group it is in, if any.
    pub group: Option<GroupId>,
    /// That group's winner.
    pub winner: Option<PageUrl>,
    /// Jaccard coefficient with the winner; none for winners, unique pages and redirects.
    pub similarity: Option<f64>,
    /// Why a redirect is unresolved. Not part of the export.
    pub reason: Option<Unresolved>,
}
