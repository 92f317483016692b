//! The calls of the coordinator.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use doppel_contract::Outcome;
use doppel_contract::answer::Advice;
use doppel_model::signature::Signature;
use doppel_model::{ClientId, GroupId, PageId, PageUrl, RangeId, ShardId};
use doppel_protocol::range_owner::{PeerError, RangeState};
use doppel_protocol::{
    BATCH_MAX, BackupError, BackupStream, Changes, DecisionTimes, GroupFilter, GroupPosition, GroupSummary,
    GroupView, LIST_MAX, LinesPage, PageView, Question, RepairDetails, RepairId, RepairPosition,
    RepairReport, RepairTrail, SCAN_LINES_MAX, ScanPosition, Submission, Tier1Api, Tier1Error, Tier1Reads,
    Totals,
};

use super::Tier1;
use super::owner::Owner;
use super::room::{Arriving, has_content};
use super::rows::Rows;
use crate::machine::{Command, Hint, newest_first};
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
        owner.apply(commands, may_wait)?.wait()?
    }

    /// Takes submissions of pages of this process. The outcomes are in their order. Ranges that take theirs have recorded them
    /// though another one refuses.
    pub(super) fn submit_here(
        &self,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<Outcome>, Tier1Error> {
        let mut arriving = self.admit(client, &submissions)?;
        self.refuse_in_vain(&submissions)?;
        let hints = self.hints(&submissions);
        let of_range = |(submission, _): &Hinted| self.map.of_page(submission.url.id());
        let count = submissions.len();
        let mut waiting = Vec::new();
        for (range, (places, submissions)) in by_range(submissions.into_iter().zip(hints), of_range) {
            // The writer keeps it until they are committed, also when nobody waits for that any more.
            let arriving = arriving.split_off(contents(submissions.iter().map(|(submission, _)| submission)));
            let (places, submissions) = by_version(places, submissions);
            let owner = self.own(range).map_err(Tier1Error::from);
            waiting.push((places, owner.and_then(|owner| owner.submit(submissions, arriving))));
        }
        // All are waited for.
        let answered =
            waiting.into_iter().map(|(places, begun)| (places, begun.and_then(|answer| answer.wait()?)));
        in_order(count, answered.collect())
    }

    /// Refuses submissions all of which wait for ranges that take none, before they are compared for nothing.
    fn refuse_in_vain(&self, submissions: &[Submission]) -> Result<(), Tier1Error> {
        if submissions.is_empty() {
            return Ok(());
        }
        let refusal = |owner: &Arc<Owner>| Some((owner.id, owner.check_commits().err()?));
        let refusals: BTreeMap<RangeId, PeerError> =
            self.ranges.owners().iter().filter_map(refusal).collect();
        let Some(refused) = refusals.values().next() else { return Ok(()) };
        let is_refused = |one: &Submission| refusals.contains_key(&self.map.of_page(one.url.id()));
        if submissions.iter().all(is_refused) { Err(refused.clone().into()) } else { Ok(()) }
    }

    /// The same for pages of all ranges.
    fn submit_everywhere(
        &self,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<Outcome>, Tier1Error> {
        let count = submissions.len();
        let of_range = |submission: &Submission| self.map.of_page(submission.url.id());
        let is_here = |submission: &Submission| self.ranges.here(of_range(submission)).is_some();
        // Where all ranges are here, no URL is hashed to find that out.
        if self.owns_all() || submissions.iter().all(is_here) {
            return self.submit_here(client, submissions);
        }
        let answered = by_range(submissions, of_range).into_iter().map(|(range, (places, submissions))| {
            (
                places,
                self.at(range)
                    .and_then(|node| node.submit(range, client, submissions))
                    .map_err(Tier1Error::from),
            )
        });
        in_order(count, answered.collect())
    }

    /// Contents take room in the queue of pending pages, of which a client may take half; everything else is decided at once.
    pub(super) fn admit(&self, client: ClientId, submissions: &[Submission]) -> Result<Arriving, Tier1Error> {
        self.check()?;
        let contents = contents(submissions.iter());
        let (arriving, (before, of_client)) = Arriving::count(&self.arriving, client, contents);
        // While the index is brought up to date, orders of decided pages wait for it, too. A pending page may have two orders there: the
        // first, and a search that was repeated. So the orders count by half, and the pages of one client do not fill the limit of all.
        let waiting =
            self.ranges.owners().iter().map(|owner| owner.waiting_orders.load(Ordering::Relaxed)).max();
        let pending = self.pending().max(waiting.unwrap_or(0) / 2) + before;
        if pending >= self.pending_max && contents > 0 {
            return Err(Tier1Error::Full { pending, limit: self.pending_max });
        }
        if client != ClientId::NONE && contents > 0 {
            let pending: u64 =
                self.ranges.owners().iter().map(|owner| owner.figures().pending_of(client)).sum();
            let (pending, limit) = (pending + of_client, self.pending_max.div_ceil(2));
            if pending >= limit {
                return Err(Tier1Error::ClientFull { pending, limit });
            }
        }
        Ok(arriving)
    }
}

/// What belongs to a range, the newest version of each page first.
fn by_version(places: Vec<usize>, submissions: Vec<Hinted>) -> (Vec<usize>, Vec<Hinted>) {
    let Some(order) = newest_first(&submissions, |(submission, _)| submission) else {
        return (places, submissions);
    };
    let mut left: Vec<Option<Hinted>> = submissions.into_iter().map(Some).collect();
    let submissions = order.iter().filter_map(|at| left[*at].take()).collect();
    (order.iter().map(|at| places[*at]).collect(), submissions)
}

fn contents<'s>(submissions: impl Iterator<Item = &'s Submission>) -> u64 {
    submissions.filter(|submission| has_content(submission)).count() as u64
}

