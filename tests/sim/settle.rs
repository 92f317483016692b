//! The healing phase: no more faults, until nothing is left to do.

use super::action::Stop;
use super::violation::{Checked, holds};
use super::world::World;

/// Rounds until rest at most. Runs need some hundreds.
const ROUNDS_MAX: usize = 5_000;

impl World {
    pub(crate) fn settle(&mut self) -> Checked {
        // Everybody is up, and nothing is lost any more: the outboxes say what is under way.
        self.index.fail(0, 0);
        self.network.lose(|_| true);
        (0..self.hosts.len()).try_for_each(|at| self.send_again(at))?;
        self.settle_as_it_is()
    }

    /// The same, with what the network has.
    pub(crate) fn settle_as_it_is(&mut self) -> Checked {
        for _ in 0..ROUNDS_MAX {
            if !self.settle_step()? {
                return self.rest();
            }
        }
        let backlogs: Vec<_> = self.hosts.iter().map(|assignment| assignment.node.backlog()).collect();
        holds!("everything comes to rest", false, "still at work after {ROUNDS_MAX} rounds: {backlogs:?}");
        Ok(())
    }

    /// Does one thing; false when there is nothing to do.
    fn settle_step(&mut self) -> Checked<bool> {
        for at in 0..self.hosts.len() {
            let waits = self.hosts[at].node.backlog().messages > 0;
            let nodes = self.hosts.len();
            if waits || self.network.has_for(|shard| usize::from(shard.0) % nodes == at) {
                self.commit(at, Vec::new(), 1_000, 0, Stop::Never)?;
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
            if let Some(page) = self.hosts[at].pending.pop() {
                self.search_again(at, page, Stop::Never)?;
                return Ok(true);
            }
            if let Some(page) = self.hosts[at].deferred.pop() {
                self.search(at, page, Stop::Never)?;
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
            let backlog = host.node.backlog();
            holds!(
                "everything comes to rest",
                backlog.is_quiescent(),
                "node {at} owes what nobody does: {backlog:?}"
            );
        }
        Ok(())
    }
}
