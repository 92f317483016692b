//! Tier 1 without threads, for the simulation of clusters in `tests/sim` (feature `simulation`).
//!
//! All types wrap the product's own types. A [`SimRange`] is a range over a store. It returns its writes,
//! messages, and effects step by step, so the simulation decides what is delivered when, and where the range
//! crashes. A [`Worker`] is the worker and the reading side of tier 1 over the stores of all ranges. A
//! [`SimReplica`] is a replica of a range. [`SimFiles`] is the database of a range over files that fail.
//! [`rows`] returns the rows of a store as public types.
#![allow(missing_docs, reason = "for the tests of this repository alone")]

mod envelope;
mod post;
mod reads;
mod replica;
mod rows;
mod statuses;
mod tampering;
mod worker;

use doppel_contract::{Backlog, SubmissionOutcome};
use doppel_model::pairwise::Policy;
use doppel_model::{ClientId, ContentHash, GroupId, PageId, RangeId, ShardId, Timestamp};
pub use doppel_protocol::range_owner::FeedExtent;
use doppel_protocol::{IndexCommand, RangeMap, SearchResult, Submission, WinnerOrder};

use crate::bulk::{Bulk, BulkConfig, BulkError, GroupedCollection};
use crate::machine::{COMMIT_ROWS, Command as MachineCommand, Effect as MachineEffect, Hint};
use crate::range::owed::{OwedScan, UnverifiedMember};
use crate::range::{PostId, Range, SettledWork};
pub use crate::storage::database::simulated::sim_files::{Forgotten, SimFiles};
pub use crate::storage::store::{Intercept, Intercepted};
use crate::storage::store::{Store, StoreError, Write};
use crate::{Retention, Rules};
pub use envelope::{Envelope, MessageKind, SimEnrolment};
pub use post::{PostReply, SimPost};
pub use replica::{SimChain, SimCommit, SimDisk, SimReplica};
pub use rows::{DecodedRow, GroupRow, MemberRow, PageRow, rows};
pub use statuses::StatusFill;
pub use tampering::{
    forget_contents, is_feed_row, is_outbox_row, is_signature_row, page_of_row, redirect_forward,
};
pub use worker::{Worker, last_ticket, signature};

/// Settings with which a cluster is created.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub shards: u16,
    pub policy: Policy,
    pub winners: WinnerOrder,
    /// Number of distinct contents above which a group is quarantined.
    pub group_members_max: u64,
    /// Percentage of members dissimilar to the winner from which on a group is recomputed; 0 for never.
    pub low_cohesion_percent: u8,
    pub rules: Rules,
    pub retention: Retention,
    /// Number of rows in one step of work that may concern many rows.
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

/// Groups a whole collection at once. Returns its groups, and the rows of each range.
///
/// # Errors
/// The errors of [`Bulk::rows`].
pub fn at_once(
    config: &BulkConfig<'_>,
    map: RangeMap,
    submissions: impl IntoIterator<Item = Submission>,
) -> Result<(GroupedCollection, Vec<Vec<Write>>), BulkError> {
    Bulk::rows(config, map, submissions)
}

/// A range, as the simulation drives it.
#[derive(Debug)]
pub struct SimRange {
    range: Range,
}

/// A scan after a start for the work that the records owe.
#[derive(Debug)]
pub struct SimOwedScan(OwedScan);

/// Work that a piece of the records owes.
#[derive(Debug, Default)]
pub struct SimOwedWork {
    pub commands: Vec<Command>,
    pub effects: Vec<Effect>,
}

/// Work outside the range, to be done once a commit is durable.
#[derive(Debug, Clone)]
pub enum Effect {
    Index(IndexCommand),
    Verify { page: PageId, content: ContentHash, winner: PageId, winner_content: ContentHash },
    Dirty(GroupId),
    Uncovered(GroupId),
    Deferred(PageId),
    Changed,
    Outcome(SubmissionOutcome),
}

/// Work of a settled commit that may leave the range.
#[derive(Debug, Default)]
pub struct SimSettledWork {
    pub effects: Vec<Effect>,
    /// Answers to posts of other ranges, each with the id of the post.
    pub answers: Vec<(PostId, PostReply)>,
}

/// A command for a range.
#[derive(Debug, Clone)]
pub struct Command(MachineCommand);

/// F between a new content and the page's representative, computed outside the machine.
#[derive(Debug, Clone, Copy)]
pub struct SubmissionHint(Hint);

impl SubmissionHint {
    /// Returns the hint with a forged result: the contents are similar. This is a planted mistake.
    #[must_use]
    pub fn forged(mut self) -> Self {
        self.0.with.similar = true;
        self
    }
}

impl SimRange {
    /// Opens a range from its store.
    ///
    /// # Errors
    /// If a row is damaged.
    pub fn start(
        store: &dyn Store,
        settings: Settings,
        id: RangeId,
        map: RangeMap,
    ) -> Result<Self, StoreError> {
        Ok(Self { range: Range::open(store, settings.inner(), id, map)? })
    }

    /// Builds a commit from commands and up to `deliveries` envelopes within the range, in their order. The
    /// posts of other ranges are applied after both, and with `posted_first` also before both.
    ///
    /// # Errors
    /// If the store fails or a row is damaged.
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

    /// Returns the work of the last commit. The simulation calls this when the commit is settled.
    pub fn settled(&mut self) -> SimSettledWork {
        let SettledWork { effects, answers, .. } = self.range.settled();
        let effects = effects.into_iter().map(Effect::from).collect();
        SimSettledWork {
            effects,
            answers: answers.into_iter().map(|(id, answer)| (id, PostReply::new(answer))).collect(),
        }
    }

