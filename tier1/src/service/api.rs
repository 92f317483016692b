//! The calls of the coordinator, each handed to the room that answers it.
//!
//! A call that concerns several ranges is split here: this process answers for its own ranges, and asks the
//! owners of the others.

use std::sync::Arc;
use std::time::Duration;

use doppel_contract::SubmissionOutcome;
use doppel_contract::answer::Advice;
use doppel_model::signature::Signature;
use doppel_model::{ClientId, GroupId, PageId, PageUrl, ShardId};
use doppel_protocol::range_owner::RangeState;
use doppel_protocol::{
    BackupError, BackupStream, DecisionTimes, FeedBatch, GroupFilter, GroupPosition, GroupSummary, GroupView,
    LIST_MAX, LinesPage, PageView, Question, RepairDetails, RepairId, RepairPosition, RepairReport,
    RepairTrail, SCAN_LINES_MAX, ScanPosition, Submission, Tier1Api, Tier1Error, Tier1Reads, Totals,
};

use super::Tier1;
use super::questions::question_reads::check_batch;
use super::submissions::by_range::{PartOutcomes, RangePart, in_order, split_by_range};
use crate::rows::totals;

impl Tier1 {
    /// Takes submissions of pages of all ranges. The outcomes are in the order of the submissions.
    fn submit_everywhere(
        &self,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<SubmissionOutcome>, Tier1Error> {
        if self.submissions.are_here(&submissions) {
            return self.submissions.submit(client, submissions);
        }
        let count = submissions.len();
        let parts = split_by_range(submissions, |submission| self.submissions.range_of(submission));
        let answered = parts.into_iter().map(|(range, RangePart { indices, items })| {
            let outcomes = self.node_of(range).and_then(|node| node.submit(range, client, items));
            PartOutcomes { indices, outcomes: outcomes.map_err(Tier1Error::from) }
        });
        in_order(count, answered.collect())
    }
}

impl Tier1Reads for Tier1 {
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        self.questions.reads().pages(pages)
    }

    fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        self.questions.known_advice(page)
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Result<Option<PageId>, Tier1Error> {
        self.questions.rows.first_spelling(form, except)
    }

    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        self.questions.rows.signature(page)
    }

    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
        self.questions.rows.read_summary(group)
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error> {
        self.questions.reads().group(group, after, limit, redirects)
    }
}

impl Tier1Api for Tier1 {
    fn submit_for(
        &self,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<SubmissionOutcome>, Tier1Error> {
        check_batch(submissions.len())?;
        self.submit_everywhere(client, submissions)
    }

    fn for_question<'t>(&'t self, question: &Question) -> Option<Box<dyn Tier1Reads + 't>> {
        self.questions.reads_for(question).map(|reads| Box::new(reads) as Box<dyn Tier1Reads + 't>)
    }

    fn groups(
        &self,
        filter: GroupFilter,
        after: Option<GroupId>,
        limit: usize,
    ) -> Result<Vec<GroupSummary>, Tier1Error> {
        self.questions.rows.read_groups(filter, after, limit.clamp(1, LIST_MAX))
    }

    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Result<FeedBatch, Tier1Error> {
        self.questions.feed.changes(
            &|range| self.node_of(range)?.state(range),
            cursor,
            limit.clamp(1, LIST_MAX),
            wait,
        )
    }

    fn scan(&self, after: Option<ScanPosition>, limit: usize) -> Result<LinesPage, Tier1Error> {
        self.questions.rows.read_lines(after, limit.clamp(1, SCAN_LINES_MAX))
    }

    fn cursor(&self) -> Result<String, Tier1Error> {
        self.questions.feed.cursor_at_end(&|range| self.node_of(range)?.state(range))
    }

    fn totals(&self) -> Result<Totals, Tier1Error> {
        let states = self.collection.map.ranges().map(|range| self.node_of(range)?.state(range));
        let states: Vec<RangeState> = states.collect::<Result<_, _>>()?;
        let (counters, backlog) = totals::add(states.iter().map(|state| (state.counters, state.backlog)));
        let status_table_bytes = self.questions.status_table_bytes();
        let mut decision_times = DecisionTimes::default();
        states.iter().for_each(|state| decision_times.add(&state.decision_times));
        let full_disks = states.iter().filter(|state| state.disk_full).count() as u64;
        let disk_recoveries = states.iter().map(|state| state.disk_recoveries).sum();
        let shards = states.into_iter().flat_map(|state| state.shards).collect();
        let pending_limit = self.submissions.pending_max();
        Ok(Totals {
            counters,
            backlog,
            pending_limit,
            status_table_bytes,
            decision_times,
            shards,
            full_disks,
            disk_recoveries,
        })
    }

    fn writable(&self) -> Result<(), Tier1Error> {
        self.check()
    }

    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, Tier1Error> {
        if group.shard().0 >= self.collection.settings.shards {
            return Ok(None);
        }
        let Some(group) = self.questions.rows.surviving_group(group)? else { return Ok(None) };
        Ok(self.node_of(self.collection.map.of_shard(group.shard()))?.repair(group, dry_run, by)?)
    }

    fn repairs(
        &self,
        group: Option<GroupId>,
        before: Option<&RepairPosition>,
        limit: usize,
    ) -> Result<RepairTrail, Tier1Error> {
        self.questions.rows.read_repairs(group, before, limit.clamp(1, LIST_MAX))
    }

    fn repair_details(&self, id: RepairId) -> Result<Option<RepairDetails>, Tier1Error> {
        self.questions.rows.read_repair(id)
    }

    fn purge(&self, pages: &[PageId]) -> Result<u64, Tier1Error> {
        check_batch(pages.len())?;
        let found = self.questions.rows.read_pages(pages)?.into_iter().zip(pages);
        let known: Vec<PageId> = found.filter_map(|(view, page)| view.map(|_| *page)).collect();
        let count = known.len() as u64;
        let parts = split_by_range(known, |page| self.collection.map.of_page(*page));
        for (range, RangePart { items, .. }) in parts {
            self.node_of(range)?.purge(range, &items)?;
        }
        Ok(count)
    }

    fn purge_host(&self, host: &str) -> Result<u64, Tier1Error> {
        let mut purged = 0;
        for shard in (0..self.collection.settings.shards).map(ShardId) {
            let mut after = None;
            loop {
                let (pages, next) = self.questions.rows.pages_of_host(host, shard, after)?;
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
        self.backups.begin()
    }

    fn flush(&self, limit: Duration) -> Result<bool, Tier1Error> {
        self.decide_all(limit)
    }
}
