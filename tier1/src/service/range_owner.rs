//! The ranges of this process as other nodes of tier 1 call them.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use doppel_contract::Outcome;
use doppel_model::{ClientId, GroupId, PageId, RangeId};
use doppel_protocol::range_owner::{
    BackupId, EncodedPost, PeerError, PostDone, RangeOwner, RangeReport, RangeState, Row,
};
use doppel_protocol::{
    Aged, LogPosition, RepairReport, Repeat, Search, SearchResult, Submission, Tier1Error, Whom,
};

use super::Tier1;
use super::task::{Report, Task};
use crate::database::LogConsumer;
use crate::machine::Command;
use crate::peers::{self, Post};

impl Tier1 {
    /// Ensures that this process owns a range and that the pages belong to it.
    fn check_pages<'p>(
        &self,
        range: RangeId,
        mut pages: impl Iterator<Item = &'p PageId>,
    ) -> Result<(), PeerError> {
        self.own(range)?;
        let other = pages.find(|page| self.map.of_page(**page) != range);
        other.map_or(Ok(()), |page| Err(PeerError::NotOwner(self.map.of_page(*page))))
    }
}

impl RangeOwner for Tier1 {
    fn post(&self, post: EncodedPost, done: PostDone) {
        // Messages are applied whether or not the range may answer.
        let owner = self.ranges.here(post.to).ok_or(PeerError::NotOwner(post.to));
        let decoded = owner.and_then(|owner| Ok((owner, Post::decoded(&post)?)));
        match decoded {
            Ok((owner, post)) => owner.post(post, done),
            Err(error) => done(Err(error)),
        }
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        let owner = self.own(range)?;
        let rows = owner.rows(keys)?;
        // The ownership may have ended while the rows were read.
        owner.check()?;
        Ok(rows)
    }

    fn scan(&self, range: RangeId, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Row>, PeerError> {
        let owner = self.own(range)?;
        let rows = owner.scan(from, to, limit)?;
        owner.check()?;
        Ok(rows)
    }

    fn rows_for_question(
        &self,
        range: RangeId,
        keys: &[Vec<u8>],
        whom: Whom,
    ) -> Result<Aged<Vec<Option<Vec<u8>>>>, PeerError> {
        self.ranges.asked_for(range, whom, |store| peers::rows_of(store, keys))
    }

    fn scan_for_question(
        &self,
        range: RangeId,
        (from, to): (&[u8], &[u8]),
        limit: usize,
        whom: Whom,
    ) -> Result<Aged<Vec<Row>>, PeerError> {
        self.ranges.asked_for(range, whom, |store| peers::piece_of(store, from, to, limit))
    }

    fn state(&self, range: RangeId) -> Result<RangeState, PeerError> {
        let owner = self.own(range)?;
        let (counters, backlog) = owner.totals();
        let (decision_times, shards) = {
            let figures = owner.figures();
            (figures.decision_times(Instant::now()), figures.shards().to_vec())
        };
        let feeds = {
            let feed = self.feed.lock().unwrap_or_else(PoisonError::into_inner);
            self.map.shards_of(range).map(|shard| feed[usize::from(shard.0)]).collect()
        };
        let (disk_full, disk_recoveries) = self.refusals.disk_of(range);
        Ok(RangeState {
            collection: self.collection,
            epoch: owner.epoch,
            ordered: owner.ordered.load(Ordering::Acquire),
            counters,
            backlog,
            decision_times,
            shards,
            feeds,
            moment: *owner.moment.lock().unwrap_or_else(PoisonError::into_inner),
            copied: owner.database.as_ref().and_then(|database| database.last_copied_place()),
            failures: owner.stuck.failures(),
            refused: self.check().err(),
            disk_full,
            disk_recoveries,
        })
    }

    fn report(&self, range: RangeId, limit: Duration) -> Result<RangeReport, PeerError> {
        self.check()?;
        let owner = self.own(range)?;
        let asked = owner.ask(0, |reply| Task::Report { reply })?;
        let Report { backlog, traffic } = asked.wait_until(Instant::now() + limit).flatten()?;
        let (failures, refused) = (owner.stuck.failures(), owner.stuck.since(0));
        Ok(RangeReport { epoch: owner.epoch, backlog, traffic, failures, refused })
    }

    fn hurry(&self, range: RangeId, again: bool) -> Result<(), PeerError> {
        let owner = self.own(range)?;
        if again && owner.stuck.since(0).is_some() {
            owner.retry()?;
        }
        Ok(owner.hurry()?)
    }

    fn submit(
        &self,
        range: RangeId,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<Outcome>, PeerError> {
        let pages: Vec<PageId> = submissions.iter().map(|submission| submission.url.id()).collect();
        self.check_pages(range, pages.iter())?;
        Ok(self.submit_here(client, submissions)?)
    }

    fn purge(&self, range: RangeId, pages: &[PageId]) -> Result<(), PeerError> {
        self.check_pages(range, pages.iter())?;
        let owner = self.own(range)?;
        let commands = pages.iter().map(|page| Command::Purge { page: *page }).collect();
        match &owner.database {
            Some(database) => database.purge(|| self.apply(&owner, commands)).map_err(Tier1Error::from)??,
            None => self.apply(&owner, commands)?,
        }
        Ok(())
    }

    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, PeerError> {
        let owner = self.own(self.map.of_shard(group.shard()))?;
        let repaired = self.repair_group(&owner, group, dry_run, by)?;
        owner.check()?;
        Ok(repaired)
    }

    fn deliver(&self, range: RangeId, results: Vec<SearchResult>) -> Result<(), PeerError> {
        let owner = self.ranges.here(range).ok_or(PeerError::NotOwner(range))?;
        Ok(owner.deliver(results)?)
    }

    /// Returns after the commit that records that the searches are owed.
    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Result<(), PeerError> {
        let again = |Repeat { page, content, .. }| {
            Command::Searched(SearchResult { page, content, ticket: Search::UNREQUESTED, pairs: Vec::new() })
        };
        let owner = self.own(range)?;
        Ok(self.apply_at_once(&owner, repeats.into_iter().map(again).collect())?)
    }

    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, PeerError> {
        let Some(database) = &self.own(range)?.database else { return Ok(None) };
        Ok(database.changed_since(since)?)
    }

    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), PeerError> {
        let owner = self.own(range)?;
        let Some(database) = &owner.database else { return Ok(()) };
        database.keep_log_if(LogConsumer::Index, after, || owner.check())
    }

    fn follow(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.follow_range(range, backup)
    }

    fn hold(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.hold_range(range, backup)
    }

    fn cut(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.cut_range(range, backup)
    }

    fn release(&self, range: RangeId, backup: BackupId) -> Result<bool, PeerError> {
        self.release_range(range, backup)
    }

    fn kept(&self, range: RangeId, backup: BackupId, from: u64) -> Result<Vec<u8>, PeerError> {
        self.kept_of_range(range, backup, from)
    }

    fn forget(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.forget_range(range, backup);
        Ok(())
    }
}
