//! Input and output of the machine: commands, messages between shards, and effects.
//!
//! Commands come from clients, from tier 2 and from background work. Messages connect the shards, within a
//! range and between ranges. Effects leave the machine after the commit is settled. Envelopes are stored, so
//! a change of [`Message`] is a change of the record format.

use std::collections::HashSet;
use std::sync::Arc;

use doppel_contract::SubmissionOutcome;
use doppel_model::{ClientId, ContentHash, GroupId, PageId, PageUrl, ShardId, Timestamp};
use doppel_protocol::{IndexCommand, IndexStateItem, RepairId, SearchResult, Submission};
use serde::{Deserialize, Serialize};

use crate::rows::record::{
    AuditEntry, ContentComparison, CoveringPage, Evidence, Member, PartnerGroup, Reach, Resolution,
    TargetState, Winner,
};

/// A request, or the result of a comparison, that enters the machine from outside.
#[derive(Debug, Clone)]
pub(crate) enum Command {
    /// A client submits a page version. `hint` is F between the version and its representative, computed
    /// outside.
    Submit { submission: Box<Submission>, hint: Option<Hint>, client: ClientId },
    /// Tier 2 has compared a page with its partners.
    Searched(SearchResult),
    /// The worker has compared a page with the winner of its group.
    Verified { page: PageId, content: ContentHash, with: ContentComparison },
    /// The worker has made one step of a recomputation of a group.
    Recomputed(RecomputationStep),
    /// The worker has found which members of a group are duplicates of a kept page other than the winner.
    Covered(CoverUpdate),
    /// The background worker has time to search for a confirmed page.
    SearchNow { page: PageId },
    /// The search of a pending page was lost with a process, and is ordered again.
    ResumeSearch { page: PageId },
    /// An operator purges a page.
    Purge { page: PageId },
    /// Drop a dead or purged page if its retention period is over.
    ExpirePage { page: PageId, now: Timestamp },
    /// Drop a merged group if its retention period is over.
    ExpireGroup { group: GroupId, now: Timestamp },
    /// Drop an entry of the audit trail if its retention period is over.
    ExpireRepair { repair: RepairId, now: Timestamp },
    /// Remove these purged pages from an entry of the audit trail.
    ForgetInRepair { repair: RepairId, pages: HashSet<PageId> },
    /// Store an item of the index's router, or delete it if `bytes` is `None`.
    KeepIndexState { item: IndexStateItem, bytes: Option<Box<[u8]>> },
}

/// F between a new content and the page's representative, computed before the machine takes the submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hint {
    /// The page's content when the hint was computed.
    pub(crate) previous: ContentHash,
    /// The page's membership number when the hint was computed.
    pub(crate) membership_number: u32,
    /// The representative's content and the result of the comparison.
    pub(crate) with: ContentComparison,
}

/// One step of a recomputation: members that no chain of pairs links to the group's winner.
///
/// The step names the contents of the members. It stays true for a member as long as the member keeps its
/// content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecomputationStep {
    pub(crate) group: GroupId,
    /// Expected counters of the group: their values when the members were collected, plus the changes by
    /// earlier steps.
    pub(crate) changes: u64,
    pub(crate) losses: u64,
    pub(crate) evicted: Vec<EvictedMember>,
    /// Number of distinct contents of the members that stay.
    pub(crate) contents: u64,
    /// Whether this is the last step of the recomputation.
    pub(crate) last: bool,
    /// Whether an operator requested the recomputation as a repair, and so accepts the group's present size.
    pub(crate) repair: bool,
    /// Entry for the audit trail, with the first step of a repair.
    pub(crate) audit: Option<Box<AuditEntry>>,
}

/// A member that a recomputation evicts, as it was when the members were collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct EvictedMember {
    pub(crate) page: PageId,
    pub(crate) membership_number: u32,
    pub(crate) content: ContentHash,
}

