//! The seam of tier 1: the system of record as the coordinator sees it.

use std::fmt;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    BackupError, BackupSummary, Line, Rank, RepairDetails, RepairId, RepairPosition, RepairReport,
    RepairTrail, Unresolved,
};
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, GroupId, PageId, PageUrl, Timestamp};

/// A page version to record.
#[derive(Debug, Clone)]
pub struct Submission {
    /// The page.
    pub url: PageUrl,
    /// When it was fetched. A version older than the one on record is stale.
    pub fetched_at: Timestamp,
    /// Larger is better; none leaves what is known.
    pub popularity: Option<f64>,
    /// Language of the content.
    pub language: Option<Box<str>>,
    /// `<link rel=canonical>`, recorded only.
    pub canonical: Option<PageUrl>,
    /// What was fetched.
    pub body: Body,
}

/// What was fetched.
#[derive(Debug, Clone)]
pub enum Body {
    /// A content.
    Content(Arc<Signature>),
    /// A redirect, by HTTP or in content.
    Redirect(PageUrl),
    /// Gone.
    Dead,
}

/// What became of a submission, durably.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing but dates changed.
    Unchanged,
    /// Settled at once: still a near-duplicate of its group's representative (a page on its own: of
    /// its last content), or dead, or without tokens.
    Confirmed,
    /// Accepted; to be compared.
    Pending,
    /// A newer version is on record.
    Stale,
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Why tier 1 does not take a call now.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Tier1Error {
    /// Too many pages are pending.
    #[error("{pending} pages are pending, the limit is {limit}; try again later")]
    Full {
        /// Pages pending.
        pending: u64,
        /// The limit.
        limit: u64,
    },
    /// A write failed; the service is read-only until it is restarted.
    #[error("the store failed and takes no writes until a restart: {0}")]
    ReadOnly(String),
    /// No room on the disk.
    #[error("the disk is full: {0}")]
    DiskFull(String),
    /// The cursor is not of this collection, or what it points to is gone.
    #[error("the cursor is older than the change log or of another collection; export again")]
    CursorGone,
    /// A stored record is damaged.
    #[error("a stored record is damaged: {0}")]
    Damaged(String),
    /// The service is ending.
    #[error("the service is shutting down")]
    Stopping,
}

/// A page's record.
#[derive(Debug, Clone, PartialEq)]
pub struct PageView {
    /// Its state as the feed has it.
    pub line: Line,
    /// Newest fetch; none for a URL that was purged.
    pub fetched_at: Timestamp,
    /// What the winner order looks at.
    pub rank: Rank,
    /// The content, when it has one.
    pub content: Option<ContentHash>,
    /// Language of the content.
    pub language: Option<Box<str>>,
    /// `<link rel=canonical>`.
    pub canonical: Option<PageUrl>,
    /// Where it redirects to.
    pub redirect_to: Option<PageUrl>,
    /// The page at the end of its redirects, when that has a content.
    pub target: Option<PageId>,
    /// Why its redirect is unresolved.
    pub unresolved: Option<Unresolved>,
    /// The winner as last told to this page's shard.
    pub winner: Option<WinnerView>,
}

/// A group's winner as a member's shard knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WinnerView {
    /// The page.
    pub page: PageId,
    /// Its content when it was told.
    pub content: ContentHash,
}

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

/// One event of the feed: the newest state of a page.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// Its state.
    pub line: Line,
    /// Newest fetch.
    pub fetched_at: Timestamp,
}

/// A piece of the feed.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// Events, ordered per URL.
    pub changes: Vec<Change>,
    /// Opaque; where to go on.
    pub cursor: String,
    /// Whether the feed had nothing more at that moment.
    pub at_end: bool,
}

/// Work that is accepted and not yet done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Backlog {
    /// Pages waiting for tier 2 or for partners' answers.
    pub pending: u64,
    /// Confirmed pages that are still to be compared.
    pub deferred_searches: u64,
    /// Groups that owe a recomputation.
    pub dirty_groups: u64,
    /// Members that are still to be verified against their winner.
    pub unverified: u64,
    /// Messages between shards.
    pub messages: u64,
}

impl Backlog {
    /// Nothing to do: the groups are final for what was accepted.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        *self == Self::default()
    }
}

/// Totals since the collection was created (`live` to `groups`: at present).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Counters {
    /// Live pages, redirects among them.
    pub live: u64,
    /// Live pages that redirect.
    pub redirects: u64,
    /// Redirects that do not end at a content.
    pub unresolved: u64,
    /// Dead pages on record.
    pub dead: u64,
    /// Groups in use.
    pub groups: u64,
    /// Pages with status winner.
    pub winners: u64,
    /// Pages with status duplicate.
    pub duplicates: u64,
    /// Pages with status member.
    pub members: u64,
    /// Submissions taken.
    pub submissions: u64,
    /// Submissions that were unchanged.
    pub unchanged: u64,
    /// Submissions that were stale.
    pub stale: u64,
    /// Content updates confirmed by the representative.
    pub confirmed: u64,
    /// Content updates that had to wait for tier 2.
    pub compared_updates: u64,
    /// Comparisons of members with their winner.
    pub verified: u64,
    /// Of those, below tau.
    pub rejected: u64,
    /// Groups merged into another.
    pub merges: u64,
    /// Groups recomputed because many members differed from the winner.
    pub rechecks: u64,
    /// Members that a recomputation put out of a group.
    pub splits: u64,
    /// Searches of tier 2 that were answered.
    pub searches: u64,
    /// Answers about contents that were no longer current.
    pub stale_results: u64,
}

