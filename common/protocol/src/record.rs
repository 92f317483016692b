//! The seam of tier 1: the system of record as the coordinator sees it.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, Timestamp};

use super::{
    Backlog, BackupError, BackupSummary, Counters, GroupFilter, GroupPosition, GroupSummary, GroupView, Line,
    Outcome, PageView, RepairDetails, RepairId, RepairPosition, RepairReport, RepairTrail, Submission,
    Tier1Error,
};

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
