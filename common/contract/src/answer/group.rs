//! Groups, their members, and the distribution of their sizes.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{GroupIdForm, SimilarityForm};
use crate::status::Status;

/// A group without its members.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = Group)]
pub struct GroupOverview {
    /// Id of the group.
    #[schema(value_type = GroupIdForm)]
    pub group: String,
    /// The group that this group was merged into; null if it was not merged.
    #[schema(value_type = Option<GroupIdForm>)]
    pub merged_into: Option<String>,
    /// Winner of the group.
    pub winner: Option<String>,
    /// Number of members, which are pages with content.
    pub members: u64,
    /// Number of members that are not near-duplicates of the winner.
    pub dissimilar: u64,
    /// Number of secondary members, which are kept beside the winner: members that duplicate neither the
    /// winner nor another kept page. In a quarantined group, all members except the winner.
    pub secondaries: u64,
    /// Whether the group still has to determine which dissimilar members are duplicates of other members.
    pub uncovered: bool,
    /// Whether the group has to be recomputed.
    pub dirty: bool,
    /// Whether the group is quarantined because it has too many distinct contents. Its members are not
    /// reported as duplicates until an operator repairs the group or a recomputation finds few enough
    /// contents.
    pub quarantined: bool,
}

/// A page of the list of groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupList {
    /// The groups, in the order of shard and id.
    pub groups: Vec<GroupOverview>,
    /// The value to pass as `after` in the next request; null at the end of the list.
    pub next: Option<String>,
}

/// A group with one page of the list of its members.
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
    /// The group without its members.
    #[serde(flatten)]
    pub group: GroupOverview,
    /// Some of the members. Each member is followed by the redirects that end at it.
    pub pages: Vec<ListedMember>,
    /// The value to pass as `after` in the next request; null at the end of the list.
    pub next: Option<String>,
    /// Greatest possible age of the answer in milliseconds, at most 5,000. Present only if a replica answered
    /// in place of an owner that does not respond. Normally absent: owners answer with the current state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// A member of a group, or a redirect that ends at a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = Member)]
pub struct ListedMember {
    /// URL of the page.
    pub url: String,
    /// Status of the page.
    pub status: Status,
    /// The kept page that this page duplicates; null if the page is not a duplicate.
    pub duplicate_of: Option<String>,
    /// Similarity between the page and `duplicate_of`, by the measure of the policy.
    #[schema(value_type = Option<SimilarityForm>)]
    pub similarity: Option<f64>,
    /// Hash of the page's content; null for a redirect.
    pub content: Option<String>,
}

/// Distribution of the sizes of the groups.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GroupSizes {
    /// Number of groups that were examined.
    pub groups: u64,
    /// Whether some groups were not examined, because there are too many.
    pub truncated: bool,
    /// Number of groups that are quarantined because they have too many distinct contents.
    pub quarantined: u64,
    /// Number of groups in each class of sizes. The classes are powers of two.
    pub histogram: Vec<SizeClass>,
    /// The largest groups, in descending order of size.
    pub largest: Vec<GroupOverview>,
    /// The groups with the most secondary members, in descending order. Such groups are often chains of pages
    /// whose ends differ.
    pub most_secondaries: Vec<GroupOverview>,
    /// Age of the report in milliseconds; absent if the report was computed for this answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
}

/// The groups in a class of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SizeClass {
    /// Smallest number of members in the class.
    pub from: u64,
    /// Largest number of members in the class.
    pub to: u64,
    /// Number of groups in the class.
    pub groups: u64,
}
