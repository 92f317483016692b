//! The shards of one process as a deterministic state machine.
//!
//! Commands and messages go in; row changes, messages and effects come out. The machine has no clock, no
//! randomness and no I/O. F of two contents and the components of a group are computed outside, and come in
//! as commands. Such a command names the contents, so the machine recognises a late command and drops it.
//!
//! Each handler runs at one shard, and touches only the rows of this shard. It reaches other shards by
//! messages. The messages between two shards are numbered, and applied in order and exactly once.
//!
//! Invariants:
//! - A page's `membership_number` names one membership in a group. A membership ends with exactly one
//!   `Leave`, which takes the same path as its `Enroll`, so none of its rows stays behind.
//! - Forwards of merged groups point to smaller ids only, so they have no cycle (G1).
//! - If a content whose search was never completed leaves a group, the remaining members search again. Tier 2
//!   may have left out a partner of theirs because it relied on that content.

mod audit;
mod group;
mod index_state;
mod message;
mod page;
mod publish;
mod redirect;
mod retention;
mod shards;
mod sizes;
#[cfg(test)]
mod tests;
mod wait;

use doppel_model::pairwise::Policy;
use doppel_model::{ClientId, PageId, ShardId, Timestamp};
use doppel_protocol::WinnerOrder;

use crate::rows::key;
use crate::rows::record::{Meta, PageRecord, damaged, encode};
use crate::rows::txn::{GroupShareChange, PageShareChange, Txn};
use crate::storage::store::{Store, StoreError, Write};
pub(crate) use message::{
    Audience, Command, CoverUpdate, Effect, Envelope, EvictedMember, Hint, MemberCover, Message,
    RecomputationStep, TracePosition, Transfer, TransferEnd,
};
pub(crate) use page::batch::newest_first;
pub(crate) use publish::{public_state, target_state};
pub(crate) use redirect::{SPELLINGS_MAX, target_note};
pub use retention::Retention;
pub(crate) use shards::Shards;
pub(crate) use sizes::{
    COMMIT_ROWS, COMMIT_ROWS_ASKED, COMMIT_ROWS_BESIDE_FEW, COMMIT_ROWS_BESIDE_MESSAGES, STEP_ROWS,
};
use sizes::{READ_FOR_WRITTEN, UNDELIVERED_MANY};
pub(crate) use wait::Wait;

/// Settings with which the machine is created.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Settings {
    pub(crate) shards: u16,
    pub(crate) policy: Policy,
    pub(crate) winners: WinnerOrder,
    /// Number of distinct contents above which a group is quarantined.
    pub(crate) group_members_max: u64,
    /// Percentage of members dissimilar to the winner from which a group is recomputed; 0 means never.
    pub(crate) low_cohesion_percent: u8,
    pub(crate) rules: Rules,
    pub(crate) retention: Retention,
    /// Rows per step of work that may touch many rows; at least 1.
    pub(crate) step_rows: usize,
}

/// Extensions to the paper's rules. Without both of them tier 1 gives the paper's groups, for comparison.
/// Such groups depend on the order of arrival and keep wrong pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// Whether a page that its representative confirmed is compared with all other pages later.
    pub deferred_searches: bool,
    /// Whether a group that lost or changed a member is recomputed.
    pub recomputation: bool,
}

impl Rules {
    /// Both extensions: groups are exact at rest.
    pub const EXACT: Self = Self { deferred_searches: true, recomputation: true };
    /// The rules of the paper alone.
    pub const PAPER: Self = Self { deferred_searches: false, recomputation: false };
}

/// A commit under construction: the commands and messages applied so far, and their results.
pub(crate) struct Machine<'s, 'm> {
    txn: Txn<'s>,
    shards: &'m mut Shards,
    /// Number of rows at which the commit is large enough.
    commit_rows: usize,
    effects: Vec<Effect>,
    /// Rows that elections have read for this commit.
    rows_read: usize,
    /// Pages that were pending when the range was opened and are searched for again, with their clients.
    resumed: Vec<(PageId, ClientId)>,
    /// Shard at which the current handler runs.
    current_shard: ShardId,
    /// Time when the commit began.
    now: Timestamp,
}

/// Outcome of a message that came from another range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// This commit or an earlier one applies the message.
    Applied,
    /// An earlier message, the one with this number, is missing.
    Gap { expected: u64 },
}