/// A piece of the changes in a group's cover.
///
/// The update names the contents of the members. It stays true for a member as long as the member keeps its
/// content.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CoverUpdate {
    pub(crate) group: GroupId,
    /// The group's `cover_changes` when its members were collected.
    pub(crate) changes: u64,
    /// Members whose cover has changed.
    pub(crate) members: Vec<MemberCover>,
    /// Whether this is the last piece.
    pub(crate) last: bool,
}

/// New cover of one member.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct MemberCover {
    pub(crate) page: PageId,
    pub(crate) membership_number: u32,
    pub(crate) content: ContentHash,
    /// Kept page of which the member is a duplicate; `None` if the member itself is kept.
    pub(crate) by: Option<CoveringPage>,
}

/// A message from one shard to another shard or to itself. Messages between two shards are delivered once and
/// in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum Message {
    /// A page has found `partner` and asks for the partner's group.
    AskGroup {
        page: PageId,
        content: ContentHash,
        ticket: u32,
        partner: PageId,
        partner_content: ContentHash,
    },
    /// A partner answers with its group; `None` if the partner no longer has the content.
    AnswerGroup { page: PageId, content: ContentHash, ticket: u32, found: Option<PartnerGroup> },
    /// A page becomes a member, or a member changes. `via` names the partner that links the page to the
    /// group.
    Enroll {
        group: GroupId,
        page: PageId,
        member: Member,
        via: Option<(PageId, ContentHash)>,
        /// Whether the search for the page's previous content was never completed.
        uncompared: bool,
    },
    /// A probe behind all earlier messages of a membership asks at which group these messages arrive.
    ResolveForward { group: GroupId, page: PageId, membership_number: u32 },
    /// Reply to the probe: the messages arrive at this group.
    ForwardResolved { page: PageId, membership_number: u32, group: GroupId },
    /// A membership no longer sends messages along this path, up to the group `until`.
    ReleaseForward { group: GroupId, page: PageId, membership_number: u32, until: GroupId },
    /// The group no longer exists, so the page cannot be a member.
    EnrollRefused { page: PageId, membership_number: u32 },
    /// A page ends its membership.
    Leave { group: GroupId, page: PageId, membership_number: u32, uncompared: bool },
    /// The group's owner tells a member the group and its winner.
    Assign { page: PageId, membership_number: u32, group: GroupId, winner: Winner, search_again: bool },
    /// The group's owner tells a dissimilar member which kept page covers it; `by` is `None` if no page does.
    Cover {
        page: PageId,
        membership_number: u32,
        /// Orders the cover messages of a membership. If two groups merge, a message of one group may
        /// overtake a message of the other.
        number: u32,
        content: ContentHash,
        by: Option<CoveringPage>,
    },
    /// A member reports that its comparison with the winner failed, or holds again.
    Dissimilar { group: GroupId, page: PageId, membership_number: u32, dissimilar: bool },
    /// The group's owner removes a member. `compare` means that the page must search for partners again.
    Evict { page: PageId, membership_number: u32, compare: bool },
    /// A pair links two groups, so one of the two must be merged into the other. The group with the smaller
    /// id survives, whichever is named in `into`.
    Merge { group: GroupId, into: GroupId, evidence: Evidence },
    /// A merged group sends members to the survivor.
    TransferMembers { into: GroupId, transfer: Transfer },
    /// The page must search again, because a pair was not joined when a group dissolved, or a content that
    /// tier 2 relied on has gone.
    SearchAgain { page: PageId, content: ContentHash },
    /// Make the next step of an election, an announcement, or a transfer of members.
    Continue { group: GroupId },
    /// `source` redirects to a page of the normalised form `target`.
    Subscribe { target: PageId, source: PageId },
    /// `source` no longer redirects to a page of the normalised form `target`.
    Unsubscribe { target: PageId, source: PageId },
    /// A trace that follows the redirects of `source` to their end. `path` lists the pages so far; `at` is
    /// the next page.
    Trace { source: PageId, ticket: u32, at: TracePosition, path: Vec<PageId> },
    /// A page whose URL is not in normalised form has a new state. `url` is `None` if the page is no longer
    /// on record.
    SpellingChanged { normal: PageId, page: PageId, url: Option<PageUrl> },
    /// A trace returns to its source.
    TraceResult {
        source: PageId,
        ticket: u32,
        /// Page for which the target URL of `source` stands.
        stands_for: Option<PageId>,
        resolution: Resolution,
    },
    /// Something has changed at `target` or behind it. `source` is a direct redirect to it.
    RouteChanged { source: PageId, target: PageId, hops_left: u8 },
    /// Something has changed behind a page of the normalised form `target`, so its redirects must be told.
    TellSources { target: PageId, reach: Reach },
    /// Make the next step of the round that tells the redirects of `target`.
    ContinueTelling { target: PageId, audience: Audience },
    /// The chain of `source` ends at `target`.
    AttachRedirect { target: PageId, source: PageId },
    /// The chain of `source` no longer ends at `target`.
    DetachRedirect { target: PageId, source: PageId },
    /// The final target of a redirect reports its public state.
    TargetState { source: PageId, target: PageId, state: TargetState },
}

