//! The inbox of a range: posts of other ranges that are not yet applied.
//!
//! The inbox has at most one post of each range, so its size is bounded. The queue of the writer in front of
//! it has the same bound (`service::ownership::owner`), because a writer may take no tasks for a long time.
//!
//! Invariants:
//! - The messages of a post are applied in order. A message that was applied before is dropped. If a message
//!   is missing, all messages after the gap are refused.
//! - A receipt leaves only after the commit that applied the post's last message is settled.

use std::collections::{BTreeSet, VecDeque};

use doppel_model::{RangeId, ShardId};
use doppel_protocol::RangeMap;

use crate::machine::{Arrival, Envelope, Machine};
use crate::peers::{AppliedPosition, PeerError, Post, Receipt};
use crate::storage::store::StoreError;

/// Identifies a post, so that its answer reaches the sender.
pub(crate) type PostId = u64;

/// The id of a post and the answer to it.
pub(crate) type PostOutcome = (PostId, Result<Receipt, PeerError>);

/// Posts that wait to be applied.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    posts: VecDeque<WaitingPost>,
}

#[derive(Debug)]
struct WaitingPost {
    id: PostId,
    from: RangeId,
    /// Messages that are not yet applied.
    unapplied: VecDeque<Envelope>,
    /// Sender and receiver of each message.
    pairs: BTreeSet<(ShardId, ShardId)>,
}

impl Inbox {
    /// Takes a post for the range `own`.
    ///
    /// # Errors
    /// If another post of the same range waits, or a message is not from that range to `own`.
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
            let exist = from.0.max(to.0) < map.shards();
            if !exist || map.of_shard(from) != sender || map.of_shard(to) != own || sender == own {
                return Err(PeerError::Misdirected { from, to, sender, receiver });
            }
            pairs.insert((from, to));
        }
        self.posts.push_back(WaitingPost { id, from: sender, unapplied: messages.into(), pairs });
        Ok(())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }

    /// Applies messages until none is left, or the commit has reached `eighths` eighths of its maximum size.
    /// Adds to `answers` the answer to each post that was completely applied or refused.
    ///
    /// # Errors
    /// If a row is damaged or the store fails.
    pub(super) fn apply(
        &mut self,
        machine: &mut Machine<'_, '_>,
        eighths: usize,
        answers: &mut Vec<PostOutcome>,
    ) -> Result<(), StoreError> {
        while let Some(post) = self.posts.front_mut() {
            let mut refused = None;
            while refused.is_none() && !machine.has_eighths(eighths) {
                let Some(envelope) = post.unapplied.pop_front() else { break };
                let Envelope { from, to, number: found, .. } = envelope;
                if let Arrival::Gap { expected } = machine.arrive(envelope)? {
                    refused = Some(PeerError::Gap { from, to, expected, found });
                }
            }
            if refused.is_none() && !post.unapplied.is_empty() {
                return Ok(());
            }
            let applied = post.pairs.iter().map(|&(from, to)| {
                let number = machine.applied(to, from);
                AppliedPosition { from, to, number }
            });
            let receipt = Receipt { applied: applied.collect() };
            answers.push((post.id, refused.map_or(Ok(receipt), Err)));
            self.posts.pop_front();
        }
        Ok(())
    }
}
