//! Grouping the same versions at once, without ranges and an index, gives the same answer for every page,
//! also for a market. It also gives rows in which a check finds no fault.

use std::collections::BTreeMap;

use doppel_contract::Status;
use doppel_engine::market::MarketWinners;
use doppel_model::GroupId;
use doppel_protocol::{Line, WinnerOrder};
use doppel_tier1::bulk::{Bulk, BulkConfig, BulkGroup, BulkOutput, Unit};
use doppel_tier1::simulation::PageRow;
use doppel_tier1::{JoinedStore, Memory, Store, check};

use super::Snapshot;
use crate::sim::clients::submission;
use crate::sim::violation::{Checked, failed, holds};
use crate::sim::world::World;

const NAME: &str = "grouping at once gives the same";

/// Bytes of signatures that are kept in memory. All others are read from a file.
const MEMORY: usize = 4_000;

pub(crate) fn check(world: &World, snapshot: &Snapshot) -> Checked {
    let Ok(winners) = WinnerOrder::new(&world.model.rules) else {
        holds!(NAME, false, "{:?} are no rules", world.model.rules);
        return Ok(());
    };
    check_rows(world, winners)?;
    let bulk = Bulk::new(&BulkConfig {
        policy: world.contents.policy,
        winners,
        market: world.market.clone(),
        // Quarantine depends on earlier repairs, of which versions say nothing.
        group_members_max: u64::MAX,
        unit: Unit::Page,
        keep: BulkOutput::Answer { memory_max: MEMORY, temp_dir: &std::env::temp_dir() },
    });
    let Ok(mut bulk) = bulk else {
        holds!(NAME, false, "nothing can be grouped");
        return Ok(());
    };
    let mut submitted = 0;
    for version in &world.model.history {
        submitted += 1;
        holds!(NAME, bulk.submit(submission(version, world.contents)).is_ok(), "{version:?} is refused");
    }
    let grouped = match bulk.finish() {
        Ok(grouped) => grouped,
        Err(error) => {
            holds!(NAME, false, "{error}");
            return Ok(());
        }
    };
    holds!(NAME, grouped.counters.submissions == submitted, "{:?}", grouped.counters);
    let mut groups: BTreeMap<GroupId, GroupId> = BTreeMap::new();
    let (tier1, policy) = (world.worker.api(), world.contents.policy);
    let of_market = |market| MarketWinners::new(tier1, policy, winners, market);
    let mut market_winners = world.market.as_ref().map(of_market);
    for line in grouped.lines() {
        let Some(row) = snapshot.pages.get(&line.url.id()) else {
            holds!(NAME, false, "{} has no row", line.url);
            continue;
        };
        let row = match &mut market_winners {
            Some(winners) => winners.apply(of_row(row)).map_err(|e| failed("a market")(e.into()))?,
            None => of_row(row),
        };
        let quarantined =
            row.group.and_then(|group| snapshot.groups.get(&group)).is_some_and(|group| group.quarantined);
        // In a quarantined group, grouping at once names the usual winner for every market.
        let winner_agrees = quarantined && world.market.is_some() || row.winner == line.winner;
        holds!(NAME, winner_agrees && row.reason == line.reason, "{row:?} is {line:?}");
        // There, all pages with content are kept, and redirects are duplicates of their targets.
        holds!(
            NAME,
            quarantined
                || (row.status, &row.duplicate_of, row.similarity)
                    == (line.status, &line.duplicate_of, line.similarity),
            "{row:?} is {line:?}"
        );
        let same = match (row.group, line.group) {
            (Some(group), Some(at_once)) => *groups.entry(group).or_insert(at_once) == at_once,
            (group, at_once) => group.is_none() && at_once.is_none(),
        };
        holds!(NAME, same, "{row:?} is in the group {:?}", line.group);
    }
    let live = snapshot.pages.values().filter(|row| !matches!(row.status, Status::Dead | Status::Unknown));
    let live = live.count();
    holds!(NAME, live == grouped.lines().len(), "{live} pages are live and not {}", grouped.lines().len());
    let in_use = snapshot.groups.len();
    holds!(
        NAME,
        in_use == grouped.groups.len(),
        "{in_use} groups are in use; expected are {}",
        grouped.groups.len()
    );
    for BulkGroup { group, pages, .. } in &grouped.groups {
        let listed = grouped.lines().filter(|line| line.group == Some(*group)).count() as u64;
        holds!(NAME, listed == *pages, "{group} has {pages} pages and not {listed}");
    }
    Ok(())
}

fn of_row(row: &PageRow) -> Line {
    let PageRow { url, status, group, winner, duplicate_of, similarity, reason, .. } = row.clone();
    Line { url, status, group, winner, duplicate_of, similarity, reason }
}

/// Checks the rows with which ranges would begin after grouping at once.
fn check_rows(world: &World, winners: WinnerOrder) -> Checked {
    let made = world.at_once(&world.model.history, winners, world.settings.group_members_max);
    let (grouped, rows) = made.map_err(|e| failed("grouping at once")(e.into()))?;
    let mut stores = Vec::new();
    for rows in rows {
        let store = Memory::default();
        store.commit(rows).map_err(|e| failed("a commit")(e.into()))?;
        stores.push(store);
    }
    let joined = JoinedStore::new(world.map, &stores);
    let report = check::check(&joined, Some(world.contents.policy), winners);
    holds!(NAME, report.is_sound(), "{:?}", report.findings);
    holds!(NAME, report.backlog.is_quiescent(), "{:?}", report.backlog);
    holds!(NAME, report.groups == grouped.groups.len() as u64, "{} groups", report.groups);
    Ok(())
}
