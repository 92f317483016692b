//! Holds single messages back for long while everything else goes on, for example a merge during a whole
//! recomputation of the group that it joins to another. Later messages of the same sender to the same
//! receiver wait behind the held one.

use std::collections::BTreeMap;

use doppel_model::{PageId, RangeId, ShardId};
use doppel_protocol::RangeMap;
use doppel_tier1::simulation::{Envelope, MessageKind, SimPost};

use super::action::{Action, Stop};
use super::clients::Request;
use super::contents::FAMILIES;
use super::model::{Body, Version, url};
use super::random::Random;
use super::violation::Checked;
use super::world::{World, range_id};

/// The kinds of messages that are held. Kinds that join groups are listed, and so chosen, more often.
const DELAYED: [MessageKind; 12] = [
    MessageKind::Merge,
    MessageKind::Merge,
    MessageKind::Merge,
    MessageKind::Merge,
    MessageKind::TransferMembers,
    MessageKind::TransferMembers,
    MessageKind::TransferMembers,
    MessageKind::TransferMembers,
    MessageKind::Enroll,
    MessageKind::Leave,
    MessageKind::Evict,
    MessageKind::AnswerGroup,
];

/// Actions that hold a message while the page that it names changes. Some of the steps are left out at
/// random.
pub(crate) fn delayed(random: &mut Random) -> Vec<Action> {
    let kind = DELAYED[random.below(DELAYED.len() as u64) as usize];
    let commits = if random.once_in(4) { 20 + random.below(100) as u32 } else { u32::MAX };
    let (first, length) = FAMILIES[random.below(FAMILIES.len() as u64) as usize];
    let content = Body::Content(first + random.below(length as u64) as usize);
    let body = if random.once_in(4) { Body::Dead } else { content };
    let mut actions = vec![
        Action::Lull,
        Action::Delay { kind, commits },
        Action::Bridge { which: random.number() },
        Action::Lull,
        Action::Overtake { which: random.number(), body },
        Action::Lull,
    ];
    actions.retain(|_| !random.once_in(8));
    actions
}

/// Messages that are held, and those that will be.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// Kinds whose next message is to be held, and the number of commits for which to hold it.
    wanted: Vec<(MessageKind, u32)>,
    /// Held messages within a range, which keeps them in memory, by sender and receiver.
    envelopes: BTreeMap<(ShardId, ShardId), HeldMessages<Envelope>>,
    /// Held posts between two ranges, which the network keeps.
    posts: BTreeMap<(RangeId, RangeId), HeldMessages<SimPost>>,
    /// The page that last got a content near two groups. A held message may be due to this page, whatever
    /// pair it names.
    bridge: Option<PageId>,
}

/// A held message, and the later messages of the same sender behind it.
#[derive(Debug)]
struct HeldMessages<T> {
    commits_left: u32,
    items: Vec<T>,
}

impl Delays {
    pub(crate) fn want(&mut self, kind: MessageKind, commits: u32) {
        self.wanted.push((kind, commits));
    }

    /// Holds back messages that have to wait from those that a range would apply. Returns the others,
    /// together with messages whose time is over.
    pub(crate) fn hold_envelopes(
        &mut self,
        waiting: Vec<Envelope>,
        range: RangeId,
        map: RangeMap,
    ) -> Vec<Envelope> {
        let mut passed = released(&mut self.envelopes, |(_, to)| map.of_shard(*to) == range);
        for envelope in waiting {
            let pair = (envelope.from(), envelope.to());
            if let Some(held) = self.envelopes.get_mut(&pair) {
                held.items.push(envelope);
            } else if let Some(commits_left) = self.wanted(std::slice::from_ref(&envelope)) {
                self.envelopes.insert(pair, HeldMessages { commits_left, items: vec![envelope] });
            } else {
                passed.push(envelope);
            }
        }
        in_order(passed)
    }

    /// Like [`hold_envelopes`](Self::hold_envelopes), for posts that arrive at a range.
    pub(crate) fn hold_posts(&mut self, posts: Vec<SimPost>, range: RangeId) -> Vec<SimPost> {
        let mut passed = released(&mut self.posts, |(_, to)| *to == range);
        for post in posts {
            let pair = (post.from(), post.to());
            if let Some(held) = self.posts.get_mut(&pair) {
                held.items.push(post);
            } else if let Some(commits_left) = self.wanted(&post.envelopes) {
                self.posts.insert(pair, HeldMessages { commits_left, items: vec![post] });
            } else {
                passed.push(post);
            }
        }
        passed
    }

