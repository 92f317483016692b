//! Presents several nodes of tier 1 as a single tier 1, for a coordinator or a node of tier 2.
//!
//! A call about a page or a group goes to the node that owns its shard, and lists are split by node. Any node
//! can answer a call about the whole collection. If a node cannot be reached, such a call goes to another.
//!
//! A node may lose the ownership of a shard during a call. It then answers that it is unavailable, as if no
//! owner were known. The caller tries again, and the new owner may be known by then. Meanwhile, questions of
//! callers go to nodes with replicas (`question`).

mod owners;
mod parts;
mod question;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::{Duration, Instant};

use doppel_contract::SubmissionOutcome;
use doppel_contract::answer::Advice;
use doppel_model::signature::Signature;
use doppel_model::{ClientId, GroupId, PageId, PageUrl, ShardId};
use doppel_protocol::{
    BATCH_PAGES_MAX, BackupError, BackupStream, FeedBatch, GroupFilter, GroupPosition, GroupSummary,
    GroupView, LinesPage, PageView, Question, RepairDetails, RepairId, RepairPosition, RepairReport,
    RepairTrail, SIGNATURES_MAX, ScanPosition, SignatureSource, SourceError, Submission, Tier1Api,
    Tier1Error, Tier1Reads, Totals,
};

pub use owners::{FixedOwners, OwnerLookup};
use parts::Nodes;
use question::SpreadReads;

type Answer<T> = Result<T, Tier1Error>;

/// Several nodes of tier 1, presented as a single tier 1.
pub struct SpreadTier1(Nodes<dyn Tier1Api, Tier1Error>);

impl SpreadTier1 {
    /// Creates a tier 1 from nodes. `owners` returns the index in `nodes` of each shard's owner, and is asked
    /// for every call.
    #[must_use]
    pub fn new(nodes: Vec<Arc<dyn Tier1Api>>, owners: Arc<dyn OwnerLookup>) -> Self {
        Self(Nodes::new(nodes, owners, Tier1Error::Unavailable))
    }

    fn any<'a, R>(&'a self, ask: impl Fn(&'a dyn Tier1Api) -> Answer<R>) -> Answer<R> {
        self.0.any(ask, Tier1Error::is_away)
    }

    fn of(&self, shard: ShardId) -> Answer<&dyn Tier1Api> {
        self.0.of_shard(shard)
    }
}

/// Refuses a list that is too long as a whole, before any node has processed a part of it.
fn check(found: usize) -> Answer<()> {
    if found > BATCH_PAGES_MAX {
        Err(Tier1Error::BatchTooLarge { found, limit: BATCH_PAGES_MAX })
    } else {
        Ok(())
    }
}

fn time_until(until: Instant) -> Duration {
    until.saturating_duration_since(Instant::now())
}

impl Tier1Reads for SpreadTier1 {
    fn pages(&self, pages: &[PageId]) -> Answer<Vec<Option<PageView>>> {
        check(pages.len())?;
        self.0.each_in_order(pages.to_vec(), |page| *page, |node, some| node.pages(&some))
    }

    fn known_advice(&self, page: &PageUrl) -> Option<Advice> {
        self.0.of_page(page.id()).ok()?.known_advice(page)
    }

    fn known_advices(&self, pages: &[PageUrl]) -> Answer<Vec<Option<Advice>>> {
        check(pages.len())?;
        self.0.each_in_order(pages.to_vec(), PageUrl::id, |node, some| node.known_advices(&some))
    }

    fn first_spelling(&self, form: PageId, except: Option<PageId>) -> Answer<Option<PageId>> {
        self.0.of_page(form)?.first_spelling(form, except)
    }

    fn signature(&self, page: PageId) -> Answer<Option<Arc<Signature>>> {
        self.0.of_page(page)?.signature(page)
    }

    fn group_summary(&self, group: GroupId) -> Answer<Option<GroupSummary>> {
        self.of(group.shard())?.group_summary(group)
    }

    fn group(
        &self,
        group: GroupId,
        after: Option<GroupPosition>,
        limit: usize,
        redirects: bool,
    ) -> Answer<Option<GroupView>> {
        self.of(group.shard())?.group(group, after, limit, redirects)
    }
}

impl Tier1Api for SpreadTier1 {
    /// A node records its submissions in order. If a node fails, the call returns only its error, although
    /// the other nodes have recorded theirs. The caller sends all submissions again; those on record change
    /// nothing.
    fn submit_for(&self, client: ClientId, submissions: Vec<Submission>) -> Answer<Vec<SubmissionOutcome>> {
        check(submissions.len())?;
        self.0.each_in_order(submissions, |one| one.url.id(), |node, some| node.submit_for(client, some))
    }

