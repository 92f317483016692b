//! Executes the actions of a plan one after the other, and checks invariants on the way.

use std::panic::{AssertUnwindSafe, catch_unwind};

use doppel_model::{ContentHash, GroupId, PageId};
use doppel_protocol::{Repeat, Search, SearchResult, Tier1Error};
use doppel_tier1::simulation::{Command, DecodedRow};
use doppel_tier2::simulation::WaitingRepeat;

use super::action::{Action, Item, Plan, Stop};
use super::clients::{Request, submission};
use super::invariant;
use super::mistake::Mistake;
use super::model::{Body, Version, url};
use super::ownership::Change;
use super::random::Random;
use super::restart::Killed;
use super::violation::{Checked, Violation, failed};
use super::world::{Commit, World, range_id};

/// Number of old envelopes and commands that are kept for repetition.
pub(crate) const REMEMBERED: usize = 50;

/// Runs a plan to its end or to its first violation.
pub(crate) fn run(plan: &Plan, mistake: Option<Mistake>) -> Checked {
    let run = AssertUnwindSafe(|| {
        let mut world = World::new(plan, mistake)?;
        plan.actions.iter().try_for_each(|action| world.act(action))
    });
    catch_unwind(run).unwrap_or_else(|panic| {
        let what = panic.downcast_ref::<String>().cloned();
        let what = what.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default();
        Err(Violation { invariant: "nothing panics", what })
    })
}

/// The element that a number points to.
fn pick<T>(of: &[T], which: u32) -> Option<usize> {
    (!of.is_empty()).then(|| which as usize % of.len())
}

impl World {
    fn act(&mut self, action: &Action) -> Checked {
        match action {
            Action::AtOnce(items) => self.begin_at_once(&self.versions(items)),
            Action::Send(items) => {
                let mut with_hints = Vec::new();
                for version in self.versions(items) {
                    let hint = self.worker.hint(&submission(&version, self.contents));
                    with_hints.push((version, hint.map_err(|e| failed("a hint")(e.into()))?));
                }
                self.requests.push(Request { versions: with_hints });
                Ok(())
            }
            Action::Arrive { which, repeat, deliver, stop } => {
                let Some(at) = pick(&self.requests, *which) else { return Ok(()) };
                let request = self.requests[at].clone();
                if self.arrive(&request, usize::from(*deliver), *which, *stop)? && !repeat {
                    self.requests.swap_remove(at);
                }
                Ok(())
            }
            Action::GiveUp { which } => {
                if let Some(at) = pick(&self.requests, *which) {
                    self.requests.swap_remove(at);
                }
                Ok(())
            }
            Action::Purge { page, stop } => self.purge(*page, *stop),
            Action::Expire { which } => self.expire(*which),
            Action::Deliver { range, order, envelopes, stop } => {
                let at = *range as usize % self.hosts.len();
                if !self.is_ready(at)? {
                    return Ok(());
                }
                // A serving range finds the work that its rows owe little by little.
                self.find_owed(at, *order as usize % 7)?;
                self.fill_statuses(at, *order as usize % 5 + 1)?;
                self.commit(at, Vec::new(), usize::from(*envelopes), *order, *stop).map(drop)
            }
            Action::Replica { range, action } => {
                self.act_on_replicas(*range as usize % self.hosts.len(), *action)
            }
            Action::Lose { range } => {
                let at = *range as usize % self.hosts.len();
                self.network.lose(|from| from == range_id(at));
                Ok(())
            }
            Action::Delay { kind, commits } => {
                self.delays.want(*kind, *commits);
                Ok(())
            }
            Action::Bridge { which } => self.bridge(*which),
            Action::Overtake { which, body } => self.overtake(*which, *body),
            Action::Reorder { which } => self.reorder(*which),
            Action::SendAgain { range } => self.send_again(*range as usize % self.hosts.len()),
            Action::Pass { orders } => self.pass(usize::from(*orders)),
            Action::KillIndexNode { node, files } => self.index.kill_node(*node, *files),
            Action::Save => {
                self.index.save();
                self.save_statuses();
                Ok(())
            }
            Action::FailCalls { one_in, seed } => {
                self.index.fail((*one_in).into(), (*seed).into());
                Ok(())
            }
            Action::FailReads { one_in, seed } => {
                self.worker.fail_reads((*one_in).into(), (*seed).into());
                Ok(())
            }
            Action::Repeat { which, stop } => self.repeat(*which, *stop).map(drop),
            Action::Command { which, repeat, stop } => {
                let Some(at) = pick(&self.commands, *which) else { return Ok(()) };
                let command = if *repeat { self.commands[at].clone() } else { self.commands.remove(at) };
                self.learn(command, *which, *stop)
            }
            Action::Verify { which } => self.verify(*which),
            Action::Recompute { which } => self.recompute(*which),
            Action::Cover { which } => self.cover(*which),
            Action::Repair { which } => {
                let groups: Vec<GroupId> = self.rows()?.iter().filter_map(group_in_use).collect();
                let Some(at) = pick(&groups, *which) else { return Ok(()) };
                // An operator does not repeat a repair that could not be carried out.
                self.compute(groups[at], true).map(drop)
            }
            Action::SearchNow { which, stop } => self.search_now(*which, *stop),
            Action::Change { dice } => self.index.change(*dice),
            Action::Work { steps } => {
                self.index.work(*steps);
                Ok(())
            }
            Action::Kill { range, alone, files, commands_survive } => {
                let killed = if *alone { Killed::Alone(Vec::new()) } else { Killed::WithTier2(*files) };
                self.kill(*range as usize % self.hosts.len(), killed, *commands_survive)
            }
            Action::KillAll { files } => {
                self.commands.clear();
                (0..self.hosts.len()).try_for_each(|at| self.kill(at, Killed::WithTier2(*files), false))
            }
            Action::Ask { page } => invariant::advice::ask(self, *page),
            Action::Read { limit } => {
                let read = self.reader.read(self.worker.api(), usize::from(*limit));
                self.answered("the feed", read).map(drop)
            }
            Action::Tick { millis } => {
                self.clock += millis;
                Ok(())
            }
            Action::Lull => {
                self.lull()?;
                self.end_calm();
                Ok(())
            }
            Action::Rest => {
                self.settle()?;
                self.complete_statuses()?;
                invariant::at_rest(self)?;
                self.end_calm();
                Ok(())
            }
        }
    }

