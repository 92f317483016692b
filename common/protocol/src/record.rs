//! The interface of tier 1: the system of record as the coordinator sees it.

use std::sync::Arc;
use std::time::Duration;

use doppel_model::signature::Signature;
use doppel_model::{ClientId, GroupId, PageId, PageUrl, ShardId, Timestamp};
use serde::{Deserialize, Serialize};

use super::answer::Advice;
use super::{
    BackupError, BackupStream, GroupFilter, GroupPosition, GroupSummary, GroupView, Line, Outcome, PageView,
    Question, RepairDetails, RepairId, RepairPosition, RepairReport, RepairTrail, Submission, Tier1Error,
    Totals,
};

/// One event of the feed: the newest state of a page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    /// Its state.
    pub line: Line,
    /// The time of the newest fetch.
    pub fetched_at: Timestamp,
}

/// A section of the feed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Changes {
    /// The events. Those of one URL are in order.
    pub changes: Vec<Change>,
    /// Where to continue; an opaque text.
    pub cursor: String,
    /// Whether the feed had nothing more at that moment.
    pub at_end: bool,
}

/// The maximum number of lines in one page of a scan.
pub const SCAN_LINES_MAX: usize = 1_000;

/// A place in the order of a scan: after this page. A caller only gives back what it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanPosition {
    /// The shard that was being read.
    pub shard: ShardId,
    /// The last page that was read in it.
    pub page: PageId,
}

/// A page of a scan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinesPage {
    /// Live pages. There may be none before the end, because dead pages are read, too.
    pub lines: Vec<Line>,
    /// Where the next page begins; none at the end.
    pub next: Option<ScanPosition>,
}

/// The maximum number of submissions or pages in one call. With 4 kB for a signature, that is 16 MB.
pub const BATCH_MAX: usize = 4_096;

/// The maximum number of entries in one answer to a call with a limit. A larger limit counts as this.
pub const LIST_MAX: usize = 10_000;

/// What tier 1 says of pages and groups. The calls block on the store, so they must not be made on an async thread, but for
/// [`known_advice`](Self::known_advice). Lists that are handed over have at most [`BATCH_MAX`] entries, and answers to a call with a limit at most [`LIST_MAX`].
///
/// A call takes and gives owned values. Across processes every call has a deadline; past it the call fails as
/// [`Tier1Error::Unavailable`].
pub trait Tier1Reads: Send + Sync {
    /// The records of pages: exactly one entry for each, in the same order. The entry is `None` if the URL is unknown
    /// or was purged.
    ///
    /// # Errors
    /// [`Tier1Error::BatchTooLarge`]; when a record is damaged.
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error>;

    /// What is to be answered about a page, if that is known without a read of its rows: the same as from the records of
    /// page, group and winner, verified on what they are at this moment (G5). `None` says nothing; the records do then.
    ///
    /// Unlike all other calls it does not block, so it may be made on an async thread.
    fn known_advice(&self, _page: &PageUrl) -> Option<Advice> {
        None
    }

    /// The same for many pages, at most [`BATCH_MAX`]: exactly one entry for each, in the same order. It blocks where tier 1 is
    /// in another process, and saves the calls for records there.
    ///
    /// # Errors
    /// When tier 1 cannot answer.
    fn known_advices(&self, pages: &[PageUrl]) -> Result<Vec<Option<Advice>>, Tier1Error> {
        Ok(pages.iter().map(|page| self.known_advice(page)).collect())
    }

    /// Of the pages on record whose URL is another spelling of the normal form `form`, the first in byte order of the URLs, other than
    /// `except`. The target of a redirect stands for this page if no page is spelled like the target or in its normal form.
    ///
    /// # Errors
    /// When a record is damaged.
    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Result<Option<PageId>, Tier1Error>;

    /// The current signature of a page with content.
    ///
    /// # Errors
    /// When the signature is damaged.
    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error>;

    /// The record of a group, without following merges. `None` if the id was never assigned or the group was dissolved.
    ///
    /// # Errors
    /// When a record is damaged.
    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error>;

    /// A group and up to `limit` of its pages after `after`: its members and, with `redirects`, the redirects that end
    /// at each of them. Both count towards `limit`; [`GroupView::next`] says whether there are more.
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
}

