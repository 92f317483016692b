//! Both tiers in memory, small and slow: what they answer at quiescence, computed from scratch.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{GroupId, PageId, PageUrl, PartitionId, ShardId, Timestamp};
use doppel_partitioning::{LengthVector, MappingError, Plan, Rebalancer};
use doppel_protocol::{
    Backlog, BackupError, BackupSummary, Body, Change, Changes, Counters, GroupFilter, GroupPosition,
    GroupState, GroupSummary, GroupView, IndexError, LengthBox, Line, LoadReport, MappingApi, MemberView,
    Orders, Outcome, PageView, Pair, PartitionLoad, PartitionLookup, Rank, RebalanceError, RebalanceOutcome,
    RebalancePlan, RebalanceProgress, RebalanceRequest, RepairDetails, RepairId, RepairPosition,
    RepairReport, RepairTrail, Status, Submission, Tier1Api, Tier1Error, Tier2Api, Unresolved, WinnerOrder,
    WinnerView,
};

use super::gate::Gate;

/// Both tiers.
#[derive(Default)]
pub(super) struct Fake {
    state: Mutex<State>,
    changed: Condvar,
    pub(super) gate: Gate,
}

/// What a test may read and bend.
#[derive(Default)]
pub(super) struct State {
    pub(super) pages: BTreeMap<PageId, Page>,
    pub(super) groups: BTreeMap<GroupId, (GroupSummary, Vec<PageId>)>,
    pub(super) log: Vec<Change>,
    /// The URLs of every call of `submit` that was taken.
    pub(super) submitted: Vec<Vec<String>>,
    /// What `submit` refuses with once this many calls were taken.
    pub(super) refuse: Option<(usize, Tier1Error)>,
    /// Makes `submit` give one outcome less than there are submissions, or one more.
    pub(super) miscount: Option<bool>,
    /// What `scan` fails with.
    pub(super) damaged: bool,
    /// Makes the next call of `counters` panic.
    pub(super) panic: bool,
    pub(super) repairs: Vec<(GroupId, bool, String)>,
    /// What is written down of repairs, oldest first.
    pub(super) trail: Vec<RepairDetails>,
    pub(super) hurried: u32,
    /// The mapping, where there is one.
    pub(super) plan: Option<Plan>,
    pub(super) progress: Option<RebalanceProgress>,
    pub(super) outcome: Option<RebalanceOutcome>,
    /// Why tier 2 does not answer.
    pub(super) index_error: Option<IndexError>,
    pub(super) winners: WinnerOrder,
    /// Called before a signature is handed out.
    pub(super) on_signature: Option<Bend>,
    minted: u64,
}

/// Changes the state between two reads.
type Bend = Box<dyn FnMut(&mut State) + Send>;

#[derive(Clone)]
pub(super) struct Page {
    pub(super) view: PageView,
    pub(super) signature: Option<Arc<Signature>>,
}

impl Fake {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }
}

impl State {
    /// Whether tier 2 answers.
    fn index(&self) -> Result<(), IndexError> {
        self.index_error.clone().map_or(Ok(()), Err)
    }

    /// The record of a URL.
    pub(super) fn page(&mut self, url: &str) -> &mut Page {
        let id = PageUrl::parse(url).unwrap().id();
        self.pages.get_mut(&id).unwrap()
    }

    /// The group of a URL.
    pub(super) fn group_of(&mut self, url: &str) -> GroupId {
        self.page(url).view.line.group.unwrap()
    }

    fn record(&mut self, submission: Submission) -> Outcome {
        let Submission { url, fetched_at, popularity, language, canonical, body } = submission;
        let old = self.pages.get(&url.id());
        if old.is_some_and(|old| old.view.fetched_at > fetched_at) {
            return Outcome::Stale;
        }
        let signature = match &body {
            Body::Content(signature) => Some(Arc::clone(signature)),
            _ => None,
        };
        let content = signature.as_ref().map(|signature| signature.content());
        let redirect_to = match &body {
            Body::Redirect(target) => Some(target.clone()),
            _ => None,
        };
        if old.is_some_and(|old| {
            old.view.content == content
                && old.view.redirect_to == redirect_to
                && (old.view.line.status == Status::Dead) == matches!(body, Body::Dead)
        }) {
            return Outcome::Unchanged;
        }
        let status = if matches!(body, Body::Dead) { Status::Dead } else { Status::Pending };
        let first_seen = old.map_or(fetched_at, |old| old.view.rank.first_seen);
        let line = line(&url, status);
        let rank = Rank { url: url.clone(), popularity, first_seen };
        let view = PageView {
            line,
            fetched_at,
            rank,
            content,
            language,
            canonical,
            redirect_to,
            target: None,
            unresolved: None,
            winner: None,
        };
        self.pages.insert(url.id(), Page { view, signature });
        if status == Status::Dead { Outcome::Confirmed } else { Outcome::Pending }
    }

