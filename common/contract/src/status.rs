//! The status of a page in public answers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Status of a page.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// The page was never submitted.
    Unknown,
    /// The page was accepted and is not decided yet. Keep it.
    Pending,
    /// The page is live and has no near-duplicate.
    Unique,
    /// The page represents its group.
    Winner,
    /// The page is a near-duplicate of a kept page, which the answer names. The comparison was verified on
    /// the current contents of both pages. The page can be removed.
    Duplicate,
    /// The page is in a group with another winner, and is not a duplicate of a kept page. Keep it.
    Secondary,
    /// The page is a redirect whose target is unknown, dead, in a loop, or too many hops away.
    Unresolved,
    /// The page no longer exists.
    Dead,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Maximum number of redirects in a chain. A redirect with a longer chain to its target is unresolved.
pub const REDIRECT_HOPS_MAX: u8 = 20;

/// Why a redirect is unresolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Unresolved)]
pub enum UnresolvedReason {
    /// A page in the redirect chain is not on record: it is unknown, was purged, or has been dead for longer
    /// than dead pages are kept.
    UnknownTarget,
    /// A page in the redirect chain is dead. When retention drops its record, the reason becomes
    /// `unknown_target`.
    DeadTarget,
    /// The redirect chain contains a loop.
    Loop,
    /// The redirect chain has more than 20 hops.
    TooManyHops,
}
