//! The outbox of a range: settled messages to other ranges that their receivers have not yet confirmed. All
//! of them are in the store, and up to a limit also in memory.
//!
//! Invariants:
//! - The outbox has only settled messages, so no message leaves before its commit is settled.
//! - At most one post is under way to each range. Messages between two shards are sent in order.
//! - The sender deletes the row of a message after the receiver has confirmed that the message is applied and
//!   settled. The receiver deletes no row.

use std::collections::{BTreeMap, VecDeque};

use doppel_model::{RangeId, ShardId};
use doppel_protocol::RangeMap;

use crate::machine::{Envelope, Shards};
use crate::peers::{Post, Receipt};
use crate::rows::key::{self, RowKind};
use crate::rows::record::{damaged, decode};
use crate::storage::store::{Store, StoreError};

/// Number of messages to one range that are kept in memory. Other messages are read from their rows when it
/// is their turn.
const QUEUE_MESSAGES: usize = 1_024;

/// Sending and receiving shard.
type ShardPair = (ShardId, ShardId);

/// Messages that are under way to other ranges.
#[derive(Debug)]
pub(crate) struct Outbox {
    own: RangeId,
    map: RangeMap,
    queues: BTreeMap<RangeId, ReceiverQueue>,
    /// Confirmed messages whose rows are not yet deleted.
    confirmed: VecDeque<(ShardPair, u64)>,
    queue_messages: usize,
}

/// Messages to one range.
#[derive(Debug, Default)]
struct ReceiverQueue {
    /// Messages in memory that are not confirmed.
    waiting: VecDeque<Envelope>,
    /// Number of messages at the front of `waiting` that are in the post under way; 0 if no post is under
    /// way.
    under_way: usize,
    pairs: BTreeMap<ShardPair, PairProgress>,
    /// Number of settled messages that are not confirmed, whether or not they are in memory.
    unconfirmed: u64,
}

/// Progress of the messages between two shards. Each field is the number of the last such message.
#[derive(Debug, Clone, Copy)]
struct PairProgress {
    confirmed: u64,
    /// Last message that was loaded into memory.
    loaded: u64,
    settled: u64,
}

/// Messages between two shards of different ranges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PairExtent {
    pub(crate) from: ShardId,
    pub(crate) to: ShardId,
    /// Number of the last confirmed message.
    pub(crate) confirmed: u64,
    /// Number of the last settled message.
    pub(crate) settled: u64,
}

