//! The record of a group and the listing of its members, as tier 1 shows them.

use std::fmt;

use doppel_model::{ContentHash, GroupId, PageId, PageUrl};

use super::Line;

/// What a group id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupState {
    /// In use.
    Active,
    /// Its members went to another group.
    MergedInto {
        /// The group that has them.
        group: GroupId,
    },
}

/// A page of a group's members.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupView {
    /// In use or merged.
    pub summary: GroupSummary,
    /// Some members, in order of page id, each followed by the redirects that end at it.
    pub members: Vec<MemberView>,
    /// Where to go on; none at the end.
    pub next: Option<GroupPosition>,
}

/// A place in the listing of a group's pages: behind a member, or behind one of the redirects that end at
/// it. As text two page ids in hexadecimal, or one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupPosition {
    /// The last member listed.
    pub member: PageId,
    /// The last of its redirects listed; none before the first.
    pub redirect: Option<PageId>,
}

impl fmt::Display for GroupPosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = |page: PageId| u128::from_be_bytes(*page.bytes());
        write!(f, "{:032x}", number(self.member))?;
        self.redirect.map_or(Ok(()), |redirect| write!(f, "-{:032x}", number(redirect)))
    }
}

/// Not a place in a group's listing.
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
#[derive(Debug, Clone, PartialEq)]
pub struct GroupSummary {
    /// Its id.
    pub group: GroupId,
    /// In use or merged.
    pub state: GroupState,
    /// Pages with content.
    pub members: u64,
    /// Members found dissimilar to the winner.
    pub dissimilar: u64,
    /// The winner.
    pub winner: Option<PageUrl>,
    /// Lost or changed a member and owes a recomputation.
    pub dirty: bool,
    /// Past the size limit: its members are not advised as duplicates until it is repaired.
    pub quarantined: bool,
}

/// A member.
#[derive(Debug, Clone, PartialEq)]
pub struct MemberView {
    /// Its state.
    pub line: Line,
    /// Its content; none for a redirect.
    pub content: Option<ContentHash>,
}

/// Which groups to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupFilter {
    /// All in use.
    All,
    /// Quarantined, or at least this share (in percent) of members dissimilar to the winner.
    Suspicious {
        /// 1 to 100.
        percent: u8,
    },
}
