//! The fake as tier 1, the system of record.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use doppel_contract::answer::Advice;
use doppel_contract::{Backlog, Counters, Status, SubmissionOutcome};
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{ClientId, GroupId, PageId, PageUrl, ShardId};
use doppel_protocol::{
    BackupError, BackupPiece, BackupStream, BackupSummary, DatedAnswer, DecisionTimes, FeedBatch, FeedEvent,
    GroupFilter, GroupPosition, GroupState, GroupSummary, GroupView, LinesPage, MemberView, PageView,
    Question, RepairDetails, RepairId, RepairPosition, RepairReport, RepairTrail, ScanPosition, ShardTotals,
    Submission, Tier1Api, Tier1Error, Tier1Reads, Totals,
};

use super::{Fake, Page};

/// Reads for one question, in which some pages come from replicas.
struct FakeReads<'t> {
    of: &'t Fake,
    question: Question,
}

impl FakeReads<'_> {
    /// Gives the answer the age of the oldest of these pages.
    fn aged<T>(&self, answer: T, pages: impl Iterator<Item = PageId>) -> T {
        let (mut age, mut took) = (None, Duration::ZERO);
        let mut state = self.of.state();
        for page in pages {
            age = age.max(state.old.get(&page).copied());
            took = took.max(state.slow.get_mut(&page).and_then(VecDeque::pop_front).unwrap_or_default());
        }
        self.question.take(DatedAnswer { answer, age }, Instant::now() - took)
    }
}

impl Tier1Reads for FakeReads<'_> {
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        Ok(self.aged(self.of.pages(pages)?, pages.iter().copied()))
    }

    fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        self.of.known_advice(page)
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Result<Option<PageId>, Tier1Error> {
        self.of.first_spelling(form, except)
    }

    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        Ok(self.aged(self.of.signature(page)?, std::iter::once(page)))
    }

    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
        self.of.group_summary(group)
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error> {
        self.of.group(group, after, limit, redirects)
    }
}

impl Tier1Reads for Fake {
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        self.gate.pass("pages");
        let state = self.state();
        Ok(pages.iter().map(|id| state.pages.get(id).map(|page| page.view.clone())).collect())
    }

    fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        self.state().known.get(page).cloned()
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Result<Option<PageId>, Tier1Error> {
        let state = self.state();
        let urls = state.pages.values().map(|page| &page.view.rank.url);
        let others =
            urls.filter(|url| url.normal_id() == form && url.id() != form && Some(url.id()) != except);
        Ok(others.min().map(PageUrl::id))
    }

    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        let mut state = self.state();
        if let Some(mut on_signature) = state.on_signature.take() {
            on_signature(&mut state);
            state.on_signature = Some(on_signature);
        }
        Ok(state.pages.get(&page).and_then(|page| page.signature.clone()))
    }

    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
        Ok(self.state().groups.get(&group).map(|(summary, _)| summary.clone()))
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error> {
        let state = self.state();
        let Some((summary, members)) = state.groups.get(&group) else { return Ok(None) };
        let mut all = Vec::new();
        for member in members {
            let ends_here = |(_, page): &(&PageId, &Page)| redirects && page.view.target == Some(*member);
            let inbound_redirects = state.pages.iter().filter(ends_here).map(|(id, _)| Some(*id));
            for redirect in std::iter::once(None).chain(inbound_redirects) {
                all.push(GroupPosition { member: *member, redirect });
            }
        }
        let begin = after.map_or(0, |after| 1 + all.iter().position(|at| *at == after).unwrap());
        let some: Vec<GroupPosition> = all[begin..].iter().take(limit).copied().collect();
        let next = some.last().copied().filter(|_| begin + some.len() < all.len());
        let view = |at: GroupPosition| {
            let page = &state.pages[&at.redirect.unwrap_or(at.member)];
            MemberView { line: page.view.line.clone(), content: page.view.content }
        };
        let views = some.into_iter().map(view).collect();
        Ok(Some(GroupView { summary: summary.clone(), members: views, next }))
    }
}

