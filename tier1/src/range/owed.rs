//! Finds the work that the records of a range owe after a start. It reads the records piece by piece, while
//! the range already serves requests.
//!
//! A record may change before the scan reads it. The change itself then reports the work, so the scan may
//! find the same work again. Work that is found twice is harmless, because the machine checks every result
//! against the record.

use doppel_model::{ContentHash, GroupId, PageId, ShardId};

use crate::machine::Command;
use crate::rows::key::{self, RowKind};
use crate::rows::record::{GroupRecord, PageRecord, SearchState, decode};
use crate::storage::store::{Store, StoreError};

/// Number of rows in a piece.
pub(crate) const PIECE_ROWS: usize = 1_000;

/// Kinds of rows that the scan reads in each shard.
const KINDS: [RowKind; 2] = [RowKind::Page, RowKind::Group];

/// Work that a piece of the rows owes.
#[derive(Debug, Default)]
pub(crate) struct OwedWork {
    /// Commands for pending pages whose search may have been lost.
    pub(crate) searches: Vec<Command>,
    /// Confirmed pages with a deferred search.
    pub(crate) deferred: Vec<PageId>,
    /// Members that must be compared with the winner.
    pub(crate) unverified: Vec<UnverifiedMember>,
    /// Groups that must be recomputed.
    pub(crate) dirty: Vec<GroupId>,
    /// Groups that need a new cover.
    pub(crate) uncovered: Vec<GroupId>,
}

/// A member of a group that must be compared with the winner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct UnverifiedMember {
    pub(crate) page: PageId,
    pub(crate) content: ContentHash,
    pub(crate) winner: PageId,
    pub(crate) winner_content: ContentHash,
}

/// A scan over the rows of a range.
#[derive(Debug)]
pub(crate) struct OwedScan {
    shard: ShardId,
    end: ShardId,
    /// Index into [`KINDS`].
    kind: usize,
    /// Key of the last row that was read of this kind in this shard.
    after: Option<Vec<u8>>,
    /// Failure after the last piece, which the next call returns.
    failed: Option<StoreError>,
}

impl OwedScan {
    /// Creates a scan over the shards of a range.
    pub(crate) fn new(run: std::ops::Range<ShardId>) -> Self {
        Self { shard: run.start, end: run.end, kind: 0, after: None, failed: None }
    }

    /// Reads the next `rows` rows, and returns the work that they owe. Returns `None` at the end.
    ///
    /// # Errors
    /// If a row is damaged or the store fails. The work of earlier rows was already returned. The next call
    /// continues after the damaged row. If the store has failed, it continues after all rows of the kind in
    /// the shard.
    pub(crate) fn piece(&mut self, store: &dyn Store, rows: usize) -> Result<Option<OwedWork>, StoreError> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        let mut owed = OwedWork::default();
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
                // The position of the next readable row is unknown.
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

impl OwedWork {
    fn add(&mut self, kind: RowKind, key: &[u8], bytes: &[u8]) -> Result<(), StoreError> {
        if kind == RowKind::Group {
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
        // A page that has asked its partners gets their answers by messages under way, so it needs no
        // command.
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
            self.unverified.push(UnverifiedMember {
                page,
                content: state.content,
                winner: winner.page,
                winner_content: winner.content,
            });
        }
        Ok(())
    }
}
