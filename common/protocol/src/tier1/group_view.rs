//! The record of a group and the list of its members, as tier 1 returns them.

use std::fmt;

use doppel_contract::answer::{GroupOverview, ListedMember};
use doppel_model::{ContentHash, GroupId, PageId, PageUrl};
use serde::{Deserialize, Serialize};

use super::Line;

/// State of a group id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupState {
    /// The group is in use.
    Active,
    /// The group was merged into another group.
    MergedInto {
        /// The group that took over the members.
        group: GroupId,
    },
}

/// A group with one page of the list of its members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupView {
    /// The record of the group.
    pub summary: GroupSummary,
    /// Some members in the order of page ids. Each member is followed by the redirects that end at it.
    pub members: Vec<MemberView>,
    /// Where the next page of the list begins; `None` at the end.
    pub next: Option<GroupPosition>,
}

/// A position in the list of a group's pages: after a member, or after a redirect that ends at a member. The
/// text form is one or two page ids in hexadecimal, separated by a hyphen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPosition {
    /// The member that was listed last.
    pub member: PageId,
    /// The redirect to the member that was listed last; `None` if no redirect was listed yet.
    pub redirect: Option<PageId>,
}

impl fmt::Display for GroupPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |page: PageId| u128::from_be_bytes(*page.bytes());
        write!(f, "{:032x}", number(self.member))?;
        self.redirect.map_or(Ok(()), |redirect| write!(f, "-{:032x}", number(redirect)))
    }
}

/// A text is not a position in the list of a group's pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a position that an earlier answer returned as `next`")]
pub struct InvalidGroupPosition;

impl std::str::FromStr for GroupPosition {
    type Err = InvalidGroupPosition;

    fn from_str(text: &str) -> Result<Self, InvalidGroupPosition> {
        let page = |text: &str| {
            let is_hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
            let number =
                u128::from_str_radix(text, 16).ok().filter(|_| is_hex).ok_or(InvalidGroupPosition)?;
            Ok(PageId::from_bytes(number.to_be_bytes()))
        };
        match text.split_once('-') {
            Some((member, redirect)) => Ok(Self { member: page(member)?, redirect: Some(page(redirect)?) }),
            None => Ok(Self { member: page(text)?, redirect: None }),
        }
    }
}

/// The record of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// Id of the group.
    pub group: GroupId,
    /// Whether the group is in use or merged.
    pub state: GroupState,
    /// Number of pages with content.
    pub members: u64,
    /// Number of members that are not near-duplicates of the winner.
    pub dissimilar: u64,
    /// Number of dissimilar members that are not duplicates of each other. They are kept, like the winner.
    pub secondaries: u64,
    /// Whether the group still has to determine which dissimilar members are duplicates of other members.
    pub uncovered: bool,
    /// Winner of the group.
    pub winner: Option<PageUrl>,
    /// Whether the group lost or changed a member and has to be recomputed.
    pub dirty: bool,
    /// Whether the group is quarantined because it has too many distinct contents. Its members are not
    /// reported as duplicates until an operator repairs the group or a recomputation finds few enough
    /// contents.
    pub quarantined: bool,
}

/// A member of a group, or a redirect that ends at a member.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberView {
    /// State of the page.
    pub line: Line,
    /// Content of the page; `None` for a redirect.
    pub content: Option<ContentHash>,
}

impl From<GroupSummary> for GroupOverview {
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

impl From<MemberView> for ListedMember {
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

/// Which groups to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupFilter {
    /// All groups in use.
    All,
    /// Groups that are quarantined, or whose share of members dissimilar to the winner is at least `percent`.
    Suspicious {
        /// The share in percent, from 1 to 100.
        percent: u8,
    },
}
