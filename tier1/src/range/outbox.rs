//! Messages to other ranges that are settled and not confirmed: in memory up to a limit, and always in the store.
//!
//! Invariants:
//! - Only settled messages come in here, so none leaves before that.
//! - Between two ranges one post is under way at a time, and between two shards messages go in order.
//! - A row is deleted when its receiver has said that the message is applied and settled there, and only by this side.

use std::collections::{BTreeMap, VecDeque};

use doppel_model::{RangeId, ShardId};
use doppel_protocol::RangeMap;

use crate::key::{self, Kind};
use crate::machine::{Envelope, Shards};
use crate::peers::{Post, Receipt};
use crate::record::{damaged, decode};
use crate::store::{Store, StoreError};

/// Messages to one range that are kept in memory; the others are read from their rows when their turn comes.
const LANE_MESSAGES: usize = 1_024;

/// Sender and receiver.
type Pair = (ShardId, ShardId);

/// What is on its way to the other ranges.
#[derive(Debug)]
pub(crate) struct Outbox {
    own: RangeId,
    map: RangeMap,
    lanes: BTreeMap<RangeId, Lane>,
    /// Confirmed messages whose rows are still there.
    confirmed: VecDeque<(Pair, u64)>,
    lane_messages: usize,
}

/// The messages to one range.
#[derive(Debug, Default)]
struct Lane {
    waiting: VecDeque<Envelope>,
    /// How many of the first that wait are under way.
    under_way: usize,
    pairs: BTreeMap<Pair, Numbers>,
    /// Settled and not confirmed, in memory or not.
    unconfirmed: u64,
}

/// How far the messages of a pair are.
#[derive(Debug, Clone, Copy)]
struct Numbers {
    confirmed: u64,
    /// The last that came to memory.
    loaded: u64,
    settled: u64,
}

impl Outbox {
    /// Finds what the store has for other ranges, and hands each message within the range to `local`. Of the others
    /// only the first of each pair is read.
    pub(super) fn open(
        store: &dyn Store,
        (own, map): (RangeId, RangeMap),
        shards: &Shards,
        local: &mut dyn FnMut(Envelope),
    ) -> Result<Self, StoreError> {
        let mut this = Self {
            own,
            map,
            lanes: map.ranges().filter(|range| *range != own).map(|range| (range, Lane::default())).collect(),
            confirmed: VecDeque::new(),
            lane_messages: LANE_MESSAGES,
        };
        for from in shards.run() {
            for to in (0..map.shards()).map(ShardId).filter(|to| map.of_shard(*to) != own) {
                let sent = shards.sent(from, to);
                this.numbers(from, to, Numbers { confirmed: sent, loaded: sent, settled: sent });
            }
            this.open_shard(store, from, shards, local)?;
        }
        Ok(this)
    }