/// Tier 1 as the coordinator sees it. Calls block on the store; call them off the async runtime.
pub trait Tier1Api: Send + Sync {
    /// Records submissions, in order; returns when they are durable. There is exactly one outcome for each submission,
    /// and the outcomes are in the order of the submissions; the coordinator takes another number for a fault.
    ///
    /// # Errors
    /// When too much is pending, the disk is full or the store failed. A part of them may be recorded then, and to
    /// send all of them again changes nothing of it.
    fn submit(&self, submissions: Vec<Submission>) -> Result<Vec<Outcome>, Tier1Error>;

    /// Records of pages, exactly one entry for each and in their order; none where a URL was never heard of or was
    /// purged.
    ///
    /// # Errors
    /// When a record is damaged.
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error>;

    /// The current signature of a page with content.
    ///
    /// # Errors
    /// When it is damaged.
    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error>;

    /// A group's record alone, without following merges; none for ids never given or dissolved.
    ///
    /// # Errors
    /// When a record is damaged.
    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error>;

    /// A group and up to `limit` of its pages after `after`: members and, with `redirects`, the redirects
    /// that end at each.
    ///
    /// # Errors
    /// When a record is damaged.
    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error>;

    /// Up to `limit` groups after `after`, in order of shard and id.
    ///
    /// # Errors
    /// When a record is damaged.
    fn groups(
        &self,
        filter: GroupFilter,
        after: Option<GroupId>,
        limit: usize,
    ) -> Result<Vec<GroupSummary>, Tier1Error>;

    /// Up to `limit` events after `cursor` (from the start without one); waits up to `wait` for the
    /// first.
    ///
    /// # Errors
    /// [`Tier1Error::CursorGone`] when the cursor is of another collection.
    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Result<Changes, Tier1Error>;

    /// Every live page in no particular order, and the feed cursor from before the first.
    ///
    /// # Errors
    /// When a record is damaged, or `each` fails with its own error as text.
    fn scan(&self, each: &mut dyn FnMut(Line) -> std::io::Result<()>) -> Result<String, Tier1Error>;

    /// The feed's present end, to continue from after a scan that begins now.
    fn cursor(&self) -> String;

    /// Totals.
    fn counters(&self) -> Counters;

    /// Work not yet done.
    fn backlog(&self) -> Backlog;

    /// Whether writes are taken: the refusal that every submission would meet, whatever is pending.
    ///
    /// # Errors
    /// When the store failed, the disk is full or the service is ending.
    fn writable(&self) -> Result<(), Tier1Error> {
        Ok(())
    }

    /// The limit of pages pending.
    fn pending_limit(&self) -> u64;

    /// Recomputes a group by exact comparison; applies it unless `dry_run`, and writes down that it was,
    /// by whom and what came of it.
    ///
    /// # Errors
    /// When the store failed. `Ok(None)` when there is no such group.
    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, Tier1Error>;

    /// Up to `limit` repairs that were applied, of the group with this id or of all, newest first, from
    /// `before` on.
    ///
    /// # Errors
    /// When a record is damaged.
    fn repairs(
        &self,
        group: Option<GroupId>,
        before: Option<&RepairPosition>,
        limit: usize,
    ) -> Result<RepairTrail, Tier1Error>;

    /// A repair that was applied, with its URLs; none for ids never given or dropped.
    ///
    /// # Errors
    /// When a record is damaged.
    fn repair_details(&self, id: RepairId) -> Result<Option<RepairDetails>, Tier1Error>;

    /// Forgets pages altogether; returns how many there were.
    ///
    /// # Errors
    /// When the store failed.
    fn purge(&self, pages: &[PageId]) -> Result<u64, Tier1Error>;

    /// Forgets every page of a host.
    ///
    /// # Errors
    /// When the store failed.
    fn purge_host(&self, host: &str) -> Result<u64, Tier1Error>;

    /// Writes a backup of everything at some moment of the call. What changes meanwhile is kept in a file
    /// without a name in `dir`; submissions do not wait for `out`.
    ///
    /// # Errors
    /// When a record is damaged, the store failed, too much changes meanwhile, or `out` fails. What was
    /// written so far is then no backup, and cannot be taken for one.
    fn backup(&self, dir: &Path, out: &mut dyn Write) -> Result<BackupSummary, BackupError>;

    /// Decides everything accepted so far; true when nothing is left, false when `limit` ran out.
    ///
    /// # Errors
    /// When the store failed.
    fn flush(&self, limit: Duration) -> Result<bool, Tier1Error>;
}
