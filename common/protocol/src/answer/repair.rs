//! Repairs: what one did, and the trail of those that were applied.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{RepairDetails, RepairEntry};

/// What a repair did, or would do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Repair {
    /// The group that was looked at, after following merges.
    pub group: String,
    /// Members before.
    pub before: Vec<String>,
    /// The sets the members fall into by exact comparison, the winner's first.
    pub components: Vec<Vec<String>>,
    /// Whether it was applied.
    pub applied: bool,
    /// Whether URLs were left out, because an answer has at most 10,000 in `components` and as many in
    /// `before`; absent where all are there. The winner's set gives way to the others, and the last set
    /// listed may be a part.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub truncated: bool,
    /// The number of members before; absent where `before` has them all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_members: Option<usize>,
    /// The number of sets; absent where `components` has them all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_components: Option<usize>,
}

/// What the repairs of several groups did.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Repairs {
    /// One report per group that exists, in order. The limit of 10,000 URLs is for all of them together.
    pub repairs: Vec<Repair>,
    /// Groups that do not exist.
    pub unknown: Vec<String>,
}

/// A repair that was applied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedRepair {
    /// Names it.
    pub id: String,
    /// When, RFC 3339.
    pub at: String,
    /// Who asked for it, as they said.
    pub by: String,
    /// The group, under the id that it had then.
    pub group: String,
    /// Members before.
    pub members: u64,
    /// Sets that they fell into, one when nothing was wrong; where `truncated` those that were written down.
    pub sets: u64,
    /// Whether not all URLs were written down, because there were more than 10,000.
    pub truncated: bool,
}

impl From<RepairEntry> for AppliedRepair {
    fn from(entry: RepairEntry) -> Self {
        let RepairEntry { id, at, by, group, members, sets, truncated } = entry;
        let (id, at, group) = (id.to_string(), at.to_string(), group.to_string());
        Self { id, at, by, group, members, sets, truncated }
    }
}

/// A piece of the trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trail {
    /// Newest first.
    pub repairs: Vec<AppliedRepair>,
    /// What to pass as `before` to go on; none at the end. A search for the repairs of one group may stop in
    /// between with few of them or none.
    pub next: Option<String>,
}

/// A repair that was applied, with its URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedRepairUrls {
    /// The repair itself.
    #[serde(flatten)]
    pub repair: AppliedRepair,
    /// Members before, at most 10,000.
    pub before: Vec<String>,
    /// The sets they fell into, the winner's first, with at most 10,000 URLs. The winner's set gives way to
    /// the others. A set is empty when all its pages are forgotten.
    pub components: Vec<Vec<String>>,
    /// Pages whose URLs are not listed any more: they were purged, or were dead and are on record no more.
    pub forgotten: u64,
}

impl From<RepairDetails> for AppliedRepairUrls {
    fn from(details: RepairDetails) -> Self {
        let urls = |pages: Vec<_>| pages.into_iter().map(String::from).collect();
        Self {
            repair: details.entry.into(),
            before: urls(details.before),
            components: details.components.into_iter().map(urls).collect(),
            forgotten: details.forgotten,
        }
    }
}
