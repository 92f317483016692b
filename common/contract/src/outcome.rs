//! The outcome of a submitted page version.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What the service did with a version of a page. The outcome is on disk before the service returns it.
///
/// `unchanged`: the version has the content on record, so only its date and popularity count. `confirmed`:
/// the page was decided at once. `pending`: the version is recorded, and the page waits for comparison.
/// `stale`: a better version of the page is on record or in the same request, so this version does not
/// represent the page. Its date and popularity still count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Outcome)]
pub enum SubmissionOutcome {
    /// At most dates changed.
    Unchanged,
    /// The page was decided at once, because it is dead, has no tokens, or is still a near-duplicate of its
    /// group's representative. A page without a group is compared with its own last content.
    Confirmed,
    /// The page was accepted and waits for comparison.
    Pending,
    /// A newer version is on record. Versions of the same date also have an order.
    Stale,
}

impl fmt::Display for SubmissionOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