    fn versions(&self, items: &[Item]) -> Vec<Version> {
        let version = |item: &Item| {
            let body = match item.body {
                Body::Redirect(to) if to == item.page => Body::Dead,
                body => body,
            };
            let popularity = item.popularity.map(f64::from);
            Version { page: item.page, date: self.clock - item.age, popularity, body }
        };
        items.iter().map(version).collect()
    }

    /// Gives a page that differs from the winner of its group another popularity.
    fn reorder(&mut self, which: u32) -> Checked {
        let mut random = Random::new(u64::from(which));
        let others = self.model.components().into_iter().flat_map(|component| {
            let differs =
                |page: &usize| *page != component.winner && !self.model.similar(*page, component.winner);
            component.contents.into_iter().filter(differs).collect::<Vec<_>>()
        });
        let others: Vec<usize> = others.collect();
        let Some(at) = pick(&others, which) else { return Ok(()) };
        let (page, popularity) = (others[at], Some(random.below(9) as f64));
        let Some(known) = self.model.pages.get(&page) else { return Ok(()) };
        let version = Version { page, date: self.clock, popularity, body: known.body };
        let request = Request { versions: vec![(version, None)] };
        self.arrive(&request, 4, which, Stop::Never).map(drop)
    }

    fn purge(&mut self, page: usize, stop: Stop) -> Checked {
        let id = url(page).id();
        self.change = Change::Forget(page);
        self.commit(self.host_of_page(id), vec![Command::purge(id)], 4, id_order(page), stop).map(drop)
    }

    /// Lets retention examine a page or a group.
    fn expire(&mut self, which: u32) -> Checked {
        let rows = self.rows()?;
        let groups: Vec<GroupId> = rows
            .iter()
            .filter_map(|row| match row {
                DecodedRow::Forward { group, .. } => Some(*group),
                _ => None,
            })
            .collect();
        match pick(&groups, which).filter(|_| which.is_multiple_of(2)) {
            Some(at) => self.expire_group(groups[at]),
            None => self.expire_page(which as usize % self.pages),
        }
    }

    pub(crate) fn expire_group(&mut self, group: GroupId) -> Checked {
        let at = self.host_of(group.shard());
        self.commit(at, vec![Command::expire_group(group, self.now())], 0, 0, Stop::Never).map(drop)
    }

