//! Posts of other ranges until they are applied: one of each range at most, so their number is bounded. The way to here, over the
//! tasks of the writer, has the same bound (`service::owner`), for a writer may take nothing for long.
//!
//! Invariants:
//! - The messages of a post are applied in order. A message that was applied before is dropped. When one is missing,
//!   all behind the gap are refused.
//! - A receipt leaves when the commit that applied the last of a post is settled, never before.

use std::collections::{BTreeSet, VecDeque};

use doppel_model::{RangeId, ShardId};
use doppel_protocol::RangeMap;

use crate::machine::{Arrival, Envelope, Machine};
use crate::peers::{AppliedUpTo, PeerError, Post, Receipt};
use crate::store::StoreError;

/// Names a post, so that its answer finds the way back.
pub(crate) type PostId = u64;

/// The answer to a post.
pub(crate) type Answered = (PostId, Result<Receipt, PeerError>);

/// Posts that wait.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    posts: VecDeque<Waiting>,
}

#[derive(Debug)]
struct Waiting {
    id: PostId,
    from: RangeId,
    left: VecDeque<Envelope>,
    /// Sender and receiver of each of its messages.
    pairs: BTreeSet<(ShardId, ShardId)>,
}

impl Inbox {
    /// Takes a post.
    ///
    /// # Errors
    /// When one of the same range waits, or the post is not one from that range to this.
    pub(super) fn take(
        &mut self,
        id: PostId,
        post: Post,
        own: RangeId,
        map: RangeMap,
    ) -> Result<(), PeerError> {
        let Post { from: sender, to: receiver, messages } = post;
        if self.posts.iter().any(|waiting| waiting.from == sender) {
            return Err(PeerError::Busy(sender));
        }
        let mut pairs = BTreeSet::new();
        for Envelope { from, to, .. } in &messages {
            let (from, to) = (*from, *to);
            let is_there = from.0.max(to.0) < map.shards();
            if !is_there || map.of_shard(from) != sender || map.of_shard(to) != own || sender == own {
                return Err(PeerError::Misdirected { from, to, sender, receiver });
            }
            pairs.insert((from, to));
        }
        self.posts.push_back(Waiting { id, from: sender, left: messages.into(), pairs });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }

    /// Applies messages until none is left, or the commit has this many eighths of the rows it may have. Gives the
    /// answers to posts that were applied to the end.
    pub(super) fn apply(
        &mut self,
        machine: &mut Machine<'_, '_>,
        eighths: usize,
        answers: &mut Vec<Answered>,
    ) -> Result<(), StoreError> {
        while let Some(post) = self.posts.front_mut() {
            let mut refused = None;
            while refused.is_none() && !machine.has_eighths(eighths) {
                let Some(envelope) = post.left.pop_front() else { break };
                let Envelope { from, to, number: found, .. } = envelope;
                if let Arrival::Gap { expected } = machine.arrive(envelope)? {
                    refused = Some(PeerError::Gap { from, to, expected, found });
                }
            }
            if refused.is_none() && !post.left.is_empty() {
                return Ok(());
            }
            let applied = post.pairs.iter().map(|&(from, to)| {
                let number = machine.applied(to, from);
                AppliedUpTo { from, to, number }
            });
            let receipt = Receipt { applied: applied.collect() };
            answers.push((post.id, refused.map_or(Ok(receipt), Err)));
            self.posts.pop_front();
        }
        Ok(())
    }
}