/// The redirects of a page that learn of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Audience {
    /// Direct redirects to the pages of a normalised form. Each of them traces its end again.
    Sources,
    /// Redirects whose chain ends at the page. Each of them learns the page's state.
    InboundRedirects,
}

/// Position of a trace that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum TracePosition {
    /// At the shard of the normalised form of a target URL, which knows all pages of that form.
    Form { normal: PageId, as_sent: PageId },
    /// At the page for which the target URL stands.
    Page(PageId),
}

/// A numbered message under way from one shard to another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Envelope {
    pub(crate) from: ShardId,
    pub(crate) to: ShardId,
    pub(crate) number: u64,
    pub(crate) message: Message,
}

/// Some members of a merged group, on their way to the survivor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Transfer {
    pub(crate) from: GroupId,
    /// Whether this is the first piece.
    pub(crate) first: bool,
    pub(crate) members: Vec<(PageId, Member)>,
    /// Set on the last piece only.
    pub(crate) done: Option<TransferEnd>,
}

/// Results of a merge that the survivor learns with the last members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TransferEnd {
    pub(crate) dirty: bool,
    pub(crate) search_again: bool,
    pub(crate) evidence: Evidence,
}

/// Work outside the machine, to be done once the commit is durable. After a crash, all of it can be derived
/// from the records again.
#[derive(Debug, Clone)]
pub(crate) enum Effect {
    /// Send an order to tier 2.
    Index(IndexCommand),
    /// Compare a member with the winner of its group.
    Verify { page: PageId, content: ContentHash, winner: PageId, winner_content: ContentHash },
    /// Recompute a group.
    Dirty(GroupId),
    /// Find the cover of a group.
    Uncovered(GroupId),
    /// A group enters or leaves quarantine. `into` names the survivor if a merge ended the quarantine.
    Quarantine { group: GroupId, members: u64, begins: bool, into: Option<GroupId> },
    /// The number of redirects that end at a page has passed the limit for a report, or has fallen back to
    /// the limit. `url` is `None` if the page was purged, because a purged page must not be named.
    Crowded { url: Option<PageUrl>, redirects: u32, begins: bool },
    /// Search later for a confirmed page.
    Deferred(PageId),
    /// Wake the consumers of the feed, because it has a new event.
    Changed,
    /// Answer a submission.
    Outcome(SubmissionOutcome),
}

impl Effect {
    /// Creates the order to store a signature, with the search for it if one is wanted.
    pub(crate) fn put(
        page: PageId,
        signature: &Arc<doppel_model::signature::Signature>,
        search: Option<doppel_protocol::Search>,
    ) -> Self {
        Self::Index(IndexCommand::Put { page, signature: Arc::clone(signature), search })
    }
}
