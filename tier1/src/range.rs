//! A range: a contiguous run of shards with one database and one writer.
//!
//! [`Range`] has no thread and no clock. A driver calls it: the writer thread in the product, and the
//! simulation in tests. Both drivers make the same steps. The range [builds](Range::build) a commit from
//! commands and arrived messages. The driver appends the commit to the store, and calls
//! [`settled`](Range::settled). The range returns messages to other ranges as [posts](Range::posts), which
//! the driver sends. The driver passes the answers to [`confirmed`](Range::confirmed), and the posts of other
//! ranges to [`take_in`](Range::take_in).
//!
//! Invariants:
//! - Only settled work leaves the range. Answers, effects, receipts, and messages are returned by `settled`
//!   or after it.
//! - One commit is under way at a time. If the driver cannot append it, the range is ahead of its store, and
//!   must be discarded.
//! - A message is sent until its receiver has confirmed it. A later commit deletes its row.

mod inbox;
mod outbox;
pub(crate) mod owed;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use doppel_contract::Backlog;
use doppel_model::{PageId, RangeId, ShardId, Timestamp};
use doppel_protocol::RangeMap;
use doppel_protocol::range_owner::MessageCounts;

use crate::machine::{Command, Effect, Envelope, Machine, Settings, Shards, Wait};
use crate::peers::{PeerError, Post, Receipt};
use crate::rows::key;
use crate::rows::record::Meta;
use crate::rows::totals;
use crate::rows::txn::read;
use crate::storage::store::{Store, StoreError, Write};
use inbox::Inbox;
pub(crate) use inbox::{PostId, PostOutcome};
use outbox::Outbox;
pub(crate) use outbox::PairExtent;

/// Number of unfinished messages to other ranges above which client submissions and background work wait.
/// Messages and results of searches never wait, because two ranges would then wait for each other forever.
pub(crate) const UNFINISHED_MAX: u64 = 50_000;

/// The state of a range in memory.
#[derive(Debug)]
pub(crate) struct Range {
    id: RangeId,
    map: RangeMap,
    shards: Shards,
    inbox: Inbox,
    outbox: Outbox,
    /// Work of the commit that is under way.
    unsettled: Option<UnsettledWork>,
}

/// Work of a commit that must not leave the range before the commit is settled.
#[derive(Debug, Default)]
struct UnsettledWork {
    effects: Vec<Effect>,
    answers: Vec<PostOutcome>,
    sent: Vec<Envelope>,
    waits: Vec<(PageId, Wait)>,
}

/// Work of a settled commit that may leave the range.
#[derive(Debug, Default)]
pub(crate) struct SettledWork {
    pub(crate) effects: Vec<Effect>,
    /// Answers to posts of other ranges.
    pub(crate) answers: Vec<PostOutcome>,
    /// Pages that have become pending, and pages that are no longer pending.
    pub(crate) waits: Vec<(PageId, Wait)>,
}

impl Range {
    /// Opens a range from its store. Reads only the meta rows and the messages that are under way.
    ///
    /// # Errors
    /// If a row is damaged or the store fails.
    pub(crate) fn open(
        store: &dyn Store,
        settings: Settings,
        id: RangeId,
        map: RangeMap,
    ) -> Result<Self, StoreError> {
        let mut shards = Shards::new(settings, map.run(id));
        for shard in shards.run() {
            if let Some(meta) = read::<Meta>(store, &key::meta(shard))? {
                shards.metas[usize::from(shard.0)] = meta;
            }
        }
        let mut queue = VecDeque::new();
        let outbox =
            Outbox::open(store, (id, map), &shards, &mut |envelope| queue.push_back((envelope, true)))?;
        shards.queue = queue;
        Ok(Self { id, map, shards, inbox: Inbox::default(), outbox, unsettled: None })
    }

    pub(crate) fn id(&self) -> RangeId {
        self.id
    }

