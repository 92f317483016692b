//! Advice from the tables of all ranges of a process.
//!
//! It is what the coordinator's advice by rows is, to the last field; the simulation holds one against the other.

use std::ops::Range;
use std::sync::Arc;

use doppel_model::{PageUrl, RangeId, ShardId};
use doppel_protocol::answer::Advice;
use doppel_protocol::{Status, WinnerOrder};

use super::entry::Told;
use super::secret::SecretKey;
use super::{Entries, Fill, StatusTable};
use crate::range_map::RangeMap;

/// The tables, one for each range.
pub(crate) struct Statuses {
    map: RangeMap,
    winners: WinnerOrder,
    key: SecretKey,
    tables: Vec<Arc<StatusTable>>,
}

impl Statuses {
    /// With the key of the snapshots that the tables may begin from.
    pub(crate) fn new(map: RangeMap, winners: WinnerOrder, key: SecretKey) -> Self {
        let tables = map.ranges().map(|_| Arc::new(StatusTable::new(key))).collect();
        Self { map, winners, key, tables }
    }

    /// The table of a range.
    pub(crate) fn of_range(&self, range: RangeId) -> Arc<StatusTable> {
        Arc::clone(&self.tables[usize::from(range.0)])
    }

    /// What fills the table of a range.
    pub(crate) fn fill(&self, range: RangeId) -> Fill {
        Fill::new(self.of_range(range), self.run(range))
    }

    /// The shards of a range.
    pub(crate) fn run(&self, range: RangeId) -> Range<ShardId> {
        self.map.run(range)
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        self.tables.iter().map(|table| table.bytes()).sum()
    }

    /// Advice about a page, as far as the tables have it. Waits for nobody.
    ///
    /// All entries are looked at together. A lock that is not free at once is not waited for, so ranges never wait for each
    /// other, and none is taken twice.
    pub(crate) fn advise(&self, url: &PageUrl) -> Option<Advice> {
        let id = url.id();
        let at = usize::from(self.map.of_page(id).0);
        let own = self.tables.get(at)?.look()?;
        let Some(page) = own.grouped.get(id) else { return self.advise_alone(&own, url) };
        if page.told == Told::Rows {
            return None;
        }
        if !page.is(self.key, url) {
            return Some(Advice::unknown(url.to_string()));
        }
        let at_group = usize::from(self.map.of_shard(page.group.shard()).0);
        let of_group = if at_group == at { None } else { Some(self.tables.get(at_group)?.look()?) };
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
            of_winner = self.tables.get(at_winner)?.look()?;
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
