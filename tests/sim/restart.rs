//! A node stops at any instruction, and starts from what its store holds.

use doppel_model::ShardId;
use doppel_tier1::Store;
use doppel_tier1::simulation::{Letter, Node, Owed, Wish, outbox_row};

use super::action::Files;
use super::mistake::Mistake;
use super::violation::{Checked, failed};
use super::world::{World, fetch};

impl World {
    /// Kills a node and tier 2, and starts them again.
    pub(crate) fn kill(&mut self, at: usize, files: Files, facts_survive: bool) -> Checked {
        let shards = self.settings.shards;
        self.places[at].store.crash();
        let (mut contents, mut granted) = (Vec::new(), Vec::new());
        let nodes = self.places.len();
        for (number, place) in self.places.iter_mut().enumerate() {
            let has = |shard: ShardId| usize::from(shard.0) % nodes == number;
            let started = Node::start(&*place.store, self.settings, has);
            let (node, owed) = started.map_err(|e| failed("a start")(e.into()))?;
            let Owed { contents: its, mut wishes } = owed;
            contents.extend(its);
            if number == at {
                place.node = node;
                (place.late, place.touched, place.verify) = (Vec::new(), Vec::new(), Vec::new());
                if self.planted.is(Mistake::OwedForgotten) {
                    wishes.retain(|wish| !matches!(wish, Wish::Late(_) | Wish::Touched(_)));
                }
            } else {
                // Tier 2 has lost what it was asked; the rest the node still knows.
                wishes.retain(|wish| matches!(wish, Wish::Index(_) | Wish::Late(_)));
            }
            granted.extend(wishes.into_iter().map(|wish| (number, wish)));
        }
        // What the index has answered dies with it: the new one is asked under the same tickets, and counts on
        // what it answers itself.
        self.facts.retain(|fact| {
            !fact.is_look() && (facts_survive || usize::from(fact.shard(shards).0) % nodes != at)
        });
        self.show_feed();
        self.index.restart(files, contents, fetch(&self.all, shards))?;
        for (number, wish) in granted {
            self.grant(number, wish);
        }
        self.send_again(at)
    }

    /// Brings what a node's outbox has for other nodes into the network again.
    pub(crate) fn send_again(&mut self, at: usize) -> Checked {
        for letter in self.outbox(at)? {
            if self.place_of(letter.to()) != at {
                self.network.send(letter);
            }
        }
        Ok(())
    }

    /// Everything in a node's outbox, in order.
    pub(crate) fn outbox(&self, at: usize) -> Checked<Vec<Letter>> {
        let mut letters = Vec::new();
        for from in (0..self.settings.shards).map(ShardId).filter(|shard| self.place_of(*shard) == at) {
            let (first, end) =
                (outbox_row(from, ShardId(0), 0), outbox_row(from, ShardId(u16::MAX), u64::MAX));
            let mut damaged = None;
            let read = self.places[at].store.range(&first, &end, &mut |key, value| {
                Letter::read(key, value).map_or_else(|e| damaged = Some(e), |letter| letters.push(letter));
                true
            });
            read.and(damaged.map_or(Ok(()), Err)).map_err(|e| failed("an outbox")(e.into()))?;
        }
        Ok(letters)
    }
}
