//! Groups, and what is known of their members.

use doppel_model::{ContentHash, GroupId, PageId, Timestamp};
use doppel_protocol::Rank;
use serde::{Deserialize, Serialize};

/// A group in use, or what is left of one that was merged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum GroupRecord {
    Active(Group),
    /// Its members went, or are going, to a group with a smaller id.
    Forward(Forward),
}

/// A group in use.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Group {
    pub(crate) winner: Option<(PageId, Member)>,
    /// Content pages.
    pub(crate) members: u64,
    /// Members to which redirects are attached.
    pub(crate) with_inbound_redirects: u64,
    /// Members whose exact comparison with the winner failed.
    pub(crate) dissimilar: u64,
    /// Those of them that are not covered by another.
    pub(crate) secondaries: u64,
    /// Counts every change of a member's row.
    pub(crate) changes: u64,
    /// Counts members lost and contents changed.
    pub(crate) losses: u64,
    /// Lost or changed a member since the last recomputation.
    pub(crate) dirty: bool,
    /// A member that differs from the winner came, changed or went since its cover was found.
    pub(crate) uncovered: bool,
    /// Counts such changes.
    pub(crate) cover_changes: u64,
    pub(crate) quarantined: bool,
    /// No fewer than the distinct contents of the members. A recomputation counts them; until the next one each content that
    /// comes and is not the winner's may be a new one.
    pub(crate) contents_max: u64,
    /// Distinct contents at the last repair by an operator: twice as many are no reason for quarantine.
    pub(crate) contents_at_repair: u64,
    /// Dissimilar members when they last were the reason for a recomputation.
    pub(crate) dissimilar_at_recheck: u64,
    /// The best member is being looked for, in steps: the winner is the best of those that were looked at.
    pub(crate) electing: Option<Election>,
    /// The members are being told the winner, in steps.
    pub(crate) announcing: Option<Announcing>,
    /// Merged groups of which some members have come, and the last have not.
    pub(crate) incoming: Vec<Incoming>,
}

/// A merged group whose members come in steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Incoming {
    pub(crate) from: GroupId,
    /// The losses of the group that they come to when the first came. A member that it loses since may have linked
    /// those that are still to come.
    pub(crate) losses: u64,
}

/// How far the members have been looked at for the best one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Election {
    pub(crate) after: Option<PageId>,
    /// The winner that every member has been told, or is being told, with its content; none if members know different winners.
    pub(crate) announced: Option<(PageId, ContentHash)>,
}

/// How far the members have been told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcing {
    pub(crate) after: Option<PageId>,
    /// Members must compare themselves again.
    pub(crate) search_again: bool,
}

/// A merged group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Forward {
    pub(crate) into: GroupId,
    pub(crate) dirty: bool,
    pub(crate) search_again: bool,
    pub(crate) evidence: Evidence,
    /// Some members were transferred.
    pub(crate) begun: bool,
    /// All were.
    pub(crate) done: bool,
    /// Memberships whose messages still come by here.
    pub(crate) forwarding_entries: u64,
    /// When it was first seen to be of no more use.
    pub(crate) ended: Option<Timestamp>,
}

/// The pair that linked two groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Evidence {
    pub(crate) page: Linked,
    pub(crate) partner: Linked,
}

/// A page of a pair, as it was when the pair was found: under another membership it may have come from elsewhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Linked {
    pub(crate) page: PageId,
    pub(crate) membership_number: u32,
    pub(crate) content: ContentHash,
}

/// A content page as its group's owner knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Member {
    pub(crate) membership_number: u32,
    pub(crate) content: ContentHash,
    pub(crate) rank: Rank,
    /// Redirects are attached to it: it keeps a group even alone.
    pub(crate) has_inbound_redirects: bool,
    /// Its comparison with the winner failed.
    pub(crate) dissimilar: bool,
    /// What the page was told of its cover; of one that is like the winner nothing.
    pub(crate) cover: Cover,
    /// How often it was told under this membership, in whatever group.
    pub(crate) cover_number: u32,
}

/// What a member that differs from the winner was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Cover {
    /// Nothing since it came or last changed.
    Untold,
    /// It is a duplicate of no kept page before it.
    Kept,
    /// It is one of this page, under this content.
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
            electing: None,
            announcing: None,
            incoming: Vec::new(),
        }
    }

    /// One content page and no redirect. It is dissolved once no other page is on its way to it.
    pub(crate) fn is_alone(&self) -> bool {
        self.members <= 1 && self.with_inbound_redirects == 0
    }

    /// It owes a recomputation, and the one that is under way is not it.
    pub(crate) fn mark_dirty(&mut self) {
        self.dirty = true;
        self.losses += 1;
    }

    /// An election ends before a recomputation begins, which keeps what is linked to the winner.
    pub(crate) fn owes_recomputation(&self) -> bool {
        (self.dirty && self.electing.is_none()) || self.is_alone()
    }

    /// A message is on its way that makes the next step of an election or an announcement.
    pub(crate) fn is_continuing(&self) -> bool {
        self.electing.is_some() || self.announcing.is_some()
    }

    /// Which members are duplicates of others than the winner has to be found out again.
    pub(crate) fn owes_cover(&self) -> bool {
        self.uncovered && !self.quarantined && self.electing.is_none()
    }

    /// A member that differs from the winner came, changed or went.
    pub(crate) fn mark_uncovered(&mut self) {
        self.uncovered = true;
        self.cover_changes += 1;
    }
}