/// Tier 1 as the coordinator sees it. The calls block on the store, so they must not be made on an async thread. Lists that
/// are handed over have at most [`BATCH_MAX`] entries, and answers to a call with a limit at most [`LIST_MAX`].
///
/// A call takes and gives owned values. It waits for the store and for the answer of a writer, which has a deadline. Across
/// processes every call has one; past it the call fails as [`Tier1Error::Unavailable`].
///
/// What [`Tier1Reads`] reads here is of the owners of ranges alone.
pub trait Tier1Api: Tier1Reads {
    /// The same reads for a question of a caller: replicas may answer where owners do not, and the question is told how old that
    /// is. None where there are no replicas.
    fn for_question<'t>(&'t self, _question: &Question) -> Option<Box<dyn Tier1Reads + 't>> {
        None
    }

    /// Records submissions of a client, and returns when they are durable. Of several versions of a page, the newest is applied first. There is exactly one outcome for each
    /// submission, in the same order; the coordinator treats any other number of outcomes as a fault.
    ///
    /// # Errors
    /// [`Tier1Error::BatchTooLarge`], and nothing was recorded. When too much is pending, of all clients or of this one, the disk is full
    /// or the store failed. Some of the submissions may have been recorded;
    /// it is safe to send all of them again.
    fn submit_for(&self, client: ClientId, submissions: Vec<Submission>) -> Result<Vec<Outcome>, Tier1Error>;

    /// Like [`submit_for`](Self::submit_for), for a caller without limits.
    ///
    /// # Errors
    /// Those of [`submit_for`](Self::submit_for), but [`Tier1Error::ClientFull`].
    fn submit(&self, submissions: Vec<Submission>) -> Result<Vec<Outcome>, Tier1Error> {
        self.submit_for(ClientId::NONE, submissions)
    }

    /// Like [`submit_for`](Self::submit_for), where nodes may refuse theirs and not others: for each submission its outcome, or why it has
    /// none.
    fn submit_each(
        &self,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Vec<Result<Outcome, Tier1Error>> {
        let count = submissions.len();
        match self.submit_for(client, submissions) {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(refused) => vec![Err(refused); count],
        }
    }

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

    /// Up to `limit` events after `cursor`, or from the start without a cursor. If there is none yet, waits up to
    /// `wait` for the first one.
    ///
    /// # Errors
    /// [`Tier1Error::CursorGone`] when the feed cannot be continued from this cursor.
    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Result<Changes, Tier1Error>;

    /// Up to `limit` live pages after `after`, at most [`SCAN_LINES_MAX`](super::SCAN_LINES_MAX), in a fixed order. Every page that is live during
    /// the whole scan occurs once. Commits between two calls are seen by the later ones; the feed from a cursor
    /// taken before the first call has all of them. [`Scan`](super::Scan) makes all calls.
    ///
    /// # Errors
    /// When a record is damaged.
    fn scan(&self, after: Option<ScanPosition>, limit: usize) -> Result<LinesPage, Tier1Error>;

    /// The present end of the feed, to continue from after a scan that begins now.
    ///
    /// # Errors
    /// When tier 1 cannot answer.
    fn cursor(&self) -> Result<String, Tier1Error>;

    /// The totals of the collection, and the work that is not yet done.
    ///
    /// # Errors
    /// When tier 1 cannot answer.
    fn totals(&self) -> Result<Totals, Tier1Error>;

    /// Checks whether writes are accepted, apart from the limit of pending pages.
    ///
    /// # Errors
    /// When the store failed, the disk is full or the service is shutting down.
    fn writable(&self) -> Result<(), Tier1Error> {
        Ok(())
    }

    /// Recomputes a group by exact comparison. Unless `dry_run`, applies the result and records it in the audit trail,
    /// with `by` as the name of the person. `None` if there is no such group.
    ///
    /// # Errors
    /// When the store failed.
    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, Tier1Error>;

    /// Up to `limit` applied repairs of one group or of all groups, newest first, from `before` on.
    ///
    /// # Errors
    /// When a record is damaged.
    fn repairs(
        &self,
        group: Option<GroupId>,
        before: Option<&RepairPosition>,
        limit: usize,
    ) -> Result<RepairTrail, Tier1Error>;

    /// An applied repair with its URLs. `None` if the id was never assigned or the entry was dropped.
    ///
    /// # Errors
    /// When a record is damaged.
    fn repair_details(&self, id: RepairId) -> Result<Option<RepairDetails>, Tier1Error>;

    /// Deletes all records of pages. Returns how many of the pages were on record.
    ///
    /// # Errors
    /// [`Tier1Error::BatchTooLarge`]; when the store failed.
    fn purge(&self, pages: &[PageId]) -> Result<u64, Tier1Error>;

    /// Deletes all records of the pages of a host. Returns how many there were.
    ///
    /// # Errors
    /// When the store failed.
    fn purge_host(&self, host: &str) -> Result<u64, Tier1Error>;

    /// Begins a backup of the whole collection as it is at one moment between now and its end. Tier 1 keeps the changes
    /// during the backup on its own disk, so a slow caller holds back the backup only, never submissions.
    ///
    /// # Errors
    /// When the store failed or the changes cannot be kept. Later, in the stream: when a record is damaged, the store
    /// failed, or too much changes during the backup.
    fn backup(&self) -> Result<BackupStream, BackupError>;

    /// Waits until everything accepted so far is decided. Returns false if that takes longer than `limit`.
    ///
    /// # Errors
    /// When the store failed; or at the limit, unless that is zero, when work cannot be done because a part of tier 1 does not answer.
    fn flush(&self, limit: Duration) -> Result<bool, Tier1Error>;
}
