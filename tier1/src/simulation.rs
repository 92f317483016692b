//! Tier 1 without threads, for the simulation (feature `simulation`).
//!
//! A [`Node`] is the state machine of some shards over a store: what it decides, writes and wishes is
//! handed out piece by piece, so that whoever drives it chooses what is delivered when, and where the
//! node stops. [`Worker`] is the reading side and the worker, over the stores of all nodes. [`rows`] says
//! what a store holds, in public words.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

mod letter;
mod rows;
mod tampering;
mod worker;

use doppel_model::pairwise::Policy;
use doppel_model::{ContentHash, GroupId, PageId, ShardId, Timestamp};
use doppel_protocol::{Backlog, IndexCommand, LookResult, Outcome, Submission, WinnerOrder};

pub use letter::{Kind, Letter};
pub use rows::{GroupRow, MemberRow, PageRow, Row, rows};
pub use tampering::{is_feed_row, is_outbox_row, is_signature_row, redirect_forward};
pub use worker::{Worker, signature};

use crate::machine::{COMMIT_ROWS, Command, Effect, Hint, Machine, Shards};
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
        let doubtful_percent = 25;
        crate::machine::Settings {
            shards,
            policy,
            winners,
            group_members_max,
            doubtful_percent,
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
    pub wishes: Vec<Wish>,
}

/// What is to be done once a commit is durable.
#[derive(Debug, Clone)]
pub enum Wish {
    Index(IndexCommand),
    Verify { page: PageId, content: ContentHash, winner: PageId, winner_content: ContentHash },
    Touched(GroupId),
    Late(PageId),
    Changed,
    Outcome(Outcome),
}

/// A commit that was prepared: nothing of it is anywhere but in the node's memory.
#[derive(Debug)]
pub struct Prepared {
    pub writes: Vec<Write>,
    pub wishes: Vec<Wish>,
}

/// A command for a node.
#[derive(Debug, Clone)]
pub struct Fact(Command);

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
        let looks = owed.pending.into_iter().map(|(page, content, ticket)| {
            let look = doppel_protocol::Look { ticket };
            Wish::Index(IndexCommand::Look { page, content, look })
        });
        let verify = owed.unverified.into_iter().map(|(page, content, winner, winner_content)| {
            Wish::Verify { page, content, winner, winner_content }
        });
        let late = owed.late.into_iter().map(Wish::Late);
        let touched = owed.touched.into_iter().map(Wish::Touched);
        let wishes = looks.chain(verify).chain(late).chain(touched).collect();
        Ok((Self { shards }, Owed { contents, wishes }))
    }

    /// Applies commands, then delivers up to `deliveries` of the letters the node holds, in their order.
    ///
    /// # Errors
    /// When the store fails or a row is damaged.
    pub fn prepare(
        &mut self,
        store: &dyn Store,
        facts: Vec<Fact>,
        deliveries: usize,
    ) -> Result<Prepared, StoreError> {
        let mut machine = Machine::new(store, &mut self.shards, COMMIT_ROWS);
        for Fact(command) in facts {
            machine.command(command)?;
        }
        machine.deliver(deliveries)?;
        let applied = machine.finish();
        let wishes = applied.effects.into_iter().map(Wish::from).collect();
        Ok(Prepared { writes: applied.writes, wishes })
    }

    /// Takes all letters that are not delivered. Those of commits that were made are in the outbox, too.
    pub fn take_letters(&mut self) -> Vec<Letter> {
        self.shards.queue.drain(..).map(Letter::new).collect()
    }

    /// Letters to deliver, in this order, behind those it has.
    pub fn put_letters(&mut self, letters: impl IntoIterator<Item = Letter>) {
        self.shards.queue.extend(letters.into_iter().map(Letter::into_inner));
    }

    /// The last number applied from a shard.
    #[must_use]
    pub fn applied(&self, to: ShardId, from: ShardId) -> u64 {
        self.shards.metas[usize::from(to.0)].applied[usize::from(from.0)]
    }

    /// Forgets that the last letter from a shard was applied.
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

impl From<Effect> for Wish {
    fn from(effect: Effect) -> Self {
        match effect {
            Effect::Index(order) => Self::Index(order),
            Effect::Verify { page, content, winner, winner_content } => {
                Self::Verify { page, content, winner, winner_content }
            }
            Effect::Touched(group) => Self::Touched(group),
            Effect::Late(page) => Self::Late(page),
            Effect::Changed => Self::Changed,
            Effect::Outcome(outcome) => Self::Outcome(outcome),
        }
    }
}

impl Fact {
    #[must_use]
    pub fn submit(submission: Submission, hint: Option<Given>) -> Self {
        Self(Command::Submit { submission: Box::new(submission), hint: hint.map(|given| given.0) })
    }

    #[must_use]
    pub fn looked(result: LookResult) -> Self {
        Self(Command::Looked(result))
    }

    #[must_use]
    pub fn look_now(page: PageId) -> Self {
        Self(Command::LookNow { page })
    }

    #[must_use]
    pub fn purge(page: PageId) -> Self {
        Self(Command::Purge { page })
    }

    #[must_use]
    pub fn expire_page(page: PageId, now: Timestamp) -> Self {
        Self(Command::ExpirePage { page, now })
    }

    #[must_use]
    pub fn expire_group(group: GroupId, now: Timestamp) -> Self {
        Self(Command::ExpireGroup { group, now })
    }

    /// The page of a submission.
    #[must_use]
    pub fn submitted(&self) -> Option<PageId> {
        match &self.0 {
            Command::Submit { submission, .. } => Some(submission.url.id()),
            _ => None,
        }
    }

    /// The shard at which it is applied.
    #[must_use]
    pub fn shard(&self, shards: u16) -> ShardId {
        match &self.0 {
            Command::Submit { submission, .. } => submission.url.id().shard(shards),
            Command::Looked(result) => result.page.shard(shards),
            Command::Verified { page, .. }
            | Command::LookNow { page }
            | Command::Purge { page }
            | Command::ExpirePage { page, .. } => page.shard(shards),
            Command::Regrouped(regrouped) => regrouped.group.shard(),
            Command::ExpireGroup { group, .. } => group.shard(),
            Command::ExpireRepair { repair, .. } | Command::ForgetInRepair { repair, .. } => repair.shard,
        }
    }
}

/// The shard that a row belongs to; none for what is no key.
#[must_use]
pub fn shard_of_row(key: &[u8]) -> Option<ShardId> {
    key.first_chunk::<2>().map(|bytes| ShardId(u16::from_be_bytes(*bytes)))
}

/// The outbox row of a letter.
#[must_use]
pub fn outbox_row(from: ShardId, to: ShardId, number: u64) -> Vec<u8> {
    key::outbox(from, to, number)
}
