//! The healing phase: all faults stop, until nothing is left to do.

use super::action::Stop;
use super::restart::Killed;
use super::violation::{Checked, holds};
use super::world::{World, range_id};

/// Maximal number of rounds until rest. Runs need some hundreds. A chain of redirects that arrives all at
/// once needs some thousands.
const ROUNDS_MAX: usize = 50_000;

/// Maximal number of rounds of a lull.
const LULL_ROUNDS_MAX: usize = 1_000;

impl World {
    pub(crate) fn settle(&mut self) -> Checked {
        self.end_delays();
        self.lose_nothing_more()?;
        self.settle_as_it_is()
    }

    /// Settles everything except held messages. A page may wait for a held message without rest: until its
    /// partner hears that its group has dissolved, the page is refused again and again. The simulation has no
    /// clock that would make it pause, so the number of rounds is limited.
    pub(crate) fn lull(&mut self) -> Checked {
        self.lose_nothing_more()?;
        for _ in 0..LULL_ROUNDS_MAX {
            if !self.settle_step()? {
                break;
            }
        }
        Ok(())
    }

    /// Ends all faults and losses. The network is emptied, because the outboxes contain all messages under
    /// way.
    fn lose_nothing_more(&mut self) -> Checked {
        self.index.fail(0, 0);
        self.worker.fail_reads(0, 0);
        self.network.lose(|_| true);
        self.heal_logs()?;
        self.heal_files()?;
        (0..self.hosts.len()).try_for_each(|at| self.send_again(at))
    }

    /// Stops the failures of files. A range whose files have failed restarts.
    fn heal_files(&mut self) -> Checked {
        for at in 0..self.hosts.len() {
            self.hosts[at].store.calm(true);
            if self.hosts[at].store.has_failed() {
                self.kill(at, Killed::Alone(Vec::new()), true)?;
            }
        }
        Ok(())
    }

    /// Lets calls of files fail again.
    pub(crate) fn end_calm(&mut self) {
        self.hosts.iter().for_each(|host| host.store.calm(false));
    }

    /// Settles with the messages that the network has now.
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

    /// Does one piece of work. Returns false if there is nothing to do.
    fn settle_step(&mut self) -> Checked<bool> {
        // An owner that was deposed unnoticed learns so at its next commit. Its range then has no owner until
        // a node takes over.
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
            // The client repeats the request until it gets an answer.
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

    /// Lets all replicas that are awake read on, as nodes do all the time. Returns whether one of them wrote
    /// lost entries back to the log.
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

    /// Checks that no work is left.
    fn rest(&mut self) -> Checked {
        holds!(
            "orders are acknowledged",
            self.index.is_acknowledged(),
            "an order to the index was lost: it is neither carried out nor waiting"
        );
        for (at, host) in self.hosts.iter().enumerate() {
            let backlog = host.range.backlog();
            holds!(
                "everything comes to rest",
                backlog.is_quiescent(),
                "range {at} has work that nobody does: {backlog:?}"
            );
        }
        Ok(())
    }
}