    /// Groups from scratch: components of linked contents, then redirects.
    fn decide(&mut self, policy: Policy) {
        for (id, (summary, members)) in &mut self.groups {
            if summary.state == GroupState::Active {
                // Survivors are minted anew; the old ids are merged into the one that has their winner.
                summary.state = GroupState::MergedInto { group: *id };
                members.clear();
            }
        }
        let contents: Vec<PageId> =
            self.pages.iter().filter(|(_, page)| page.signature.is_some()).map(|(id, _)| *id).collect();
        let mut left: BTreeSet<PageId> = contents.into_iter().collect();
        while let Some(first) = left.pop_first() {
            let mut members = vec![first];
            let mut at = 0;
            while let Some(&member) = members.get(at) {
                at += 1;
                let a = self.pages[&member].signature.clone().unwrap();
                let linked: Vec<PageId> = left
                    .iter()
                    .copied()
                    .filter(|other| policy.linked(&a, self.pages[other].signature.as_ref().unwrap()))
                    .collect();
                for other in linked {
                    left.remove(&other);
                    members.push(other);
                }
            }
            self.settle(policy, members);
        }
    }

    fn settle(&mut self, policy: Policy, mut members: Vec<PageId>) {
        let targets: BTreeSet<PageId> = members.iter().copied().collect();
        let redirects: Vec<(PageId, Result<PageId, Unresolved>)> = self
            .pages
            .values()
            .filter(|page| page.view.redirect_to.is_some())
            .map(|page| (page.view.rank.url.id(), self.target(&page.view)))
            .collect();
        for (id, target) in &redirects {
            let page = self.pages.get_mut(id).unwrap();
            match target {
                Ok(target) => (page.view.target, page.view.unresolved) = (Some(*target), None),
                Err(reason) => {
                    page.view.unresolved = Some(*reason);
                    page.view.line =
                        Line { reason: Some(*reason), ..line(&page.view.rank.url, Status::Unresolved) };
                }
            }
        }
        let attached = redirects.into_iter().filter(|(_, target)| target.is_ok_and(|t| targets.contains(&t)));
        let attached: Vec<PageId> = attached.map(|(id, _)| id).collect();
        members.sort();
        if members.len() == 1 && attached.is_empty() {
            let page = self.pages.get_mut(&members[0]).unwrap();
            page.view.line = line(&page.view.rank.url, Status::Unique);
            return;
        }
        let winner = members
            .iter()
            .min_by(|a, b| self.winners.compare(&self.pages[a].view.rank, &self.pages[b].view.rank, None).0)
            .copied()
            .unwrap();
        let (winner_url, winner_signature) =
            (self.pages[&winner].view.rank.url.clone(), self.pages[&winner].signature.clone().unwrap());
        let group = GroupId::new(self.minted, ShardId(0));
        self.minted += 1;
        let mut dissimilar = 0;
        for id in members.iter().chain(&attached) {
            let subject = self.pages[id].view.target.unwrap_or(*id);
            let comparison =
                policy.compare(self.pages[&subject].signature.as_ref().unwrap(), &winner_signature);
            let page = self.pages.get_mut(id).unwrap();
            let status = match comparison.similar {
                _ if *id == winner => Status::Winner,
                true => Status::Duplicate,
                false => Status::Member,
            };
            dissimilar += u64::from(status == Status::Member);
            let similarity = (*id != winner && subject == *id).then(|| comparison.jaccard());
            page.view.line = Line {
                group: Some(group),
                winner: Some(winner_url.clone()),
                similarity,
                ..line(&page.view.rank.url, status)
            };
            page.view.winner = Some(WinnerView { page: winner, content: winner_signature.content() });
        }
        for (summary, _) in self.groups.values_mut() {
            if matches!(summary.state, GroupState::MergedInto { group } if group == summary.group)
                && summary.winner.as_ref().is_some_and(|old| members.contains(&old.id()))
            {
                summary.state = GroupState::MergedInto { group };
            }
        }
        let summary = GroupSummary {
            group,
            state: GroupState::Active,
            members: members.len() as u64,
            dissimilar,
            winner: Some(winner_url),
            dirty: false,
            quarantined: false,
        };
        self.groups.insert(group, (summary, members));
    }

    fn target(&self, view: &PageView) -> Result<PageId, Unresolved> {
        let mut at = view;
        for _ in 0..20 {
            let next = at.redirect_to.as_ref().unwrap().id();
            let page = self.pages.get(&next).ok_or(Unresolved::UnknownTarget)?;
            match (&page.view.redirect_to, page.view.line.status) {
                (_, Status::Dead) => return Err(Unresolved::DeadTarget),
                (None, _) => return Ok(next),
                (Some(_), _) if next == view.rank.url.id() => return Err(Unresolved::Loop),
                (Some(_), _) => at = &page.view,
            }
        }
        Err(Unresolved::TooManyHops)
    }
}

