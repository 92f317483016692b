//! A range: a contiguous run of shards with one database and one writer, as an object without threads and clock.
//!
//! The writer's thread drives it in the product and the simulation in tests, through the same steps: a commit is
//! [built](Range::build) from commands and arrived messages, appended to the store by the driver, and
//! [settled](Range::settled). Messages to other ranges go out as [posts](Range::posts) and are
//! [confirmed](Range::confirmed); those of other ranges are [taken in](Range::take_in).
//!
//! Invariants:
//! - Only settled work leaves: answers, effects, receipts and messages are given out by `settled`, or after it.
//! - One commit is under way at a time. When it cannot be appended, the range is ahead of its store and of no more use.
//! - A message goes to its receiver until that has confirmed it, and its row is deleted in a later commit.

mod inbox;
mod outbox;
pub(crate) mod owed;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;

use doppel_model::{PageId, RangeId, ShardId, Timestamp};
use doppel_protocol::range_owner::Traffic;

pub(crate) use inbox::{Answered, PostId};

use crate::key;
use crate::machine::{Command, Effect, Envelope, Machine, Settings, Shards, Wait};
use crate::peers::{PeerError, Post, Receipt};
use crate::record::Meta;
use crate::store::{Store, StoreError, Write};
use crate::totals;
use crate::txn::read;
use doppel_contract::Backlog;
use doppel_protocol::RangeMap;
use inbox::Inbox;
use outbox::Outbox;

/// Unfinished messages to other ranges from which on client submissions and background work wait. Messages and
/// results of searches never do, or two ranges would wait for each other for ever.
pub(crate) const UNFINISHED_MAX: u64 = 50_000;

/// A range's state in memory.
#[derive(Debug)]
pub(crate) struct Range {
    id: RangeId,
    map: RangeMap,
    shards: Shards,
    inbox: Inbox,
    outbox: Outbox,
    under_way: Option<UnderWay>,
}

/// What is given out when the commit that is under way is settled.
#[derive(Debug, Default)]
struct UnderWay {
    effects: Vec<Effect>,
    answers: Vec<Answered>,
    sent: Vec<Envelope>,
    waits: Vec<(PageId, Wait)>,
}

/// What a settled commit lets go.
#[derive(Debug, Default)]
pub(crate) struct Released {
    pub(crate) effects: Vec<Effect>,
    /// Answers to posts of other ranges.
    pub(crate) answers: Vec<Answered>,
    /// Pages that begin to be pending, and those that end.
    pub(crate) waits: Vec<(PageId, Wait)>,
}

impl Range {
    /// Starts a range from what its store holds. Reads the metas and the messages on their way, and nothing else.
    ///
    /// # Errors
    /// When a row is damaged or the store fails.
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
        Ok(Self { id, map, shards, inbox: Inbox::default(), outbox, under_way: None })
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

    /// Work that is accepted and not yet done.
    pub(crate) fn backlog(&self) -> Backlog {
        let messages = self.shards.undelivered() as u64 + self.outbox.unfinished();
        totals::sum(&self.shards.metas, messages).1
    }

    /// Whether there is work for a commit without a command.
    pub(crate) fn has_work(&self) -> bool {
        self.has_messages() || self.outbox.has_confirmed()
    }

    /// Whether messages wait to be applied.
    pub(crate) fn has_messages(&self) -> bool {
        self.is_backlogged() || !self.inbox.is_empty()
    }

    /// Whether the last commit had no room for all messages within the range.
    pub(crate) fn is_backlogged(&self) -> bool {
        self.shards.undelivered() > 0
    }

    /// Whether client submissions and background work wait.
    pub(crate) fn holds_back(&self) -> bool {
        self.outbox.unfinished() > UNFINISHED_MAX
    }

    /// Begins a commit of about so many rows.
    pub(crate) fn build<'s, 'r>(
        &'r mut self,
        store: &'s dyn Store,
        commit_rows: usize,
        now: Timestamp,
    ) -> Builder<'s, 'r> {
        debug_assert!(self.under_way.is_none(), "one commit is under way at a time");
        Builder {
            machine: Machine::new(store, &mut self.shards, commit_rows, now),
            inbox: &mut self.inbox,
            outbox: &mut self.outbox,
            under_way: &mut self.under_way,
            answers: Vec::new(),
        }
    }

