//! Work that the records say is owed, found piece by piece while the range serves already.
//!
//! A record may change before the piece that has it is read, and then its change has said what it owes. What is
//! found twice is done twice at worst: everything found is checked against the record when it is done.

use doppel_model::{ContentHash, GroupId, PageId, ShardId};

use crate::key::{self, Kind};
use crate::machine::Command;
use crate::record::{GroupRecord, PageRecord, SearchState, decode};
use crate::store::{Store, StoreError};

/// Rows of a piece.
pub(crate) const PIECE_ROWS: usize = 1_000;

/// What it goes through in each shard.
const KINDS: [Kind; 2] = [Kind::Page, Kind::Group];

/// Work that one piece of the rows owes.
#[derive(Debug, Default)]
pub(crate) struct Owed {
    /// For the machine: pending pages whose search may be lost.
    pub(crate) searches: Vec<Command>,
    /// Confirmed pages that owe a comparison.
    pub(crate) deferred: Vec<PageId>,
    /// Members to be verified: page, content, winner, its content.
    pub(crate) unverified: Vec<(PageId, ContentHash, PageId, ContentHash)>,
    /// Groups that owe a recomputation.
    pub(crate) dirty: Vec<GroupId>,
    /// Groups that owe a new cover.
    pub(crate) uncovered: Vec<GroupId>,
}

/// How far the rows of a range have been gone through.
#[derive(Debug)]
pub(crate) struct OwedScan {
    shard: ShardId,
    end: ShardId,
    /// Index into [`KINDS`].
    kind: usize,
    after: Option<Vec<u8>>,
    /// A row of the last piece, which is told of with the next.
    failed: Option<StoreError>,
}

impl OwedScan {
    /// Over the shards of a range.
    pub(crate) fn new(run: std::ops::Range<ShardId>) -> Self {
        Self { shard: run.start, end: run.end, kind: 0, after: None, failed: None }
    }

    /// What the next so many rows owe; none at the end.
    ///
    /// # Errors
    /// When a row cannot be read. What is before it was given out, and the scan goes on behind it the next time; when
    /// the store fails, behind all rows of the kind in the shard.
    pub(crate) fn piece(&mut self, store: &dyn Store, rows: usize) -> Result<Option<Owed>, StoreError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut owed = Owed::default();
        let mut left = rows;
        while self.shard < self.end && left > 0 {
            let kind = KINDS[self.kind];
            let (mut from, to) = key::all(self.shard, kind);
            if let Some(after) = &self.after {
                from = key::after(after);
            }
            let mut result = Ok(());
            let mut last = None;
            let read = store.range(&from, &to, &mut |key, bytes| {
                result = owed.add(kind, key, bytes);
                left -= 1;
                last = Some(key.to_vec());
                result.is_ok() && left > 0
            });
            if last.is_some() {
                self.after = last;
            }
            if let Err(error) = result {
                self.failed = Some(error);
                return Ok(Some(owed));
            }
            if let Err(error) = read {
                // Nobody knows where the rows behind it begin.
                self.next_kind();
                self.failed = Some(error);
                return Ok(Some(owed));
            }
            if left > 0 {
                self.next_kind();
            }
        }
        Ok((left < rows || self.shard < self.end).then_some(owed))
    }

    fn next_kind(&mut self) {
        self.after = None;
        self.kind = (self.kind + 1) % KINDS.len();
        self.shard.0 += u16::from(self.kind == 0);
    }
}

impl Owed {
    fn add(&mut self, kind: Kind, key: &[u8], bytes: &[u8]) -> Result<(), StoreError> {
        if kind == Kind::Group {
            if let (GroupRecord::Active(group), Some(id)) = (decode(key, bytes)?, key::last_number(key)) {
                let id = GroupId::from_stored(id);
                self.dirty.extend(group.owes_recomputation().then_some(id));
                self.uncovered.extend(group.owes_cover().then_some(id));
            }
            return Ok(());
        }
        let record: PageRecord = decode(key, bytes)?;
        let (Some(page), Some(state)) = (key::last_page(key), record.content()) else { return Ok(()) };
        if state.tokens == 0 {
            return Ok(());
        }
        // A page that asks its partners is answered by messages that are still on their way.
        match state.search {
            SearchState::Pending if state.partner_query.is_none() => {
                self.searches.push(Command::ResumeSearch { page });
            }
            SearchState::Deferred => self.deferred.push(page),
            SearchState::Pending | SearchState::Compared => {}
        }
        if let Some(winner) = state.membership.as_ref().and_then(|m| m.winner.as_ref())
            && state.owes_verdict(page)
        {
            self.unverified.push((page, state.content, winner.page, winner.content));
        }
        Ok(())
    }
}
