//! The trail of repairs: entries are written together with their repair, read in pieces, dropped after their
//! time, and cleared of forgotten pages.

use std::collections::BTreeSet;
use std::thread::sleep;
use std::time::Instant;

use doppel_contract::TrailEvent;
use doppel_model::{GroupId, ShardId};
use doppel_protocol::{RangeMap, RepairEntry, RepairId};

use super::*;
use crate::check::rows::pieces;
use crate::check::tests::assert_sound;
use crate::rows::record::{AuditEntry, Meta, decode, encode};
use crate::storage::store::{Intercept, Intercepted, JoinedStore, StoreError, Write};

const SHARDS: u16 = 3;

/// Remembers the commits of a store, so that the state after each of them can be restored.
#[derive(Default)]
struct Journal(Mutex<Vec<Vec<Write>>>);

impl Intercept for Journal {
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        self.0.lock().unwrap().push(writes.clone());
        rows.commit(writes)
    }
}

over_ranges! {
    an_applied_repair_is_on_the_trail_and_a_dry_run_is_not,
    no_crash_leaves_an_entry_without_its_repair_or_a_repair_without_its_entry,
    the_trail_is_read_newest_first_in_pieces_over_all_shards,
    a_long_search_ends_early_and_goes_on,
    entries_are_dropped_after_their_time_and_numbers_are_never_reused,
    a_purged_page_disappears_from_the_trail,
}

/// A content that shares no token with any other page.
fn unique_content(page: u64) -> Body {
    let tokens: Vec<u64> = (0..100).map(|i| page * 1_000 + i).collect();
    Body::Content(Arc::new(Builder::new().build(&tokens)))
}

/// Starts a service in which the index has linked all pages in one group. Pages 0 to 2 are near-duplicates,
/// and `lone_pages` more are like no other.
fn start_mixed<S: Store + 'static>(
    store: &Arc<S>,
    retention: Retention,
    lone_pages: u64,
    ranges: u16,
) -> (Arc<Tier1>, GroupId) {
    // A quarantine would also write an entry.
    let config = Config {
        pending_max: 10_000,
        low_cohesion_percent: 0,
        group_members_max: 10_000,
        ..config(retention, ranges)
    };
    let (tier1, tier2) = start_with(store, &config, 1);
    for page in 0..3 + lone_pages {
        submit(&tier1, page, 1, if page < 3 { content(page) } else { unique_content(page) });
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    // Pages that the repair puts out find no partner.
    tier2.partners.store(0, Ordering::Relaxed);
    let group = group_of(&tier1, 0).unwrap();
    assert_eq!(members(&tier1, group), 3 + lone_pages);
    (tier1, group)
}

fn group_of(tier1: &Tier1, page: u64) -> Option<GroupId> {
    tier1.pages(&[url(page).id()]).unwrap().remove(0).unwrap().line.group
}

fn members(tier1: &Tier1, group: GroupId) -> u64 {
    tier1.group_summary(group).unwrap().unwrap().members
}

/// The whole trail, read in pieces of `limit`.
fn trail(tier1: &Tier1, group: Option<GroupId>, limit: usize) -> Vec<RepairEntry> {
    let (mut all, mut before) = (Vec::new(), None);
    loop {
        let piece = tier1.repairs(group, before.as_ref(), limit).unwrap();
        assert!(piece.repairs.len() <= limit);
        all.extend(piece.repairs);
        before = piece.next.map(|next| next.to_string().parse().unwrap());
        if before.is_none() {
            return all;
        }
    }
}

fn wait_until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited for {what}");
        sleep(Duration::from_millis(20));
    }
}

fn assert_sound_store<S: Store>(store: &S, ranges: u16) {
    let map = RangeMap::new(SHARDS, ranges).unwrap();
    let stores: Vec<Memory> = (0..ranges).map(|_| Memory::default()).collect();
    let mut rows = Vec::new();
    pieces(store, &mut |key, value| rows.push((key.to_vec(), Some(value.to_vec())))).unwrap();
    JoinedStore::new(map, &stores).commit(rows).unwrap();
    assert_sound(&stores, SHARDS, WinnerOrder::DEFAULT);
}

/// Writes entries as repairs of these moments would. The moments of each shard come oldest first.
fn write_entries(
    store: &Memory,
    moments: [&[i64]; SHARDS as usize],
    group: impl Fn(ShardId, u64) -> GroupId,
) {
    for (shard, moments) in (0..).map(ShardId).zip(moments) {
        let mut writes = Vec::new();
        for (number, at) in (1..).zip(moments) {
            let entry = AuditEntry {
                at: Timestamp::from_millis(*at),
                event: TrailEvent::Repair,
                by: "ann".to_owned(),
                group: group(shard, number),
                into: None,
                members: 2,
                before: Vec::new(),
                components: vec![Vec::new()],
            };
            writes.push((key::audit(RepairId { shard, number }), Some(encode(&entry).unwrap())));
        }
        let peers = vec![0; usize::from(SHARDS)];
        let (audits, sent, applied) = (moments.len() as u64, peers.clone(), peers);
        let meta = Meta { audits, sent, applied, ..Meta::default() };
        writes.push((key::meta(shard), Some(encode(&meta).unwrap())));
        store.commit(writes).unwrap();
    }
}

