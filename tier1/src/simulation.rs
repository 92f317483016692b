//! Tier 1 without threads, for the simulation (feature `simulation`).
//!
//! A [`SimRange`] is the range of the product over a store. What it writes, sends and wants done is handed
//! out piece by piece, so that the simulation chooses what is delivered when, and where the range stops.
//! [`Worker`] is the reading side and the worker, over the stores of all ranges. [`SimReplica`] is a replica
//! of a range that is replicated. [`SimFiles`] is the database of a range over files that fail. [`rows`]
//! gives the rows of a store as public types.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

mod envelope;
mod post;
mod reads;
mod replica;
mod rows;
mod statuses;
mod tampering;
mod worker;

use doppel_model::pairwise::Policy;
use doppel_model::{ClientId, ContentHash, GroupId, PageId, RangeId, ShardId, Timestamp};
use doppel_protocol::{Backlog, IndexCommand, Outcome, RangeMap, SearchResult, Submission, WinnerOrder};

pub use envelope::{Envelope, Kind};
pub use post::{PostReply, SimPost};
pub use replica::{SimChain, SimCommit, SimDisk, SimReplica};
pub use rows::{GroupRow, MemberRow, PageRow, Row, rows};
pub use statuses::StatusFill;
pub use tampering::{
    forget_contents, is_feed_row, is_outbox_row, is_signature_row, page_of_row, redirect_forward,
};
pub use worker::{Worker, last_ticket, signature};

use crate::bulk::{Bulk, BulkConfig, BulkError, Grouped};
pub use crate::database::simulated::sim_files::{Forgotten, SimFiles};
use crate::machine::{COMMIT_ROWS, Command as MachineCommand, Effect as MachineEffect, Hint};
use crate::range::owed::{OwedScan, UnverifiedMember};
use crate::range::{PostId, Range, SettledWork};
pub use crate::store::{Intercept, Intercepted};
use crate::store::{Store, StoreError, Write};
use crate::{Retention, Rules};
pub use doppel_protocol::range_owner::FeedExtent;

/// What a cluster is created with.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub shards: u16,
    pub policy: Policy,
    pub winners: WinnerOrder,
    /// Distinct contents past which a group is quarantined.
    pub group_members_max: u64,
    /// Share of members dissimilar to the winner from which a group is recomputed; 0 for never.
    pub low_cohesion_percent: u8,
    pub rules: Rules,
    pub retention: Retention,
    /// Rows handled per step of work that may touch many.
    pub step_rows: usize,
}

impl Settings {
    fn inner(self) -> crate::machine::Settings {
        let Self { shards, policy, winners, group_members_max, low_cohesion_percent, .. } = self;
        let Self { rules, retention, step_rows, .. } = self;
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

/// A collection that is grouped at once, and the rows of its ranges.
///
/// # Errors
/// None that is known.
pub fn at_once(
    config: &BulkConfig<'_>,
    map: RangeMap,
    submissions: impl IntoIterator<Item = Submission>,
) -> Result<(Grouped, Vec<Vec<Write>>), BulkError> {
    Bulk::rows(config, map, submissions)
}

/// A range.
#[derive(Debug)]
pub struct SimRange {
    range: Range,
}

/// Work that a start finds in the records, piece by piece.
#[derive(Debug)]
pub struct Owed(OwedScan);

/// What a piece of the records owes.
#[derive(Debug, Default)]
pub struct FoundOwed {
    pub commands: Vec<Command>,
    pub effects: Vec<Effect>,
}

/// What is to be done once a commit is durable.
#[derive(Debug, Clone)]
pub enum Effect {
    Index(IndexCommand),
    Verify { page: PageId, content: ContentHash, winner: PageId, winner_content: ContentHash },
    Dirty(GroupId),
    Uncovered(GroupId),
    Deferred(PageId),
    Changed,
    Outcome(Outcome),
}

/// What a settled commit lets go.
#[derive(Debug, Default)]
pub struct Settled {
    pub effects: Vec<Effect>,
    /// Answers to posts of other ranges, by the number they were taken in with.
    pub answers: Vec<(PostId, PostReply)>,
}

/// A command for a range.
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

impl SimRange {
    /// Starts a range from what its store holds.
    ///
    /// # Errors
    /// When a row is damaged.
    pub fn start(
        store: &dyn Store,
        settings: Settings,
        id: RangeId,
        map: RangeMap,
    ) -> Result<Self, StoreError> {
        Ok(Self { range: Range::open(store, settings.inner(), id, map)? })
    }

    /// Builds a commit: commands, and up to `deliveries` of the envelopes within the range, in their order;
    /// what others have posted comes before both or after both.
    ///
    /// # Errors
    /// When the store fails or a row is damaged.
    pub fn build(
        &mut self,
        store: &dyn Store,
        commands: Vec<Command>,
        deliveries: usize,
        posted_first: bool,
    ) -> Result<Vec<Write>, StoreError> {
        let mut builder = self.range.build(store, COMMIT_ROWS, Timestamp::from_millis(0));
        builder.delete_confirmed();
        if posted_first {
            builder.take_posted()?;
        }
        for Command(command) in commands {
            builder.command(command)?;
        }
        builder.deliver(deliveries)?;
        builder.take_posted()?;
        builder.finish()
    }

    /// The commit that was built is durable.
    pub fn settled(&mut self) -> Settled {
        let SettledWork { effects, answers, .. } = self.range.settled();
        let effects = effects.into_iter().map(Effect::from).collect();
        Settled {
            effects,
            answers: answers.into_iter().map(|(id, answer)| (id, PostReply::new(answer))).collect(),
        }
    }

    /// What goes to other ranges now, up to so many envelopes to each.
    ///
    /// # Errors
    /// When a row is damaged.
    pub fn posts(&mut self, store: &dyn Store, most: usize) -> Result<Vec<SimPost>, StoreError> {
        Ok(self.range.posts(store, most)?.into_iter().map(SimPost::new).collect())
    }

    /// An answer to a post has come.
    pub fn confirmed(&mut self, by: RangeId, answer: &PostReply) {
        self.range.confirmed(by, answer.inner()).expect("ranges of one moment");
    }

    /// A post of another range has come. The answer, if there is one at once.
    pub fn take_in(&mut self, id: PostId, post: SimPost) -> Option<PostReply> {
        self.range.take_in(id, post.into_inner()).err().map(|error| PostReply::new(Err(error)))
    }

    /// Takes all envelopes within the range that are not delivered. Those of commits that were made are in
    /// the outbox, too.
    pub fn take_envelopes(&mut self) -> Vec<Envelope> {
        self.range.shards_mut().queue.drain(..).map(Envelope::new).collect()
    }

    /// Envelopes within the range to deliver, in this order, behind those it has.
    pub fn put_envelopes(&mut self, envelopes: impl IntoIterator<Item = Envelope>) {
        self.range.shards_mut().queue.extend(envelopes.into_iter().map(Envelope::into_inner));
    }

    /// The last number applied from a shard.
    #[must_use]
    pub fn applied(&self, to: ShardId, from: ShardId) -> u64 {
        self.range.shards().applied(to, from)
    }

    /// Says that the envelopes of a shard were applied up to a number: a mistake.
    pub fn set_applied(&mut self, to: ShardId, from: ShardId, number: u64) {
        self.range.shards_mut().metas[usize::from(to.0)].applied[usize::from(from.0)] = number;
    }

    /// Whether a commit without a command would do something.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.range.has_work()
    }

    /// Whether there is something to post.
    #[must_use]
    pub fn has_posts(&self) -> bool {
        self.range.outbox().has_posts()
    }

    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.range.backlog()
    }

