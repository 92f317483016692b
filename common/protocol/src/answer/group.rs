//! Groups, their members and their sizes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{GroupIdForm, SimilarityForm};
use crate::{GroupState, GroupSummary, MemberView, Status};

/// A group without its members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Group {
    /// Its id.
    #[schema(value_type = GroupIdForm)]
    pub group: String,
    /// The group that has its members now, if it was merged.
    #[schema(value_type = Option<GroupIdForm>)]
    pub merged_into: Option<String>,
    /// Its winner.
    pub winner: Option<String>,
    /// Pages with content.
    pub members: u64,
    /// Members found dissimilar to the winner.
    pub dissimilar: u64,
    /// Members that are kept beside the winner: those of the dissimilar ones that are no duplicates of one another, and all
    /// while the group is quarantined.
    pub secondaries: u64,
    /// Whether it has to be found out again which members are duplicates of others than the winner.
    pub uncovered: bool,
    /// Whether it has to be recomputed.
    pub dirty: bool,
    /// Whether it is above the size limit. Its members are not reported as duplicates until it is repaired.
    pub quarantined: bool,
}

impl From<GroupSummary> for Group {
    fn from(summary: GroupSummary) -> Self {
        Self {
            group: summary.group.to_string(),
            merged_into: match summary.state {
                GroupState::Active => None,
                GroupState::MergedInto { group } => Some(group.to_string()),
            },
            winner: summary.winner.map(String::from),
            members: summary.members,
            dissimilar: summary.dissimilar,
            secondaries: summary.secondaries,
            uncovered: summary.uncovered,
            dirty: summary.dirty,
            quarantined: summary.quarantined,
        }
    }
}

/// A section of the list of groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupList {
    /// In order of shard and id.
    pub groups: Vec<Group>,
    /// What to pass as `after` to go on; none at the end.
    pub next: Option<String>,
}

/// A page of a group's members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(examples(json!({
    "group": "g12-0", "merged_into": null, "winner": "https://example.org/hours", "members": 2, "dissimilar": 0, "secondaries": 0,
    "uncovered": false, "dirty": false, "quarantined": false,
    "pages": [
        {"url": "https://example.org/hours", "status": "winner", "duplicate_of": null, "similarity": null, "content": "91c0d2f1a4b7e6f3"},
        {
            "url": "https://mirror.example.org/hours", "status": "duplicate", "duplicate_of": "https://example.org/hours",
            "similarity": 0.8701, "content": "2c5de01f7ab93480",
        },
    ],
    "next": null,
})))]
pub struct GroupPage {
    /// The group itself.
    #[serde(flatten)]
    pub group: Group,
    /// Some members, each followed by the redirects that end at it.
    pub pages: Vec<Member>,
    /// What to pass as `after` to go on; none at the end.
    pub next: Option<String>,
    /// Where a range has no owner that answers, a replica does: what is told here is true of a moment no longer ago than so many
    /// milliseconds, at most 5,000. Absent as a rule: then it is of the owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Member {
    /// The page.
    pub url: String,
    /// Its status.
    pub status: Status,
    /// The kept page that it is a duplicate of.
    pub duplicate_of: Option<String>,
    /// How similar it is to that page, by the policy's measure.
    #[schema(value_type = Option<SimilarityForm>)]
    pub similarity: Option<f64>,
    /// Hash of its content; none for a redirect.
    pub content: Option<String>,
}

impl From<MemberView> for Member {
    fn from(member: MemberView) -> Self {
        Self {
            url: member.line.url.into(),
            status: member.line.status,
            duplicate_of: member.line.duplicate_of.map(String::from),
            similarity: member.line.similarity,
            content: member.content.map(|content| content.to_string()),
        }
    }
}

/// Sizes of the groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupSizes {
    /// The number of groups that were examined.
    pub groups: u64,
    /// Whether there are more groups, which were not examined.
    pub truncated: bool,
    /// Groups that are quarantined for the number of their contents.
    pub quarantined: u64,
    /// Number of groups per power of two of members.
    pub histogram: Vec<SizeClass>,
    /// The largest groups, the largest first.
    pub largest: Vec<Group>,
    /// The groups with the most secondaries, the one with most first: chains of pages of which the ends differ.
    pub most_secondaries: Vec<Group>,
    /// How long ago it was made, in milliseconds; absent where it was made for this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// The groups of a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SizeClass {
    /// The fewest members.
    pub from: u64,
    /// The most members.
    pub to: u64,
    /// Number of groups.
    pub groups: u64,
}