impl Tier1Api for Fake {
    fn submit_for(
        &self,
        _: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<SubmissionOutcome>, Tier1Error> {
        let mut state = self.state();
        if let Some((calls, refused)) = &state.refuse
            && state.submitted.len() >= *calls
        {
            return Err(refused.clone());
        }
        state.submitted.push(submissions.iter().map(|one| one.url.to_string()).collect());
        let mut outcomes: Vec<SubmissionOutcome> =
            submissions.into_iter().map(|one| state.record(one)).collect();
        match state.miscount {
            Some(true) => drop(outcomes.pop()),
            Some(false) => outcomes.push(SubmissionOutcome::Unchanged),
            None => {}
        }
        self.changed.notify_all();
        Ok(outcomes)
    }

    fn for_question<'t>(&'t self, question: &Question) -> Option<Box<dyn Tier1Reads + 't>> {
        if self.state().may_change {
            question.note_deposable_owners();
        }
        Some(Box::new(FakeReads { of: self, question: question.clone() }))
    }

    fn groups(
        &self,
        filter: GroupFilter,
        after: Option<GroupId>,
        limit: usize,
    ) -> Result<Vec<GroupSummary>, Tier1Error> {
        self.gate.pass("groups");
        let state = self.state();
        let wanted = |summary: &&GroupSummary| {
            summary.state == GroupState::Active
                && match filter {
                    GroupFilter::All => true,
                    GroupFilter::Suspicious { percent } => {
                        summary.quarantined
                            || summary.dissimilar * 100 >= summary.members * u64::from(percent)
                    }
                }
        };
        let later =
            state.groups.values().map(|(summary, _)| summary).filter(|s| after.is_none_or(|a| s.group > a));
        Ok(later.filter(wanted).take(limit).cloned().collect())
    }

    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Result<FeedBatch, Tier1Error> {
        let at = match cursor {
            None => 0,
            Some(cursor) => {
                let at: Option<usize> = cursor.strip_prefix('c').and_then(|n| n.parse().ok());
                at.ok_or(Tier1Error::CursorGone)?
            }
        };
        let state = self.state();
        let (state, _) = self.changed.wait_timeout_while(state, wait, |state| state.log.len() <= at).unwrap();
        let end = state.log.len().min(at + limit);
        let changes = state.log.get(at..end).unwrap_or_default().to_vec();
        Ok(FeedBatch { changes, cursor: format!("c{}", end.max(at)), at_end: end >= state.log.len() })
    }

    fn scan(&self, after: Option<ScanPosition>, limit: usize) -> Result<LinesPage, Tier1Error> {
        if after.is_none() {
            self.gate.pass("scan");
        }
        let state = self.state();
        if state.damaged {
            return Err(Tier1Error::Damaged("page p1".to_owned()));
        }
        // Pieces are small, so that every scan takes several.
        let later = state.pages.iter().filter(|(id, _)| after.is_none_or(|after| **id > after.page));
        let piece: Vec<_> = later.take(limit.min(7)).collect();
        let next = piece.last().map(|(id, _)| ScanPosition { shard: ShardId(0), page: **id });
        let live = piece.iter().filter(|(_, page)| page.view.line.status != Status::Dead);
        Ok(LinesPage { lines: live.map(|(_, page)| page.view.line.clone()).collect(), next })
    }

    fn cursor(&self) -> Result<String, Tier1Error> {
        Ok(format!("c{}", self.state().log.len()))
    }

    fn totals(&self) -> Result<Totals, Tier1Error> {
        let mut state = self.state();
        if std::mem::take(&mut state.panic) {
            drop(state);
            panic!("as the test asked for");
        }
        if let Some(error) = &state.totals_error {
            return Err(error.clone());
        }
        let count = |wanted: fn(Status) -> bool| {
            state.pages.values().filter(|page| wanted(page.view.line.status)).count() as u64
        };
        let live = count(|status| status != Status::Dead);
        let counters = Counters { live, confirmed: 3, compared_updates: 1, ..Counters::default() };
        let backlog = Backlog { pending: count(|status| status == Status::Pending), ..Backlog::default() };
        let mut decision_times = DecisionTimes { oldest_ms: Some(1_500), ..DecisionTimes::default() };
        [20, 2_000].into_iter().for_each(|ms| decision_times.observe(ms));
        let shards = vec![ShardTotals { shard: ShardId(0), live, groups: 1, pending: backlog.pending }];
        Ok(Totals {
            counters,
            backlog,
            pending_limit: 1_000,
            status_table_bytes: 640,
            decision_times,
            shards,
            full_disks: 1,
            disk_recoveries: 20,
        })
    }

    fn writable(&self) -> Result<(), Tier1Error> {
        self.state().refuse.as_ref().map_or(Ok(()), |(_, refused)| Err(refused.clone()))
    }

    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, Tier1Error> {
        self.gate.pass("repair");
        let mut state = self.state();
        state.repairs.push((group, dry_run, by.to_owned()));
        let Some((_, members)) = state.groups.get(&group) else { return Ok(None) };
        let before: Vec<PageUrl> = members.iter().map(|id| state.pages[id].view.rank.url.clone()).collect();
        Ok(Some(RepairReport { group, components: vec![before.clone()], before, applied: !dry_run }))
    }

    /// Lists repairs from a position whose first number counts the repairs still to come.
    fn repairs(
        &self,
        group: Option<GroupId>,
        before: Option<&RepairPosition>,
        limit: usize,
    ) -> Result<RepairTrail, Tier1Error> {
        let state = self.state();
        let all: Vec<_> =
            state.trail.iter().filter(|one| group.is_none_or(|g| one.entry.group == g)).collect();
        let end = before.map_or(all.len(), |before| all.len().min(before.numbers()[0] as usize));
        let begin = end.saturating_sub(limit);
        let repairs = all[begin..end].iter().rev().map(|one| one.entry.clone()).collect();
        let next = (begin > 0).then(|| RepairPosition::new(vec![begin as u64, 0]));
        Ok(RepairTrail { repairs, next })
    }

    fn repair_details(&self, id: RepairId) -> Result<Option<RepairDetails>, Tier1Error> {
        Ok(self.state().trail.iter().find(|one| one.entry.id == id).cloned())
    }

    fn purge(&self, pages: &[PageId]) -> Result<u64, Tier1Error> {
        let mut state = self.state();
        Ok(pages.iter().filter(|id| state.pages.remove(id).is_some()).count() as u64)
    }

    fn purge_host(&self, host: &str) -> Result<u64, Tier1Error> {
        let mut state = self.state();
        let before = state.pages.len();
        state.pages.retain(|_, page| page.view.rank.url.host() != host);
        Ok((before - state.pages.len()) as u64)
    }

    /// Writes a line for every page. Breaks off if submissions are refused.
    fn backup(&self) -> Result<BackupStream, BackupError> {
        self.gate.pass("backup");
        let state = self.state();
        let lines = state.pages.values().map(|page| format!("{}\n", page.view.rank.url).into_bytes());
        let mut pieces: Vec<Result<BackupPiece, BackupError>> =
            lines.map(|line| Ok(BackupPiece::Bytes(line))).collect();
        match (&state.refuse, state.cut_backup) {
            (Some((_, refused)), _) => pieces.push(Err(refused.clone().into())),
            (None, true) => {}
            (None, false) => pieces.push(Ok(BackupPiece::End(BackupSummary::default()))),
        }
        Ok(Box::new(pieces.into_iter()))
    }

    /// Decides everything and logs every page whose line changed.
    fn flush(&self, limit: Duration) -> Result<bool, Tier1Error> {
        if limit.is_zero() {
            return Ok(false);
        }
        self.gate.pass("flush");
        let undecided = self.state().undecided.clone();
        if let Some(undecided) = undecided {
            std::thread::sleep(limit);
            return undecided;
        }
        let mut state = self.state();
        state.decide(Policy::default());
        let events: Vec<FeedEvent> = state
            .pages
            .values()
            .map(|page| FeedEvent { line: page.view.line.clone(), fetched_at: page.view.fetched_at })
            .filter(|change| {
                state.log.iter().rev().find(|old| old.line.url == change.line.url) != Some(change)
            })
            .collect();
        state.log.extend(events);
        self.changed.notify_all();
        Ok(true)
    }
}
