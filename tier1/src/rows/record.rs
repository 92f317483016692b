//! Records that tier 1 stores: pages, groups, shard counters, fan-out rounds, and the audit trail.
//!
//! The types here are plain data. `machine` is the only writer of pages and groups at run time; `bulk` writes
//! the same records for a new collection. [`encoding`] defines the stored bytes. A change of any stored type
//! needs a new [`VERSION`].

mod encoding;
mod group;
mod version;

use doppel_contract::{Counters, Status, TrailEvent, UnresolvedReason};
use doppel_model::pairwise::Similarity;
use doppel_model::{ClientId, ContentHash, GroupId, PageId, PageUrl, Timestamp};
use doppel_protocol::Rank;
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "simulation"))]
pub(crate) use encoding::seal;
pub(crate) use encoding::{VERSION, body, damaged, decode, encode};
pub(crate) use group::{
    Announcement, Cover, Election, Evidence, Forward, Group, GroupRecord, IncomingTransfer, LinkedPage,
    Member,
};
pub(crate) use version::RecordChanges;

/// A stored page, without its signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PageRecord {
    pub(crate) rank: Rank,
    pub(crate) fetched_at: Timestamp,
    /// Date of the version that gave the popularity; `None` if the page has no popularity.
    pub(crate) popularity_at: Option<Timestamp>,
    pub(crate) language: Option<Box<str>>,
    pub(crate) canonical: Option<PageUrl>,
    pub(crate) state: State,
    /// Number of the page's latest membership. Messages about an earlier membership are void.
    pub(crate) membership_number: u32,
    /// Number of the page's latest search or trace. Answers to an earlier one are void.
    pub(crate) ticket: u32,
    /// Number of redirects whose chain ends at this page.
    pub(crate) inbound_redirects: u32,
    /// Time when a sweep first found the page dead or purged.
    pub(crate) ended: Option<Timestamp>,
    /// Number of the page's newest event in the feed; 0 if it has none.
    pub(crate) event: u64,
    /// Public state of the page in its newest event.
    pub(crate) published: PublicState,
}

/// What a page is: content, redirect, dead, or purged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum State {
    Content(ContentState),
    Redirect(RedirectState),
    Dead,
    /// An operator has purged the page. The row stays so that late messages meet the right counters.
    Purged,
}

/// Leading fields of a [`PageRecord`] row, up to the variant number of its [`State`].
type Beginning<'r> = (Rank, Timestamp, Option<Timestamp>, Option<&'r str>, Option<&'r str>, u32);

/// Variant number of [`State::Purged`] in a stored row.
const PURGED: u32 = 3;

/// Returns whether a row belongs to a purged page; `false` for a damaged row. Most rows belong to other
/// pages, and are decoded only up to the variant number of their state.
pub(crate) fn is_purged_page(key: &[u8], row: &[u8]) -> bool {
    let body = row.get(1..).unwrap_or_default();
    let beginning = postcard::take_from_bytes::<Beginning<'_>>(body);
    beginning.is_ok_and(|((.., state), _)| state == PURGED)
        && decode::<PageRecord>(key, row).is_ok_and(|record| record.state == State::Purged)
}

/// State of a page that has a content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContentState {
    pub(crate) content: ContentHash,
    pub(crate) tokens: u32,
    /// Size of the content's signature.
    pub(crate) size: u32,
    pub(crate) search: SearchState,
    /// While the page is pending, the client whose content waits to be compared.
    pub(crate) client: ClientId,
    pub(crate) partner_query: Option<PartnerQuery>,
    pub(crate) membership: Option<Membership>,
    /// Partners of the present content that the last search compared. They can provide the verdict on the
    /// winner.
    pub(crate) measured: Vec<ContentComparison>,
}

/// Progress of the comparison of a page's present content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SearchState {
    /// The page is pending: its search is owed, and its status waits for the result.
    Pending,
    /// The representative confirmed the page. The search is owed, but the status does not wait for the
    /// result.
    Deferred,
    /// The search is done, and every partner has answered.
    Compared,
}