    pub(crate) fn shards(&self) -> &Shards {
        &self.shards
    }

    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Work that the range has accepted and not yet done.
    pub(crate) fn backlog(&self) -> Backlog {
        let messages = self.shards.undelivered() as u64 + self.outbox.unfinished();
        totals::sum(&self.shards.metas, messages).1
    }

    /// Whether a commit without commands would do something.
    pub(crate) fn has_work(&self) -> bool {
        self.has_messages() || self.outbox.has_confirmed()
    }

    /// Whether arrived messages wait to be applied.
    pub(crate) fn has_messages(&self) -> bool {
        self.is_backlogged() || !self.inbox.is_empty()
    }

    /// Whether messages between shards of this range are left, because the last commit had no room for them.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.shards.undelivered() > 0
    }

    /// Whether client submissions and background work must wait, because too many messages are unfinished.
    pub(crate) fn is_holding_back(&self) -> bool {
        self.outbox.unfinished() > UNFINISHED_MAX
    }

    /// Begins a commit of about `commit_rows` rows.
    pub(crate) fn build<'s, 'r>(
        &'r mut self,
        store: &'s dyn Store,
        commit_rows: usize,
        now: Timestamp,
    ) -> CommitBuilder<'s, 'r> {
        debug_assert!(self.unsettled.is_none(), "the previous commit of the range is not settled");
        CommitBuilder {
            machine: Machine::new(store, &mut self.shards, commit_rows, now),
            inbox: &mut self.inbox,
            outbox: &mut self.outbox,
            unsettled: &mut self.unsettled,
            answers: Vec::new(),
        }
    }

    /// Returns the work of the commit that is under way. The driver calls this when the commit is settled.
    pub(crate) fn settled(&mut self) -> SettledWork {
        let UnsettledWork { effects, answers, sent, waits } = self.unsettled.take().unwrap_or_default();
        sent.into_iter().for_each(|envelope| self.outbox.push(envelope));
        SettledWork { effects, answers, waits }
    }

    /// Returns the next post to each range to which no post is under way. A post has at most `most` messages.
    ///
    /// # Errors
    /// If the row of a message cannot be read.
    pub(crate) fn posts(&mut self, store: &dyn Store, most: usize) -> Result<Vec<Post>, StoreError> {
        self.outbox.posts(store, most)
    }

    /// Takes the answer of range `by` to a post. After an error the next post has the same messages again.
    ///
    /// # Errors
    /// [`StoreError::Apart`] if this range or the other range was restored to an earlier time alone, so that
    /// one of the two lacks messages that the other knows.
    pub(crate) fn confirmed(
        &mut self,
        by: RangeId,
        answer: &Result<Receipt, PeerError>,
    ) -> Result<(), StoreError> {
        match answer {
            Ok(receipt) => self.outbox.confirm(by, receipt),
            Err(PeerError::Gap { from, to, expected, .. })
                if self.outbox.is_confirmed(by, (*from, *to), *expected) =>
            {
                Err(StoreError::Apart { behind: by, ahead: self.id })
            }
            Err(_) => {
                self.outbox.retry(by);
                Ok(())
            }
        }
    }

    /// Makes the messages of the post that is under way to a range part of its next post again.
    pub(crate) fn post_again(&mut self, to: RangeId) {
        self.outbox.retry(to);
    }

    /// Takes a post of another range. The answer comes with the commit that applies its last message.
    ///
    /// # Errors
    /// If another post of the same range waits, or a message is not from that range to this one.
    pub(crate) fn take_in(&mut self, id: PostId, post: Post) -> Result<(), PeerError> {
        self.inbox.take(id, post, self.id, self.map)
    }

    /// Numbers of messages sent to and applied from each range since the collection was created.
    pub(crate) fn traffic(&self) -> Vec<MessageCounts> {
        let mut traffic = vec![MessageCounts::default(); self.map.count()];
        for own in self.shards.run() {
            for other in (0..self.map.shards()).map(ShardId) {
                let with = &mut traffic[usize::from(self.map.of_shard(other).0)];
                with.sent += self.shards.sent(own, other);
                with.applied += self.shards.applied(own, other);
            }
        }
        traffic
    }

    #[cfg(test)]
    pub(crate) fn into_shards(self) -> Shards {
        self.shards
    }

    #[cfg(feature = "simulation")]
    pub(crate) fn shards_mut(&mut self) -> &mut Shards {
        &mut self.shards
    }

    #[cfg(test)]
    pub(crate) fn outbox_mut(&mut self) -> &mut Outbox {
        &mut self.outbox
    }
}