    /// Submissions for a node that fails, or for a shard without a known owner, fail. The others succeed.
    fn submit_each(&self, client: ClientId, submissions: Vec<Submission>) -> Vec<Answer<SubmissionOutcome>> {
        let count = submissions.len();
        if let Err(refused) = check(count) {
            return vec![Err(refused); count];
        }
        let mut answers = vec![Err(Tier1Error::Stopping); count];
        let parts = self.0.each_part(
            submissions,
            |one| one.url.id(),
            |node, some| Ok(node.submit_each(client, some)),
        );
        for (positions, part) in parts {
            let some = part.unwrap_or_else(|refused| vec![Err(refused); positions.len()]);
            for (position, answer) in positions.into_iter().zip(some) {
                answers[position] = answer;
            }
        }
        answers
    }

    fn for_question<'t>(&'t self, question: &Question) -> Option<Box<dyn Tier1Reads + 't>> {
        if self.0.owners.may_change() {
            question.note_deposable_owners();
        }
        Some(Box::new(SpreadReads { nodes: &self.0, question: question.clone() }))
    }

    fn groups(&self, filter: GroupFilter, after: Option<GroupId>, limit: usize) -> Answer<Vec<GroupSummary>> {
        self.any(|node| node.groups(filter, after, limit))
    }

    fn changes(&self, cursor: Option<&str>, limit: usize, wait: Duration) -> Answer<FeedBatch> {
        let until = Instant::now() + wait;
        self.any(|node| node.changes(cursor, limit, time_until(until)))
    }

    fn scan(&self, after: Option<ScanPosition>, limit: usize) -> Answer<LinesPage> {
        self.any(|node| node.scan(after, limit))
    }

    fn cursor(&self) -> Answer<String> {
        self.any(Tier1Api::cursor)
    }

    fn totals(&self) -> Answer<Totals> {
        self.any(Tier1Api::totals)
    }

    fn writable(&self) -> Answer<()> {
        self.any(Tier1Api::writable)
    }

    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Answer<Option<RepairReport>> {
        self.of(group.shard())?.repair(group, dry_run, by)
    }

    fn repairs(
        &self,
        group: Option<GroupId>,
        before: Option<&RepairPosition>,
        limit: usize,
    ) -> Answer<RepairTrail> {
        self.any(|node| node.repairs(group, before, limit))
    }

    fn repair_details(&self, id: RepairId) -> Answer<Option<RepairDetails>> {
        self.of(id.shard)?.repair_details(id)
    }

    /// If a node fails, the other nodes have still purged their pages.
    fn purge(&self, pages: &[PageId]) -> Answer<u64> {
        check(pages.len())?;
        let purged = self.0.each(pages.to_vec(), |page| *page, |node, some| node.purge(&some))?;
        Ok(purged.into_iter().map(|(_, purged)| purged).sum())
    }

    /// Calls only one node, after a cheap call has shown that it answers. The purge itself is not repeated.
    fn purge_host(&self, host: &str) -> Answer<u64> {
        self.any(|node| node.cursor().map(|_| node))?.purge_host(host)
    }

    fn backup(&self) -> Result<BackupStream, BackupError> {
        let cannot_begin =
            |error: &BackupError| matches!(error, BackupError::Tier1Error(error) if error.is_away());
        self.0.any(Tier1Api::backup, cannot_begin)
    }

    fn flush(&self, limit: Duration) -> Answer<bool> {
        let until = Instant::now() + limit;
        // If a node waited until the time limit, its error counts, because no time remains for another node.
        let is_away = |error: &Tier1Error| error.is_away() && (limit.is_zero() || Instant::now() < until);
        self.0.any(|node| node.flush(time_until(until)), is_away)
    }
}

/// The signatures of tier 1 on several nodes.
pub struct SpreadSignatures(Nodes<dyn SignatureSource, SourceError>);

impl SpreadSignatures {
    /// Creates a source from nodes. `owners` returns the index in `nodes` of each shard's owner, and is asked
    /// for every call.
    #[must_use]
    pub fn new(nodes: Vec<Arc<dyn SignatureSource>>, owners: Arc<dyn OwnerLookup>) -> Self {
        Self(Nodes::new(nodes, owners, SourceError::Unavailable))
    }
}

impl SignatureSource for SpreadSignatures {
    fn signatures(&self, pages: &[PageId]) -> Result<Vec<Option<Arc<Signature>>>, SourceError> {
        let pages = pages[..pages.len().min(SIGNATURES_MAX)].to_vec();
        self.0.each_in_order(pages, |page| *page, |node, some| node.signatures(&some))
    }
}