    /// Returns the next posts to other ranges, with at most `most` envelopes each.
    ///
    /// # Errors
    /// If a row is damaged.
    pub fn posts(&mut self, store: &dyn Store, most: usize) -> Result<Vec<SimPost>, StoreError> {
        Ok(self.range.posts(store, most)?.into_iter().map(SimPost::new).collect())
    }

    /// Takes the answer of range `by` to a post.
    ///
    /// # Panics
    /// If one of the two ranges was restored to an earlier time alone.
    pub fn confirmed(&mut self, by: RangeId, answer: &PostReply) {
        self.range.confirmed(by, answer.inner()).expect("no range was restored to an earlier time alone");
    }

    /// Takes a post of another range. Returns an answer if the post is refused at once.
    pub fn take_in(&mut self, id: PostId, post: SimPost) -> Option<PostReply> {
        self.range.take_in(id, post.into_inner()).err().map(|error| PostReply::new(Err(error)))
    }

    /// Removes and returns the envelopes within the range that are not delivered. Envelopes of earlier
    /// commits are also in the outbox.
    pub fn take_envelopes(&mut self) -> Vec<Envelope> {
        self.range.shards_mut().queue.drain(..).map(Envelope::new).collect()
    }

    /// Adds envelopes within the range, to be delivered in this order after the present ones.
    pub fn put_envelopes(&mut self, envelopes: impl IntoIterator<Item = Envelope>) {
        self.range.shards_mut().queue.extend(envelopes.into_iter().map(Envelope::into_inner));
    }

    /// Number of the last envelope of `from` that `to` has applied.
    #[must_use]
    pub fn applied(&self, to: ShardId, from: ShardId) -> u64 {
        self.range.shards().applied(to, from)
    }

    /// Claims that `to` has applied the envelopes of `from` up to `number`. This is a planted mistake.
    pub fn set_applied(&mut self, to: ShardId, from: ShardId, number: u64) {
        self.range.shards_mut().metas[usize::from(to.0)].applied[usize::from(from.0)] = number;
    }

    /// Whether a commit without commands would do something.
    #[must_use]
    pub fn has_work(&self) -> bool {
        self.range.has_work()
    }

    /// Whether an envelope waits for another range.
    #[must_use]
    pub fn has_posts(&self) -> bool {
        self.range.outbox().has_posts()
    }

    #[must_use]
    pub fn backlog(&self) -> Backlog {
        self.range.backlog()
    }

    /// First and last event of a shard's feed.
    #[must_use]
    pub fn feed_end(&self, shard: ShardId) -> FeedExtent {
        crate::service::extent(&self.range.shards().metas[usize::from(shard.0)])
    }
}

impl SimOwedScan {
    /// Creates a scan over all rows of a range.
    #[must_use]
    pub fn new(map: RangeMap, id: RangeId) -> Self {
        Self(OwedScan::new(map.run(id)))
    }

    /// Returns the work that the next `rows` rows owe, and `None` at the end.
    ///
    /// # Errors
    /// If a row is damaged.
    pub fn piece(&mut self, store: &dyn Store, rows: usize) -> Result<Option<SimOwedWork>, StoreError> {
        let Some(owed) = self.0.piece(store, rows)? else { return Ok(None) };
        let verify =
            owed.unverified.into_iter().map(|UnverifiedMember { page, content, winner, winner_content }| {
                Effect::Verify { page, content, winner, winner_content }
            });
        let deferred = owed.deferred.into_iter().map(Effect::Deferred);
        let dirty = owed.dirty.into_iter().map(Effect::Dirty);
        let uncovered = owed.uncovered.into_iter().map(Effect::Uncovered);
        let effects = verify.chain(deferred).chain(dirty).chain(uncovered).collect();
        Ok(Some(SimOwedWork { commands: owed.searches.into_iter().map(Command).collect(), effects }))
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
            // The simulation does nothing for these effects.
            MachineEffect::Changed | MachineEffect::Quarantine { .. } | MachineEffect::Crowded { .. } => {
                Self::Changed
            }
            MachineEffect::Outcome(outcome) => Self::Outcome(outcome),
        }
    }
}

impl Command {
    #[must_use]
    pub fn submit(submission: Submission, hint: Option<SubmissionHint>) -> Self {
        // The page id decides the client, so that the simulation has three clients.
        let client = ClientId(u32::from(submission.url.id().bytes()[0] % 3));
        Self(MachineCommand::Submit {
            submission: Box::new(submission),
            hint: hint.map(|hint| hint.0),
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

    /// The page of a command that resumes a search after a start.
    #[must_use]
    pub fn resumed_page(&self) -> Option<PageId> {
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

    /// Removes the changes from a cover update. This is a planted mistake.
    #[must_use]
    pub fn without_cover_changes(mut self) -> Self {
        if let MachineCommand::Covered(covered) = &mut self.0 {
            covered.members.clear();
        }
        self
    }

    /// The page of a submission.
    #[must_use]
    pub fn submitted_page(&self) -> Option<PageId> {
        match &self.0 {
            MachineCommand::Submit { submission, .. } => Some(submission.url.id()),
            _ => None,
        }
    }

    /// The shard at which the command is applied.
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
            MachineCommand::KeepIndexState { .. } => crate::rows::key::INDEX_STATE_SHARD,
        }
    }
}