    pub(crate) fn expire_page(&mut self, page: usize) -> Checked {
        let id = url(page).id();
        self.change = Change::ForgetIfGone(page);
        let expire = vec![Command::expire_page(id, self.now())];
        self.commit(self.host_of_page(id), expire, 0, 0, Stop::Never).map(drop)
    }

    /// Forgets a page in the model if retention has dropped its record.
    pub(crate) fn forget_if_gone(&mut self, page: usize) -> Checked {
        let id = url(page).id();
        let is_there = self.rows()?.iter().any(|row| matches!(row, DecodedRow::Page(row) if row.page == id));
        if !is_there && self.model.pages.get(&page).is_some_and(|known| known.body == Body::Dead) {
            self.forget(page);
        }
        Ok(())
    }

    /// Makes a pass of tier 2.
    pub(crate) fn pass(&mut self, orders: usize) -> Checked {
        let early = if self.planted.is(Mistake::CompareBeforeStore) {
            self.index.compare_unstored(orders)
        } else {
            Vec::new()
        };
        let mut answers = self.index.pass(orders)?;
        if self.planted.is(Mistake::LostCatchUp) {
            self.index.forget_changes();
        }
        if self.planted.is(Mistake::FalseCenter) {
            self.index.name_false_centers();
        }
        for answer in early {
            answers.retain(|later| (later.page, later.ticket) != (answer.page, answer.ticket));
            answers.push(answer);
        }
        if self.planted.is(Mistake::PairNotReported) {
            for answer in &mut answers {
                if self.planted.now(Mistake::PairNotReported) {
                    answer.pairs.pop();
                }
            }
        }
        self.commands.extend(answers.into_iter().map(Command::searched));
        Ok(())
    }

    /// Lets a command arrive at its range.
    pub(crate) fn learn(&mut self, mut command: Command, order: u32, stop: Stop) -> Checked {
        let shards = self.settings.shards;
        let damaged = |e: doppel_tier1::StoreError| failed("reading the stores")(e.into());
        if self.planted.is(Mistake::VerdictOnOldContent)
            && let Some(page) = command.compared_page()
        {
            command = self
                .planted
                .verdict(page, command)
                .with_present_content(&self.all.joined(), shards)
                .map_err(damaged)?;
        }
        if self.planted.is(Mistake::AnswerOnOldContent) && command.is_search_result() {
            command = command.with_present_content(&self.all.joined(), shards).map_err(damaged)?;
        }
        if self.planted.is(Mistake::AnswerForOldTicket) {
            command = command.with_open_ticket(&self.all.joined(), shards).map_err(damaged)?;
        }
        let at = self.host_of(command.shard(shards));
        // A repeated recomputation may evict a member that has returned to its old content. The member
        // rejoins, but that leaves traces.
        let comes_again = command.is_search_result() || command.compared_page().is_some();
        if comes_again && order.is_multiple_of(4) && self.old_commands.len() < REMEMBERED {
            self.old_commands.push(command.clone());
        }
        match self.commit(at, vec![command.clone()], order as usize % 5, order, stop)? {
            // The worker outlives a range and repeats the command. Searches are repeated by the range itself.
            Commit::Lost if !command.is_search_result() => self.commands.push(command),
            // The command waits for its range.
            Commit::Refused => self.commands.push(command),
            Commit::Lost | Commit::Answered | Commit::Unanswered => {}
        }
        Ok(())
    }

    fn verify(&mut self, which: u32) -> Checked {
        let mut random = Random::new(u64::from(which));
        let at = random.below(self.hosts.len() as u64) as usize;
        let jobs = &mut self.hosts[at].verify;
        let Some(job) = pick(jobs, which) else { return Ok(()) };
        let job = jobs.swap_remove(job);
        let (page, content, winner, winner_content) = job;
        if !self.check_member((page, content), (winner, winner_content))? && self.tries_again() {
            self.hosts[at].verify.push(job);
        }
        Ok(())
    }

    /// Lets the worker compare a member with its winner. Returns false if a range did not answer.
    pub(crate) fn check_member(
        &mut self,
        page: (PageId, ContentHash),
        winner: (PageId, ContentHash),
    ) -> Checked<bool> {
        let found = self.answered("a comparison", self.worker.verify(page, winner))?;
        let is_done = found.is_some();
        self.commands.extend(found.flatten());
        Ok(is_done)
    }

    /// Whether the worker keeps work for which a range did not answer.
    fn tries_again(&self) -> bool {
        !self.planted.is(Mistake::UnreadTakenForDone)
    }