/// A commit that is being built. Until it is finished, it exists only in memory.
pub(crate) struct CommitBuilder<'s, 'r> {
    machine: Machine<'s, 'r>,
    inbox: &'r mut Inbox,
    outbox: &'r mut Outbox,
    unsettled: &'r mut Option<UnsettledWork>,
    answers: Vec<PostOutcome>,
}

impl CommitBuilder<'_, '_> {
    /// Deletes rows of confirmed messages, applies messages of other ranges, and then delivers messages
    /// within the range. The three together use up to half of the commit, and each has a reserved share; the
    /// other half is for commands. Returns whether messages within the range are left.
    ///
    /// # Errors
    /// If a row is damaged or the store fails.
    pub(crate) fn deliver_first(&mut self) -> Result<bool, StoreError> {
        self.delete_confirmed();
        self.inbox.apply(&mut self.machine, 2, &mut self.answers)?;
        self.machine.deliver_first()
    }

    /// Deletes rows of confirmed messages, up to their share of the commit.
    pub(crate) fn delete_confirmed(&mut self) {
        self.delete_confirmed_up_to(1);
    }

    fn delete_confirmed_up_to(&mut self, eighths: usize) {
        while !self.machine.has_eighths(eighths)
            && let Some((pair, number)) = self.outbox.next_confirmed()
        {
            self.machine.forget_sent(pair, number);
        }
    }

    /// Whether the commit is large enough, so that it should take no further command.
    pub(crate) fn has_enough(&self) -> bool {
        self.machine.has_enough()
    }

    /// Applies a command. Then delivers messages within the range until none is left or the commit is large
    /// enough.
    ///
    /// # Errors
    /// If a row is damaged or the store fails.
    pub(crate) fn apply(&mut self, command: Command) -> Result<(), StoreError> {
        self.machine.apply(command)
    }

    /// Applies a command, but delivers no messages.
    ///
    /// # Errors
    /// If a row is damaged or the store fails.
    pub(crate) fn command(&mut self, command: Command) -> Result<(), StoreError> {
        self.machine.command(command)
    }

    /// Delivers up to `limit` messages within the range, or fewer if the commit is large enough.
    ///
    /// # Errors
    /// If a row is damaged or the store fails.
    pub(crate) fn deliver(&mut self, limit: usize) -> Result<(), StoreError> {
        self.machine.deliver(limit)
    }

    /// Applies messages that other ranges have posted, as far as the commit has room.
    ///
    /// # Errors
    /// If a row is damaged or the store fails.
    pub(crate) fn take_posted(&mut self) -> Result<(), StoreError> {
        self.inbox.apply(&mut self.machine, 8, &mut self.answers)
    }

    /// Finishes the commit, and returns its rows for the driver to append. Uses the remaining room to delete
    /// rows of confirmed messages. The driver need not append an empty commit, but must still call
    /// [`settled`](Range::settled).
    ///
    /// # Errors
    /// If a record cannot be encoded. The range is then ahead of its store, and must be discarded.
    pub(crate) fn finish(mut self) -> Result<Vec<Write>, StoreError> {
        self.delete_confirmed_up_to(8);
        let Self { machine, unsettled, answers, .. } = self;
        let finished = machine.finish()?;
        *unsettled = Some(UnsettledWork {
            effects: finished.effects,
            answers,
            sent: finished.sent,
            waits: finished.waits,
        });
        Ok(finished.writes)
    }
}