fn line(url: &PageUrl, status: Status) -> Line {
    Line { url: url.clone(), status, group: None, winner: None, similarity: None, reason: None }
}

impl Tier1Api for Fake {
    fn submit(&self, submissions: Vec<Submission>) -> Result<Vec<Outcome>, Tier1Error> {
        let mut state = self.state();
        if let Some((calls, refused)) = &state.refuse
            && state.submitted.len() >= *calls
        {
            return Err(refused.clone());
        }
        state.submitted.push(submissions.iter().map(|one| one.url.to_string()).collect());
        let mut outcomes: Vec<Outcome> = submissions.into_iter().map(|one| state.record(one)).collect();
        match state.miscount {
            Some(true) => drop(outcomes.pop()),
            Some(false) => outcomes.push(Outcome::Unchanged),
            None => {}
        }
        self.changed.notify_all();
        Ok(outcomes)
    }

    fn pages(&self, pages: &[PageId]) -> Result<Vec<Option<PageView>>, Tier1Error> {
        self.gate.pass("pages");
        let state = self.state();
        Ok(pages.iter().map(|id| state.pages.get(id).map(|page| page.view.clone())).collect())
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

    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Result<Changes, Tier1Error> {
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
        Ok(Changes { changes, cursor: format!("c{}", end.max(at)), at_end: end >= state.log.len() })
    }

    fn scan(&self, each: &mut dyn FnMut(Line) -> std::io::Result<()>) -> Result<String, Tier1Error> {
        self.gate.pass("scan");
        let state = self.state();
        if state.damaged {
            return Err(Tier1Error::Damaged("page p1".to_owned()));
        }
        for page in state.pages.values().filter(|page| page.view.line.status != Status::Dead) {
            each(page.view.line.clone()).map_err(|error| Tier1Error::ReadOnly(error.to_string()))?;
        }
        Ok(format!("c{}", state.log.len()))
    }

    fn cursor(&self) -> String {
        format!("c{}", self.state().log.len())
    }

    fn counters(&self) -> Counters {
        let mut state = self.state();
        if std::mem::take(&mut state.panic) {
            drop(state);
            panic!("as the test asked for");
        }
        let live = state.pages.values().filter(|page| page.view.line.status != Status::Dead).count() as u64;
        Counters { live, confirmed: 3, compared_updates: 1, ..Counters::default() }
    }

    fn backlog(&self) -> Backlog {
        let pending =
            self.state().pages.values().filter(|page| page.view.line.status == Status::Pending).count();
        Backlog { pending: pending as u64, ..Backlog::default() }
    }

    fn writable(&self) -> Result<(), Tier1Error> {
        self.state().refuse.as_ref().map_or(Ok(()), |(_, refused)| Err(refused.clone()))
    }

    fn pending_limit(&self) -> u64 {
        1_000
    }

    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, Tier1Error> {
        self.gate.pass("repair");
        let mut state = self.state();
        state.repairs.push((group, dry_run, by.to_owned()));
        let Some((_, members)) = state.groups.get(&group) else { return Ok(None) };
        let before: Vec<PageUrl> = members.iter().map(|id| state.pages[id].view.rank.url.clone()).collect();
        Ok(Some(RepairReport { group, components: vec![before.clone()], before, applied: !dry_run }))
    }

    /// From a place on whose first number counts those that are still to come.
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

    /// A line for every page; breaks off when submissions are refused.
    fn backup(&self, _dir: &Path, out: &mut dyn Write) -> Result<BackupSummary, BackupError> {
        self.gate.pass("backup");
        let state = self.state();
        for page in state.pages.values() {
            writeln!(out, "{}", page.view.rank.url)?;
        }
        match &state.refuse {
            Some((_, refused)) => Err(refused.clone().into()),
            None => Ok(BackupSummary::default()),
        }
    }

    /// Decides everything and logs every page whose line changed.
    fn flush(&self, limit: Duration) -> Result<bool, Tier1Error> {
        if limit.is_zero() {
            return Ok(false);
        }
        let mut state = self.state();
        state.decide(Policy::default());
        let events: Vec<Change> = state
            .pages
            .values()
            .map(|page| Change { line: page.view.line.clone(), fetched_at: page.view.fetched_at })
            .filter(|change| {
                state.log.iter().rev().find(|old| old.line.url == change.line.url) != Some(change)
            })
            .collect();
        state.log.extend(events);
        self.changed.notify_all();
        Ok(true)
    }
}

impl Tier2Api for Fake {
    fn submit(&self, _: Orders) -> Result<(), IndexError> {
        Ok(())
    }

