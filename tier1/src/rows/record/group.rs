//! Records of groups and of their members.
//!
//! The owner of a group, which is the shard that its id names, writes these records. A merged group keeps a
//! [`Forward`] at its old id, and the forward redirects messages to the smaller id.

use doppel_model::{ContentHash, GroupId, PageId, Timestamp};
use doppel_protocol::Rank;
use serde::{Deserialize, Serialize};

/// A group in use, or the forward that remains of a merged group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum GroupRecord {
    Active(Group),
    /// The group was merged. Its members have moved, or are moving, to a group with a smaller id.
    Forward(Forward),
}

/// A group in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) winner: Option<(PageId, Member)>,
    /// Number of members, all of which are content pages.
    pub(crate) members: u64,
    /// Number of members at which redirects end.
    pub(crate) with_inbound_redirects: u64,
    /// Number of members whose exact comparison with the winner failed.
    pub(crate) dissimilar: u64,
    /// Number of dissimilar members that no other kept page covers.
    pub(crate) secondaries: u64,
    /// Grows with every change of a member's row.
    pub(crate) changes: u64,
    /// Grows with every lost member, every changed content, and every other event that calls for a
    /// recomputation.
    pub(crate) losses: u64,
    /// Whether the group has lost or changed a member since the last recomputation.
    pub(crate) dirty: bool,
    /// Whether a member that differs from the winner has come, changed or gone since the cover was found.
    pub(crate) uncovered: bool,
    /// Grows with every change that makes the group owe a new cover.
    pub(crate) cover_changes: u64,
    pub(crate) quarantined: bool,
    /// Upper bound of the number of distinct contents of the members. A recomputation counts the contents.
    /// Until the next count, each new content that is not the winner's may be one more.
    pub(crate) contents_max: u64,
    /// Distinct contents at the last repair by an operator. Up to twice this number does not cause a
    /// quarantine.
    pub(crate) contents_at_repair: u64,
    /// Number of dissimilar members when they last caused a recomputation.
    pub(crate) dissimilar_at_recheck: u64,
    /// Election in progress. Until it ends, `winner` is the best member examined so far.
    pub(crate) election: Option<Election>,
    /// Announcement in progress, which tells the winner to the members in steps.
    pub(crate) announcement: Option<Announcement>,
    /// Merged groups whose members have come in part.
    pub(crate) incoming: Vec<IncomingTransfer>,
}

/// A merged group whose members come in several pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct IncomingTransfer {
    pub(crate) from: GroupId,
    /// `losses` of the receiving group when the first piece came. If the receiving group loses a member
    /// later, that member may have linked the members that are still to come.
    pub(crate) losses: u64,
}

/// Progress of an election.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Election {
    /// Last member that the election has examined; `None` before the first step.
    pub(crate) after: Option<PageId>,
    /// Winner that every member knows or is being told, with its content; `None` if members know different
    /// winners.
    pub(crate) announced: Option<(PageId, ContentHash)>,
}

/// Progress of an announcement of the winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    /// Last member that was told; `None` before the first step.
    pub(crate) after: Option<PageId>,
    /// Whether the members must search for partners again.
    pub(crate) search_again: bool,
}

/// What remains of a merged group: a redirection of its messages to `into`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Forward {
    pub(crate) into: GroupId,
    /// Whether the merge makes the receiving group owe a recomputation.
    pub(crate) dirty: bool,
    /// Whether the members must search for partners again.
    pub(crate) search_again: bool,
    /// Pair that caused the merge.
    pub(crate) evidence: Evidence,
    /// Whether some members have been transferred.
    pub(crate) begun: bool,
    /// Whether all members have been transferred.
    pub(crate) done: bool,
    /// Number of memberships whose messages still pass through this forward.
    pub(crate) forwarding_entries: u64,
    /// Time when a sweep first found the forward without use.
    pub(crate) ended: Option<Timestamp>,
}

/// The pair of pages that linked two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) page: LinkedPage,
    pub(crate) partner: LinkedPage,
}

/// One page of a pair, as it was when the pair was found. Under a later membership number, the page may have
/// come to its group for another reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LinkedPage {
    pub(crate) page: PageId,
    pub(crate) membership_number: u32,
    pub(crate) content: ContentHash,
}

/// A member of a group, as the group's owner knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) membership_number: u32,
    pub(crate) content: ContentHash,
    pub(crate) rank: Rank,
    /// Whether redirects end at this page. Such a page keeps its group even when alone.
    pub(crate) has_inbound_redirects: bool,
    /// Whether the member's comparison with the winner failed.
    pub(crate) dissimilar: bool,
    /// Latest cover that the page was told. Always [`Cover::Unsent`] for a member that is similar to the
    /// winner.
    pub(crate) cover: Cover,
    /// Number of cover messages sent under this membership, counted across merged groups.
    pub(crate) cover_number: u32,
}

/// Cover that a member was told, if the member differs from the winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cover {
    /// The page was told nothing since it came or last changed.
    Unsent,
    /// The page is kept: it is not a duplicate of an earlier kept page.
    Kept,
    /// The member is a duplicate of the kept page named here, under the content named here.
    By(PageId, ContentHash),
}

impl Group {
    pub(crate) fn new() -> Self {
        Self {
            winner: None,
            members: 0,
            with_inbound_redirects: 0,
            dissimilar: 0,
            secondaries: 0,
            changes: 0,
            losses: 0,
            dirty: false,
            uncovered: false,
            cover_changes: 0,
            quarantined: false,
            contents_max: 0,
            contents_at_repair: 0,
            dissimilar_at_recheck: 0,
            election: None,
            announcement: None,
            incoming: Vec::new(),
        }
    }

    /// Returns whether the group has at most one content page and no redirect. Such a group is dissolved once
    /// no other page is on its way to it.
    pub(crate) fn is_alone(&self) -> bool {
        self.members <= 1 && self.with_inbound_redirects == 0
    }

    /// Marks the group as owing a recomputation. A recomputation under way does not clear the mark, because
    /// `losses` has changed since it began.
    pub(crate) fn mark_dirty(&mut self) {
        self.dirty = true;
        self.losses += 1;
    }

    /// Returns whether a recomputation should begin. An election must end first, because a recomputation
    /// keeps the members that are linked to the winner.
    pub(crate) fn owes_recomputation(&self) -> bool {
        (self.dirty && self.election.is_none()) || self.is_alone()
    }

    /// Returns whether a [`Continue`](crate::machine::Message::Continue) message for an election or
    /// announcement is under way.
    pub(crate) fn is_continuing(&self) -> bool {
        self.election.is_some() || self.announcement.is_some()
    }

    /// Returns whether the cover must be found again: which members are duplicates of a kept page other than
    /// the winner.
    pub(crate) fn owes_cover(&self) -> bool {
        self.uncovered && !self.quarantined && self.election.is_none()
    }

    /// Records that a member that differs from the winner has come, changed or gone.
    pub(crate) fn mark_uncovered(&mut self) {
        self.uncovered = true;
        self.cover_changes += 1;
    }
}
