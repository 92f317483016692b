//! The result of a repair, and the audit trail of applied repairs and of quarantines.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{GroupIdForm, RepairIdForm, TimeForm};
use crate::{RepairDetails, RepairEntry, TrailEvent};

/// The result of a repair or of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Repair {
    /// The group that was repaired, after following merges.
    #[schema(value_type = GroupIdForm)]
    pub group: String,
    /// Members before.
    pub before: Vec<String>,
    /// The components the members fall into by exact comparison, the winner's first.
    pub components: Vec<Vec<String>>,
    /// Whether it was applied.
    pub applied: bool,
    /// Whether URLs were left out, because `components` and `before` have at most 10,000 each; absent if none were left
    /// out. The winner's component is shortened in favour of the others, and the last one may be incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub truncated: bool,
    /// The number of members before; absent if `before` lists them all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_members: Option<usize>,
    /// The number of components; absent if `components` lists them all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_components: Option<usize>,
}

/// The results of the repairs of several groups.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Repairs {
    /// One report per existing group, in order. The limit of 10,000 URLs applies to all of them together.
    pub repairs: Vec<Repair>,
    /// Groups that do not exist.
    pub unknown: Vec<String>,
}

/// An applied repair, or a quarantine that began or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedRepair {
    /// The id of the entry.
    #[schema(value_type = RepairIdForm)]
    pub id: String,
    /// The time at which it happened, RFC 3339.
    #[schema(value_type = TimeForm)]
    pub at: String,
    /// What happened.
    pub event: TrailEvent,
    /// Who requested the repair, as given by the caller; absent for a quarantine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The group, under the id that it had then.
    #[schema(value_type = GroupIdForm)]
    pub group: String,
    /// The group that it was merged into, where that ended a quarantine; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<GroupIdForm>)]
    pub into: Option<String>,
    /// Members before the repair, or when the quarantine began or ended.
    pub members: u64,
    /// The number of resulting components; 1 if nothing was wrong. If `truncated`, the number that were stored. 0 for a
    /// quarantine.
    pub component_count: u64,
    /// Whether there were more than 10,000 URLs, so that not all were stored.
    pub truncated: bool,
}

impl From<RepairEntry> for AppliedRepair {
    fn from(entry: RepairEntry) -> Self {
        let RepairEntry { id, at, event, by, group, into, members, component_count, truncated } = entry;
        let into = into.map(|into| into.to_string());
        let by = Some(by).filter(|by| !by.is_empty());
        let (id, at, group) = (id.to_string(), at.to_string(), group.to_string());
        Self { id, at, event, by, group, into, members, component_count, truncated }
    }
}

/// A section of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trail {
    /// The entries, newest first.
    pub repairs: Vec<AppliedRepair>,
    /// What to pass as `before` to go on; none at the end. A search for the entries of one group may stop in
    /// between with few of them or none.
    pub next: Option<String>,
}

/// An entry of the audit trail with its URLs; a quarantine has none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedRepairUrls {
    /// The entry itself.
    #[serde(flatten)]
    pub repair: AppliedRepair,
    /// Members before, at most 10,000.
    pub before: Vec<String>,
    /// The resulting components, the winner's first, with at most 10,000 URLs. The winner's component is shortened in
    /// favour of the others. One is empty if none of its pages are on record any more.
    pub components: Vec<Vec<String>>,
    /// The number of pages that are no longer on record, because they were purged or have long been dead. Their URLs
    /// are not listed.
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
