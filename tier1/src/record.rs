//! Stored records of tier 1.

mod encoding;
mod group;
mod version;

use doppel_model::pairwise::Similarity;
use doppel_model::{ClientId, ContentHash, GroupId, PageId, PageUrl, Timestamp};
use doppel_protocol::{Counters, Rank, Status, TrailEvent, Unresolved};
use serde::{Deserialize, Serialize};

#[cfg(any(test, feature = "simulation"))]
pub(crate) use encoding::seal;
pub(crate) use encoding::{VERSION, body, damaged, decode, encode};
pub(crate) use group::{
    Announcing, Cover, Election, Evidence, Forward, Group, GroupRecord, Incoming, Linked, Member,
};
pub(crate) use version::Noted;

/// A page: everything but its signature.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PageRecord {
    pub(crate) rank: Rank,
    pub(crate) fetched_at: Timestamp,
    /// Date of the version that gave the popularity; none where the page has no popularity.
    pub(crate) popularity_at: Option<Timestamp>,
    pub(crate) language: Option<Box<str>>,
    pub(crate) canonical: Option<PageUrl>,
    pub(crate) state: State,
    /// Counts the memberships this page has had; messages about an earlier one are void.
    pub(crate) membership_number: u32,
    /// Counts the searches this page has had; answers to an earlier one are void.
    pub(crate) ticket: u32,
    /// Redirects that end here.
    pub(crate) inbound_redirects: u32,
    /// When it was first seen to be dead or purged.
    pub(crate) ended: Option<Timestamp>,
    /// Number of its newest event in the feed.
    pub(crate) event: u64,
    /// Its state as the newest event has it.
    pub(crate) published: Published,
}

/// What a page is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum State {
    Content(ContentState),
    Redirect(RedirectState),
    Dead,
    /// Forgotten by an operator; the row stays so that late messages meet the right counters.
    Purged,
}

/// A row of a page up to the number of its [`State`].
type Beginning<'r> = (Rank, Timestamp, Option<Timestamp>, Option<&'r str>, Option<&'r str>, u32);

/// The number of [`State::Purged`].
const PURGED: u32 = 3;

/// Whether a row is that of a page that was purged; not where it is damaged. Most rows are not, and are not read to their end.
pub(crate) fn is_purged_page(key: &[u8], row: &[u8]) -> bool {
    let body = row.get(1..).unwrap_or_default();
    let beginning = postcard::take_from_bytes::<Beginning<'_>>(body);
    beginning.is_ok_and(|((.., state), _)| state == PURGED)
        && decode::<PageRecord>(key, row).is_ok_and(|record| record.state == State::Purged)
}

/// A page with a content.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ContentState {
    pub(crate) content: ContentHash,
    pub(crate) tokens: u32,
    /// That of its signature.
    pub(crate) size: u32,
    pub(crate) search: SearchState,
    /// The client whose content waits to be compared, while the page is pending.
    pub(crate) client: ClientId,
    pub(crate) asking: Option<Asking>,
    pub(crate) membership: Option<Membership>,
    /// Partners of the present content that the last search measured, for the verdict.
    pub(crate) measured: Vec<Measured>,
}

/// How far the comparison of the present content is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum SearchState {
    /// Not decided; the page is pending.
    Pending,
    /// Confirmed by the representative; the comparison is owed.
    Deferred,
    /// Compared, and every partner has answered.
    Compared,
}

/// A decision in progress: partners were asked for their groups.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asking {
    pub(crate) waiting: u32,
    /// A partner had changed: the comparison must be repeated.
    pub(crate) stale: bool,
    pub(crate) found: Vec<Found>,
}

/// A group found, and the partner through which.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Found {
    pub(crate) group: GroupId,
    pub(crate) partner: Linked,
}

/// Exact comparison of the present content with another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) content: ContentHash,
    pub(crate) similarity: Similarity,
    pub(crate) similar: bool,
}

/// A content page's place in a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Membership {
    pub(crate) group: GroupId,
    /// Where the membership began: all its messages go that way, so none overtakes another.
    pub(crate) enrolled_at: GroupId,
    /// The content under which the page is a member. Another present content is not decided yet.
    pub(crate) content: ContentHash,
    /// Whether that content's comparison was completed.
    pub(crate) compared: bool,
    /// The winner as the group's owner last told; none until it has.
    pub(crate) winner: Option<Winner>,
    /// The comparison with that winner.
    pub(crate) verdict: Option<Measured>,
    pub(crate) resolving: Resolving,
    /// The group's owner was told that a comparison with the winner failed.
    pub(crate) dissimilar: bool,
    /// The kept page before it that it is a duplicate of, where that is not the winner.
    pub(crate) covered_by: Option<Kept>,
    /// The number of the last time that it was told so.
    pub(crate) cover_number: u32,
}