impl Outbox {
    /// Finds the messages of the store. Passes each message within the range to `local`. Of the messages to
    /// other ranges, reads only the first of each pair of shards.
    ///
    /// # Errors
    /// If a row is damaged or the store fails.
    pub(super) fn open(
        store: &dyn Store,
        (own, map): (RangeId, RangeMap),
        shards: &Shards,
        local: &mut dyn FnMut(Envelope),
    ) -> Result<Self, StoreError> {
        let mut this = Self {
            own,
            map,
            queues: map
                .ranges()
                .filter(|range| *range != own)
                .map(|range| (range, ReceiverQueue::default()))
                .collect(),
            confirmed: VecDeque::new(),
            queue_messages: QUEUE_MESSAGES,
        };
        for from in shards.run() {
            for to in (0..map.shards()).map(ShardId).filter(|to| map.of_shard(*to) != own) {
                let sent = shards.sent(from, to);
                this.numbers(from, to, PairProgress { confirmed: sent, loaded: sent, settled: sent });
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
        let (mut next, end) = key::all(from, RowKind::Outbox);
        loop {
            let mut first: Option<(ShardId, u64)> = None;
            let mut failed = None;
            store.range(&next, &end, &mut |key, value| {
                let Some((to, number)) = key::receiver_and_number(key) else {
                    failed = Some(damaged(key, "its key names no message"));
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
            self.numbers(from, to, PairProgress { confirmed: before, loaded: before, settled });
            next = key::after_prefix(&key::outbox_pair(from, to));
        }
    }

    fn numbers(&mut self, from: ShardId, to: ShardId, numbers: PairProgress) {
        let Some(queue) = self.queues.get_mut(&self.map.of_shard(to)) else { return };
        if numbers.settled > 0 {
            queue.unconfirmed += numbers.settled.saturating_sub(numbers.confirmed);
            queue.pairs.insert((from, to), numbers);
        }
    }

    /// The last confirmed and the last settled message of each pair of shards.
    pub(crate) fn extents(&self) -> impl Iterator<Item = PairExtent> {
        let pairs = self.queues.values().flat_map(|queue| &queue.pairs);
        pairs.map(|(&(from, to), &PairProgress { confirmed, settled, .. })| PairExtent {
            from,
            to,
            confirmed,
            settled,
        })
    }

    /// Adds a message whose commit is settled.
    pub(super) fn push(&mut self, envelope: Envelope) {
        let Some(queue) = self.queues.get_mut(&self.map.of_shard(envelope.to)) else { return };
        let number = envelope.number;
        let numbers = queue.pairs.entry((envelope.from, envelope.to)).or_insert(PairProgress {
            confirmed: number - 1,
            loaded: number - 1,
            settled: number - 1,
        });
        numbers.settled = number;
        queue.unconfirmed += 1;
        if numbers.loaded + 1 == number && queue.waiting.len() < self.queue_messages {
            numbers.loaded = number;
            queue.waiting.push_back(envelope);
        }
    }

    /// Returns the next post to each range to which no post is under way, with at most `most` messages.
    ///
    /// # Errors
    /// If the row of a message is missing or damaged, or the store fails.
    pub(super) fn posts(&mut self, store: &dyn Store, most: usize) -> Result<Vec<Post>, StoreError> {
        let mut posts = Vec::new();
        for (to, queue) in &mut self.queues {
            if queue.under_way > 0 {
                continue;
            }
            if queue.waiting.is_empty() {
                queue.load(store, self.queue_messages)?;
            }
            let messages: Vec<Envelope> = queue.waiting.iter().take(most).cloned().collect();
            if !messages.is_empty() {
                queue.under_way = messages.len();
                posts.push(Post { from: self.own, to: *to, messages });
            }
        }
        Ok(posts)
    }

    /// Ends the post that is under way to range `by`, and marks the messages that its receipt confirms.
    ///
    /// # Errors
    /// If the receiver has applied a message that was never sent.
    pub(super) fn confirm(&mut self, by: RangeId, receipt: &Receipt) -> Result<(), StoreError> {
        let Some(queue) = self.queues.get_mut(&by) else { return Ok(()) };
        for applied in &receipt.applied {
            if let Some(numbers) = queue.pairs.get_mut(&(applied.from, applied.to)) {
                if applied.number > numbers.settled {
                    return Err(StoreError::Apart { behind: self.own, ahead: by });
                }
                numbers.confirmed = numbers.confirmed.max(applied.number.min(numbers.loaded));
            }
        }
        let mut posted: Vec<Envelope> = queue.waiting.drain(..queue.under_way).collect();
        posted.retain(|envelope| {
            let pair = (envelope.from, envelope.to);
            let is_confirmed =
                queue.pairs.get(&pair).is_some_and(|numbers| numbers.confirmed >= envelope.number);
            if is_confirmed {
                queue.unconfirmed -= 1;
                self.confirmed.push_back((pair, envelope.number));
            }
            !is_confirmed
        });
        posted.into_iter().rev().for_each(|envelope| queue.waiting.push_front(envelope));
        queue.under_way = 0;
        Ok(())
    }

    /// Whether range `by` has confirmed a message.
    pub(super) fn is_confirmed(&self, by: RangeId, pair: ShardPair, number: u64) -> bool {
        let numbers = self.queues.get(&by).and_then(|queue| queue.pairs.get(&pair));
        numbers.is_some_and(|numbers| number <= numbers.confirmed)
    }

    /// Ends the post that is under way to a range without a confirmation. The next post has its messages
    /// again.
    pub(super) fn retry(&mut self, peer: RangeId) {
        if let Some(queue) = self.queues.get_mut(&peer) {
            queue.under_way = 0;
        }
    }

    /// Removes and returns the next confirmed message whose row must be deleted.
    pub(super) fn next_confirmed(&mut self) -> Option<(ShardPair, u64)> {
        self.confirmed.pop_front()
    }

    /// Whether rows of confirmed messages must still be deleted.
    pub(crate) fn has_confirmed(&self) -> bool {
        !self.confirmed.is_empty()
    }

    /// Number of messages that are not confirmed, or whose rows are not deleted.
    pub(crate) fn unfinished(&self) -> u64 {
        self.queues.values().map(|queue| queue.unconfirmed).sum::<u64>() + self.confirmed.len() as u64
    }

    /// Whether a post is under way.
    pub(crate) fn is_posting(&self) -> bool {
        self.queues.values().any(|queue| queue.under_way > 0)
    }

    /// Whether a message waits for a range to which no post is under way.
    pub(crate) fn has_posts(&self) -> bool {
        self.queues.values().any(|queue| queue.under_way == 0 && queue.unconfirmed > 0)
    }

    #[cfg(test)]
    pub(crate) fn keep_in_memory(&mut self, messages: usize) {
        self.queue_messages = messages;
    }
}

impl ReceiverQueue {
    /// Loads messages from their rows, pair by pair, until `limit` messages are in memory.
    ///
    /// # Errors
    /// If the row of a message is missing or damaged, or the store fails.
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
                    Ok(_) => failed = Some(damaged(key, "the message before it is missing")),
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