fn an_applied_repair_is_on_the_trail_and_a_dry_run_is_not(ranges: u16) {
    let store = Arc::new(Memory::default());
    let (tier1, group) = start_mixed(&store, Retention::DEFAULT, 2, ranges);
    let dry = tier1.repair(group, true, "ann").unwrap().unwrap();
    assert_eq!((dry.applied, dry.components.len()), (false, 3));
    assert!(trail(&tier1, None, 10).is_empty());
    let before = Timestamp::now();
    let done = tier1.repair(group, false, "bob").unwrap().unwrap();
    assert!(tier1.flush(PATIENCE).unwrap());
    assert_eq!(members(&tier1, group), 3);
    let id = RepairId { shard: group.shard(), number: 1 };
    let check = |tier1: &Tier1| {
        let entries = trail(tier1, Some(group), 10);
        let [entry] = entries.as_slice() else { panic!("{entries:?}") };
        assert!((before..=Timestamp::now()).contains(&entry.at));
        assert_eq!((entry.id, entry.by.as_str(), entry.group), (id, "bob", group));
        assert_eq!((entry.members, entry.component_count, entry.truncated), (5, 3, false));
        let details = tier1.repair_details(id).unwrap().unwrap();
        assert_eq!(details.entry, *entry);
        assert_eq!((&details.before, &details.components), (&done.before, &done.components));
        assert_eq!(details.forgotten, 0);
    };
    check(&tier1);
    assert_eq!(tier1.repair_details(RepairId { number: 2, ..id }).unwrap(), None);
    assert_eq!(tier1.repair_details(RepairId { shard: ShardId(SHARDS), number: 1 }).unwrap(), None);
    let other = GroupId::new(77, group.shard());
    assert!(trail(&tier1, Some(other), 10).is_empty());
    tier1.stop();
    assert_sound_store(&*store, ranges);
    let tier1 = start(&store, ranges);
    check(&tier1);
    tier1.stop();
}

/// So many pages are put out in more than one commit, whether or not callers ask for pages in the meantime.
const LONE_PAGES: u64 = 1_600;

/// A crash can fall between any two commits.
fn no_crash_leaves_an_entry_without_its_repair_or_a_repair_without_its_entry(ranges: u16) {
    let store = Arc::new(Intercepted::new(Journal::default()));
    let (tier1, group) = start_mixed(&store, Retention::DEFAULT, LONE_PAGES, ranges);
    let begun = store.by.0.lock().unwrap().len();
    tier1.repair(group, false, "ann").unwrap().unwrap();
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
    let commits = std::mem::take(&mut *store.by.0.lock().unwrap());
    let (mut without, mut halfway) = (0, 0);
    let replayed = Memory::default();
    for (number, writes) in commits.iter().enumerate() {
        replayed.commit(writes.clone()).unwrap();
        if number < begun {
            continue;
        }
        let prefix = key::members(group);
        let mut members = 0;
        replayed
            .range(&prefix, &key::after_prefix(&prefix), &mut |_, _| {
                members += 1;
                true
            })
            .unwrap();
        let id = RepairId { shard: group.shard(), number: 1 };
        let has_entry = replayed.get(&key::audit(id)).unwrap().is_some();
        assert_eq!(has_entry, members < 3 + LONE_PAGES, "after commit {number}, with {members} members");
        without += usize::from(!has_entry);
        if members > 3 && has_entry {
            halfway += 1;
            assert_sound_store(&replayed, ranges);
            // After the crash the rest of the repair is done.
            let survivor = Arc::new(Memory::default());
            for writes in &commits[..=number] {
                survivor.commit(writes.clone()).unwrap();
            }
            let (tier1, _) = start_with(&survivor, &config(Retention::DEFAULT, ranges), 0);
            assert!(tier1.flush(PATIENCE).unwrap());
            assert_eq!(self::members(&tier1, group), 3);
            assert_eq!(trail(&tier1, None, 10).len(), 1);
            tier1.stop();
        }
    }
    assert!(halfway > 0, "the repair was one commit of {}, {without} before it", commits.len());
}

fn the_trail_is_read_newest_first_in_pieces_over_all_shards(ranges: u16) {
    let store = Arc::new(Memory::default());
    let group = |shard, number| GroupId::new(number % 2, shard);
    // The clock of shard 2 was set back.
    write_entries(&store, [&[10, 20, 30], &[], &[15, 40, 25]], group);
    let tier1 = start(&store, ranges);
    let named = |entries: Vec<RepairEntry>| -> Vec<String> {
        entries.iter().map(|entry| format!("{}@{}", entry.id, entry.at.millis())).collect()
    };
    let all = ["r3-0@30", "r3-2@25", "r2-2@40", "r2-0@20", "r1-2@15", "r1-0@10"];
    for limit in [1, 2, 3, 5, 100] {
        assert_eq!(named(trail(&tier1, None, limit)), all, "{limit}");
        let of_group = trail(&tier1, Some(GroupId::new(1, ShardId(2))), limit);
        assert_eq!(named(of_group), ["r3-2@25", "r1-2@15"], "{limit}");
    }
    // Cursors of other collections.
    for (position, rest) in [("0.0.0", 0), ("3", 3), ("1.1.1.1", 2), ("ff.ff.ff", 6), ("0.0.2", 2)] {
        let piece = tier1.repairs(None, Some(&position.parse().unwrap()), 100).unwrap();
        assert_eq!(piece.repairs.len(), rest, "{position}");
    }
    tier1.stop();
}