/// What belongs to each range, with its places in the whole.
fn by_range<T>(
    all: impl IntoIterator<Item = T>,
    range: impl Fn(&T) -> RangeId,
) -> BTreeMap<RangeId, (Vec<usize>, Vec<T>)> {
    let mut by_range: BTreeMap<RangeId, (Vec<usize>, Vec<T>)> = BTreeMap::new();
    for (at, one) in all.into_iter().enumerate() {
        let (places, of_range) = by_range.entry(range(&one)).or_default();
        places.push(at);
        of_range.push(one);
    }
    by_range
}

/// The places of submissions, and what came of them.
type Answered = (Vec<usize>, Result<Vec<Outcome>, Tier1Error>);

/// Outcomes in the order of their places. One refusal refuses all: what was recorded nevertheless is found unchanged when it
/// is submitted again.
fn in_order(count: usize, answered: Vec<Answered>) -> Result<Vec<Outcome>, Tier1Error> {
    let mut outcomes: Vec<Option<Outcome>> = vec![None; count];
    for (places, answer) in answered {
        for (at, outcome) in places.into_iter().zip(answer?) {
            outcomes[at] = Some(outcome);
        }
    }
    outcomes.into_iter().collect::<Option<_>>().ok_or(Tier1Error::Stopping)
}

/// Refuses a list that is too long for one call.
fn bounded(found: usize) -> Result<(), Tier1Error> {
    if found > BATCH_MAX {
        return Err(Tier1Error::BatchTooLarge { found, limit: BATCH_MAX });
    }
    Ok(())
}

/// What is read for one question.
struct Asked<'t> {
    tier1: &'t Tier1,
    rows: Rows,
    /// The question that it is read for, where others may answer that.
    question: Option<Question>,
}

impl Tier1 {
    fn asked(&self) -> Asked<'_> {
        Asked { tier1: self, rows: self.rows.clone(), question: None }
    }
}

impl Tier1Reads for Asked<'_> {
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        bounded(pages.len())?;
        for page in pages {
            if let Ok(owner) = self.tier1.own(self.tier1.map.of_page(*page)) {
                owner.asked.store(true, Ordering::Relaxed);
            }
        }
        self.rows.read_pages(pages)
    }

    fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        let asked = Instant::now();
        let known = self.tier1.known_advice(page);
        if let Some(question) = &self.question {
            question.take_known(std::slice::from_ref(&known), asked);
        }
        known
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Result<Option<PageId>, Tier1Error> {
        self.rows.first_spelling(form, except)
    }

    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        self.rows.signature(page)
    }

    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
        self.rows.read_summary(group)
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error> {
        self.rows.read_group(group, after, limit.clamp(1, LIST_MAX), redirects)
    }
}

impl Tier1Reads for Tier1 {
    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        self.asked().pages(pages)
    }

    fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        self.statuses.as_ref()?.advise(page)
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Result<Option<PageId>, Tier1Error> {
        self.rows.first_spelling(form, except)
    }

    fn signature(&self, page: PageId) -> Result<Option<Arc<Signature>>, Tier1Error> {
        self.rows.signature(page)
    }

    fn group_summary(&self, group: GroupId) -> Result<Option<GroupSummary>, Tier1Error> {
        self.rows.read_summary(group)
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Result<Option<GroupView>, Tier1Error> {
        self.asked().group(group, after, limit, redirects)
    }
}

impl Tier1Api for Tier1 {
    fn submit_for(&self, client: ClientId, submissions: Vec<Submission>) -> Result<Vec<Outcome>, Tier1Error> {
        bounded(submissions.len())?;
        self.submit_everywhere(client, submissions)
    }

    fn for_question<'t>(&'t self, question: &Question) -> Option<Box<dyn Tier1Reads + 't>> {
        if self.ranges.directory.may_change() {
            question.owners_may_change();
        }
        let rows = self.rows.for_question(question);
        let asked = Asked { tier1: self, rows, question: Some(question.clone()) };
        self.ranges.has_others().then(|| Box::new(asked) as Box<dyn Tier1Reads + 't>)
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
        self.cursor_at_end()
    }

    fn totals(&self) -> Result<Totals, Tier1Error> {
        let states = self.map.ranges().map(|range| self.at(range)?.state(range));
        let states: Vec<RangeState> = states.collect::<Result<_, _>>()?;
        let (counters, backlog) = totals::add(states.iter().map(|state| (state.counters, state.backlog)));
        let status_table_bytes = self.statuses.as_ref().map_or(0, Statuses::bytes);
        let mut decision_times = DecisionTimes::default();
        states.iter().for_each(|state| decision_times.add(&state.decision_times));
        let full_disks = states.iter().filter(|state| state.disk_full).count() as u64;
        let disk_recoveries = states.iter().map(|state| state.disk_recoveries).sum();
        let shards = states.into_iter().flat_map(|state| state.shards).collect();
        let pending_limit = self.pending_max;
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
        if group.shard().0 >= self.settings.shards {
            return Ok(None);
        }
        let Some(group) = self.surviving_group(group)? else { return Ok(None) };
        Ok(self.at(self.map.of_shard(group.shard()))?.repair(group, dry_run, by)?)
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
        let found = self.rows.read_pages(pages)?.into_iter().zip(pages);
        let known: Vec<PageId> = found.filter_map(|(view, page)| view.map(|_| *page)).collect();
        let count = known.len() as u64;
        for (range, (_, pages)) in by_range(known, |page| self.map.of_page(*page)) {
            self.at(range)?.purge(range, &pages)?;
        }
        Ok(count)
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