    fn waiting(&self) -> usize {
        0
    }

    fn probe(&self, signature: &Signature) -> Result<Vec<Pair>, IndexError> {
        self.gate.pass("probe");
        let state = self.state();
        state.index()?;
        let stored = state.pages.iter().filter_map(|(id, page)| Some((*id, page.signature.as_ref()?)));
        let pair = |(page, other): (PageId, &Arc<Signature>)| {
            let comparison = Policy::default().compare(signature, other);
            comparison.similar.then(|| Pair {
                page,
                content: other.content(),
                shared: comparison.shared,
                shingles: comparison.b,
            })
        };
        Ok(stored.filter_map(pair).collect())
    }

    fn locate(&self, signature: &Signature) -> Result<PartitionLookup, IndexError> {
        self.state().index()?;
        let (home, probed_partitions) = (PartitionId(1), vec![PartitionId(0), PartitionId(1)]);
        Ok(PartitionLookup { lengths: vec![signature.shingles(), 0, 0], home, probed_partitions })
    }

    fn load(&self) -> Result<LoadReport, IndexError> {
        self.state().index()?;
        let partition = |partition, node, contents| PartitionLoad {
            partition,
            node,
            bounds: LengthBox { lo: vec![None; 4], hi: vec![Some(9); 4] },
            contents,
            pages: contents + 1,
            received: 10,
            comparisons: 20,
            bytes: 100,
        };
        Ok(LoadReport {
            plan_version: 4,
            dimensions: 3,
            partitions: vec![partition(0, 0, 5), partition(1, 3, 6), partition(2, 0, 7)],
            searches: 10,
            fan_out: 15,
            imbalance: 1.17,
            imbalance_floor: 1.1,
            fan_out_saved: Some(0.5),
            serving: 3,
            node_fan_out: 12,
            node_imbalance: 2.0,
            node_imbalance_floor: 1.2,
            node_fan_out_saved: Some(0.6),
            file_bytes: 4_096,
        })
    }

    fn mapping(&self) -> Option<&dyn MappingApi> {
        self.state().plan.is_some().then_some(self)
    }

    fn flush_batch(&self) -> Result<(), IndexError> {
        let mut state = self.state();
        state.index()?;
        state.hurried += 1;
        Ok(())
    }
}

impl MappingApi for Fake {
    fn plan(&self) -> Result<Plan, IndexError> {
        Ok(self.state().plan.clone().unwrap())
    }

    fn sample(&self, limit: usize) -> Result<Vec<Arc<Signature>>, IndexError> {
        self.gate.pass("sample");
        Ok(self.state().pages.values().filter_map(|page| page.signature.clone()).take(limit).collect())
    }

    /// Moves at once.
    fn rebalance(&self, request: RebalanceRequest, dry_run: bool) -> Result<RebalancePlan, RebalanceError> {
        if let Some(progress) = &self.state().progress {
            return Err(RebalanceError::Busy(progress.next_version));
        }
        let (mut plan, sample) = (self.plan()?, self.sample(usize::MAX)?);
        match request {
            RebalanceRequest::Balance | RebalanceRequest::Learn => {}
            RebalanceRequest::Drain { node } => plan.set_drained(node, true)?,
            RebalanceRequest::Join { node } => plan.set_drained(node, false)?,
            RebalanceRequest::Move { partition, node } => {
                let number = plan.number(partition).ok_or(MappingError::Partition(partition))?;
                plan.place(number, node)?;
            }
        }
        let lengths: Vec<LengthVector> = sample.iter().map(|s| plan.map().lexicon().lengths(s)).collect();
        let followed = Rebalancer::default().requested().next(&plan, &lengths, 1).unwrap();
        if !dry_run {
            self.state().plan = Some(followed.plan);
        }
        Ok(RebalancePlan { started: !dry_run, ..followed.change.into() })
    }

    fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError> {
        let mut state = self.state();
        let RebalanceProgress { plan_version, copied, seconds, .. } =
            state.progress.take().ok_or(RebalanceError::NothingToCancel)?;
        let (request, failed) = (RebalanceRequest::Balance, Some("it was cancelled".to_owned()));
        let outcome = RebalanceOutcome { request, failed, cancelled: true, plan_version, copied, seconds };
        state.outcome = Some(outcome.clone());
        Ok(outcome)
    }

    fn request(&self) -> Result<Option<RebalanceRequest>, IndexError> {
        Ok(None)
    }

    fn outcome(&self) -> Result<Option<RebalanceOutcome>, IndexError> {
        Ok(self.state().outcome.clone())
    }

    fn progress(&self) -> Result<Option<RebalanceProgress>, IndexError> {
        Ok(self.state().progress.clone())
    }
}

/// The moment at which every test takes place.
pub(super) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);
