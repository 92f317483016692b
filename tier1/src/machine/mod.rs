//! The shards of one process as a deterministic state machine.
//!
//! Commands and messages go in; row changes, messages and effects come out. There is no clock, no
//! randomness, no input or output and no comparison of signatures in here: F of two contents and
//! the components of a group are computed outside and come in as commands that name the contents, so a
//! late one is recognised and dropped.
//!
//! Each handler runs *at* one shard and touches that shard's rows only; everything else is a message.
//! Messages of one pair of shards are numbered, applied in order and exactly once.
//!
//! Invariants:
//! - A page's `membership_number` names one membership in a group. A membership ends by exactly one `Leave` that
//!   travels the same way as its `Enroll`, so no row of it stays behind.
//! - Group forwards go to smaller ids only, so they have no cycle (G1).
//! - A content that was never compared to the end and leaves a group makes the members that stay search
//!   again: tier 2 may have left out a partner on the strength of it.

mod announce;
mod audit;
mod batch;
mod counts;
mod cover;
mod election;
mod fan_out;
mod group;
mod index_state;
mod member;
mod merge;
mod message;
mod page;
mod publish;
mod quarantine;
mod redirect;
mod retention;
mod search;
mod shards;
mod sizes;
#[cfg(test)]
mod tests;
mod wait;

use doppel_model::pairwise::Policy;
use doppel_model::{ClientId, PageId, ShardId, Timestamp};
use doppel_protocol::WinnerOrder;

pub use retention::Retention;

pub(crate) use batch::newest_first;
pub(crate) use publish::{publish, target_line};
pub(crate) use redirect::{HOPS_MAX, SPELLINGS_MAX, stands_for};
pub(crate) use shards::Shards;
pub(crate) use sizes::{
    COMMIT_ROWS, COMMIT_ROWS_ASKED, COMMIT_ROWS_BESIDE_FEW, COMMIT_ROWS_BESIDE_MESSAGES, STEP_ROWS,
};
pub(crate) use wait::Wait;

pub(crate) use message::{
    At, Audience, Command, Covered, CoveredMember, Effect, Envelope, Hint, Message, Regrouped, Transfer,
    TransferEnd,
};

use sizes::{READ_FOR_WRITTEN, UNDELIVERED_MANY};

use crate::key;
use crate::record::{Meta, PageRecord, damaged, encode};
use crate::store::{Store, StoreError, Write};
use crate::txn::Txn;

/// What the machine is created with.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) shards: u16,
    pub(crate) policy: Policy,
    pub(crate) winners: WinnerOrder,
    /// Distinct contents past which a group is quarantined.
    pub(crate) group_members_max: u64,
    /// Share of members dissimilar to the winner from which a group is recomputed; 0 for never.
    pub(crate) low_cohesion_percent: u8,
    pub(crate) rules: Rules,
    pub(crate) retention: Retention,
    /// Rows handled per step of work that may touch many rows, at least one.
    pub(crate) step_rows: usize,
}

/// What is done beyond the paper that tier 1 follows. Without either the groups are what its rules give,
/// for comparison: they depend on the order of arrival and keep wrong pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// A page that its representative confirmed is compared with all others later.
    pub deferred_searches: bool,
    /// A group that lost or changed a member is recomputed.
    pub recomputation: bool,
}

impl Rules {
    /// Exact groups at rest.
    pub const EXACT: Self = Self { deferred_searches: true, recomputation: true };
    /// The rules of the paper.
    pub const PAPER: Self = Self { deferred_searches: false, recomputation: false };
}

/// A group of commands being applied.
pub(crate) struct Machine<'s, 'm> {
    txn: Txn<'s>,
    shards: &'m mut Shards,
    /// Rows at which the commit is large enough.
    commit_rows: usize,
    effects: Vec<Effect>,
    /// Rows that elections have read.
    rows_read: usize,
    /// Pages that were pending when the range was opened and are searched for again, and their clients.
    resumed: Vec<(PageId, ClientId)>,
    /// Where the present handler runs.
    here: ShardId,
    /// When the commit was begun.
    now: Timestamp,
}

/// What became of a message of another range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// By this commit, or an earlier one.
    Applied,
    /// One before it is missing.
    Gap { expected: u64 },
}

/// What a finished group of commands wants.
#[derive(Debug)]
pub(crate) struct Applied {
    pub(crate) writes: Vec<Write>,
    pub(crate) effects: Vec<Effect>,
    /// Messages to other ranges, whose rows are among the writes.
    pub(crate) sent: Vec<Envelope>,
    /// Pages that begin to be pending, and those that end.
    pub(crate) waits: Vec<(PageId, Wait)>,
}

impl<'s, 'm> Machine<'s, 'm> {
    pub(crate) fn new(
        store: &'s dyn Store,
        shards: &'m mut Shards,
        commit_rows: usize,
        now: Timestamp,
    ) -> Self {
        Self {
            txn: Txn::new(store),
            shards,
            commit_rows,
            effects: Vec::new(),
            rows_read: 0,
            resumed: Vec::new(),
            here: ShardId(0),
            now,
        }
    }

