//! The interface of tier 1, the system of record, as the coordinator sees it.

use std::sync::Arc;
use std::time::Duration;

use doppel_contract::SubmissionOutcome;
use doppel_contract::answer::Advice;
use doppel_model::signature::Signature;
use doppel_model::{ClientId, GroupId, PageId, PageUrl, ShardId};
use serde::{Deserialize, Serialize};

use super::{
    BackupError, BackupStream, FeedBatch, GroupFilter, GroupPosition, GroupSummary, GroupView, Line,
    PageView, Question, RepairDetails, RepairId, RepairPosition, RepairReport, RepairTrail, Submission,
    Tier1Error, Totals,
};

/// Maximum number of lines in one page of a scan.
pub const SCAN_LINES_MAX: usize = 1_000;

/// A position in the order of a scan: after this page. Callers only return positions that tier 1 gave them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScanPosition {
    /// The shard that was being read.
    pub shard: ShardId,
    /// The last page that was read in the shard.
    pub page: PageId,
}

/// A page of lines from a scan.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LinesPage {
    /// Lines of live pages. A page of the scan may be empty before the end, because the scan also reads dead
    /// pages.
    pub lines: Vec<Line>,
    /// Where the next page begins; `None` at the end.
    pub next: Option<ScanPosition>,
}

/// Maximum number of submissions or pages in one call. With signatures of 4 kB, a call has 16 MB.
pub const BATCH_PAGES_MAX: usize = 4_096;

/// Maximum number of entries in one answer to a call with a limit. A larger limit counts as this limit.
pub const LIST_MAX: usize = 10_000;

/// Reads of pages and groups from tier 1. All calls except [`known_advice`](Self::known_advice) block on the
/// store, so they must not be made on an async thread. Callers pass at most [`BATCH_PAGES_MAX`] entries in a
/// list. Answers to a call with a limit have at most [`LIST_MAX`] entries.
///
/// A call takes and returns owned values. Across processes, every call has a deadline. After the deadline it
/// fails with [`Tier1Error::Unavailable`].
pub trait Tier1Reads: Send + Sync {
    /// Returns the records of pages: exactly one entry for each page, in order. The entry is `None` if the
    /// URL is unknown or was purged.
    ///
    /// # Errors
    /// [`Tier1Error::BatchTooLarge`], or if a record is damaged.
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error>;

    /// Returns the advice about a page if it is known without reading rows. The advice equals the one from
    /// the records of page, group and winner, verified on their present contents (G5). If the result is
    /// `None`, the caller has to read the records.
    ///
    /// Unlike all other calls it does not block, so it may be made on an async thread.
    fn known_advice(&self, _page: &PageUrl) -> Option<Advice> {
        None
    }

    /// Like [`known_advice`](Self::known_advice), for at most [`BATCH_PAGES_MAX`] pages: exactly one entry
    /// for each, in order. The call blocks if tier 1 is in another process. It saves that process the reads
    /// of records.
    ///
    /// # Errors
    /// If tier 1 cannot answer.
    fn known_advices(&self, pages: &[PageUrl]) -> Result<Vec<Option<Advice>>, Tier1Error> {
        Ok(pages.iter().map(|page| self.known_advice(page)).collect())
    }

    /// Finds the page on record, other than `except`, whose URL is another spelling of the normalised form
    /// `form` and comes first in byte order. The target of a redirect stands for this page if no page is
    /// spelled like the target or like its normalised form.
    ///
    /// # Errors
    /// If a record is damaged.
    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Result<Option<PageId>, Tier1Error>;

    /// Returns the current signature of a page with content.
    ///
    /// # Errors
    /// If the signature is damaged.
    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error>;

    /// Returns the record of a group, without following merges. `None` if the id was never assigned or the
    /// group was dissolved.
    ///
    /// # Errors
    /// If a record is damaged.
    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error>;

    /// Returns a group and up to `limit` of its pages after `after`: its members and, with `redirects`, the
    /// redirects that end at each member. Both count towards `limit`; [`GroupView::next`] says whether more
    /// pages follow.
    ///
    /// # Errors
    /// If a record is damaged.
    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error>;
}

