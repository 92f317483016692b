//! The reading side of tier 1 and its worker, over the stores of all ranges and without threads.

use std::path::PathBuf;
use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, GroupId, PageId, RangeId, Timestamp};
use doppel_protocol::{Submission, Tier1Api, Tier1Error};

use super::reads::FaultyReads;
use super::{Command, Settings, SubmissionHint};
use crate::machine::Command as MachineCommand;
use crate::peers::Peers;
use crate::service::upkeep::job::MemberVerification;
use crate::service::upkeep::recomputation::RecomputeWhen;
use crate::service::upkeep::worker::{self, LastWinner};
use crate::storage::store::{Store, StoreError};
use crate::{Config, Tier1};

/// Reads the signature of a page. `None` if the store does not have it, or it is damaged.
#[must_use]
pub fn signature(store: &dyn Store, shards: u16, page: PageId) -> Option<Arc<Signature>> {
    let bytes = store.get(&crate::rows::key::signature(page.shard(shards), page)).ok()??;
    Signature::from_bytes(&bytes).ok().map(Arc::new)
}

/// Reads the content of a page and its last ticket.
///
/// # Errors
/// If the row is damaged.
pub fn last_ticket(
    store: &dyn Store,
    shards: u16,
    page: PageId,
) -> Result<Option<(ContentHash, u32)>, StoreError> {
    let key = crate::rows::key::page(page.shard(shards), page);
    let record = crate::rows::txn::read::<crate::rows::record::PageRecord>(store, &key)?;
    Ok(record.and_then(|record| Some((record.content()?.content, record.ticket))))
}

/// A tier 1 whose threads are never started.
pub struct Worker {
    pub(super) tier1: Arc<Tier1>,
    reads: Arc<FaultyReads>,
    settings: Settings,
}

impl Worker {
    /// Creates a worker over the stores of all ranges.
    ///
    /// # Panics
    /// If a store is damaged or a setting is out of range.
    #[must_use]
    pub fn over_stores(stores: Vec<Arc<dyn Store>>, settings: Settings) -> Self {
        let config = Config {
            dir: PathBuf::new(),
            shards: settings.shards,
            ranges: stores.len() as u16,
            policy: settings.policy,
            winners: settings.winners,
            pending_max: u64::MAX,
            group_members_max: settings.group_members_max,
            low_cohesion_percent: settings.low_cohesion_percent,
            rules: settings.rules,
            retention: settings.retention,
            status_table: true,
            snapshot_pause: std::time::Duration::ZERO,
            durable: false,
            collection: 1,
            manifest: String::new(),
        };
        let mut reads = None;
        let between = |peers| {
            let faulty = Arc::new(FaultyReads::new(peers));
            reads = Some(Arc::clone(&faulty));
            faulty as Arc<dyn Peers>
        };
        let tier1 = Tier1::over_stores(stores, &config, between).expect("the stores are sound");
        Self { tier1, reads: reads.expect("`over_stores` calls `between`"), settings }
    }

    /// Makes one of `one_in` reads of rows fail from now on, and one of `one_in` answers short; none with 0.
    pub fn fail_reads(&self, one_in: u64, seed: u64) {
        self.reads.fail(one_in, seed);
    }

    /// Sets whether all reads of a range fail.
    pub fn set_away(&self, range: RangeId, is_away: bool) {
        self.reads.set_away(range, is_away);
    }

    /// Whether reads may fail at present.
    #[must_use]
    pub fn reads_may_fail(&self) -> bool {
        self.reads.may_fail()
    }

    /// The interface for questions about pages, groups, and the feed.
    #[must_use]
    pub fn api(&self) -> &dyn Tier1Api {
        &*self.tier1
    }

    /// Sets the extent of the feed of each shard.
    pub fn set_feed(&self, ends: Vec<super::FeedExtent>) {
        self.tier1.set_feed(ends);
    }

    /// Compares a new content with the page's representative.
    ///
    /// # Errors
    /// If a row is damaged.
    pub fn hint(&self, submission: &Submission) -> Result<Option<SubmissionHint>, Tier1Error> {
        Ok(self.tier1.hints(std::slice::from_ref(submission)).pop().flatten().map(SubmissionHint))
    }

