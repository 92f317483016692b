//! The calls of the coordinator.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use crossbeam::channel::bounded;
use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, ShardId};
use doppel_protocol::{
    Backlog, BackupError, BackupSummary, Body, Changes, Counters, GroupFilter, GroupPosition, GroupSummary,
    GroupView, Line, Outcome, PageView, RepairDetails, RepairId, RepairPosition, RepairReport, RepairTrail,
    Submission, Tier1Api, Tier1Error,
};

use super::Tier1;
use super::writer::Task;
use crate::machine::Command;

/// How often a flush looks whether everything is decided.
const FLUSH_POLL: Duration = Duration::from_millis(5);

impl Tier1 {
    pub(super) fn apply(&self, commands: Vec<Command>) -> Result<(), Tier1Error> {
        self.check()?;
        let (reply, answer) = bounded(1);
        self.tasks.send(Task::Apply { commands, reply }).map_err(|_| Tier1Error::Stopping)?;
        answer.recv().map_err(|_| Tier1Error::Stopping)?
    }

    fn totals(&self) -> (Counters, Backlog) {
        *self.totals.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Contents take room in the queue of pending pages; everything else is decided at once.
    fn admit(&self, submissions: &[Submission]) -> Result<Arriving<'_>, Tier1Error> {
        self.check()?;
        let contents = submissions.iter().filter(|s| matches!(s.body, Body::Content(_))).count() as u64;
        let before = self.arriving.fetch_add(contents, Ordering::AcqRel);
        let arriving = Arriving { all: &self.arriving, contents };
        let pending = self.totals().1.pending + before;
        if pending >= self.pending_max && contents > 0 {
            return Err(Tier1Error::Full { pending, limit: self.pending_max });
        }
        Ok(arriving)
    }
}

/// Contents handed in and not yet committed, counted for as long as this is kept.
struct Arriving<'a> {
    all: &'a AtomicU64,
    contents: u64,
}

impl Drop for Arriving<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.contents, Ordering::AcqRel);
    }
}

impl Tier1Api for Tier1 {
    fn submit(&self, submissions: Vec<Submission>) -> Result<Vec<Outcome>, Tier1Error> {
        let _arriving = self.admit(&submissions)?;
        let submissions = submissions
            .into_iter()
            .map(|submission| {
                // Without a hint the page is compared at tier 2, so a damaged signature can be replaced.
                let hint = self.hint(&submission).unwrap_or_else(|refused| {
                    tracing::warn!(%refused, url = %submission.url, "an update is not confirmed");
                    None
                });
                (submission, hint)
            })
            .collect();
        let (reply, answer) = bounded(1);
        self.tasks.send(Task::Submit { submissions, reply }).map_err(|_| Tier1Error::Stopping)?;
        answer.recv().map_err(|_| Tier1Error::Stopping)?
    }

    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        self.asked.store(true, Ordering::Relaxed);
        pages.iter().map(|page| self.read_page(*page)).collect()
    }

    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        self.read_signature(page)
    }

    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
        self.read_summary(group)
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error> {
        self.read_group(group, after, limit.max(1), redirects)
    }

    fn groups(
        &self,
        filter: GroupFilter,
        after: Option<GroupId>,
        limit: usize,
    ) -> Result<Vec<GroupSummary>, Tier1Error> {
        self.read_groups(filter, after, limit)
    }

    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Result<Changes, Tier1Error> {
        self.read_changes(cursor, limit.max(1), wait)
    }

    fn scan(&self, each: &mut dyn FnMut(Line) -> std::io::Result<()>) -> Result<String, Tier1Error> {
        self.scan_pages(each)
    }

    fn cursor(&self) -> String {
        self.cursor_at_end()
    }

    fn counters(&self) -> Counters {
        self.totals().0
    }

    fn backlog(&self) -> Backlog {
        self.totals().1
    }

    fn writable(&self) -> Result<(), Tier1Error> {
        self.check()
    }

    fn pending_limit(&self) -> u64 {
        self.pending_max
    }

    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, Tier1Error> {
        if group.shard().0 >= self.settings.shards {
            return Ok(None);
        }
        self.repair_group(group, dry_run, by)
    }

    fn repairs(
        &self,
        group: Option<GroupId>,
        before: Option<&RepairPosition>,
        limit: usize,
    ) -> Result<RepairTrail, Tier1Error> {
        self.read_repairs(group, before, limit.max(1))
    }

    fn repair_details(&self, id: RepairId) -> Result<Option<RepairDetails>, Tier1Error> {
        self.read_repair(id)
    }

    fn purge(&self, pages: &[PageId]) -> Result<u64, Tier1Error> {
        let mut known = 0;
        for page in pages {
            known += usize::from(self.read_page(*page)?.is_some());
        }
        self.apply(pages.iter().map(|page| Command::Purge { page: *page }).collect())?;
        Ok(known as u64)
    }

    fn purge_host(&self, host: &str) -> Result<u64, Tier1Error> {
        let mut purged = 0;
        for shard in (0..self.settings.shards).map(ShardId) {
            let mut after = None;
            loop {
                let (pages, next) = self.pages_of_host(host, shard, after)?;
                purged += self.purge(&pages)?;
                match next {
                    Some(_) => after = next,
                    None => break,
                }
            }
        }
        Ok(purged)
    }

    fn backup(&self, dir: &Path, out: &mut dyn Write) -> Result<BackupSummary, BackupError> {
        self.write_backup(dir, out)
    }

    fn flush(&self, limit: Duration) -> Result<bool, Tier1Error> {
        let deadline = Instant::now() + limit;
        loop {
            // An empty application comes back when everything handed in before it is committed.
            self.apply(Vec::new())?;
            if self.backlog().is_quiescent() {
                return Ok(true);
            }
            if let Some(refused) = self.stuck.get() {
                return Err(refused.clone());
            }
            if Instant::now() >= deadline {
                return Ok(false);
            }
            self.tasks.send(Task::FlushBatch).map_err(|_| Tier1Error::Stopping)?;
            std::thread::sleep(FLUSH_POLL);
        }
    }
}
