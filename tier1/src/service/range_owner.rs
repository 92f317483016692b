//! The ranges of this process as other nodes of tier 1 call them.

use std::time::{Duration, Instant};

use doppel_contract::SubmissionOutcome;
use doppel_model::{ClientId, GroupId, PageId, RangeId};
use doppel_protocol::range_owner::{
    BackupId, EncodedPost, EncodedRow, PeerError, PostCallback, RangeOwner, RangeReport, RangeState,
};
use doppel_protocol::{
    DatedAnswer, LogPosition, ReadTarget, RepairReport, Repeat, Search, SearchResult, Submission, Tier1Error,
};

use crate::machine::Command;
use crate::peers::{self, Post};
use crate::service::Tier1;
use crate::service::ownership::owner::Owner;
use crate::service::writer::task::{RangeBacklog, Task};
use crate::storage::database::LogConsumer;

impl Tier1 {
    /// Applies commands at a range and returns when they are committed. Commands that `may_wait` are held
    /// back while too many messages wait to leave the range.
    fn apply(&self, owner: &Owner, commands: Vec<Command>, may_wait: bool) -> Result<(), Tier1Error> {
        self.check()?;
        owner.apply(commands, may_wait)?.wait()?
    }

    /// Ensures that this process owns a range and that the pages belong to it.
    fn check_pages<'p>(
        &self,
        range: RangeId,
        mut pages: impl Iterator<Item = &'p PageId>,
    ) -> Result<(), PeerError> {
        self.answering_owner(range)?;
        let other = pages.find(|page| self.collection.map.of_page(**page) != range);
        other.map_or(Ok(()), |page| Err(PeerError::NotOwner(self.collection.map.of_page(*page))))
    }
}

impl RangeOwner for Tier1 {
    fn post(&self, post: EncodedPost, done: PostCallback) {
        // Messages are applied whether or not the range may answer.
        let owner = self.owned.ranges.local_owner(post.to).ok_or(PeerError::NotOwner(post.to));
        let decoded = owner.and_then(|owner| Ok((owner, Post::decoded(&post)?)));
        match decoded {
            Ok((owner, post)) => owner.post(post, done),
            Err(error) => done(Err(error)),
        }
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        let owner = self.answering_owner(range)?;
        let rows = owner.rows(keys)?;
        // The ownership may have ended while the rows were read.
        owner.check()?;
        Ok(rows)
    }

    fn scan(
        &self,
        range: RangeId,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError> {
        let owner = self.answering_owner(range)?;
        let rows = owner.scan(from, to, limit)?;
        owner.check()?;
        Ok(rows)
    }

    fn rows_for_question(
        &self,
        range: RangeId,
        keys: &[Vec<u8>],
        whom: ReadTarget,
    ) -> Result<DatedAnswer<Vec<Option<Vec<u8>>>>, PeerError> {
        self.owned.ranges.answer_for_node(range, whom, |store| peers::rows_of(store, keys))
    }

    fn scan_for_question(
        &self,
        range: RangeId,
        (from, to): (&[u8], &[u8]),
        limit: usize,
        whom: ReadTarget,
    ) -> Result<DatedAnswer<Vec<EncodedRow>>, PeerError> {
        self.owned.ranges.answer_for_node(range, whom, |store| peers::piece_of(store, from, to, limit))
    }

    fn state(&self, range: RangeId) -> Result<RangeState, PeerError> {
        self.owned.state(range)
    }

    fn report(&self, range: RangeId, limit: Duration) -> Result<RangeReport, PeerError> {
        self.check()?;
        let owner = self.answering_owner(range)?;
        let asked = owner.ask(0, |reply| Task::Report { reply })?;
        let RangeBacklog { backlog, traffic } = asked.wait_until(Instant::now() + limit).flatten()?;
        let (failures, refused) = (owner.failures.count(), owner.failures.reason_since(0));
        Ok(RangeReport { epoch: owner.epoch, backlog, traffic, failures, refused })
    }

    fn hurry(&self, range: RangeId, again: bool) -> Result<(), PeerError> {
        let owner = self.answering_owner(range)?;
        if again && owner.failures.reason_since(0).is_some() {
            owner.retry()?;
        }
        Ok(owner.hurry()?)
    }

    fn submit(
        &self,
        range: RangeId,
        client: ClientId,
        submissions: Vec<Submission>,
    ) -> Result<Vec<SubmissionOutcome>, PeerError> {
        let pages: Vec<PageId> = submissions.iter().map(|submission| submission.url.id()).collect();
        self.check_pages(range, pages.iter())?;
        Ok(self.submissions.submit(client, submissions)?)
    }

    fn purge(&self, range: RangeId, pages: &[PageId]) -> Result<(), PeerError> {
        self.check_pages(range, pages.iter())?;
        let owner = self.answering_owner(range)?;
        let commands = pages.iter().map(|page| Command::Purge { page: *page }).collect();
        match &owner.database {
            Some(database) => {
                database.purge(|| self.apply(&owner, commands, true)).map_err(Tier1Error::from)??;
            }
            None => self.apply(&owner, commands, true)?,
        }
        Ok(())
    }

    fn repair(&self, group: GroupId, dry_run: bool, by: &str) -> Result<Option<RepairReport>, PeerError> {
        let owner = self.answering_owner(self.collection.map.of_shard(group.shard()))?;
        let repaired = self.upkeep.repair(&owner, group, dry_run, by)?;
        owner.check()?;
        Ok(repaired)
    }

    fn deliver(&self, range: RangeId, results: Vec<SearchResult>) -> Result<(), PeerError> {
        let owner = self.owned.ranges.local_owner(range).ok_or(PeerError::NotOwner(range))?;
        Ok(owner.deliver(results)?)
    }

    /// Returns after the commit that records that the searches are owed.
    fn repeat(&self, range: RangeId, repeats: Vec<Repeat>) -> Result<(), PeerError> {
        let again = |Repeat { page, content, .. }| {
            Command::Searched(SearchResult { page, content, ticket: Search::UNREQUESTED, pairs: Vec::new() })
        };
        let owner = self.answering_owner(range)?;
        Ok(self.apply(&owner, repeats.into_iter().map(again).collect(), false)?)
    }

    fn changed_since(&self, range: RangeId, since: LogPosition) -> Result<Option<Vec<PageId>>, PeerError> {
        let Some(database) = &self.answering_owner(range)?.database else { return Ok(None) };
        Ok(database.changed_since(since)?)
    }

    fn keep_log(&self, range: RangeId, after: Option<u64>) -> Result<(), PeerError> {
        let owner = self.answering_owner(range)?;
        let Some(database) = &owner.database else { return Ok(()) };
        database.keep_log_if(LogConsumer::Index, after, || owner.check())
    }

    fn follow(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.backups.follow(range, backup)
    }

    fn hold(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.backups.hold(range, backup)
    }

    fn cut(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.backups.cut(range, backup)
    }

    fn release(&self, range: RangeId, backup: BackupId) -> Result<bool, PeerError> {
        self.backups.release_held(range, backup)
    }

    fn kept(&self, range: RangeId, backup: BackupId, from: u64) -> Result<Vec<u8>, PeerError> {
        self.backups.read_spill(range, backup, from)
    }

    fn forget(&self, range: RangeId, backup: BackupId) -> Result<(), PeerError> {
        self.backups.forget(range, backup);
        Ok(())
    }
}
