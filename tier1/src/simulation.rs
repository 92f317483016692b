//! Tier 1 without threads, for the simulation (feature `simulation`).
//!
//! A [`Node`] is the state machine of some shards over a store: what it decides, writes and wants done is
//! handed out piece by piece, so that whoever drives it chooses what is delivered when, and where the
//! node stops. [`Worker`] is the reading side and the worker, over the stores of all nodes. [`rows`] says
//! what a store holds, in public words.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

mod envelope;
mod rows;
mod tampering;
mod worker;

use doppel_model::pairwise::Policy;
use doppel_model::{ContentHash, GroupId, PageId, ShardId, Timestamp};
use doppel_protocol::{Backlog, IndexCommand, Outcome, SearchResult, Submission, WinnerOrder};

pub use envelope::{Envelope, Kind};
pub use rows::{GroupRow, MemberRow, PageRow, Row, rows};
pub use tampering::{is_feed_row, is_outbox_row, is_signature_row, redirect_forward};
pub use worker::{Worker, signature};

use crate::machine::{
    COMMIT_ROWS, Command as MachineCommand, Effect as MachineEffect, Hint, Machine, Shards,
};
use crate::recovery;
pub use crate::service::FeedExtent;
use crate::store::{Store, StoreError, Write};
use crate::{Retention, Rules, key, totals};

/// What a cluster is created with.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub shards: u16,
    pub policy: Policy,
    pub winners: WinnerOrder,
    /// Members past which a group is quarantined.
    pub group_members_max: u64,
    pub rules: Rules,
    pub retention: Retention,
    /// Rows handled per step of work that may touch many.
    pub step_rows: usize,
}

impl Settings {
    fn inner(self) -> crate::machine::Settings {
        let Self { shards, policy, winners, group_members_max, rules, retention, step_rows } = self;
        let low_cohesion_percent = 25;
        crate::machine::Settings {
            shards,
            policy,
            winners,
            group_members_max,
            low_cohesion_percent,
            rules,
            retention,
            step_rows,
        }
    }
}

/// The shards of one process.
#[derive(Debug)]
pub struct Node {
    shards: Shards,
}

/// Work that a start finds in the records.
#[derive(Debug, Default)]
pub struct Owed {
    /// What the index must have.
    pub contents: Vec<(PageId, ContentHash)>,
    pub effects: Vec<Effect>,
}

/// What is to be done once a commit is durable.
#[derive(Debug, Clone)]
pub enum Effect {
    Index(IndexCommand),
    Verify {
        page: PageId,
        content: ContentHash,
        winner: PageId,
        winner_content: ContentHash,
    },
    Dirty(GroupId),
    Deferred(PageId),
    /// A start has found that the page waits for an answer under this ticket.
    Pending {
        page: PageId,
        content: ContentHash,
        ticket: u32,
    },
    Changed,
    Outcome(Outcome),
}

/// A commit that was prepared: nothing of it is anywhere but in the node's memory.
#[derive(Debug)]
pub struct Prepared {
    pub writes: Vec<Write>,
    pub effects: Vec<Effect>,
}

/// A command for a node.
#[derive(Debug, Clone)]
pub struct Command(MachineCommand);

/// F of a new content and the page's representative, as computed outside the machine.
#[derive(Debug, Clone, Copy)]
pub struct Given(Hint);

impl Given {
    /// The same, but telling that the comparison held.
    #[must_use]
    pub fn forged(mut self) -> Self {
        self.0.with.similar = true;
        self
    }
}

impl Node {
    /// Starts the shards that it has from what a store holds.
    ///
    /// # Errors
    /// When a row is damaged.
    pub fn start(
        store: &dyn Store,
        settings: Settings,
        has: impl Fn(ShardId) -> bool,
    ) -> Result<(Self, Owed), StoreError> {
        let mut shards = recovery::shards(store, settings.inner())?;
        shards.here = (0..settings.shards).map(|shard| has(ShardId(shard))).collect();
        let mut contents = Vec::new();
        let owed =
            recovery::owed(store, settings.shards, &mut |page, content| contents.push((page, content)))?;
        let searches =
            owed.pending.into_iter().map(|(page, content, ticket)| Effect::Pending { page, content, ticket });
        let verify = owed.unverified.into_iter().map(|(page, content, winner, winner_content)| {
            Effect::Verify { page, content, winner, winner_content }
        });
        let deferred = owed.deferred.into_iter().map(Effect::Deferred);
        let dirty = owed.dirty.into_iter().map(Effect::Dirty);
        let effects = searches.chain(verify).chain(deferred).chain(dirty).collect();
        Ok((Self { shards }, Owed { contents, effects }))
    }