fn a_long_search_ends_early_and_goes_on(ranges: u16) {
    let store = Arc::new(Memory::default());
    let moments: Vec<i64> = (0..5_000).collect();
    write_entries(&store, [&moments, &[], &[]], |shard, number| GroupId::new(u64::from(number == 1), shard));
    let tier1 = start(&store, ranges);
    let wanted = GroupId::new(1, ShardId(0));
    let first = tier1.repairs(Some(wanted), None, 10).unwrap();
    assert!(first.repairs.is_empty() && first.next.is_some());
    assert_eq!(trail(&tier1, Some(wanted), 10).len(), 1);
    assert_eq!(trail(&tier1, None, 1_000).len(), 5_000);
    tier1.stop();
}

fn entries_are_dropped_after_their_time_and_numbers_are_never_reused(ranges: u16) {
    let day = Duration::from_secs(24 * 60 * 60);
    let keeping = |audit| Retention { audit, ..Retention::DEFAULT };
    let store = Arc::new(Memory::default());
    let today = Timestamp::now().millis();
    // The third entry of shard 0 was written with a wrong clock, and waits for the second.
    let moments: [&[i64]; 3] = [&[1, today, 2, today], &[3], &[today]];
    write_entries(&store, moments, |shard, _| GroupId::new(0, shard));
    let tier1 = start_keeping(&store, keeping(day), ranges);
    let left = || trail(&tier1, None, 10).iter().map(|entry| entry.id.to_string()).collect::<BTreeSet<_>>();
    wait_until("entries to be dropped", || left().len() <= 4);
    assert_eq!(left(), BTreeSet::from(["r2-0", "r3-0", "r4-0", "r1-2"].map(str::to_owned)));
    tier1.stop();
    assert_sound_store(&*store, ranges);

    // With no retention, no entry is kept.
    let tier1 = start_keeping(&store, keeping(Duration::ZERO), ranges);
    wait_until("all entries to be dropped", || trail(&tier1, None, 10).is_empty());
    tier1.stop();
    assert_sound_store(&*store, ranges);
    let (tier1, group) = start_mixed(&store, keeping(Duration::ZERO), 1, ranges);
    tier1.repair(group, false, "ann").unwrap().unwrap();
    assert!(trail(&tier1, None, 10).is_empty());
    tier1.stop();

    // The numbers of each shard continue.
    let (tier1, _) = start_with(&store, &config(keeping(day), ranges), 0);
    tier1.repair(group, false, "ann").unwrap().unwrap();
    let number = [5, 2, 2][usize::from(group.shard().0)];
    assert_eq!(trail(&tier1, None, 10)[0].id, RepairId { shard: group.shard(), number });
    tier1.stop();
    assert_sound_store(&*store, ranges);
}

fn a_purged_page_disappears_from_the_trail(ranges: u16) {
    let store = Arc::new(Memory::default());
    let retention = Retention { purged: Duration::ZERO, ..Retention::DEFAULT };
    let (tier1, group) = start_mixed(&store, retention, 2, ranges);
    tier1.repair(group, false, "ann").unwrap().unwrap();
    assert!(tier1.flush(PATIENCE).unwrap());
    let id = RepairId { shard: group.shard(), number: 1 };
    let key = key::audit(id);
    let stored = || -> AuditEntry { decode(&key, &store.get(&key).unwrap().unwrap()).unwrap() };
    let names = |page: u64| stored().urls().filter(|url| **url == super::url(page)).count();
    assert_eq!((names(1), names(3)), (2, 2));
    tier1.purge(&[url(1).id(), url(3).id()]).unwrap();
    // Answers hide the URLs at once.
    let details = tier1.repair_details(id).unwrap().unwrap();
    assert_eq!((details.before.len(), details.forgotten), (3, 2));
    assert_eq!((details.entry.members, details.entry.component_count), (5, 3));
    let sizes: Vec<usize> = details.components.iter().map(Vec::len).collect();
    assert!(sizes == [2, 0, 1] || sizes == [2, 1, 0], "{sizes:?}");
    // The sweep then deletes them from the record.
    wait_until("the URLs to go", || names(1) + names(3) == 0);
    assert_eq!((stored().before.len(), stored().members), (3, 5));
    assert_eq!(tier1.repair_details(id).unwrap().unwrap(), details);
    // A dead page is still on record.
    submit(&tier1, 2, 9, Body::Dead);
    assert!(tier1.flush(PATIENCE).unwrap());
    assert_eq!(tier1.repair_details(id).unwrap().unwrap(), details);
    tier1.stop();
    assert_sound_store(&*store, ranges);
}
