//! What goes in and out of the machine: commands, messages between shards, effects.

use std::collections::HashSet;
use std::sync::Arc;

use doppel_model::{ClientId, ContentHash, GroupId, PageId, PageUrl, ShardId, Timestamp};
use doppel_protocol::{IndexCommand, IndexStateItem, Outcome, RepairId, SearchResult, Submission};
use serde::{Deserialize, Serialize};

use crate::record::{
    AuditEntry, Evidence, Found, Kept, Measured, Member, Reach, Resolution, TargetLine, Winner,
};

/// A request, or the result of a comparison, from outside the shards.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// A page version of a client. `hint` is F between it and its representative, computed outside.
    Submit {
        submission: Box<Submission>,
        hint: Option<Hint>,
        client: ClientId,
    },
    /// Tier 2 has compared a page.
    Searched(SearchResult),
    /// A page was compared with its group's winner.
    Verified {
        page: PageId,
        content: ContentHash,
        with: Measured,
    },
    /// A group was recomputed.
    Regrouped(Regrouped),
    /// Found out which members of a group are duplicates of others than the winner.
    Covered(Covered),
    /// A confirmed page is to be compared now.
    SearchNow {
        page: PageId,
    },
    /// The search of a pending page was lost with a process: it is asked for again.
    ResumeSearch {
        page: PageId,
    },
    /// Forget a page.
    Purge {
        page: PageId,
    },
    /// Drop a dead or purged page, or a merged group, if it has ended for long enough.
    ExpirePage {
        page: PageId,
        now: Timestamp,
    },
    ExpireGroup {
        group: GroupId,
        now: Timestamp,
    },
    /// Drop what is written down of a repair, if that was long enough ago.
    ExpireRepair {
        repair: RepairId,
        now: Timestamp,
    },
    /// Take these pages out of what is written down of a repair: they are forgotten.
    ForgetInRepair {
        repair: RepairId,
        pages: HashSet<PageId>,
    },
    /// Keep an item of the index's router; with none, no longer.
    KeepIndexState {
        item: IndexStateItem,
        bytes: Option<Box<[u8]>>,
    },
}

/// F of a new content and the page's representative.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint {
    /// The page's content when it was computed.
    pub(crate) previous: ContentHash,
    /// Its membership number then.
    pub(crate) membership_number: u32,
    /// The representative's content, and the comparison.
    pub(crate) with: Measured,
}

/// The outcome of recomputing a group: who is linked to its winner by no chain of pairs.
///
/// It speaks of contents, so it stays true of a member for as long as that has the content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Regrouped {
    pub(crate) group: GroupId,
    /// The group's counts when its members were collected, or as they are since, by the steps before.
    pub(crate) changes: u64,
    pub(crate) losses: u64,
    pub(crate) out: Vec<(PageId, u32, ContentHash)>,
    /// Distinct contents of the members that stay.
    pub(crate) contents: u64,
    /// Whether nobody else is to be put out.
    pub(crate) last: bool,
    /// Whether an operator wanted it, and so takes the group as it is now.
    pub(crate) repair: bool,
    /// What to write down, with the first step of a repair.
    pub(crate) audit: Option<Box<AuditEntry>>,
}

/// What is new in the cover of a group.
///
/// It speaks of contents, so it stays true of a member for as long as that has the content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Covered {
    pub(crate) group: GroupId,
    /// The group's count of changes when its members were collected.
    pub(crate) changes: u64,
    /// Members with their content, and the kept page that each is a duplicate of.
    pub(crate) members: Vec<CoveredMember>,
    /// Whether no more of it comes.
    pub(crate) last: bool,
}

/// A member of which the cover is new.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CoveredMember {
    pub(crate) page: PageId,
    pub(crate) membership_number: u32,
    pub(crate) content: ContentHash,
    pub(crate) by: Option<Kept>,
}