/// A decision in progress. The page has asked its partners for their groups, and waits for their answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartnerQuery {
    pub(crate) unanswered: u32,
    /// Whether a partner's content had changed, so the search must be repeated.
    pub(crate) stale: bool,
    pub(crate) groups: Vec<PartnerGroup>,
}

/// The group of a partner, with the partner that belongs to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartnerGroup {
    pub(crate) group: GroupId,
    pub(crate) partner: LinkedPage,
}

/// Result of an exact comparison of a page's content with another content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ContentComparison {
    pub(crate) content: ContentHash,
    pub(crate) similarity: Similarity,
    pub(crate) similar: bool,
}

/// Membership of a content page in a group, as the page knows it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Membership {
    pub(crate) group: GroupId,
    /// Group id to which the page sends all messages of this membership. They take one path, so none
    /// overtakes another.
    pub(crate) enrolled_at: GroupId,
    /// Content under which the page is a member. If the page's present content differs, that content is not
    /// decided yet.
    pub(crate) content: ContentHash,
    /// Whether the search for the member's content was completed.
    pub(crate) compared: bool,
    /// Winner in the latest message from the group's owner; `None` before the first one.
    pub(crate) winner: Option<Winner>,
    /// Result of the comparison with that winner.
    pub(crate) verdict: Option<ContentComparison>,
    pub(crate) forward_probe: ForwardProbe,
    /// Whether the page has reported to the group's owner that its comparison with the winner failed.
    pub(crate) dissimilar: bool,
    /// Kept page that covers this page: it precedes this page in the winner order, is not the winner, and F
    /// holds.
    pub(crate) covered_by: Option<CoveringPage>,
    /// Number of the latest cover message that the page has applied.
    pub(crate) cover_number: u32,
}

/// A kept page of which another page is a duplicate, with the comparison of the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CoveringPage {
    pub(crate) page: PageId,
    pub(crate) url: PageUrl,
    pub(crate) with: ContentComparison,
}

/// Progress of moving a membership to the present id of its group, after the group was merged.
///
/// The page probes the path of its messages. The reply names the group at the end of the path, and proves
/// that all earlier messages have arrived there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ForwardProbe {
    /// No probe is under way.
    Idle,
    /// A probe is under way, and the page has sent no message of the membership after it.
    InFlight,
    /// The page has sent a message after the probe, so the reply will prove too little. The page must probe
    /// again.
    Overtaken,
}

/// Winner of a group, as the group's owner announces it to the members.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Winner {
    pub(crate) page: PageId,
    pub(crate) content: ContentHash,
    pub(crate) url: PageUrl,
    /// Whether the group is in quarantine. No member of such a group is reported as a duplicate.
    pub(crate) quarantined: bool,
}

/// State of a page that redirects to another URL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RedirectState {
    pub(crate) to: PageUrl,
    /// Page that the target URL stands for, according to the last trace.
    pub(crate) stands_for: Option<PageId>,
    /// How the chain ends; `None` until the first trace has returned.
    pub(crate) resolution: Option<Resolution>,
    /// State of the final target, from its latest message.
    pub(crate) target: Option<TargetState>,
}

/// How the chain of a redirect ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Resolution {
    /// The chain ends at this page, which has a content.
    Content(PageId),
    Unresolved(UnresolvedReason),
}

/// Public state of a final target. The target sends it to the redirects whose chain ends there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TargetState {
    pub(crate) status: Status,
    pub(crate) group: Option<GroupId>,
    pub(crate) winner: Option<PageUrl>,
    /// The target itself if it is kept, or else the kept page of which it is a duplicate.
    pub(crate) kept: Option<PageUrl>,
}

/// Public state of a page, without its URL, as the feed and the export report it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PublicState {
    pub(crate) status: Status,
    pub(crate) group: Option<GroupId>,
    pub(crate) winner: Option<PageUrl>,
    pub(crate) duplicate_of: Option<PageUrl>,
    pub(crate) similarity: Option<Similarity>,
    pub(crate) reason: Option<UnresolvedReason>,
}