    /// Whether no further command is to be taken. With very many messages on their way, a quarter of the commit is
    /// kept for them: commands bring more.
    pub(crate) fn has_enough(&self) -> bool {
        let rows = if self.shards.undelivered() > UNDELIVERED_MANY {
            self.commit_rows / 4 * 3
        } else {
            self.commit_rows
        };
        self.rows() >= rows
    }

    /// Rows of the commit so far, and those that were read in its place.
    fn rows(&self) -> usize {
        self.txn.len() + self.shards.outgoing.len() + self.rows_read / READ_FOR_WRITTEN
    }

    /// Delivers messages until none is left or a quarter of a commit is there, past which the step that was begun goes. Whether there are any
    /// left.
    pub(crate) fn deliver_first(&mut self) -> Result<bool, StoreError> {
        self.deliver_up_to(usize::MAX, self.commit_rows / 4)?;
        Ok(self.shards.undelivered() > 0)
    }

    /// Applies a command, then delivers messages until none is left or the commit is large enough.
    pub(crate) fn apply(&mut self, command: Command) -> Result<(), StoreError> {
        self.command(command)?;
        self.deliver(usize::MAX)
    }

    /// Applies a command and delivers nothing.
    pub(crate) fn command(&mut self, command: Command) -> Result<(), StoreError> {
        match command {
            Command::Submit { submission, hint, client } => self.submit(*submission, hint, client),
            Command::Searched(result) => self.searched(result),
            Command::Verified { page, content, with } => self.verified(page, content, with),
            Command::Regrouped(regrouped) => self.regrouped(regrouped),
            Command::Covered(covered) => self.covered(covered),
            Command::SearchNow { page } => self.search_now(page),
            Command::ResumeSearch { page } => self.resume_search(page),
            Command::Purge { page } => self.purge(page),
            Command::ExpirePage { page, now } => self.expire_page(page, now),
            Command::ExpireGroup { group, now } => self.expire_group(group, now),
            Command::ExpireRepair { repair, now } => self.expire_repair(repair, now),
            Command::ForgetInRepair { repair, pages } => self.forget_in_repair(repair, &pages),
            Command::KeepIndexState { item, bytes } => self.keep_index_state(item, bytes.as_deref()),
        }
    }

    /// Delivers up to `limit` messages, fewer when the commit is large enough.
    pub(crate) fn deliver(&mut self, limit: usize) -> Result<(), StoreError> {
        self.deliver_up_to(limit, self.commit_rows)
    }

    /// The same, fewer when the commit has so many rows.
    fn deliver_up_to(&mut self, limit: usize, rows: usize) -> Result<(), StoreError> {
        for _ in 0..limit {
            if self.rows() >= rows {
                break;
            }
            let Some((envelope, stored)) = self.shards.queue.pop_front() else { break };
            let Envelope { from, to, number, message } = envelope;
            let applied = self.shards.applied(to, from);
            if number > applied + 1 {
                return Err(damaged(&key::outbox(from, to, applied + 1), "a message is missing"));
            }
            self.txn.delete_own(key::outbox(from, to, number), stored);
            if number <= applied {
                continue;
            }
            self.shards.meta(to).applied[usize::from(from.0)] = number;
            self.here = to;
            self.receive(message)?;
        }
        Ok(())
    }

    /// Applies a message of another range: a repeat is dropped, one beyond a gap is refused.
    pub(crate) fn arrive(&mut self, envelope: Envelope) -> Result<Arrival, StoreError> {
        let Envelope { from, to, number, message } = envelope;
        let applied = self.shards.applied(to, from);
        if number > applied + 1 {
            return Ok(Arrival::Gap { expected: applied + 1 });
        }
        if number == applied + 1 {
            self.shards.meta(to).applied[usize::from(from.0)] = number;
            self.here = to;
            self.receive(message)?;
        }
        Ok(Arrival::Applied)
    }

    /// The last number from a shard of another range that is applied.
    pub(crate) fn applied(&self, to: ShardId, from: ShardId) -> u64 {
        self.shards.applied(to, from)
    }

    /// Deletes the row of a message that its receiver has confirmed.
    pub(crate) fn forget_sent(&mut self, (from, to): (ShardId, ShardId), number: u64) {
        self.txn.delete(key::outbox(from, to, number));
    }

    /// Whether the commit has so many eighths of the rows it may have.
    pub(crate) fn has_eighths(&self, eighths: usize) -> bool {
        self.rows() >= self.commit_rows.div_ceil(8) * eighths
    }