    fn recompute(&mut self, which: u32) -> Checked {
        let at = which as usize % self.hosts.len();
        let groups = &mut self.hosts[at].dirty;
        let Some(group) = pick(groups, which >> 8) else { return Ok(()) };
        let group = groups.remove(group);
        if !self.compute(group, false)? && self.tries_again() {
            self.hosts[at].dirty.push(group);
        }
        Ok(())
    }

    /// Lets the worker recompute a group. Returns false if a range did not answer.
    pub(crate) fn compute(&mut self, group: GroupId, repair: bool) -> Checked<bool> {
        let found = self.answered("a recomputation", self.worker.recompute(group, repair))?;
        let is_done = found.is_some();
        self.commands.extend(found.into_iter().flatten());
        Ok(is_done)
    }

    fn cover(&mut self, which: u32) -> Checked {
        let at = which as usize % self.hosts.len();
        let groups = &mut self.hosts[at].uncovered;
        let Some(group) = pick(groups, which >> 8) else { return Ok(()) };
        let group = groups.remove(group);
        if !self.find_cover(group)? && self.tries_again() {
            self.hosts[at].uncovered.push(group);
        }
        Ok(())
    }

    /// Lets the worker find the cover of a group. Returns false if a range did not answer.
    pub(crate) fn find_cover(&mut self, group: GroupId) -> Checked<bool> {
        let found = self.answered("a cover", self.worker.find_cover(group))?;
        let Some(found) = found else { return Ok(false) };
        if !self.planted.keeps_covers() {
            self.commands.extend(found);
            return Ok(true);
        }
        let others = self.rows()?.into_iter().filter_map(|row| match row {
            DecodedRow::Member(member) if member.group == group && member.dissimilar => {
                Some((member.page, member.content))
            }
            _ => None,
        });
        let others = others.collect();
        self.commands.extend(self.planted.cover(group, others, found));
        Ok(true)
    }

    /// The result of a read of tier 1. `None` if a range did not answer, while the run lets reads fail.
    pub(crate) fn answered<T>(&self, what: &'static str, read: Result<T, Tier1Error>) -> Checked<Option<T>> {
        match read {
            Err(Tier1Error::Unavailable(_)) if self.worker.reads_may_fail() => Ok(None),
            read => read.map(Some).map_err(|e| failed(what)(e.into())),
        }
    }

    fn search_now(&mut self, which: u32, stop: Stop) -> Checked {
        let at = which as usize % self.hosts.len();
        let pages = &mut self.hosts[at].deferred;
        let Some(page) = pick(pages, which >> 8) else { return Ok(()) };
        let page = pages.remove(page);
        self.search(at, page, stop)
    }

    /// Tells a range that an index node wants a new search for a page. The node forgets the page once the
    /// range has stored that durably. Returns whether there was such a page.
    pub(crate) fn repeat(&mut self, which: u32, stop: Stop) -> Checked<bool> {
        let repeats = self.index.repeats();
        let Some(first) = pick(&repeats, which).map(|at| repeats[at]) else { return Ok(false) };
        // Nodes are acknowledged up to a number, so all earlier pages arrive as well.
        let is_due = |one: &WaitingRepeat| {
            (one.node, one.range) == (first.node, first.range) && one.repeat.number <= first.repeat.number
        };
        for WaitingRepeat { node, range, repeat } in repeats.into_iter().filter(is_due) {
            let Repeat { number, page, content } = repeat;
            let again = SearchResult { page, content, ticket: Search::UNREQUESTED, pairs: Vec::new() };
            match self.commit(self.host_of_page(page), vec![Command::searched(again)], 0, 0, stop)? {
                Commit::Answered => self.index.acknowledge(node, range, number),
                Commit::Unanswered | Commit::Lost | Commit::Refused => break,
            }
        }
        Ok(true)
    }

    /// Runs a deferred search in the background. A lost one is owed again at the next start of the range.
    pub(crate) fn search(&mut self, at: usize, page: PageId, stop: Stop) -> Checked {
        if self.commit(at, vec![Command::search_now(page)], 0, 0, stop)? == Commit::Refused {
            self.hosts[at].deferred.push(page);
        }
        Ok(())
    }
}

fn group_in_use(row: &DecodedRow) -> Option<GroupId> {
    match row {
        DecodedRow::Group(group) => Some(group.group),
        _ => None,
    }
}

fn id_order(page: usize) -> u32 {
    page as u32 + 1
}
