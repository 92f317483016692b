//! The calls of the coordinator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, PageUrl, ShardId};
use doppel_protocol::answer::Advice;
use doppel_protocol::{
    BATCH_MAX, BackupError, BackupStream, Body, Changes, GroupFilter, GroupPosition, GroupSummary, GroupView,
    LIST_MAX, LinesPage, Outcome, PageView, RepairDetails, RepairId, RepairPosition, RepairReport,
    RepairTrail, SCAN_LINES_MAX, ScanPosition, Submission, Tier1Api, Tier1Error, Totals,
};

use super::Tier1;
use super::owner::Owner;
use super::task::Task;
use crate::machine::{Command, Hint};
use crate::statuses::Statuses;
use crate::totals;

/// A submission and the comparison with its representative.
type Hinted = (Submission, Option<Hint>);

impl Tier1 {
    /// Applies commands at one range, and returns when they are committed. They may be held back while too many
    /// messages are on their way.
    pub(super) fn apply(&self, owner: &Owner, commands: Vec<Command>) -> Result<(), Tier1Error> {
        self.apply_with(owner, commands, true)
    }

    /// The same for commands that are never held back.
    pub(super) fn apply_at_once(&self, owner: &Owner, commands: Vec<Command>) -> Result<(), Tier1Error> {
        self.apply_with(owner, commands, false)
    }

    fn apply_with(&self, owner: &Owner, commands: Vec<Command>, may_wait: bool) -> Result<(), Tier1Error> {
        self.check()?;
        owner.ask(|reply| Task::Apply { commands, may_wait, reply })?.wait()?
    }

    /// Hands submissions to the ranges of their pages, and puts the answers in the order of the submissions.
    fn submit_to_ranges(&self, submissions: Vec<Hinted>) -> Result<Vec<Outcome>, Tier1Error> {
        let mut by_range: Vec<(Vec<usize>, Vec<Hinted>)> =
            self.owners.iter().map(|_| Default::default()).collect();
        let count = submissions.len();
        for (at, submission) in submissions.into_iter().enumerate() {
            let (places, of_range) = &mut by_range[usize::from(self.map.of_page(submission.0.url.id()).0)];
            places.push(at);
            of_range.push(submission);
        }
        let mut waiting = Vec::new();
        for (owner, (places, submissions)) in self.owners.iter().zip(by_range) {
            if !submissions.is_empty() {
                waiting.push((places, owner.ask(|reply| Task::Submit { submissions, reply })?));
            }
        }
        let mut outcomes: Vec<Option<Outcome>> = vec![None; count];
        let mut refused = None;
        for (places, answer) in waiting {
            // All are waited for: what was recorded counts as arriving until then.
            match answer.wait().flatten() {
                Ok(of_range) => {
                    for (at, outcome) in places.into_iter().zip(of_range) {
                        outcomes[at] = Some(outcome);
                    }
                }
                Err(error) => drop(refused.get_or_insert(error)),
            }
        }
        match (refused, outcomes.into_iter().collect()) {
            (Some(refused), _) => Err(refused),
            (None, Some(outcomes)) => Ok(outcomes),
            (None, None) => Err(Tier1Error::Stopping),
        }
    }

    /// Contents take room in the queue of pending pages; everything else is decided at once.
    fn admit(&self, submissions: &[Submission]) -> Result<Arriving<'_>, Tier1Error> {
        self.check()?;
        let contents = submissions.iter().filter(|s| matches!(s.body, Body::Content(_))).count() as u64;
        let before = self.arriving.fetch_add(contents, Ordering::AcqRel);
        let arriving = Arriving { all: &self.arriving, contents };
        // While the index is brought up to date, orders of pages that are decided wait for it, too.
        let waiting = self.owners.iter().map(|owner| owner.waiting_orders.load(Ordering::Relaxed)).max();
        let pending = self.pending().max(waiting.unwrap_or(0)) + before;
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

/// Refuses a list that is too long for one call.
fn bounded(found: usize) -> Result<(), Tier1Error> {
    if found > BATCH_MAX {
        return Err(Tier1Error::BatchTooLarge { found, limit: BATCH_MAX });
    }
    Ok(())
}

impl Tier1Api for Tier1 {
    fn submit(&self, submissions: Vec<Submission>) -> Result<Vec<Outcome>, Tier1Error> {
        bounded(submissions.len())?;
        let _arriving = self.admit(&submissions)?;
        let hints = self.hints(&submissions);
        self.submit_to_ranges(submissions.into_iter().zip(hints).collect())
    }

    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        bounded(pages.len())?;
        for page in pages {
            self.owner_of(self.shard_of(*page)).asked.store(true, Ordering::Relaxed);
        }
        self.read_pages(pages)
    }

    fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        self.statuses.as_ref()?.advise(page)
    }

    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        self.rows.signature(page)
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
        self.read_group(group, after, limit.clamp(1, LIST_MAX), redirects)
    }

    fn groups(
        &self,
        filter: GroupFilter,
        after: Option<GroupId>,
        limit: usize,
    ) -> Result<Vec<GroupSummary>, Tier1Error> {
        self.read_groups(filter, after, limit.clamp(1, LIST_MAX))
    }

    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Result<Changes, Tier1Error> {
        self.read_changes(cursor, limit.clamp(1, LIST_MAX), wait)
    }

    fn scan(&self, after: Option<ScanPosition>, limit: usize) -> Result<LinesPage, Tier1Error> {
        self.read_lines(after, limit.clamp(1, SCAN_LINES_MAX))
    }

    fn cursor(&self) -> Result<String, Tier1Error> {
        Ok(self.cursor_at_end())
    }

    fn totals(&self) -> Result<Totals, Tier1Error> {
        let (counters, backlog) = totals::add(self.owners.iter().map(|owner| owner.totals()));
        let status_table_bytes = self.statuses.as_ref().map_or(0, Statuses::bytes);
        Ok(Totals { counters, backlog, pending_limit: self.pending_max, status_table_bytes })
    }

    fn writable(&self) -> Result<(), Tier1Error> {
        self.check()
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
        self.read_repairs(group, before, limit.clamp(1, LIST_MAX))
    }

    fn repair_details(&self, id: RepairId) -> Result<Option<RepairDetails>, Tier1Error> {
        self.read_repair(id)
    }

    fn purge(&self, pages: &[PageId]) -> Result<u64, Tier1Error> {
        bounded(pages.len())?;
        let found = self.read_pages(pages)?.into_iter().zip(pages);
        let known: Vec<PageId> = found.filter_map(|(view, page)| view.map(|_| *page)).collect();
        for owner in &self.owners {
            let of_range = known.iter().filter(|page| self.map.of_page(**page) == owner.id);
            let commands: Vec<_> = of_range.map(|page| Command::Purge { page: *page }).collect();
            if !commands.is_empty() {
                match &owner.database {
                    Some(database) => database.purge(|| self.apply(owner, commands))??,
                    None => self.apply(owner, commands)?,
                };
            }
        }
        Ok(known.len() as u64)
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

    fn backup(&self) -> Result<BackupStream, BackupError> {
        self.begin_backup()
    }

    fn flush(&self, limit: Duration) -> Result<bool, Tier1Error> {
        self.decide_all(limit)
    }
}