/// Everything that a finished commit writes and causes.
#[derive(Debug)]
pub(crate) struct CommitOutput {
    pub(crate) writes: Vec<Write>,
    pub(crate) effects: Vec<Effect>,
    /// Messages to other ranges. Their rows are among the writes.
    pub(crate) sent: Vec<Envelope>,
    /// Pages that begin or cease to be pending, or remain pending after the range was opened.
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
            current_shard: ShardId(0),
            now,
        }
    }

    /// Returns whether the commit should take no further command. If very many messages are undelivered, a
    /// quarter of the commit is reserved for messages, because each command adds more.
    pub(crate) fn has_enough(&self) -> bool {
        let rows = if self.shards.undelivered() > UNDELIVERED_MANY {
            self.commit_rows / 4 * 3
        } else {
            self.commit_rows
        };
        self.rows() >= rows
    }

    /// Returns the size of the commit: its rows, its messages, and a share of the rows that elections read.
    fn rows(&self) -> usize {
        self.txn.len() + self.shards.outgoing.len() + self.rows_read / READ_FOR_WRITTEN
    }

    /// Delivers messages until none is left or the commit has a quarter of its rows. A step that has begun is
    /// finished, even if it exceeds the quarter. Returns whether messages are left.
    pub(crate) fn deliver_first(&mut self) -> Result<bool, StoreError> {
        self.deliver_up_to(usize::MAX, self.commit_rows / 4)?;
        Ok(self.shards.undelivered() > 0)
    }

    /// Applies a command, then delivers messages until none is left or the commit is large enough.
    pub(crate) fn apply(&mut self, command: Command) -> Result<(), StoreError> {
        self.command(command)?;
        self.deliver(usize::MAX)
    }

    /// Applies a command without delivering any message.
    pub(crate) fn command(&mut self, command: Command) -> Result<(), StoreError> {
        match command {
            Command::Submit { submission, hint, client } => self.submit(*submission, hint, client),
            Command::Searched(result) => self.on_searched(result),
            Command::Verified { page, content, with } => self.on_verified(page, content, with),
            Command::Recomputed(step) => self.on_recomputed(step),
            Command::Covered(update) => self.on_covered(update),
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

    /// Delivers at most `limit` messages. Stops earlier if the commit is large enough.
    pub(crate) fn deliver(&mut self, limit: usize) -> Result<(), StoreError> {
        self.deliver_up_to(limit, self.commit_rows)
    }

    /// Delivers at most `limit` messages. Stops earlier if the commit has `rows` rows.
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
            self.current_shard = to;
            self.receive(message)?;
        }
        Ok(())
    }

    /// Applies a message from another range. Drops a repeated message and refuses a message after a gap.
    pub(crate) fn arrive(&mut self, envelope: Envelope) -> Result<Arrival, StoreError> {
        let Envelope { from, to, number, message } = envelope;
        let applied = self.shards.applied(to, from);
        if number > applied + 1 {
            return Ok(Arrival::Gap { expected: applied + 1 });
        }
        if number == applied + 1 {
            self.shards.meta(to).applied[usize::from(from.0)] = number;
            self.current_shard = to;
            self.receive(message)?;
        }
        Ok(Arrival::Applied)
    }

    /// Returns the number of the last applied message from a shard of another range.
    pub(crate) fn applied(&self, to: ShardId, from: ShardId) -> u64 {
        self.shards.applied(to, from)
    }

    /// Deletes the row of a message that its receiver has confirmed.
    pub(crate) fn forget_sent(&mut self, (from, to): (ShardId, ShardId), number: u64) {
        self.txn.delete(key::outbox(from, to, number));
    }

    /// Returns whether the commit has reached the given number of eighths of its row limit.
    pub(crate) fn has_eighths(&self, eighths: usize) -> bool {
        self.rows() >= self.commit_rows.div_ceil(8) * eighths
    }

    /// Finishes the commit. The writes include the rows of messages that are still under way.
    ///
    /// # Errors
    /// Fails if a record cannot be encoded. The shards in memory are then ahead of the store and must not be
    /// used again.
    pub(crate) fn finish(mut self) -> Result<CommitOutput, StoreError> {
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
        let resumed = self.resumed.into_iter().map(|(page, client)| (page, Wait::Continues(client)));
        let mut waits: Vec<(PageId, Wait)> = resumed.collect();
        for PageShareChange { page, shard, before, after } in finished.pages {
            waits.extend(Wait::of(before, after).map(|wait| (page, wait)));
            self.shards.meta(shard).count_page(before, after);
        }
        for GroupShareChange { shard, before, after } in finished.groups {
            self.shards.meta(shard).count_group(before, after);
        }
        let mut writes = finished.writes;
        for (number, changed) in (0..).zip(&mut self.shards.changed) {
            if std::mem::take(changed) {
                let meta = &self.shards.metas[usize::from(number)];
                writes.push((key::meta(ShardId(number)), Some(encode(meta)?)));
            }
        }
        Ok(CommitOutput {
            writes,
            effects: self.effects,
            sent: std::mem::take(&mut self.shards.outgoing),
            waits,
        })
    }

    fn receive(&mut self, message: Message) -> Result<(), StoreError> {
        match message {
            Message::AskGroup { page, content, ticket, partner, partner_content } => {
                self.on_ask_group((page, content, ticket), partner, partner_content)
            }
            Message::AnswerGroup { page, content, ticket, found } => {
                self.on_answer_group(page, content, ticket, found)
            }
            Message::Enroll { group, page, member, via, uncompared } => {
                self.on_enroll(group, page, member, via, uncompared)
            }
            Message::ResolveForward { group, page, membership_number } => {
                self.on_resolve_forward(group, page, membership_number)
            }
            Message::ForwardResolved { page, membership_number, group } => {
                self.on_forward_resolved(page, membership_number, group)
            }
            Message::ReleaseForward { group, page, membership_number, until } => {
                self.on_release_forward(group, page, membership_number, until)
            }
            Message::EnrollRefused { page, membership_number } => {
                self.on_enroll_refused(page, membership_number)
            }
            Message::Leave { group, page, membership_number, uncompared } => {
                self.on_leave(group, page, membership_number, uncompared)
            }
            Message::Assign { page, membership_number, group, winner, search_again } => {
                self.on_assign(page, membership_number, group, winner, search_again)
            }
            Message::Cover { page, membership_number, number, content, by } => {
                self.on_cover((page, membership_number), number, content, by)
            }
            Message::Dissimilar { group, page, membership_number, dissimilar } => {
                self.on_dissimilar(group, page, membership_number, dissimilar)
            }
            Message::Evict { page, membership_number, compare } => {
                self.on_evict(page, membership_number, compare)
            }
            Message::Merge { group, into, evidence } => self.on_merge(group, into, evidence),
            Message::TransferMembers { into, transfer } => self.on_transfer_members(into, transfer),
            Message::SearchAgain { page, content } => self.search_again(page, content),
            Message::Continue { group } => self.on_continue(group),
            Message::Subscribe { target, source } => {
                self.on_subscribe(target, source);
                Ok(())
            }
            Message::Unsubscribe { target, source } => {
                self.on_unsubscribe(target, source);
                Ok(())
            }
            Message::Trace { source, ticket, at, path } => self.on_trace(source, ticket, at, path),
            Message::SpellingChanged { normal, page, url } => {
                self.on_spelling_changed(normal, page, url.as_ref())
            }
            Message::TraceResult { source, ticket, stands_for, resolution } => {
                self.on_trace_result(source, ticket, stands_for, resolution)
            }
            Message::RouteChanged { source, target, hops_left } => {
                self.on_route_changed(source, target, hops_left)
            }
            Message::TellSources { target, reach } => self.tell_redirects(target, Audience::Sources, reach),
            Message::ContinueTelling { target, audience } => self.continue_round(target, audience),
            Message::AttachRedirect { target, source } => self.on_attach_redirect(target, source),
            Message::DetachRedirect { target, source } => self.on_detach_redirect(target, source),
            Message::TargetState { source, target, state } => self.on_target_state(source, target, state),
        }
    }

    fn send(&mut self, to: ShardId, message: Message) {
        let from = self.current_shard;
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
        self.shards.meta(self.current_shard)
    }

    /// Takes a page's record out; `None` if it has none. The caller must put the record or give it back.
    fn take(&mut self, page: PageId) -> Result<Option<PageRecord>, StoreError> {
        debug_assert_eq!(self.current_shard, self.shards.owner(page));
        self.txn.take_page(self.current_shard, page)
    }

    fn give_back(&mut self, page: PageId, record: PageRecord) -> Result<(), StoreError> {
        self.txn.return_page(self.current_shard, page, record)
    }
}
