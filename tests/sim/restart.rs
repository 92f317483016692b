//! A node stops at any instruction, and starts from what its store holds.

use doppel_model::ShardId;
use doppel_tier1::Store;
use doppel_tier1::simulation::{Command, Effect, Envelope, Node, Owed, outbox_row};

use super::action::{Files, Stop};
use super::mistake::Mistake;
use super::violation::{Checked, failed};
use super::world::World;

impl World {
    /// Kills a node and tier 2, and starts them again.
    pub(crate) fn kill(&mut self, at: usize, files: Files, commands_survive: bool) -> Checked {
        let shards = self.settings.shards;
        self.hosts[at].store.crash();
        let mut granted = Vec::new();
        let nodes = self.hosts.len();
        for (number, host) in self.hosts.iter_mut().enumerate() {
            let has = |shard: ShardId| usize::from(shard.0) % nodes == number;
            let started = Node::start(&*host.store, self.settings, has);
            let (node, owed) = started.map_err(|e| failed("a start")(e.into()))?;
            let Owed { mut effects, .. } = owed;
            if number == at {
                host.node = node;
                (host.deferred, host.dirty, host.verify) = (Vec::new(), Vec::new(), Vec::new());
                host.pending.clear();
                if self.planted.is(Mistake::OwedForgotten) {
                    effects.retain(|effect| !matches!(effect, Effect::Deferred(_) | Effect::Dirty(_)));
                }
            } else {
                // Tier 2 has lost what it was asked; the rest the node still knows.
                effects.retain(|effect| matches!(effect, Effect::Pending { .. } | Effect::Deferred(_)));
            }
            granted.extend(effects.into_iter().map(|effect| (number, effect)));
        }
        let commands_survive = commands_survive || self.planted.is(Mistake::TicketUsedTwice);
        // What was asked before is asked again under other tickets, so that answers of before may come or not.
        self.commands
            .retain(|command| commands_survive || usize::from(command.shard(shards).0) % nodes != at);
        self.show_feed();
        self.index.restart(files)?;
        for (number, effect) in granted {
            self.grant(number, effect);
        }
        if self.planted.is(Mistake::TicketUsedTwice) {
            // Answers of before that are not lost are the first to come.
            let (old, others): (Vec<Command>, _) =
                std::mem::take(&mut self.commands).into_iter().partition(Command::is_search_result);
            self.commands = others;
            for command in old {
                if self.planted.now(Mistake::TicketUsedTwice) {
                    self.learn(command, 1, Stop::Never)?;
                }
            }
        }
        self.send_again(at)
    }

    /// Brings what a node's outbox has for other nodes into the network again.
    pub(crate) fn send_again(&mut self, at: usize) -> Checked {
        for envelope in self.outbox(at)? {
            if self.host_of(envelope.to()) != at {
                self.network.send(envelope);
            }
        }
        Ok(())
    }

    /// Everything in a node's outbox, in order.
    pub(crate) fn outbox(&self, at: usize) -> Checked<Vec<Envelope>> {
        let mut envelopes = Vec::new();
        for from in (0..self.settings.shards).map(ShardId).filter(|shard| self.host_of(*shard) == at) {
            let (first, end) =
                (outbox_row(from, ShardId(0), 0), outbox_row(from, ShardId(u16::MAX), u64::MAX));
            let mut damaged = None;
            let read = self.hosts[at].store.range(&first, &end, &mut |key, value| {
                Envelope::read(key, value)
                    .map_or_else(|e| damaged = Some(e), |envelope| envelopes.push(envelope));
                true
            });
            read.and(damaged.map_or(Ok(()), Err)).map_err(|e| failed("an outbox")(e.into()))?;
        }
        Ok(envelopes)
    }
}