    /// For how many commits to hold these messages, if one of them is of a wanted kind.
    fn wanted(&mut self, envelopes: &[Envelope]) -> Option<u32> {
        let is_wanted =
            |(kind, _): &(MessageKind, u32)| envelopes.iter().any(|envelope| envelope.kind() == *kind);
        let at = self.wanted.iter().position(is_wanted)?;
        Some(self.wanted.swap_remove(at).1)
    }

    /// Forgets the messages that a dead range held in memory. They are still in its store.
    pub(crate) fn forget(&mut self, range: RangeId, map: RangeMap) {
        self.envelopes.retain(|(_, to), _| map.of_shard(*to) != range);
    }

    /// Maximal number of messages that a commit applies. While messages are held, or are to be, a commit
    /// applies only messages that passed through here, because another message may belong to a waiting pair.
    pub(crate) fn limit(&self, envelopes: usize, waiting: &[Envelope]) -> usize {
        let sees = !self.wanted.is_empty() || !self.envelopes.is_empty();
        if sees { envelopes.min(waiting.len()) } else { envelopes }
    }

    /// Ends all delays, and returns the held messages.
    fn end(&mut self) -> (Vec<Envelope>, Vec<SimPost>) {
        self.wanted.clear();
        let envelopes = std::mem::take(&mut self.envelopes).into_values().flat_map(|held| held.items);
        let posts = std::mem::take(&mut self.posts).into_values().flat_map(|held| held.items);
        (envelopes.collect(), posts.collect())
    }

    /// The pairs of pages in held messages that join groups.
    fn pairs(&self) -> impl Iterator<Item = (PageId, PageId)> {
        let posts = self.posts.values().flat_map(|held| &held.items).flat_map(|post| &post.envelopes);
        let envelopes = self.envelopes.values().flat_map(|held| &held.items);
        envelopes.chain(posts).filter_map(Envelope::evidence_pair)
    }
}

/// Counts a commit for the receivers selected by `is_here`, and returns their messages whose time is over.
fn released<P: Ord, T>(held: &mut BTreeMap<P, HeldMessages<T>>, is_here: impl Fn(&P) -> bool) -> Vec<T> {
    let mut passed = Vec::new();
    held.retain(|pair, held| {
        held.commits_left = held.commits_left.saturating_sub(1);
        let ends = held.commits_left == 0 && is_here(pair);
        if ends {
            passed.append(&mut held.items);
        }
        !ends
    });
    passed
}

/// Sorts the messages of each pair of shards by their numbers, and keeps the positions of each pair. A held
/// message may be newer or older than the messages that a range has not applied yet.
fn in_order(envelopes: Vec<Envelope>) -> Vec<Envelope> {
    let pairs: Vec<(ShardId, ShardId)> = envelopes.iter().map(|one| (one.from(), one.to())).collect();
    let mut by_pair: BTreeMap<(ShardId, ShardId), BTreeMap<u64, Envelope>> = BTreeMap::new();
    for envelope in envelopes {
        by_pair.entry((envelope.from(), envelope.to())).or_default().insert(envelope.number(), envelope);
    }
    let next = |pair| Some(by_pair.get_mut(&pair)?.pop_first()?.1);
    pairs.into_iter().filter_map(next).collect()
}

impl World {
    /// A page gets a content that is near two groups, and is the only link between them.
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
        self.delays.bridge = Some(url(page).id());
        let body = Body::Content(bridges[random.below(bridges.len() as u64) as usize]);
        let version = Version { page, date: self.clock, popularity: None, body };
        let request = Request { versions: vec![(version, None)] };
        self.arrive(&request, 4, which, Stop::Never).map(drop)
    }

    /// A page that a held message names gets another version.
    pub(crate) fn overtake(&mut self, which: u32, body: Body) -> Checked {
        let mut pages: Vec<PageId> =
            self.delays.pairs().flat_map(|(page, partner)| [page, partner]).collect();
        if pages.is_empty() {
            return Ok(());
        }
        pages.extend(self.delays.bridge.iter().flat_map(|page| [page, page]));
        let page = self.model.page(pages[which as usize % pages.len()]);
        let version = Version { page, date: self.clock, popularity: None, body };
        let request = Request { versions: vec![(version, None)] };
        self.arrive(&request, 4, which, Stop::Never).map(drop)
    }

    /// Releases all held messages.
    pub(crate) fn end_delays(&mut self) {
        let (envelopes, posts) = self.delays.end();
        for (at, host) in self.hosts.iter_mut().enumerate() {
            let mut all = host.range.take_envelopes();
            let map = self.map;
            all.extend(envelopes.iter().filter(|held| map.of_shard(held.to()) == range_id(at)).cloned());
            host.range.put_envelopes(in_order(all));
        }
        posts.into_iter().for_each(|post| self.network.send(post));
    }
}