    fn open_shard(
        &mut self,
        store: &dyn Store,
        from: ShardId,
        shards: &Shards,
        local: &mut dyn FnMut(Envelope),
    ) -> Result<(), StoreError> {
        let (mut next, end) = key::all(from, Kind::Outbox);
        loop {
            let mut first: Option<(ShardId, u64)> = None;
            let mut failed = None;
            store.range(&next, &end, &mut |key, value| {
                let Some((to, number)) = key::receiver_and_number(key) else {
                    failed = Some(damaged(key, "no key of a message"));
                    return false;
                };
                if self.map.of_shard(to) != self.own {
                    first = Some((to, number));
                    return false;
                }
                decode(key, value).map_or_else(|error| failed = Some(error), &mut *local);
                failed.is_none()
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
            let Some((to, number)) = first else { return Ok(()) };
            let (before, settled) = (number.saturating_sub(1), shards.sent(from, to));
            self.numbers(from, to, Numbers { confirmed: before, loaded: before, settled });
            next = key::after_prefix(&key::outbox_pair(from, to));
        }
    }

    fn numbers(&mut self, from: ShardId, to: ShardId, numbers: Numbers) {
        let Some(lane) = self.lanes.get_mut(&self.map.of_shard(to)) else { return };
        if numbers.settled > 0 {
            lane.unconfirmed += numbers.settled.saturating_sub(numbers.confirmed);
            lane.pairs.insert((from, to), numbers);
        }
    }

    /// The last number of each pair of shards that is confirmed, and the last that is settled.
    pub(crate) fn extents(&self) -> impl Iterator<Item = (ShardId, ShardId, u64, u64)> {
        let pairs = self.lanes.values().flat_map(|lane| &lane.pairs);
        pairs.map(|((from, to), numbers)| (*from, *to, numbers.confirmed, numbers.settled))
    }

    /// Takes a message whose commit is settled.
    pub(super) fn push(&mut self, envelope: Envelope) {
        let Some(lane) = self.lanes.get_mut(&self.map.of_shard(envelope.to)) else { return };
        let number = envelope.number;
        let numbers = lane.pairs.entry((envelope.from, envelope.to)).or_insert(Numbers {
            confirmed: number - 1,
            loaded: number - 1,
            settled: number - 1,
        });
        numbers.settled = number;
        lane.unconfirmed += 1;
        if numbers.loaded + 1 == number && lane.waiting.len() < self.lane_messages {
            numbers.loaded = number;
            lane.waiting.push_back(envelope);
        }
    }

    /// The next post to each range to which none is under way.
    pub(super) fn posts(&mut self, store: &dyn Store, most: usize) -> Result<Vec<Post>, StoreError> {
        let mut posts = Vec::new();
        for (to, lane) in &mut self.lanes {
            if lane.under_way > 0 {
                continue;
            }
            if lane.waiting.is_empty() {
                lane.load(store, self.lane_messages)?;
            }
            let messages: Vec<Envelope> = lane.waiting.iter().take(most).cloned().collect();
            if !messages.is_empty() {
                lane.under_way = messages.len();
                posts.push(Post { from: self.own, to: *to, messages });
            }
        }
        Ok(posts)
    }

    /// The receiver has applied and settled what it says; the post is under way no more.
    ///
    /// # Errors
    /// When it has applied what was never sent.
    pub(super) fn confirm(&mut self, by: RangeId, receipt: &Receipt) -> Result<(), StoreError> {
        let Some(lane) = self.lanes.get_mut(&by) else { return Ok(()) };
        for applied in &receipt.applied {
            if let Some(numbers) = lane.pairs.get_mut(&(applied.from, applied.to)) {
                if applied.number > numbers.settled {
                    return Err(StoreError::Apart { behind: self.own, ahead: by });
                }
                numbers.confirmed = numbers.confirmed.max(applied.number.min(numbers.loaded));
            }
        }
        let mut posted: Vec<Envelope> = lane.waiting.drain(..lane.under_way).collect();
        posted.retain(|envelope| {
            let pair = (envelope.from, envelope.to);
            let done = lane.pairs.get(&pair).is_some_and(|numbers| numbers.confirmed >= envelope.number);
            if done {
                lane.unconfirmed -= 1;
                self.confirmed.push_back((pair, envelope.number));
            }
            !done
        });
        posted.into_iter().rev().for_each(|envelope| lane.waiting.push_front(envelope));
        lane.under_way = 0;
        Ok(())
    }

    /// Whether the receiver has said that it has applied a message.
    pub(super) fn is_confirmed(&self, by: RangeId, pair: Pair, number: u64) -> bool {
        let numbers = self.lanes.get(&by).and_then(|lane| lane.pairs.get(&pair));
        numbers.is_some_and(|numbers| number <= numbers.confirmed)
    }

    /// The post failed, or its answer is lost: it goes again.
    pub(super) fn give_up(&mut self, peer: RangeId) {
        if let Some(lane) = self.lanes.get_mut(&peer) {
            lane.under_way = 0;
        }
    }

    /// The next confirmed message whose row is to be deleted.
    pub(super) fn next_confirmed(&mut self) -> Option<(Pair, u64)> {
        self.confirmed.pop_front()
    }

    /// Whether rows of confirmed messages are still there.
    pub(crate) fn has_confirmed(&self) -> bool {
        !self.confirmed.is_empty()
    }

    /// Messages that are not confirmed, or whose rows are still there.
    pub(crate) fn unfinished(&self) -> u64 {
        self.lanes.values().map(|lane| lane.unconfirmed).sum::<u64>() + self.confirmed.len() as u64
    }

    /// Whether a post is under way.
    pub(crate) fn is_posting(&self) -> bool {
        self.lanes.values().any(|lane| lane.under_way > 0)
    }

    /// Whether there is something to post to a range to which nothing is under way.
    pub(crate) fn has_posts(&self) -> bool {
        self.lanes.values().any(|lane| lane.under_way == 0 && lane.unconfirmed > 0)
    }

    #[cfg(test)]
    pub(crate) fn keep_in_memory(&mut self, messages: usize) {
        self.lane_messages = messages;
    }
}

impl Lane {
    /// Reads messages from their rows, pair by pair, up to the limit.
    fn load(&mut self, store: &dyn Store, limit: usize) -> Result<(), StoreError> {
        for (&(from, to), numbers) in &mut self.pairs {
            if numbers.loaded >= numbers.settled || self.waiting.len() >= limit {
                continue;
            }
            let (start, end) =
                (key::outbox(from, to, numbers.loaded + 1), key::outbox(from, to, numbers.settled + 1));
            let mut failed = None;
            store.range(&start, &end, &mut |key, value| {
                match decode::<Envelope>(key, value) {
                    Ok(envelope) if envelope.number == numbers.loaded + 1 => {
                        numbers.loaded = envelope.number;
                        self.waiting.push_back(envelope);
                    }
                    Ok(_) => failed = Some(damaged(key, "a message before it is missing")),
                    Err(error) => failed = Some(error),
                }
                failed.is_none() && self.waiting.len() < limit
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }
}
