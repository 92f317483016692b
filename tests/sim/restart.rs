//! A range stops at any instruction, and starts from what its store holds.

use doppel_tier1::RangeId;
use doppel_tier1::simulation::{Answer, Effect, FoundOwed, Owed, SimRange, contents};

use super::action::{Files, Stop};
use super::mistake::Mistake;
use super::violation::{Checked, failed};
use super::world::{World, fetch};

impl World {
    /// Kills a range and tier 2, and starts them again. The other ranges live on.
    pub(crate) fn kill(&mut self, at: usize, files: Files, commands_survive: bool) -> Checked {
        let (shards, map) = (self.settings.shards, self.map);
        self.hosts[at].store.crash();
        let mut all = Vec::new();
        for (number, id) in map.ranges().enumerate() {
            let host = &mut self.hosts[number];
            let damaged = |e: doppel_tier1::StoreError| failed("a start")(e.into());
            all.extend(contents(&*host.store, map, id).map_err(damaged)?);
            if number == at {
                host.range = SimRange::start(&*host.store, self.settings, id, map).map_err(damaged)?;
                (host.deferred, host.dirty, host.verify) = (Vec::new(), Vec::new(), Vec::new());
                host.posts.clear();
                host.forgets = self.planted.is(Mistake::OwedForgotten);
            }
            // Of the other ranges tier 2 has lost what it was asked.
            host.owed = Some(Owed::of(map, id));
        }
        // What the index has answered dies with it.
        self.commands.retain(|command| {
            !command.is_search_result()
                && (commands_survive || self.map.of_shard(command.shard(shards)).0 as usize != at)
        });
        self.show_feed();
        self.index.restart(files, all, fetch(&self.all, shards))?;
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
