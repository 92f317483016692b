//! The healing phase: no more faults, until nothing is left to do.

use super::action::Stop;
use super::restart::Killed;
use super::violation::{Checked, holds};
use super::world::{World, range_id};

/// Rounds until rest at most. Runs need some hundreds; a chain of redirects that comes all at once needs some thousands.
const ROUNDS_MAX: usize = 50_000;

/// Rounds of a lull at most.
const LULL_ROUNDS_MAX: usize = 1_000;

impl World {
    pub(crate) fn settle(&mut self) -> Checked {
        self.end_delays();
        self.lose_nothing_more()?;
        self.settle_as_it_is()
    }

    /// Settles everything but what is held up. A page may wait for that without rest: as long as its partner has not
    /// heard that its group has dissolved, the page is refused again and again. There is no clock here to make it pause,
    /// so the rounds are limited.
    pub(crate) fn lull(&mut self) -> Checked {
        self.lose_nothing_more()?;
        for _ in 0..LULL_ROUNDS_MAX {
            if !self.settle_step()? {
                break;
            }
        }
        Ok(())
    }

    /// Everybody is up, and nothing is lost any more: the outboxes say what is under way.
    fn lose_nothing_more(&mut self) -> Checked {
        self.index.fail(0, 0);
        self.worker.fail_reads(0, 0);
        self.network.lose(|_| true);
        self.heal_logs()?;
        self.heal_files()?;
        (0..self.hosts.len()).try_for_each(|at| self.send_again(at))
    }

    /// No call of files fails any more. A range of which one has failed starts again.
    fn heal_files(&mut self) -> Checked {
        for at in 0..self.hosts.len() {
            self.hosts[at].store.calm(true);
            if self.hosts[at].store.has_failed() {
                self.kill(at, Killed::Alone(Vec::new()), true)?;
            }
        }
        Ok(())
    }

    /// Calls of files fail again.
    pub(crate) fn end_calm(&mut self) {
        self.hosts.iter().for_each(|host| host.store.calm(false));
    }

    /// The same, with what the network has.
    pub(crate) fn settle_as_it_is(&mut self) -> Checked {
        for _ in 0..ROUNDS_MAX {
            if !self.settle_step()? {
                return self.rest();
            }
        }
        let backlogs: Vec<_> = self.hosts.iter().map(|host| host.range.backlog()).collect();
        holds!("everything comes to rest", false, "still at work after {ROUNDS_MAX} rounds: {backlogs:?}");
        Ok(())
    }

    /// Does one thing; false when there is nothing to do.
    fn settle_step(&mut self) -> Checked<bool> {
        // One that was deposed without a word finds that out at its next commit, and then nobody owns its range.
        if let Some(at) = self.hosts.iter().position(|host| !host.store.is_owned()) {
            self.is_ready(at)?;
            return Ok(true);
        }
        for at in 0..self.hosts.len() {
            let range = &self.hosts[at].range;
            if range.has_work() || range.has_posts() || self.network.has_for(range_id(at)) {
                self.commit(at, Vec::new(), 1_000, 0, Stop::Never)?;
                return Ok(true);
            }
        }
        for at in 0..self.hosts.len() {
            if self.find_owed(at, 5)? {
                return Ok(true);
            }
        }
        if let Some(request) = self.requests.pop() {
            // The client sends it until it is answered.
            self.arrive(&request, 1_000, 0, Stop::Never)?;
            return Ok(true);
        }
        if !self.commands.is_empty() {
            let command = self.commands.remove(0);
            self.learn(command, 4, Stop::Never)?;
            return Ok(true);
        }
        if !self.index.tend() || self.index.is_busy() {
            self.pass(usize::MAX)?;
            return Ok(true);
        }
        if self.repeat(0, Stop::Never)? {
            return Ok(true);
        }
        for at in 0..self.hosts.len() {
            if let Some((page, content, winner, winner_content)) = self.hosts[at].verify.pop() {
                self.check_member((page, content), (winner, winner_content))?;
                return Ok(true);
            }
            if let Some(group) = self.hosts[at].dirty.pop() {
                self.compute(group, false)?;
                return Ok(true);
            }
            if let Some(page) = self.hosts[at].deferred.pop() {
                self.search(at, page, Stop::Never)?;
                return Ok(true);
            }
            if let Some(group) = self.hosts[at].uncovered.pop() {
                self.find_cover(group)?;
                return Ok(true);
            }
        }
        self.put_back()
    }

    /// Has all replicas that are awake read on, as nodes do all the time; whether one has put back what the log had lost.
    fn put_back(&mut self) -> Checked<bool> {
        for host in &mut self.hosts {
            let (Some(present), Some(replicas)) = (host.store.present(), &mut host.replicas) else {
                continue;
            };
            let (owner, before) = (present.owner(), replicas.log.records().len());
            for node in (0..replicas.count()).filter(|node| owner != Some(*node)) {
                if !host.deposed.iter().any(|one| one.is_of(node)) {
                    replicas.catch_up(node)?;
                }
            }
            if replicas.log.records().len() != before {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Nothing is done any more; nothing may be owed.
    fn rest(&mut self) -> Checked {
        holds!(
            "orders are acknowledged",
            self.index.is_acknowledged(),
            "an order is neither done nor waiting"
        );
        for (at, host) in self.hosts.iter().enumerate() {
            let backlog = host.range.backlog();
            holds!(
                "everything comes to rest",
                backlog.is_quiescent(),
                "range {at} owes what nobody does: {backlog:?}"
            );
        }
        Ok(())
    }
}
