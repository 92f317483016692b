//! The network between nodes: it delays, reorders between pairs of shards, repeats and loses. What it
//! keeps is the order within a pair; what is lost is still in the sender's outbox.

use std::collections::{BTreeMap, VecDeque};

use doppel_model::ShardId;
use doppel_tier1::simulation::Letter;

use super::random::Random;

/// Letters between nodes that are under way.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pairs: BTreeMap<(ShardId, ShardId), VecDeque<Letter>>,
}

impl Network {
    pub(crate) fn send(&mut self, letter: Letter) {
        self.pairs.entry((letter.from(), letter.to())).or_default().push_back(letter);
    }

    /// Takes up to `limit` letters to shards for which `to` holds, of pairs in a random order.
    pub(crate) fn take(
        &mut self,
        to: impl Fn(ShardId) -> bool,
        limit: usize,
        random: &mut Random,
    ) -> Vec<Letter> {
        let mut taken = Vec::new();
        while taken.len() < limit {
            let pairs: Vec<_> = self
                .pairs
                .iter()
                .filter(|((_, t), letters)| to(*t) && !letters.is_empty())
                .map(|(p, _)| *p)
                .collect();
            if pairs.is_empty() {
                break;
            }
            let pair = pairs[random.below(pairs.len() as u64) as usize];
            taken.extend(self.pairs.get_mut(&pair).and_then(VecDeque::pop_front));
        }
        taken
    }

    /// Letters that were taken and not delivered: they come first again.
    pub(crate) fn give_back(&mut self, letters: Vec<Letter>) {
        for letter in letters.into_iter().rev() {
            self.pairs.entry((letter.from(), letter.to())).or_default().push_front(letter);
        }
    }

    /// Forgets what shards for which `from` holds have sent.
    pub(crate) fn lose(&mut self, from: impl Fn(ShardId) -> bool) {
        self.pairs.retain(|(sender, _), _| !from(*sender));
    }

    /// Whether something is under way to shards for which `to` holds.
    pub(crate) fn has_for(&self, to: impl Fn(ShardId) -> bool) -> bool {
        self.pairs.iter().any(|((_, t), letters)| to(*t) && !letters.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.values().all(VecDeque::is_empty)
    }
}

/// Another order that keeps the order within each pair of shards.
pub(crate) fn shuffled(letters: Vec<Letter>, random: &mut Random) -> Vec<Letter> {
    let mut network = Network::default();
    let count = letters.len();
    letters.into_iter().for_each(|letter| network.send(letter));
    network.take(|_| true, count, random)
}
