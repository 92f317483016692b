//! The network between nodes: it delays, reorders between pairs of shards, repeats and loses. What it
//! keeps is the order within a pair; what is lost is still in the sender's outbox.

use std::collections::{BTreeMap, VecDeque};

use doppel_model::ShardId;
use doppel_tier1::simulation::Envelope;

use super::random::Random;

/// Envelopes between nodes that are under way.
#[derive(Debug, Default)]
pub(crate) struct Network {
    pairs: BTreeMap<(ShardId, ShardId), VecDeque<Envelope>>,
}

impl Network {
    pub(crate) fn send(&mut self, envelope: Envelope) {
        self.pairs.entry((envelope.from(), envelope.to())).or_default().push_back(envelope);
    }

    /// Takes up to `limit` envelopes to shards for which `to` holds, of pairs in a random order.
    pub(crate) fn take(
        &mut self,
        to: impl Fn(ShardId) -> bool,
        limit: usize,
        random: &mut Random,
    ) -> Vec<Envelope> {
        let mut taken = Vec::new();
        while taken.len() < limit {
            let pairs: Vec<_> = self
                .pairs
                .iter()
                .filter(|((_, t), envelopes)| to(*t) && !envelopes.is_empty())
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

    /// Envelopes that were taken and not delivered: they come first again.
    pub(crate) fn give_back(&mut self, envelopes: Vec<Envelope>) {
        for envelope in envelopes.into_iter().rev() {
            self.pairs.entry((envelope.from(), envelope.to())).or_default().push_front(envelope);
        }
    }

    /// Forgets what shards for which `from` holds have sent.
    pub(crate) fn lose(&mut self, from: impl Fn(ShardId) -> bool) {
        self.pairs.retain(|(sender, _), _| !from(*sender));
    }

    /// Whether something is under way to shards for which `to` holds.
    pub(crate) fn has_for(&self, to: impl Fn(ShardId) -> bool) -> bool {
        self.pairs.iter().any(|((_, t), envelopes)| to(*t) && !envelopes.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.values().all(VecDeque::is_empty)
    }
}

/// Another order that keeps the order within each pair of shards.
pub(crate) fn shuffled(envelopes: Vec<Envelope>, random: &mut Random) -> Vec<Envelope> {
    let mut network = Network::default();
    let count = envelopes.len();
    envelopes.into_iter().for_each(|envelope| network.send(envelope));
    network.take(|_| true, count, random)
}