/// Tier 1 as the coordinator sees it. The calls block on the store, so they must not be made on an async
/// thread. Callers pass at most [`BATCH_PAGES_MAX`] entries in a list. Answers to a call with a limit have at
/// most [`LIST_MAX`] entries.
///
/// A call takes and returns owned values. It waits for the store and for the answer of a writer, which has a
/// deadline. Across processes every call has a deadline. After the deadline it fails with
/// [`Tier1Error::Unavailable`].
///
/// The reads of [`Tier1Reads`] on this trait go only to the owners of ranges.
pub trait Tier1Api: Tier1Reads {
    /// Returns reads for a question of a caller. Replicas may answer in place of owners that do not respond,
    /// and the question records the age of their data. `None` if there are no replicas.
    fn for_question<'t>(&'t self, _question: &Question) -> Option<Box<dyn Tier1Reads + 't>> {
        None
    }

    /// Records submissions of a client, and returns when they are durable. Of several versions of a page, the
    /// newest is applied first. The answer has exactly one outcome for each submission, in order; the
    /// coordinator treats any other number of outcomes as a fault.
    ///
    /// # Errors
    /// [`Tier1Error::BatchTooLarge`]; then no submission was recorded. Also if too many pages are pending, of
    /// all clients or of this client, if the disk is full, or if the store failed. Then some submissions may
    /// have been recorded. It is safe to send all of them again.
    fn submit_for(
        &self,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<SubmissionOutcome>, Tier1Error>;

    /// Like [`submit_for`](Self::submit_for), for a caller without limits.
    ///
    /// # Errors
    /// Fails as [`submit_for`](Self::submit_for) does, except with [`Tier1Error::ClientFull`].
    fn submit(&self, submissions: Vec<Submission>) -> Result<Vec<SubmissionOutcome>, Tier1Error> {
        self.submit_for(ClientId::NONE, submissions)
    }

    /// Like [`submit_for`](Self::submit_for), but returns a result for each submission. If one node refuses
    /// its submissions, those of other nodes still succeed.
    fn submit_each(
        &self,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Vec<Result<SubmissionOutcome, Tier1Error>> {
        let count = submissions.len();
        match self.submit_for(client, submissions) {
            Ok(outcomes) => outcomes.into_iter().map(Ok).collect(),
            Err(refused) => vec![Err(refused); count],
        }
    }

    /// Returns up to `limit` groups after `after`, in the order of shard and id.
    ///
    /// # Errors
    /// If a record is damaged.
    fn groups(
        &self,
        filter: GroupFilter,
        after: Option<GroupId>,
        limit: usize,
    ) -> Result<Vec<GroupSummary>, Tier1Error>;

    /// Returns up to `limit` events after `cursor`, or from the start without a cursor. If there is no event
    /// yet, waits up to `wait` for the first one.
    ///
    /// # Errors
    /// [`Tier1Error::CursorGone`] if the feed cannot be continued from this cursor.
    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Result<FeedBatch, Tier1Error>;

    /// Returns up to `limit` live pages after `after`, at most [`SCAN_LINES_MAX`], in
    /// a fixed order. Every page that is live during the whole scan occurs once. Later calls see commits
    /// between two calls. The feed contains all of these commits if its cursor was taken before the first
    /// call. [`PageScan`](super::PageScan) makes all calls.
    ///
    /// # Errors
    /// If a record is damaged.
    fn scan(&self, after: Option<ScanPosition>, limit: usize) -> Result<LinesPage, Tier1Error>;

    /// Returns the present end of the feed. After a scan that begins now, a caller continues from this
    /// cursor.
    ///
    /// # Errors
    /// If tier 1 cannot answer.
    fn cursor(&self) -> Result<String, Tier1Error>;

    /// Returns the totals of the collection, and the remaining work.
    ///
    /// # Errors
    /// If tier 1 cannot answer.
    fn totals(&self) -> Result<Totals, Tier1Error>;

    /// Checks whether writes are accepted, apart from the limit of pending pages.
    ///
    /// # Errors
    /// If the store failed, the disk is full, or the service is shutting down.
    fn writable(&self) -> Result<(), Tier1Error> {
        Ok(())
    }

    /// Recomputes a group by exact comparison. Unless `dry_run`, applies the result and records it in the
    /// audit trail, with `by` as the name of the person. `None` if there is no such group.
    ///
    /// # Errors
    /// If the store failed.
    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, Tier1Error>;

    /// Returns up to `limit` applied repairs of one group or of all groups, newest first, from `before` on.
    ///
    /// # Errors
    /// If a record is damaged.
    fn repairs(
        &self,
        group: Option<GroupId>,
        before: Option<&RepairPosition>,
        limit: usize,
    ) -> Result<RepairTrail, Tier1Error>;

    /// Returns an applied repair with its URLs. `None` if the id was never assigned or the entry was dropped.
    ///
    /// # Errors
    /// If a record is damaged.
    fn repair_details(&self, id: RepairId) -> Result<Option<RepairDetails>, Tier1Error>;

    /// Deletes all records of pages. Returns the number of pages that were on record.
    ///
    /// # Errors
    /// [`Tier1Error::BatchTooLarge`], or if the store failed.
    fn purge(&self, pages: &[PageId]) -> Result<u64, Tier1Error>;

    /// Deletes all records of the pages of a host. Returns the number of pages.
    ///
    /// # Errors
    /// If the store failed.
    fn purge_host(&self, host: &str) -> Result<u64, Tier1Error>;

    /// Begins a backup of the whole collection, as it is at one moment between now and the end of the backup.
    /// Tier 1 keeps the changes during the backup on its own disk. A slow caller therefore delays only the
    /// backup, never submissions.
    ///
    /// # Errors
    /// If the store failed or the changes cannot be kept. The stream fails later if a record is damaged, the
    /// store failed, or too much changes during the backup.
    fn backup(&self) -> Result<BackupStream, BackupError>;

    /// Waits until everything accepted so far is decided. Returns false if that takes longer than `limit`.
    ///
    /// # Errors
    /// If the store failed. At the limit, unless it is zero, also if work cannot proceed because a part of
    /// tier 1 does not answer.
    fn flush(&self, limit: Duration) -> Result<bool, Tier1Error>;
}