/// A page that another is a duplicate of, and the comparison of the two.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub(crate) page: PageId,
    pub(crate) url: PageUrl,
    pub(crate) with: Measured,
}

/// Whether a membership is about to go on under the present id of its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Resolving {
    No,
    /// The question where its messages arrive is under way, and nothing went the same way after it.
    Asked,
    /// Something did: the question must be asked again.
    Overtaken,
}

/// A group's winner.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Winner {
    pub(crate) page: PageId,
    pub(crate) content: ContentHash,
    pub(crate) url: PageUrl,
    /// The group is quarantined: no member is advised as a duplicate.
    pub(crate) quarantined: bool,
}

/// A page that redirects.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct RedirectState {
    pub(crate) to: PageUrl,
    /// The page that the target stands for, as the last trace has found it.
    pub(crate) stands_for: Option<PageId>,
    /// None until the first trace has come back.
    pub(crate) resolution: Option<Resolution>,
    /// The final target's state as it last told.
    pub(crate) target: Option<TargetLine>,
}

/// How a redirect's chain ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Resolution {
    /// At this page, which has a content.
    Content(PageId),
    Unresolved(Unresolved),
}

/// A final target's published state, told to the redirects that end there.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct TargetLine {
    pub(crate) status: Status,
    pub(crate) group: Option<GroupId>,
    pub(crate) winner: Option<PageUrl>,
    /// The target if it is kept, or else what it is a duplicate of.
    pub(crate) kept: Option<PageUrl>,
}

/// A page's state as the feed and the export have it (all but the URL).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Published {
    pub(crate) status: Status,
    pub(crate) group: Option<GroupId>,
    pub(crate) winner: Option<PageUrl>,
    pub(crate) duplicate_of: Option<PageUrl>,
    pub(crate) similarity: Option<Similarity>,
    pub(crate) reason: Option<Unresolved>,
}

/// A shard's counters and sequence numbers: one row, in memory while the shard runs.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Meta {
    pub(crate) groups_minted: u64,
    pub(crate) events: u64,
    pub(crate) audits: u64,
    /// The greatest number of an event that retention has dropped.
    pub(crate) events_dropped: u64,
    /// Past every membership number and ticket of a page whose record was dropped; new records begin with it.
    pub(crate) first_membership_number: u32,
    /// Last number sent to each shard.
    pub(crate) sent: Vec<u64>,
    /// Last number applied from each shard.
    pub(crate) applied: Vec<u64>,
    pub(crate) counters: Counters,
    pub(crate) pending: u64,
    pub(crate) deferred: u64,
    pub(crate) unverified: u64,
    pub(crate) dirty: u64,
    pub(crate) uncovered: u64,
}

/// A round in which the redirects of a page are told that something changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FanOut {
    /// The last redirect that was told; none before the first.
    pub(crate) after: Option<PageId>,
    /// Whom this round tells.
    pub(crate) reach: Reach,
    /// Whom the next round tells, because something changed after this one had begun.
    pub(crate) again: Option<Reach>,
}

/// Which redirects straight to a page are told that something changed, and how far they tell it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Reach {
    /// If set, only those whose targets stand for this page.
    pub(crate) through: Option<PageId>,
    pub(crate) hops_left: u8,
}

/// A repair that was applied, or a quarantine that began or ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AuditEntry {
    pub(crate) at: Timestamp,
    pub(crate) event: TrailEvent,
    /// Empty for what nobody wanted.
    pub(crate) by: String,
    pub(crate) group: GroupId,
    /// The group that it was merged into, where that ended a quarantine.
    pub(crate) into: Option<GroupId>,
    pub(crate) members: u64,
    /// Up to [`REPAIR_URLS_KEPT`](doppel_protocol::REPAIR_URLS_KEPT) of the members and of the components
    /// they fall into, the winner's first. None of a quarantine.
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

impl Published {
    /// A page of which nothing but its status is to be said.
    pub(crate) fn of(status: Status) -> Self {
        Self { status, group: None, winner: None, duplicate_of: None, similarity: None, reason: None }
    }
}

impl ContentState {
    /// The membership, when it holds for the present content.
    pub(crate) fn current_group(&self) -> Option<GroupId> {
        self.membership.as_ref().filter(|m| m.content == self.content).map(|m| m.group)
    }

    /// Told of a winner that it is not yet compared with.
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
    /// A message of the membership goes its old way, behind a question that may be under way.
    pub(crate) fn message_sent(&mut self) {
        if self.resolving == Resolving::Asked {
            self.resolving = Resolving::Overtaken;
        }
    }

    /// Whether the group has a smaller id than the membership uses, and no question about it is under way.
    pub(crate) fn wants_resolution(&self) -> bool {
        self.group < self.enrolled_at && self.resolving == Resolving::No
    }
}

#[cfg(test)]
mod tests;
