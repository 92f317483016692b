//! The network between ranges. It delays, reorders, repeats and loses posts and their answers, and may lose
//! envelopes inside a post. A lost message is still in the sender's outbox.

use std::collections::{BTreeMap, VecDeque};

use doppel_model::{RangeId, ShardId};
use doppel_tier1::simulation::{Envelope, PostReply, SimPost};

use super::random::Random;

/// Sender and receiver of a post or an answer.
type Pair = (RangeId, RangeId);

/// Posts and answers that are under way.
#[derive(Debug, Default)]
pub(crate) struct Network {
    posts: BTreeMap<Pair, VecDeque<SimPost>>,
    answers: BTreeMap<Pair, VecDeque<PostReply>>,
}

impl Network {
    pub(crate) fn send(&mut self, post: SimPost) {
        self.posts.entry((post.from(), post.to())).or_default().push_back(post);
    }

    /// Sends the answer of one range to a post of another.
    pub(crate) fn answer(&mut self, by: RangeId, to: RangeId, answer: PostReply) {
        self.answers.entry((by, to)).or_default().push_back(answer);
    }

    /// Takes posts to a range with up to `limit` envelopes, but at least one post, from senders in random
    /// order. Without `random`, takes all posts in order.
    pub(crate) fn take_posts(
        &mut self,
        to: RangeId,
        limit: usize,
        mut random: Option<&mut Random>,
    ) -> Vec<SimPost> {
        let (mut taken, mut envelopes) = (Vec::new(), 0);
        while envelopes < limit {
            let mut pairs: Vec<_> =
                self.posts.iter_mut().filter(|((_, t), posts)| *t == to && !posts.is_empty()).collect();
            if pairs.is_empty() {
                break;
            }
            let which = random.as_mut().map_or(0, |random| random.below(pairs.len() as u64) as usize);
            let posts = &mut pairs[which].1;
            // A repeated post may overtake others.
            let at = random.as_mut().map_or(0, |random| random.below(posts.len() as u64) as usize);
            taken.extend(posts.remove(at));
            envelopes += taken.last().map_or(0, |post: &SimPost| post.envelopes.len()).max(1);
        }
        taken
    }

    /// Takes the answers to a range, each with the range that gave it.
    pub(crate) fn take_answers(&mut self, to: RangeId) -> Vec<(RangeId, PostReply)> {
        let to_it = self.answers.iter_mut().filter(|((_, t), _)| *t == to);
        to_it.flat_map(|((by, _), answers)| answers.drain(..).map(|answer| (*by, answer))).collect()
    }

    /// Forgets all posts and answers of the senders for which `from` holds.
    pub(crate) fn lose(&mut self, from: impl Fn(RangeId) -> bool) {
        self.posts.retain(|(sender, _), _| !from(*sender));
        self.answers.retain(|(sender, _), _| !from(*sender));
    }

    /// Whether a post or an answer to a range is under way.
    pub(crate) fn has_for(&self, to: RangeId) -> bool {
        self.posts.iter().any(|((_, t), posts)| *t == to && !posts.is_empty())
            || self.answers.iter().any(|((_, t), answers)| *t == to && !answers.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.posts.values().all(VecDeque::is_empty) && self.answers.values().all(VecDeque::is_empty)
    }
}

/// Shuffles envelopes, but keeps the order within each pair of shards.
pub(crate) fn shuffled(envelopes: Vec<Envelope>, random: &mut Random) -> Vec<Envelope> {
    let mut pairs: BTreeMap<(ShardId, ShardId), VecDeque<Envelope>> = BTreeMap::new();
    for envelope in envelopes {
        pairs.entry((envelope.from(), envelope.to())).or_default().push_back(envelope);
    }
    let mut pairs: Vec<VecDeque<Envelope>> = pairs.into_values().collect();
    let mut shuffled = Vec::new();
    while !pairs.is_empty() {
        let which = random.below(pairs.len() as u64) as usize;
        shuffled.extend(pairs[which].pop_front());
        pairs.retain(|pair| !pair.is_empty());
    }
    shuffled
}
