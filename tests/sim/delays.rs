//! Single messages that are held up for long while everything else goes on: a merge, over a whole
//! recomputation of the group that it joins to another. What its pair of shards sends after it waits behind it.

use std::collections::BTreeMap;

use doppel_model::{PageId, ShardId};
use doppel_tier1::simulation::{Envelope, Kind};

use super::action::Stop;
use super::clients::Request;
use super::model::{Body, Version};
use super::random::Random;
use super::violation::Checked;
use super::world::World;

/// The kinds that are held up; those that join groups more often.
pub(crate) const DELAYED: [Kind; 12] = [
    Kind::Merge,
    Kind::Merge,
    Kind::Merge,
    Kind::Merge,
    Kind::TransferMembers,
    Kind::TransferMembers,
    Kind::TransferMembers,
    Kind::TransferMembers,
    Kind::Enroll,
    Kind::Leave,
    Kind::Evict,
    Kind::Answer,
];

/// What waits, and what will.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// The kinds whose next message is held up, and for how many commits.
    wanted: Vec<(Kind, u32)>,
    held: BTreeMap<(ShardId, ShardId), Held>,
}

/// A message and those behind it.
#[derive(Debug)]
struct Held {
    commits_left: u32,
    envelopes: Vec<Envelope>,
}

impl Delays {
    pub(crate) fn want(&mut self, kind: Kind, commits: u32) {
        self.wanted.push((kind, commits));
    }

    /// Takes out of what a commit would apply whatever has to wait, and adds what has waited for long enough.
    pub(crate) fn hold(
        &mut self,
        waiting: Vec<Envelope>,
        is_here: impl Fn(ShardId) -> bool,
    ) -> Vec<Envelope> {
        let mut passed = Vec::new();
        self.held.retain(|(_, to), held| {
            held.commits_left = held.commits_left.saturating_sub(1);
            let ends = held.commits_left == 0 && is_here(*to);
            if ends {
                passed.append(&mut held.envelopes);
            }
            !ends
        });
        for envelope in waiting {
            let pair = (envelope.from(), envelope.to());
            if let Some(held) = self.held.get_mut(&pair) {
                held.envelopes.push(envelope);
            } else if let Some(at) = self.wanted.iter().position(|(kind, _)| *kind == envelope.kind()) {
                let (_, commits_left) = self.wanted.swap_remove(at);
                self.held.insert(pair, Held { commits_left, envelopes: vec![envelope] });
            } else {
                passed.push(envelope);
            }
        }
        passed
    }

    /// How many messages a commit applies at most: while some are to be held up, none before it was seen.
    pub(crate) fn limit(&self, envelopes: usize, waiting: &[Envelope]) -> usize {
        let sees = !self.wanted.is_empty();
        if sees { envelopes.min(waiting.len()) } else { envelopes }
    }

    /// Nothing is held up any more; gives what was.
    pub(crate) fn end(&mut self) -> Vec<Envelope> {
        self.wanted.clear();
        std::mem::take(&mut self.held).into_values().flat_map(|held| held.envelopes).collect()
    }

    /// The pairs of pages on which messages that are held up join groups.
    fn pairs(&self) -> impl Iterator<Item = (PageId, PageId)> {
        self.held.values().flat_map(|held| &held.envelopes).filter_map(Envelope::pair)
    }
}

impl World {
    /// A page gets a content that is near two groups, which nothing else ties.
    pub(crate) fn bridge(&mut self, which: u32) -> Checked {
        let mut random = Random::new(u64::from(which));
        let page = random.below(self.pages as u64) as usize;
        let mut others = self.model.clone();
        others.forget(page);
        let groups = others.components();
        let near = |content: usize| {
            let is_near =
                |of: &usize| others.content(*of).is_some_and(|of| self.contents.similar(content, of));
            groups.iter().filter(|group| group.contents.iter().any(is_near)).count()
        };
        let bridges: Vec<usize> =
            (0..self.contents.signatures.len()).filter(|content| near(*content) > 1).collect();
        if bridges.is_empty() {
            return Ok(());
        }
        let body = Body::Content(bridges[random.below(bridges.len() as u64) as usize]);
        let version = Version { page, date: self.clock, popularity: None, body };
        let request = Request { versions: vec![(version, None)] };
        self.arrive(&request, 4, which, Stop::Never).map(drop)
    }

    /// A page on which a held message rests gets another version.
    pub(crate) fn overtake(&mut self, which: u32, body: Body) -> Checked {
        let pages: Vec<PageId> = self.delays.pairs().flat_map(|(page, partner)| [page, partner]).collect();
        if pages.is_empty() {
            return Ok(());
        }
        let page = self.model.page(pages[which as usize % pages.len()]);
        let version = Version { page, date: self.clock, popularity: None, body };
        let request = Request { versions: vec![(version, None)] };
        self.arrive(&request, 4, which, Stop::Never).map(drop)
    }

    /// Whatever was held up goes on: what a node sends to itself, for the rest is in the outboxes.
    pub(crate) fn end_delays(&mut self) {
        for envelope in self.delays.end() {
            let at = self.host_of(envelope.to());
            if self.host_of(envelope.from()) == at {
                self.hosts[at].node.put_envelopes([envelope]);
            }
        }
    }
}