/// A message from one shard to another (or itself), delivered once and in order per pair of shards.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// Which group are you in? From a page that found you.
    Ask {
        page: PageId,
        content: ContentHash,
        ticket: u32,
        partner: PageId,
        partner_content: ContentHash,
    },
    /// The answer; none when the partner has another content by now.
    Answer {
        page: PageId,
        content: ContentHash,
        ticket: u32,
        found: Option<Found>,
    },
    /// A page is a member, under this membership number. `via` names the pair that links it to the group.
    Enroll {
        group: GroupId,
        page: PageId,
        member: Member,
        via: Option<(PageId, ContentHash)>,
        /// The content it had before was never compared to the end.
        uncompared: bool,
    },
    /// All messages of a membership have gone before this: where do they arrive?
    ResolveForward {
        group: GroupId,
        page: PageId,
        membership_number: u32,
    },
    /// They arrive at this group.
    ForwardResolved {
        page: PageId,
        membership_number: u32,
        group: GroupId,
    },
    /// No more messages of a membership come by, up to the group `until`.
    ReleaseForward {
        group: GroupId,
        page: PageId,
        membership_number: u32,
        until: GroupId,
    },
    /// There is no such group any more.
    EnrollRefused {
        page: PageId,
        membership_number: u32,
    },
    /// A page is no member any more.
    Leave {
        group: GroupId,
        page: PageId,
        membership_number: u32,
        uncompared: bool,
    },
    /// A member's group and winner.
    Assign {
        page: PageId,
        membership_number: u32,
        group: GroupId,
        winner: Winner,
        search_again: bool,
    },
    /// A member that differs from the winner is a duplicate of another kept page, or is not any more.
    Cover {
        page: PageId,
        membership_number: u32,
        /// Counts what the page is told under this membership: of two groups that merge, the one may overtake the other.
        number: u32,
        content: ContentHash,
        by: Option<Kept>,
    },
    /// A member's comparison with the winner failed, or holds again.
    Dissimilar {
        group: GroupId,
        page: PageId,
        membership_number: u32,
        dissimilar: bool,
    },
    /// A member is out. `compare`: it must search for partners again.
    Evict {
        page: PageId,
        membership_number: u32,
        compare: bool,
    },
    /// Two groups are one.
    Merge {
        group: GroupId,
        into: GroupId,
        evidence: Evidence,
    },
    /// Members of a merged group.
    TransferMembers {
        into: GroupId,
        transfer: Transfer,
    },
    /// A pair could not be joined because a group had dissolved: the page must search again.
    SearchAgain {
        page: PageId,
        content: ContentHash,
    },
    /// Go on telling, or transferring, a group's members.
    Continue {
        group: GroupId,
    },
    /// `source` redirects to a page of the normalised form `target` (or no longer does).
    Subscribe {
        target: PageId,
        source: PageId,
    },
    Unsubscribe {
        target: PageId,
        source: PageId,
    },
    /// Where do the redirects of `source` end? On its way through the pages of `path`, now at `at`.
    Trace {
        source: PageId,
        ticket: u32,
        at: At,
        path: Vec<PageId>,
    },
    /// A page that is spelled otherwise than in its normalised form has become something; without a URL it is on record no more.
    Spelled {
        normal: PageId,
        page: PageId,
        url: Option<PageUrl>,
    },
    /// They end so.
    Traced {
        source: PageId,
        ticket: u32,
        /// The page that the target of `source` stands for.
        stands_for: Option<PageId>,
        resolution: Resolution,
    },
    /// Something changed at `target` or behind it, for a redirect straight to it.
    Rerouted {
        source: PageId,
        target: PageId,
        hops_left: u8,
    },
    /// Something changed behind a page of the normalised form `target`: its redirects are to be told.
    TellSources {
        target: PageId,
        reach: Reach,
    },
    /// Go on with the round in which the redirects of `target` are told.
    ContinueTelling {
        target: PageId,
        audience: Audience,
    },
    /// The redirects of `source` end at `target` (or no longer do).
    AttachRedirect {
        target: PageId,
        source: PageId,
    },
    DetachRedirect {
        target: PageId,
        source: PageId,
    },
    /// The state of a redirect's final target.
    TargetLine {
        source: PageId,
        target: PageId,
        line: TargetLine,
    },
}

/// Who is told that something changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Audience {
    /// The redirects straight to pages of a normalised form. Each looks for its end anew.
    Sources,
    /// The redirects that end at a page. Each learns the page's state.
    InboundRedirects,
}

/// Where a trace is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum At {
    /// In the shard of the normalised form of a target, which knows all pages of that form.
    Form { normal: PageId, as_sent: PageId },
    /// At the page that the target stands for.
    Page(PageId),
}

/// A message on its way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) from: ShardId,
    pub(crate) to: ShardId,
    pub(crate) number: u64,
    pub(crate) message: Message,
}

/// A piece of a merged group's members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) from: GroupId,
    /// Whether it is the first piece.
    pub(crate) first: bool,
    pub(crate) members: Vec<(PageId, Member)>,
    /// Set on the last piece.
    pub(crate) done: Option<TransferEnd>,
}

/// What is known when a merged group's last member is transferred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TransferEnd {
    pub(crate) dirty: bool,
    pub(crate) search_again: bool,
    pub(crate) evidence: Evidence,
}

/// What must be done outside once the commit is durable. All of it can be found again from the
/// records after a crash.
#[derive(Debug, Clone)]
pub(crate) enum Effect {
    /// An order to tier 2.
    Index(IndexCommand),
    /// Compare a member with its winner.
    Verify { page: PageId, content: ContentHash, winner: PageId, winner_content: ContentHash },
    /// A group owes a recomputation.
    Dirty(GroupId),
    /// A group owes a new cover.
    Uncovered(GroupId),
    /// A group has too many distinct contents to be advised from, or has them no more, be it that it was merged into another.
    Quarantine { group: GroupId, members: u64, begins: bool, into: Option<GroupId> },
    /// The number of redirects that end at a page has passed the limit for a report, or has fallen back to it. `url` is `None` if the page was
    /// purged, because a purged page must not be named.
    Crowded { url: Option<PageUrl>, redirects: u32, begins: bool },
    /// A confirmed page owes a comparison.
    Deferred(PageId),
    /// The feed grew.
    Changed,
    /// The answer to a submission.
    Outcome(Outcome),
}

impl Effect {
    pub(crate) fn put(
        page: PageId,
        signature: &Arc<doppel_model::signature::Signature>,
        search: Option<doppel_protocol::Search>,
    ) -> Self {
        Self::Index(IndexCommand::Put { page, signature: Arc::clone(signature), search })
    }
}