    /// How far the feed of a shard goes.
    #[must_use]
    pub fn feed_end(&self, shard: ShardId) -> FeedExtent {
        crate::service::extent(&self.range.shards().metas[usize::from(shard.0)])
    }
}

impl Owed {
    /// Goes through all rows of a range.
    #[must_use]
    pub fn of(map: RangeMap, id: RangeId) -> Self {
        Self(OwedScan::new(map.run(id)))
    }

    /// What the next so many rows owe; none at the end.
    ///
    /// # Errors
    /// When a row is damaged.
    pub fn piece(&mut self, store: &dyn Store, rows: usize) -> Result<Option<FoundOwed>, StoreError> {
        let Some(owed) = self.0.piece(store, rows)? else { return Ok(None) };
        let verify =
            owed.unverified.into_iter().map(|UnverifiedMember { page, content, winner, winner_content }| {
                Effect::Verify { page, content, winner, winner_content }
            });
        let deferred = owed.deferred.into_iter().map(Effect::Deferred);
        let dirty = owed.dirty.into_iter().map(Effect::Dirty);
        let uncovered = owed.uncovered.into_iter().map(Effect::Uncovered);
        let effects = verify.chain(deferred).chain(dirty).chain(uncovered).collect();
        Ok(Some(FoundOwed { commands: owed.searches.into_iter().map(Command).collect(), effects }))
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
            MachineEffect::Uncovered(group) => Self::Uncovered(group),
            MachineEffect::Deferred(page) => Self::Deferred(page),
            // Nothing is to be done for it.
            MachineEffect::Changed | MachineEffect::Quarantine { .. } | MachineEffect::Crowded { .. } => {
                Self::Changed
            }
            MachineEffect::Outcome(outcome) => Self::Outcome(outcome),
        }
    }
}

impl Command {
    #[must_use]
    pub fn submit(submission: Submission, hint: Option<Given>) -> Self {
        // Pages are of a few clients.
        let client = ClientId(u32::from(submission.url.id().bytes()[0] % 3));
        Self(MachineCommand::Submit {
            submission: Box::new(submission),
            hint: hint.map(|given| given.0),
            client,
        })
    }

    #[must_use]
    pub fn searched(result: SearchResult) -> Self {
        Self(MachineCommand::Searched(result))
    }

    #[must_use]
    pub fn search_now(page: PageId) -> Self {
        Self(MachineCommand::SearchNow { page })
    }

    /// The page that was found pending at a start.
    #[must_use]
    pub fn resumed(&self) -> Option<PageId> {
        if let MachineCommand::ResumeSearch { page } = self.0 { Some(page) } else { None }
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

    /// Says that a cover has nothing new: a mistake.
    #[must_use]
    pub fn without_news(mut self) -> Self {
        if let MachineCommand::Covered(covered) = &mut self.0 {
            covered.members.clear();
        }
        self
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
            | MachineCommand::ResumeSearch { page }
            | MachineCommand::Purge { page }
            | MachineCommand::ExpirePage { page, .. } => page.shard(shards),
            MachineCommand::Recomputed(step) => step.group.shard(),
            MachineCommand::Covered(covered) => covered.group.shard(),
            MachineCommand::ExpireGroup { group, .. } => group.shard(),
            MachineCommand::ExpireRepair { repair, .. } | MachineCommand::ForgetInRepair { repair, .. } => {
                repair.shard
            }
            MachineCommand::KeepIndexState { .. } => crate::key::INDEX_STATE_SHARD,
        }
    }
}
