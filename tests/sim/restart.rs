//! A range stops at any instruction, and starts from what its store holds.

use doppel_tier1::RangeId;
use doppel_tier1::simulation::{Answer, Command, Effect, FoundOwed, Owed, SimRange, contents};

use super::action::{Files, Stop};
use super::mistake::Mistake;
use super::violation::{Checked, failed};
use super::world::{World, fetch, range_id};

/// What dies.
#[derive(Debug)]
pub(crate) enum Killed {
    /// The range alone. Orders to tier 2 that are in its log and may not have been given.
    Alone(Vec<Effect>),
    /// Tier 2, too: this is left of its files.
    WithTier2(Files),
}

impl World {
    /// Kills a range, and tier 2 with it or not, and starts what was killed again. All other ranges live on.
    pub(crate) fn kill(&mut self, at: usize, killed: Killed, commands_survive: bool) -> Checked {
        let (shards, map) = (self.settings.shards, self.map);
        let id = range_id(at);
        let host = &mut self.hosts[at];
        host.store.crash();
        let damaged = |e: doppel_tier1::StoreError| failed("a start")(e.into());
        host.range = SimRange::start(&*host.store, self.settings, id, map).map_err(damaged)?;
        (host.deferred, host.dirty, host.verify) = (Vec::new(), Vec::new(), Vec::new());
        host.posts.clear();
        self.delays.forget(id, map);
        host.forgets = self.planted.is(Mistake::OwedForgotten);
        host.owed = Some(Owed::of(map, id));
        let of_it = |command: &Command| map.of_shard(command.shard(shards)) == id;
        match killed {
            // Tier 2 brings what it has found out, and the orders of the last commit are in its record.
            Killed::Alone(orders) => {
                self.commands
                    .retain(|command| command.is_search_result() || commands_survive || !of_it(command));
                orders.into_iter().for_each(|order| self.grant(at, order));
            }
            Killed::WithTier2(files) => {
                let mut all = Vec::new();
                for (host, id) in self.hosts.iter_mut().zip(map.ranges()) {
                    all.extend(contents(&*host.store, map, id).map_err(damaged)?);
                    // Of every range it has lost what it was asked.
                    host.owed = Some(Owed::of(map, id));
                }
                // What the index has answered dies with it.
                self.commands
                    .retain(|command| !command.is_search_result() && (commands_survive || !of_it(command)));
                self.index.restart(files, all, fetch(&self.all, shards))?;
            }
        }
        self.show_feed();
        self.post(at)
    }

    /// A range goes through so many rows for what they owe; false when there is nothing to go through.
    pub(crate) fn find_owed(&mut self, at: usize, rows: usize) -> Checked<bool> {
        let host = &mut self.hosts[at];
        let Some(scan) = &mut host.owed else { return Ok(false) };
        let found = scan.piece(&*host.store, rows).map_err(|e| failed("what is owed")(e.into()))?;
        let Some(FoundOwed { commands, mut effects }) = found else {
            host.owed = None;
            return Ok(true);
        };
        if host.forgets {
            effects.retain(|effect| !matches!(effect, Effect::Deferred(_) | Effect::Dirty(_)));
        }
        effects.into_iter().for_each(|effect| self.grant(at, effect));
        self.commit(at, commands, 0, 0, Stop::Never)?;
        Ok(true)
    }

    /// A range gives up waiting for answers to its posts, and makes them again.
    pub(crate) fn send_again(&mut self, at: usize) -> Checked {
        let ranges: Vec<RangeId> = self.map.ranges().collect();
        ranges.into_iter().for_each(|by| self.hosts[at].range.confirmed(by, &Answer::none(by)));
        self.post(at)
    }
}