/// Counters and sequence numbers of one shard. One row; the shard keeps a copy in memory while it runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) groups_minted: u64,
    pub(crate) events: u64,
    pub(crate) audits: u64,
    /// Greatest number of an event that retention has dropped.
    pub(crate) events_dropped: u64,
    /// Greater than every membership number and ticket of a dropped page record. New records start with this
    /// number.
    pub(crate) first_membership_number: u32,
    /// Number of the last message sent to each shard.
    pub(crate) sent: Vec<u64>,
    /// Number of the last message applied from each shard.
    pub(crate) applied: Vec<u64>,
    pub(crate) counters: Counters,
    pub(crate) pending: u64,
    pub(crate) deferred: u64,
    pub(crate) unverified: u64,
    pub(crate) dirty: u64,
    pub(crate) uncovered: u64,
}

/// A round that tells the redirects of a page that something has changed. See `machine::redirect::fan_out`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FanOut {
    /// Last redirect that this round has told; `None` before the first step.
    pub(crate) after: Option<PageId>,
    /// Redirects that this round tells.
    pub(crate) reach: Reach,
    /// Redirects that the next round tells, if something changed after this round had begun.
    pub(crate) again: Option<Reach>,
}

/// Selects the direct redirects to a page that learn of a change, and how many hops they pass it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reach {
    /// If set, select only redirects whose target URL stands for this page.
    pub(crate) through: Option<PageId>,
    /// Number of further hops over which the redirects pass the change on.
    pub(crate) hops_left: u8,
}

/// Entry of the audit trail: an applied repair, or a quarantine that began or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuditEntry {
    pub(crate) at: Timestamp,
    pub(crate) event: TrailEvent,
    /// Operator who requested the repair; empty for a quarantine.
    pub(crate) by: String,
    pub(crate) group: GroupId,
    /// Group into which `group` was merged, if the merge ended a quarantine.
    pub(crate) into: Option<GroupId>,
    pub(crate) members: u64,
    /// URLs of the members before a repair; empty for a quarantine. `components` lists the components into
    /// which the repair divides them, the winner's first. Each has at most
    /// [`REPAIR_URLS_KEPT`](doppel_protocol::REPAIR_URLS_KEPT) URLs in all.
    pub(crate) before: Vec<PageUrl>,
    pub(crate) components: Vec<Vec<PageUrl>>,
}

impl PageRecord {
    pub(crate) fn url(&self) -> &PageUrl {
        &self.rank.url
    }

    pub(crate) fn content(&self) -> Option<&ContentState> {
        match &self.state {
            State::Content(content) => Some(content),
            State::Redirect(_) | State::Dead | State::Purged => None,
        }
    }

    pub(crate) fn has_content(&self, content: ContentHash) -> bool {
        self.content().is_some_and(|c| c.content == content)
    }
}

impl PublicState {
    /// Creates the public state of a page that has a status and nothing else.
    pub(crate) fn of(status: Status) -> Self {
        Self { status, group: None, winner: None, duplicate_of: None, similarity: None, reason: None }
    }
}

impl ContentState {
    /// Returns the group of the page, if the membership is for the present content.
    pub(crate) fn current_group(&self) -> Option<GroupId> {
        self.membership.as_ref().filter(|m| m.content == self.content).map(|m| m.group)
    }

    /// Returns whether the page knows a winner with which it is not yet compared.
    pub(crate) fn owes_verdict(&self, page: PageId) -> bool {
        self.search != SearchState::Pending
            && self.membership.as_ref().is_some_and(|m| {
                m.winner
                    .as_ref()
                    .is_some_and(|w| w.page != page && m.verdict.is_none_or(|v| v.content != w.content))
            })
    }
}

impl Membership {
    /// Records that the page sends a message of the membership. The message follows a probe that may be under
    /// way.
    pub(crate) fn message_sent(&mut self) {
        if self.forward_probe == ForwardProbe::InFlight {
            self.forward_probe = ForwardProbe::Overtaken;
        }
    }

    /// Returns whether the group now has a smaller id than the membership uses, and no probe is under way.
    pub(crate) fn wants_resolution(&self) -> bool {
        self.group < self.enrolled_at && self.forward_probe == ForwardProbe::Idle
    }
}

#[cfg(test)]
mod tests;