    /// Compares a member with its winner. `None` if one of the two has another content by now.
    ///
    /// # Errors
    /// If a row is damaged.
    pub fn verify(
        &self,
        (page, content): (PageId, ContentHash),
        winner: (PageId, ContentHash),
    ) -> Result<Option<Command>, Tier1Error> {
        let (winner, winner_content) = winner;
        let mut found = Ok(None);
        let member = MemberVerification { page, content, winner, winner_content };
        let upkeep = self.tier1.upkeep();
        worker::verify(upkeep, vec![member], &mut LastWinner::default(), &mut |_, with| found = with);
        Ok(found?.map(|with| Command(MachineCommand::Verified { page, content, with })))
    }

    /// Recomputes a group by exact comparison. Without `repair`, only if the group is dirty; with it, always,
    /// as an operator does. Returns the result in steps of [`Settings::step_rows`] rows.
    ///
    /// # Errors
    /// If a row is damaged.
    pub fn recompute(&self, group: GroupId, repair: bool) -> Result<Vec<Command>, Tier1Error> {
        let wanted = if repair { RecomputeWhen::Always } else { RecomputeWhen::IfOwed };
        let Some(found) = self.tier1.recompute(group, wanted)? else { return Ok(Vec::new()) };
        let audit = repair.then(|| found.trail_entry(Timestamp::from_millis(0), "simulation"));
        let steps = found.commands(self.settings.step_rows, audit);
        Ok(steps.map(|step| Command(MachineCommand::Recomputed(step))).collect())
    }

    /// Finds the cover of a group, if the group needs a new one. Returns the result in steps of
    /// [`Settings::step_rows`] rows.
    ///
    /// # Errors
    /// If a row is damaged.
    pub fn find_cover(&self, group: GroupId) -> Result<Vec<Command>, Tier1Error> {
        let Some(found) = self.tier1.find_cover(group)? else { return Ok(Vec::new()) };
        Ok(found
            .commands(self.settings.step_rows)
            .map(|step| Command(MachineCommand::Covered(step)))
            .collect())
    }
}

impl Command {
    /// Changes a verdict or a search result so that it names the page's present content. This simulates a
    /// machine that does not check the content.
    ///
    /// # Errors
    /// If a row is damaged.
    pub fn with_present_content(self, store: &dyn Store, shards: u16) -> Result<Self, StoreError> {
        let record = |page: PageId| {
            let key = crate::rows::key::page(page.shard(shards), page);
            crate::rows::txn::read::<crate::rows::record::PageRecord>(store, &key)
        };
        Ok(Self(match self.0 {
            MachineCommand::Verified { page, content, mut with } => {
                let record = record(page)?;
                let state = record.as_ref().and_then(crate::rows::record::PageRecord::content);
                let winner = state.and_then(|s| s.membership.as_ref()).and_then(|m| m.winner.as_ref());
                with.content = winner.map_or(with.content, |winner| winner.content);
                MachineCommand::Verified { page, content: state.map_or(content, |s| s.content), with }
            }
            MachineCommand::Searched(mut result) => {
                if let Some(record) = record(result.page)? {
                    result.ticket = record.ticket;
                    result.content = record.content().map_or(result.content, |s| s.content);
                }
                MachineCommand::Searched(result)
            }
            other => other,
        }))
    }

    /// Changes a search result so that it names the page's open ticket.
    ///
    /// # Errors
    /// If a row is damaged.
    pub fn with_open_ticket(self, store: &dyn Store, shards: u16) -> Result<Self, StoreError> {
        Ok(Self(match self.0 {
            MachineCommand::Searched(mut result) => {
                let key = crate::rows::key::page(result.page.shard(shards), result.page);
                if let Some(record) = crate::rows::txn::read::<crate::rows::record::PageRecord>(store, &key)?
                {
                    result.ticket = record.ticket;
                }
                MachineCommand::Searched(result)
            }
            other => other,
        }))
    }

    /// Whether the command is a search result of tier 2.
    #[must_use]
    pub fn is_search_result(&self) -> bool {
        matches!(self.0, MachineCommand::Searched(_))
    }

    /// The member whose comparison with its winner the command reports.
    #[must_use]
    pub fn compared_page(&self) -> Option<PageId> {
        match &self.0 {
            MachineCommand::Verified { page, .. } => Some(*page),
            _ => None,
        }
    }
}
