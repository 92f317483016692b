//! Advice from the tables of all ranges of a process.
//!
//! It is what the coordinator's advice by rows is, to the last field; the simulation holds one against the other.

use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, TryLockError};

use doppel_contract::Status;
use doppel_contract::answer::Advice;
use doppel_model::{PageUrl, RangeId};
use doppel_protocol::{RangeMap, WinnerOrder};

use super::entry::Told;
use super::secret::SecretKey;
use super::{Entries, StatusTable};
use crate::lease::Lease;

/// The tables, one for each range. That of a range which is not of this process is empty and never complete.
pub(crate) struct Statuses {
    map: RangeMap,
    winners: WinnerOrder,
    key: SecretKey,
    tables: RwLock<Vec<Present>>,
}

/// The table of a range as its present owner has it. Each owner has one of its own: what an earlier one still does to its table
/// is seen by nobody.
struct Present {
    table: Arc<StatusTable>,
    lease: Option<Arc<dyn Lease>>,
}

impl Present {
    fn new(key: SecretKey, lease: Option<Arc<dyn Lease>>) -> Self {
        Self { table: Arc::new(StatusTable::new(key)), lease }
    }

    /// The entries, unless they are being changed, or the owner may not answer. What is asked for after the entries are held is
    /// true of them however long the answer takes.
    fn look(&self) -> Option<RwLockReadGuard<'_, Entries>> {
        let entries = self.table.look()?;
        self.lease.as_ref().is_none_or(|lease| lease.check().is_ok()).then_some(entries)
    }
}

impl Statuses {
    /// With the key of the snapshots that the tables may begin from.
    pub(crate) fn new(map: RangeMap, winners: WinnerOrder, key: SecretKey) -> Self {
        let tables = map.ranges().map(|_| Present::new(key, None)).collect();
        Self { map, winners, key, tables: RwLock::new(tables) }
    }

    /// What hashes are made with.
    pub(crate) fn key(&self) -> SecretKey {
        self.key
    }

    /// An owner begins with an empty table of the range.
    pub(crate) fn begin(&self, range: RangeId, lease: Option<Arc<dyn Lease>>) -> Arc<StatusTable> {
        let present = Present::new(self.key, lease);
        let table = Arc::clone(&present.table);
        self.replace(range, present);
        table
    }

    /// Nothing is answered from the table of the range any more.
    pub(crate) fn end(&self, range: RangeId) {
        self.replace(range, Present::new(self.key, None));
    }

    fn replace(&self, range: RangeId, present: Present) {
        let mut tables = self.tables.write().unwrap_or_else(PoisonError::into_inner);
        let before = tables.get_mut(usize::from(range.0)).map(|table| std::mem::replace(table, present));
        drop(tables);
        // A large one takes a while, and readers do not wait for it.
        drop(before);
    }

    fn tables(&self) -> RwLockReadGuard<'_, Vec<Present>> {
        self.tables.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.tables().iter().map(|present| present.table.bytes()).sum()
    }

    /// Advice about a page, as far as the tables have it. Waits for nobody.
    ///
    /// All entries are looked at together. A lock that is not free at once is not waited for, so ranges never wait for each
    /// other, and none is taken twice.
    pub(crate) fn advise(&self, url: &PageUrl) -> Option<Advice> {
        let id = url.id();
        let tables = match self.tables.try_read() {
            Ok(tables) => tables,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        let at = usize::from(self.map.of_page(id).0);
        let own = tables.get(at)?.look()?;
        let Some(page) = own.grouped.get(id) else { return self.advise_alone(&own, url) };
        if page.told == Told::Rows {
            return None;
        }
        if !page.is(self.key, url) {
            return Some(Advice::unknown(url.to_string()));
        }
        let at_group = usize::from(self.map.of_shard(page.group.shard()).0);
        let of_group = if at_group == at { None } else { Some(tables.get(at_group)?.look()?) };
        let groups = of_group.as_ref().unwrap_or(&own);
        let winner = groups.groups.get(page.group)?.winner.as_ref()?;
        let status = match page.told {
            Told::Pending => Status::Pending,
            _ if winner == url => Status::Winner,
            Told::Duplicate => Status::Duplicate,
            Told::Secondary => Status::Secondary,
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
            of_winner = tables.get(at_winner)?.look()?;
            &of_winner
        };
        let compared_with = winners.grouped.get(winner_id).filter(|other| {
            other.told == Told::Winner
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

    /// Advice about a page that is in no group.
    fn advise_alone(&self, entries: &Entries, url: &PageUrl) -> Option<Advice> {
        let unknown = Advice::unknown(url.to_string());
        let Some(page) = entries.alone.get(url.id()) else {
            return entries.is_complete().then_some(unknown);
        };
        let status = match page.told {
            Told::Unique => Status::Unique,
            Told::Pending => Status::Pending,
            Told::Dead => Status::Dead,
            Told::Rows | Told::Winner | Told::Duplicate | Told::Secondary => return None,
        };
        if !page.is(self.key, url) {
            return Some(unknown);
        }
        Some(Advice { status, fetched_at: Some(page.fetched_at.to_string()), ..unknown })
    }
}

#[cfg(any(test, feature = "simulation"))]
impl Statuses {
    /// The table of a range.
    pub(crate) fn of_range(&self, range: RangeId) -> Arc<StatusTable> {
        Arc::clone(&self.tables()[usize::from(range.0)].table)
    }

    /// What fills the table of a range.
    pub(crate) fn fill(&self, range: RangeId) -> super::Fill {
        super::Fill::new(self.of_range(range), self.run(range))
    }

    /// The shards of a range.
    pub(crate) fn run(&self, range: RangeId) -> std::ops::Range<doppel_model::ShardId> {
        self.map.run(range)
    }
}
