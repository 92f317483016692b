//! The record of a group and the listing of its members, as tier 1 shows them.

use std::fmt;

use doppel_model::{ContentHash, GroupId, PageId, PageUrl};
use serde::{Deserialize, Serialize};

use super::Line;

/// The state of a group id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupState {
    /// In use.
    Active,
    /// The group was merged into another one.
    MergedInto {
        /// The group that has its members now.
        group: GroupId,
    },
}

/// A group with one page of the list of its members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupView {
    /// The group's own record.
    pub summary: GroupSummary,
    /// Some members, in order of page id, each followed by the redirects that end at it.
    pub members: Vec<MemberView>,
    /// Where the next page begins; none at the end.
    pub next: Option<GroupPosition>,
}

/// A place in the list of a group's pages: after a member, or after one of the redirects that end at it. The text form
/// is one or two page ids in hexadecimal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupPosition {
    /// The last member listed.
    pub member: PageId,
    /// The last redirect listed of those that end at it; none before the first.
    pub redirect: Option<PageId>,
}

impl fmt::Display for GroupPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |page: PageId| u128::from_be_bytes(*page.bytes());
        write!(f, "{:032x}", number(self.member))?;
        self.redirect.map_or(Ok(()), |redirect| write!(f, "-{:032x}", number(redirect)))
    }
}

/// The text is not a place in a group's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not what an earlier answer gave as next")]
pub struct NoGroupPosition;

impl std::str::FromStr for GroupPosition {
    type Err = NoGroupPosition;

    fn from_str(text: &str) -> Result<Self, NoGroupPosition> {
        let page = |text: &str| {
            let is_hex = text.len() == 32 && text.bytes().all(|b| b.is_ascii_hexdigit());
            let number = u128::from_str_radix(text, 16).ok().filter(|_| is_hex).ok_or(NoGroupPosition)?;
            Ok(PageId::from_bytes(number.to_be_bytes()))
        };
        match text.split_once('-') {
            Some((member, redirect)) => Ok(Self { member: page(member)?, redirect: Some(page(redirect)?) }),
            None => Ok(Self { member: page(text)?, redirect: None }),
        }
    }
}

/// A group's own record.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// The id of the group.
    pub group: GroupId,
    /// Whether the group is in use or merged.
    pub state: GroupState,
    /// The number of pages with content.
    pub members: u64,
    /// The number of members that were found dissimilar to the winner.
    pub dissimilar: u64,
    /// Those of them that are no duplicates of one another: they are kept, as the winner is.
    pub secondaries: u64,
    /// Whether it has to be found out again which members are duplicates of others than the winner.
    pub uncovered: bool,
    /// The winner.
    pub winner: Option<PageUrl>,
    /// Whether the group lost or changed a member and has to be recomputed.
    pub dirty: bool,
    /// Whether the group is above the size limit. Its members are not reported as duplicates until it is repaired.
    pub quarantined: bool,
}

/// A member of a group, or a redirect that ends at one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MemberView {
    /// Its state.
    pub line: Line,
    /// Its content; none for a redirect.
    pub content: Option<ContentHash>,
}

/// Which groups to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupFilter {
    /// All groups in use.
    All,
    /// Groups that are quarantined, or in which at least this share of the members is dissimilar to the winner.
    Suspicious {
        /// The share in percent, 1 to 100.
        percent: u8,
    },
}
