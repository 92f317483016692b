//! Advice from the status tables of all ranges in a process.
//!
//! The advice equals the coordinator's advice from rows in every field. The simulation compares the two.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, TryLockError};

use doppel_contract::Status;
use doppel_contract::answer::Advice;
use doppel_model::{PageUrl, RangeId};
use doppel_protocol::{RangeMap, WinnerOrder};

use super::entry::EntryStatus;
use super::secret::SecretKey;
use super::{Entries, StatusTable};
use crate::lease::Lease;

/// The status tables, one for each range. The table of a range that this process does not own is empty and
/// never complete.
pub(crate) struct Statuses {
    map: RangeMap,
    winners: WinnerOrder,
    key: SecretKey,
    tables: RwLock<Vec<OwnedTable>>,
}

/// The table of a range and the lease of its present owner. Each ownership has its own table, so nobody sees
/// late changes by an earlier owner.
struct OwnedTable {
    table: Arc<StatusTable>,
    lease: Option<Arc<dyn Lease>>,
}

impl OwnedTable {
    fn new(key: SecretKey, lease: Option<Arc<dyn Lease>>) -> Self {
        Self { table: Arc::new(StatusTable::new(key)), lease }
    }

    /// Returns the entries, unless they are being changed or the owner may not answer. The lease is checked
    /// while the entries are locked, so the entries are valid however long the answer takes.
    fn try_entries(&self) -> Option<RwLockReadGuard<'_, Entries>> {
        let entries = self.table.try_entries()?;
        self.lease.as_ref().is_none_or(|lease| lease.check().is_ok()).then_some(entries)
    }
}

impl Statuses {
    /// Creates empty tables. `key` must be the key of the snapshots that the tables may start from.
    pub(crate) fn new(map: RangeMap, winners: WinnerOrder, key: SecretKey) -> Self {
        let tables = map.ranges().map(|_| OwnedTable::new(key, None)).collect();
        Self { map, winners, key, tables: RwLock::new(tables) }
    }

    /// Returns the key of the hashes.
    pub(crate) fn key(&self) -> SecretKey {
        self.key
    }

    /// Begins an ownership of a range with an empty table.
    pub(crate) fn begin(&self, range: RangeId, lease: Option<Arc<dyn Lease>>) -> Arc<StatusTable> {
        let present = OwnedTable::new(self.key, lease);
        let table = Arc::clone(&present.table);
        self.replace(range, present);
        table
    }

    /// Ends the ownership of a range. Its table answers nothing from now on.
    pub(crate) fn end(&self, range: RangeId) {
        self.replace(range, OwnedTable::new(self.key, None));
    }

    fn replace(&self, range: RangeId, present: OwnedTable) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let before = tables.get_mut(usize::from(range.0)).map(|table| std::mem::replace(table, present));
        drop(tables);
        // Dropping a large table takes a while. Readers need not wait, because the lock is released.
        drop(before);
    }

    fn tables(&self) -> RwLockReadGuard<'_, Vec<OwnedTable>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the memory used by all tables in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.tables().iter().map(|present| present.table.bytes()).sum()
    }

    /// Returns the advice about a page if the tables have it. Never waits.
    ///
    /// All entries are read together. If a lock is not free at once, the method gives up. So ranges never
    /// wait for each other, and no lock is taken twice.
    pub(crate) fn advise(&self, url: &PageUrl) -> Option<Advice> {
        let id = url.id();
        let tables = match self.tables.try_read() {
            Ok(tables) => tables,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let at = usize::from(self.map.of_page(id).0);
        let own = tables.get(at)?.try_entries()?;
        let Some(page) = own.grouped.get(id) else { return self.advise_alone(&own, url) };
        if page.status == EntryStatus::Rows {
            return None;
        }
        if !page.is(self.key, url) {
            return Some(Advice::unknown(url.to_string()));
        }
        let at_group = usize::from(self.map.of_shard(page.group.shard()).0);
        let of_group = if at_group == at { None } else { Some(tables.get(at_group)?.try_entries()?) };
        let groups = of_group.as_ref().unwrap_or(&own);
        let winner = groups.groups.get(page.group)?.winner.as_ref()?;
        let status = match page.status {
            EntryStatus::Pending => Status::Pending,
            _ if winner == url => Status::Winner,
            EntryStatus::Duplicate => Status::Duplicate,
            EntryStatus::Secondary => Status::Secondary,
            _ => return None,
        };
        let advice = Advice {
            status,
            group: Some(page.group.to_string()),
            winner: Some(winner.clone()),
            fetched_at: Some(page.fetched_at.to_string()),
            ..Advice::unknown(url.to_string())
        };
        if matches!(status, Status::Pending | Status::Winner) {
            return Some(advice);
        }
        let winner_id = winner.id();
        let at_winner = usize::from(self.map.of_page(winner_id).0);
        let of_winner;
        let winners = if at_winner == at {
            &own
        } else if at_winner == at_group {
            groups
        } else {
            of_winner = tables.get(at_winner)?.try_entries()?;
            &of_winner
        };
        let compared_with = winners.grouped.get(winner_id).filter(|other| {
            other.status == EntryStatus::Winner
                && other.compared_with == page.compared_with
                && other.is(self.key, winner)
        })?;
        let (winner_rank, page_rank) = (compared_with.rank(winner.clone()), page.rank(url.clone()));
        let (_, rule) = self.winners.compare(&winner_rank, &page_rank, None);
        let is_duplicate = status == Status::Duplicate;
        let (duplicate_of, similarity) =
            (is_duplicate.then(|| winner.clone()), is_duplicate.then_some(page.similarity));
        Some(Advice { duplicate_of, similarity, rule: Some(rule), ..advice })
    }

    /// Returns the advice about a page without a group.
    fn advise_alone(&self, entries: &Entries, url: &PageUrl) -> Option<Advice> {
        let unknown = Advice::unknown(url.to_string());
        let Some(page) = entries.ungrouped.get(url.id()) else {
            return entries.is_complete().then_some(unknown);
        };
        let status = match page.status {
            EntryStatus::Unique => Status::Unique,
            EntryStatus::Pending => Status::Pending,
            EntryStatus::Dead => Status::Dead,
            EntryStatus::Rows | EntryStatus::Winner | EntryStatus::Duplicate | EntryStatus::Secondary => {
                return None;
            }
        };
        if !page.is(self.key, url) {
            return Some(unknown);
        }
        Some(Advice { status, fetched_at: Some(page.fetched_at.to_string()), ..unknown })
    }
}

#[cfg(any(test, feature = "simulation"))]
impl Statuses {
    /// Returns the table of a range.
    pub(crate) fn of_range(&self, range: RangeId) -> Arc<StatusTable> {
        Arc::clone(&self.tables()[usize::from(range.0)].table)
    }

    /// Creates the state for filling the table of a range.
    pub(crate) fn fill(&self, range: RangeId) -> super::Fill {
        super::Fill::new(self.of_range(range), self.run(range))
    }

    /// Returns the shards of a range.
    pub(crate) fn run(&self, range: RangeId) -> std::ops::Range<doppel_model::ShardId> {
        self.map.run(range)
    }
}
