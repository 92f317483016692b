//! The result of a repair, and the audit trail of repairs and quarantines.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{GroupIdForm, RepairIdForm, TimeForm};
use crate::trail_event::TrailEvent;

/// The result of a repair or of a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Repair)]
pub struct RepairResult {
    /// The group that was repaired, after following merges.
    #[schema(value_type = GroupIdForm)]
    pub group: String,
    /// Members before the repair.
    pub before: Vec<String>,
    /// Components of the group by exact comparison. The winner's component is first.
    pub components: Vec<Vec<String>>,
    /// Whether the repair was applied.
    pub applied: bool,
    /// Whether URLs were left out, because `components` and `before` contain at most 10,000 each. Absent if
    /// no URL was left out. The winner's component is shortened first, and the last component may be
    /// incomplete.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub truncated: bool,
    /// Number of members before the repair; absent if `before` lists all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_members: Option<usize>,
    /// Number of components; absent if `components` lists all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_components: Option<usize>,
}

/// The results of the repairs of several groups.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = Repairs)]
pub struct RepairResults {
    /// One result for each group that exists, in order. The limit of 10,000 URLs applies to all results
    /// together.
    pub repairs: Vec<RepairResult>,
    /// Groups that do not exist.
    pub unknown: Vec<String>,
}

/// An applied repair, or a quarantine that began or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedRepair {
    /// Id of the entry in the audit trail.
    #[schema(value_type = RepairIdForm)]
    pub id: String,
    /// Time of the event (RFC 3339).
    #[schema(value_type = TimeForm)]
    pub at: String,
    /// Kind of the event.
    pub event: TrailEvent,
    /// Person who requested the repair, as the caller stated; absent for a quarantine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The group, under the id that it had at that time.
    #[schema(value_type = GroupIdForm)]
    pub group: String,
    /// The group into which this group was merged, if the merge ended a quarantine; otherwise absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<GroupIdForm>)]
    pub into: Option<String>,
    /// Number of members before the repair, or when the quarantine began or ended.
    pub members: u64,
    /// Number of resulting components; 1 if the group was correct. If `truncated`, the number of components
    /// that were stored. 0 for a quarantine.
    pub component_count: u64,
    /// Whether the entry lacks some URLs, because there were more than 10,000.
    pub truncated: bool,
}

/// A page of the audit trail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Trail {
    /// The entries, newest first.
    pub repairs: Vec<AppliedRepair>,
    /// The value to pass as `before` in the next request; null at the end of the trail. A search for the
    /// entries of one group may return few entries, or no entry, before the end.
    pub next: Option<String>,
}

/// An entry of the audit trail with its URLs. A quarantine has no URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AppliedRepairUrls {
    /// The entry without its URLs.
    #[serde(flatten)]
    pub repair: AppliedRepair,
    /// Members before the repair, at most 10,000.
    pub before: Vec<String>,
    /// The resulting components, the winner's first, with at most 10,000 URLs. The winner's component is
    /// shortened first. A component is empty if none of its pages are on record any more.
    pub components: Vec<Vec<String>>,
    /// Number of pages that are no longer on record, because they were purged or have been dead for long.
    /// Their URLs are not listed.
    pub forgotten: u64,
}