    /// The commit under way will not be lost any more: gives out what waited for that.
    pub(crate) fn settled(&mut self) -> Released {
        let UnderWay { effects, answers, sent, waits } = self.under_way.take().unwrap_or_default();
        sent.into_iter().for_each(|envelope| self.outbox.push(envelope));
        Released { effects, answers, waits }
    }

    /// The next post of up to so many messages to each range to which none is under way.
    ///
    /// # Errors
    /// When a row of a message cannot be read.
    pub(crate) fn posts(&mut self, store: &dyn Store, most: usize) -> Result<Vec<Post>, StoreError> {
        self.outbox.posts(store, most)
    }

    /// What became of a post. After an error the same messages go again.
    ///
    /// # Errors
    /// When one of the two has lost what the other knows: it was put back to an earlier moment.
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
                self.outbox.give_up(by);
                Ok(())
            }
        }
    }

    /// What is under way to a range goes again.
    pub(crate) fn post_again(&mut self, to: RangeId) {
        self.outbox.give_up(to);
    }

    /// Takes a post of another range. Its answer comes with the commit that applies the last of it.
    ///
    /// # Errors
    /// When one of the same range waits, or it is not from that range to this one.
    pub(crate) fn take_in(&mut self, id: PostId, post: Post) -> Result<(), PeerError> {
        self.inbox.take(id, post, self.id, self.map)
    }

    /// Messages sent to each range, and applied from each, since the collection was created.
    pub(crate) fn traffic(&self) -> Vec<Traffic> {
        let mut traffic = vec![Traffic::default(); self.map.count()];
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

/// A commit that is being built: nothing of it is anywhere but in the range's memory.
pub(crate) struct Builder<'s, 'r> {
    machine: Machine<'s, 'r>,
    inbox: &'r mut Inbox,
    outbox: &'r mut Outbox,
    under_way: &'r mut Option<UnderWay>,
    answers: Vec<Answered>,
}

impl Builder<'_, '_> {
    /// Deletes rows of confirmed messages, applies messages of other ranges, then those within the range, up to
    /// half of the commit: each has a share that the others leave to it, and the other half is for commands. Whether
    /// messages within the range are left.
    pub(crate) fn deliver_first(&mut self) -> Result<bool, StoreError> {
        self.delete_confirmed();
        self.inbox.apply(&mut self.machine, 2, &mut self.answers)?;
        self.machine.deliver_first()
    }

    /// Deletes rows of messages that their receivers have confirmed, as far as they have their share of the commit.
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

    /// Whether no further command is to be taken.
    pub(crate) fn has_enough(&self) -> bool {
        self.machine.has_enough()
    }

    /// Applies a command, then delivers messages within the range until none is left or the commit is large enough.
    pub(crate) fn apply(&mut self, command: Command) -> Result<(), StoreError> {
        self.machine.apply(command)
    }

    /// Applies a command and delivers nothing.
    pub(crate) fn command(&mut self, command: Command) -> Result<(), StoreError> {
        self.machine.command(command)
    }

    /// Delivers up to so many messages within the range, fewer when the commit is large enough.
    pub(crate) fn deliver(&mut self, limit: usize) -> Result<(), StoreError> {
        self.machine.deliver(limit)
    }

    /// Applies what other ranges have posted, as far as the commit has room.
    pub(crate) fn take_posted(&mut self) -> Result<(), StoreError> {
        self.inbox.apply(&mut self.machine, 8, &mut self.answers)
    }

    /// The rows of the commit, for the driver to append. An empty one needs no append, but is settled as any other.
    /// What room is left goes to the rows of confirmed messages.
    ///
    /// # Errors
    /// When a record cannot be encoded. The range is ahead of its store then, and of no more use.
    pub(crate) fn finish(mut self) -> Result<Vec<Write>, StoreError> {
        self.delete_confirmed_up_to(8);
        let Self { machine, under_way, answers, .. } = self;
        let finished = machine.finish()?;
        *under_way =
            Some(UnderWay { effects: finished.effects, answers, sent: finished.sent, waits: finished.waits });
        Ok(finished.writes)
    }
}