    /// The commit's writes; messages still under way are among them.
    ///
    /// # Errors
    /// When a record cannot be encoded. The shards are ahead of the store then, and of no more use.
    pub(crate) fn finish(mut self) -> Result<Applied, StoreError> {
        let unsent = self.shards.outgoing.iter();
        let unstored =
            self.shards.queue.iter_mut().filter(|(_, stored)| !*stored).map(|(envelope, stored)| {
                *stored = true;
                &*envelope
            });
        for envelope in unstored.chain(unsent) {
            self.txn.put(key::outbox(envelope.from, envelope.to, envelope.number), encode(envelope)?);
        }
        let finished = self.txn.finish()?;
        let goes_on = self.resumed.into_iter().map(|(page, client)| (page, Wait::GoesOn(client)));
        let mut waits: Vec<(PageId, Wait)> = goes_on.collect();
        for (page, shard, before, after) in finished.pages {
            waits.extend(Wait::of(before, after).map(|wait| (page, wait)));
            self.shards.meta(shard).count_page(before, after);
        }
        for (shard, before, after) in finished.groups {
            self.shards.meta(shard).count_group(before, after);
        }
        let mut writes = finished.writes;
        for (number, changed) in (0..).zip(&mut self.shards.changed) {
            if std::mem::take(changed) {
                let meta = &self.shards.metas[usize::from(number)];
                writes.push((key::meta(ShardId(number)), Some(encode(meta)?)));
            }
        }
        Ok(Applied { writes, effects: self.effects, sent: std::mem::take(&mut self.shards.outgoing), waits })
    }

    fn receive(&mut self, message: Message) -> Result<(), StoreError> {
        match message {
            Message::Ask { page, content, ticket, partner, partner_content } => {
                self.asked((page, content, ticket), partner, partner_content)
            }
            Message::Answer { page, content, ticket, found } => self.answered(page, content, ticket, found),
            Message::Enroll { group, page, member, via, uncompared } => {
                self.enrolled(group, page, member, via, uncompared)
            }
            Message::ResolveForward { group, page, membership_number } => {
                self.forward_asked(group, page, membership_number)
            }
            Message::ForwardResolved { page, membership_number, group } => {
                self.forward_resolved(page, membership_number, group)
            }
            Message::ReleaseForward { group, page, membership_number, until } => {
                self.forward_released(group, page, membership_number, until)
            }
            Message::EnrollRefused { page, membership_number } => self.refused(page, membership_number),
            Message::Leave { group, page, membership_number, uncompared } => {
                self.left(group, page, membership_number, uncompared)
            }
            Message::Assign { page, membership_number, group, winner, search_again } => {
                self.assigned(page, membership_number, group, winner, search_again)
            }
            Message::Cover { page, membership_number, number, content, by } => {
                self.cover_told((page, membership_number), number, content, by)
            }
            Message::Dissimilar { group, page, membership_number, dissimilar } => {
                self.reported(group, page, membership_number, dissimilar)
            }
            Message::Evict { page, membership_number, compare } => {
                self.evicted(page, membership_number, compare)
            }
            Message::Merge { group, into, evidence } => self.merged(group, into, evidence),
            Message::TransferMembers { into, transfer } => self.members_transferred(into, transfer),
            Message::SearchAgain { page, content } => self.search_again(page, content),
            Message::Continue { group } => self.continued(group),
            Message::Subscribe { target, source } => {
                self.subscribed(target, source);
                Ok(())
            }
            Message::Unsubscribe { target, source } => {
                self.unsubscribed(target, source);
                Ok(())
            }
            Message::Trace { source, ticket, at, path } => self.traced_through(source, ticket, at, path),
            Message::Spelled { normal, page, url } => self.spelled(normal, page, url.as_ref()),
            Message::Traced { source, ticket, stands_for, resolution } => {
                self.traced(source, ticket, stands_for, resolution)
            }
            Message::Rerouted { source, target, hops_left } => self.rerouted(source, target, hops_left),
            Message::TellSources { target, reach } => self.tell_redirects(target, Audience::Sources, reach),
            Message::ContinueTelling { target, audience } => self.continue_telling(target, audience),
            Message::AttachRedirect { target, source } => self.redirect_attached(target, source),
            Message::DetachRedirect { target, source } => self.redirect_detached(target, source),
            Message::TargetLine { source, target, line } => self.target_told(source, target, line),
        }
    }

    fn send(&mut self, to: ShardId, message: Message) {
        let from = self.here;
        let number = &mut self.shards.meta(from).sent[usize::from(to.0)];
        *number += 1;
        let envelope = Envelope { from, to, number: *number, message };
        if self.shards.has(to) {
            self.shards.queue.push_back((envelope, false));
        } else {
            self.shards.outgoing.push(envelope);
        }
    }

    fn send_to_page(&mut self, page: PageId, message: Message) {
        self.send(self.shards.owner(page), message);
    }

    fn meta(&mut self) -> &mut Meta {
        self.shards.meta(self.here)
    }

    /// Takes a page's record out; none for a page never heard of.
    fn take(&mut self, page: PageId) -> Result<Option<PageRecord>, StoreError> {
        debug_assert_eq!(self.here, self.shards.owner(page));
        self.txn.take_page(self.here, page)
    }

    fn give_back(&mut self, page: PageId, record: PageRecord) -> Result<(), StoreError> {
        self.txn.return_page(self.here, page, record)
    }
}
