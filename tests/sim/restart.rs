//! A range stops at any instruction, and starts from its store.

use doppel_model::{ClientId, RangeId};
use doppel_protocol::{IndexCommand, Search};
use doppel_tier1::simulation::{Command, Effect, PostReply, SimOwedScan, SimOwedWork, SimRange, last_ticket};

use super::action::{Files, Stop};
use super::mistake::Mistake;
use super::model::{Model, Version};
use super::ownership::Change;
use super::store::RangeStore;
use super::violation::{Checked, failed};
use super::world::{World, range_id};

/// Maximal number of attempts to find an owner for a range before its log is healed.
const TRIES: usize = 50;

/// What a kill affects.
#[derive(Debug)]
pub(crate) enum Killed {
    /// Only the range. Holds the orders to tier 2 that are in its log and may not have been handed over.
    Alone(Vec<Effect>),
    /// The range and tier 2, of whose files this is left.
    WithTier2(Files),
}

impl World {
    /// Kills a range, and tier 2 too if `killed` says so, and restarts what was killed. All other ranges live
    /// on.
    pub(crate) fn kill(&mut self, at: usize, killed: Killed, commands_survive: bool) -> Checked {
        let (shards, map) = (self.settings.shards, self.map);
        let id = range_id(at);
        let commands_survive = commands_survive || self.planted.is(Mistake::TicketUsedTwice);
        // The range asks its open questions again under new tickets, so answers to the old ones may arrive or
        // not.
        self.commands.retain(|command| commands_survive || map.of_shard(command.shard(shards)) != id);
        let is_replicated = self.hosts[at].replicas.is_some();
        if is_replicated {
            self.kill_owner(at)?;
        } else {
            self.start_again(at)?;
        }
        match killed {
            // A new owner hands over no order again.
            Killed::Alone(_) if is_replicated => {}
            Killed::Alone(orders) => {
                self.index.order_again(at, self.planted.is(Mistake::OrdersCountedAnew))?;
                orders.into_iter().try_for_each(|order| self.grant(at, order))?;
            }
            Killed::WithTier2(files) => self.restart_index(files)?,
        }
        self.show_feed();
        if self.planted.is(Mistake::TicketUsedTwice) {
            self.answer_before()?;
        }
        self.post(at)
    }

    /// Restarts tier 2 once every range has an owner. It has lost the questions of every range.
    fn restart_index(&mut self, files: Files) -> Checked {
        for at in 0..self.hosts.len() {
            for _ in 0..TRIES {
                if self.hosts[at].store.is_owned() {
                    break;
                }
                self.elect(at)?;
            }
        }
        if !self.hosts.iter().all(|host| host.store.is_owned()) {
            self.heal_logs()?;
        }
        for (host, id) in self.hosts.iter_mut().zip(self.map.ranges()) {
            host.owed = Some(SimOwedScan::new(self.map, id));
        }
        self.index.restart(files)
    }

    /// Restarts an unreplicated range from its store.
    fn start_again(&mut self, at: usize) -> Checked {
        let (id, map) = (range_id(at), self.map);
        let host = &mut self.hosts[at];
        let RangeStore::Alone(store) = &*host.store else { return Ok(()) };
        store.by.crash(&store.rows)?;
        let damaged = |e: doppel_tier1::StoreError| failed("a start")(e.into());
        host.range = SimRange::start(&*host.store, self.settings, id, map).map_err(damaged)?;
        (host.deferred, host.dirty, host.uncovered) = (Vec::new(), Vec::new(), Vec::new());
        host.verify.clear();
        host.posts.clear();
        // Only the files of the range are left.
        let saved = host.saved_statuses.as_ref().and_then(|(commits, snapshot)| {
            let since = store.by.written_since(*commits)?;
            let since = if self.planted.now(Mistake::StatusesOfBefore) { Vec::new() } else { since };
            Some((snapshot.clone(), since))
        });
        host.statuses = self.worker.begin_statuses(id, saved);
        self.delays.forget(id, map);
        host.forgets = self.planted.is(Mistake::OwedForgotten);
        host.owed = Some(SimOwedScan::new(map, id));
        Ok(())
    }

    /// Lets a range die after a call of its files failed in a commit. The content of the files decides
    /// whether the commit counts.
    pub(crate) fn die_of_files(
        &mut self,
        at: usize,
        change: &Change,
        before: Option<(Model, Vec<Version>)>,
        order: u32,
    ) -> Checked {
        let mut effects = self.hosts[at].range.settled().effects;
        let RangeStore::Alone(store) = &*self.hosts[at].store else { return Ok(()) };
        if store.by.crash(&store.rows)? {
            self.apply(change, true)?;
        } else {
            effects.clear();
            if let Some(before) = before {
                (self.model, self.acknowledged) = before;
            }
        }
        self.die(at, effects, order)
    }

    /// A planted mistake: owed searches run under their old tickets, and answers to the earlier searches
    /// arrive first.
    fn answer_before(&mut self) -> Checked {
        for at in 0..self.hosts.len() {
            while self.find_owed(at, 1_000)? {}
        }
        let (old, others): (Vec<Command>, _) =
            std::mem::take(&mut self.commands).into_iter().partition(Command::is_search_result);
        self.commands = others;
        for command in old {
            if self.planted.now(Mistake::TicketUsedTwice) {
                self.learn(command, 1, Stop::Never)?;
            }
        }
        Ok(())
    }

    /// Lets a range search up to `rows` rows for the work that they owe. Returns false if the scan was
    /// already complete.
    pub(crate) fn find_owed(&mut self, at: usize, rows: usize) -> Checked<bool> {
        let shards = self.settings.shards;
        let host = &mut self.hosts[at];
        let Some(scan) = &mut host.owed else { return Ok(false) };
        let found = scan.piece(&*host.store, rows).map_err(|e| failed("what is owed")(e.into()))?;
        let Some(SimOwedWork { commands, mut effects }) = found else {
            host.owed = None;
            return Ok(true);
        };
        if host.forgets {
            effects.retain(|effect| {
                !matches!(effect, Effect::Deferred(_) | Effect::Dirty(_) | Effect::Uncovered(_))
            });
        }
        effects.into_iter().try_for_each(|effect| self.grant(at, effect))?;
        if self.planted.is(Mistake::TicketUsedTwice) {
            for page in commands.iter().filter_map(Command::resumed_page) {
                let last =
                    last_ticket(&self.all.joined(), shards, page).map_err(|e| failed("a page")(e.into()))?;
                let Some((content, ticket)) = last else { continue };
                self.index.order(
                    at,
                    IndexCommand::Search { page, content, search: Search { ticket, client: ClientId::NONE } },
                    false,
                )?;
            }
            return Ok(true);
        }
        self.commit(at, commands, 0, 0, Stop::Never)?;
        Ok(true)
    }

    /// Lets a range stop waiting for answers to its posts, and send the posts again.
    pub(crate) fn send_again(&mut self, at: usize) -> Checked {
        let ranges: Vec<RangeId> = self.map.ranges().collect();
        ranges.into_iter().for_each(|by| self.hosts[at].range.confirmed(by, &PostReply::unanswered(by)));
        self.post(at)
    }
}