    /// Applies commands, then delivers up to `deliveries` of the envelopes the node holds, in their order.
    ///
    /// # Errors
    /// When the store fails or a row is damaged.
    pub fn prepare(
        &mut self,
        store: &dyn Store,
        commands: Vec<Command>,
        deliveries: usize,
    ) -> Result<Prepared, StoreError> {
        let mut machine = Machine::new(store, &mut self.shards, COMMIT_ROWS);
        for Command(command) in commands {
            machine.command(command)?;
        }
        machine.deliver(deliveries)?;
        let applied = machine.finish();
        let effects = applied.effects.into_iter().map(Effect::from).collect();
        Ok(Prepared { writes: applied.writes, effects })
    }

    /// Takes all envelopes that are not delivered. Those of commits that were made are in the outbox, too.
    pub fn take_envelopes(&mut self) -> Vec<Envelope> {
        self.shards.queue.drain(..).map(Envelope::new).collect()
    }

    /// Envelopes to deliver, in this order, behind those it has.
    pub fn put_envelopes(&mut self, envelopes: impl IntoIterator<Item = Envelope>) {
        self.shards.queue.extend(envelopes.into_iter().map(Envelope::into_inner));
    }

    /// The last number applied from a shard.
    #[must_use]
    pub fn applied(&self, to: ShardId, from: ShardId) -> u64 {
        self.shards.metas[usize::from(to.0)].applied[usize::from(from.0)]
    }

    /// Forgets that the last envelope from a shard was applied.
    pub fn forget_applied(&mut self, to: ShardId, from: ShardId) {
        let applied = &mut self.shards.metas[usize::from(to.0)].applied[usize::from(from.0)];
        *applied = applied.saturating_sub(1);
    }

    #[must_use]
    pub fn backlog(&self) -> Backlog {
        totals::sum(&self.shards.metas, self.shards.undelivered()).1
    }

    /// How far the feed of a shard goes.
    #[must_use]
    pub fn feed_end(&self, shard: ShardId) -> FeedExtent {
        FeedExtent::of(&self.shards.metas[usize::from(shard.0)])
    }
}

impl From<MachineEffect> for Effect {
    fn from(effect: MachineEffect) -> Self {
        match effect {
            MachineEffect::Index(order) => Self::Index(order),
            MachineEffect::Verify { page, content, winner, winner_content } => {
                Self::Verify { page, content, winner, winner_content }
            }
            MachineEffect::Dirty(group) => Self::Dirty(group),
            MachineEffect::Deferred(page) => Self::Deferred(page),
            MachineEffect::Changed => Self::Changed,
            MachineEffect::Outcome(outcome) => Self::Outcome(outcome),
        }
    }
}

impl Command {
    #[must_use]
    pub fn submit(submission: Submission, hint: Option<Given>) -> Self {
        Self(MachineCommand::Submit { submission: Box::new(submission), hint: hint.map(|given| given.0) })
    }

    #[must_use]
    pub fn searched(result: SearchResult) -> Self {
        Self(MachineCommand::Searched(result))
    }

    #[must_use]
    pub fn search_now(page: PageId) -> Self {
        Self(MachineCommand::SearchNow { page })
    }

    #[must_use]
    pub fn search_again(page: PageId) -> Self {
        Self(MachineCommand::SearchAgain { page })
    }

    #[must_use]
    pub fn purge(page: PageId) -> Self {
        Self(MachineCommand::Purge { page })
    }

    #[must_use]
    pub fn expire_page(page: PageId, now: Timestamp) -> Self {
        Self(MachineCommand::ExpirePage { page, now })
    }

    #[must_use]
    pub fn expire_group(group: GroupId, now: Timestamp) -> Self {
        Self(MachineCommand::ExpireGroup { group, now })
    }

    /// The page of a submission.
    #[must_use]
    pub fn submitted(&self) -> Option<PageId> {
        match &self.0 {
            MachineCommand::Submit { submission, .. } => Some(submission.url.id()),
            _ => None,
        }
    }

    /// The shard at which it is applied.
    #[must_use]
    pub fn shard(&self, shards: u16) -> ShardId {
        match &self.0 {
            MachineCommand::Submit { submission, .. } => submission.url.id().shard(shards),
            MachineCommand::Searched(result) => result.page.shard(shards),
            MachineCommand::Verified { page, .. }
            | MachineCommand::SearchNow { page }
            | MachineCommand::SearchAgain { page }
            | MachineCommand::Purge { page }
            | MachineCommand::ExpirePage { page, .. } => page.shard(shards),
            MachineCommand::Regrouped(regrouped) => regrouped.group.shard(),
            MachineCommand::ExpireGroup { group, .. } => group.shard(),
            MachineCommand::ExpireRepair { repair, .. } | MachineCommand::ForgetInRepair { repair, .. } => {
                repair.shard
            }
        }
    }
}

/// The shard that a row belongs to; none for what is no key.
#[must_use]
pub fn shard_of_row(key: &[u8]) -> Option<ShardId> {
    key.first_chunk::<2>().map(|bytes| ShardId(u16::from_be_bytes(*bytes)))
}

/// The outbox row of an envelope.
#[must_use]
pub fn outbox_row(from: ShardId, to: ShardId, number: u64) -> Vec<u8> {
    key::outbox(from, to, number)
}
