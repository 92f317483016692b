//! Work that fails: a flush reports the reason, and the work is done as soon as it can be.

use std::thread;
use std::time::Instant;

use doppel_model::GroupId;

use super::*;
use crate::rows::record::{GroupRecord, Meta, decode, encode};
use crate::service::upkeep::job::Job;
use crate::storage::store::Write;

over_ranges! {
    a_mended_row_lets_the_flush_succeed,
    a_new_version_mends_a_damaged_member,
    the_work_that_a_damaged_row_owes_is_done_when_the_row_is_mended,
    a_new_scan_of_the_rows_clears_the_failure,
}

/// A service with three near-duplicates, which are decided.
fn start_three(store: &Arc<Memory>, ranges: u16) -> Arc<Tier1> {
    let tier1 = start(store, ranges);
    for page in 0..3 {
        submit(&tier1, page, 1, content(page));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1
}

fn assert_flush_reports_damage(tier1: &Tier1) {
    let refused = tier1.flush(PATIENCE).unwrap_err();
    assert!(matches!(refused, Tier1Error::Damaged(_)), "{refused}");
}

fn a_mended_row_lets_the_flush_succeed(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = start_three(&store, ranges);
    let page = url(1).id();
    let key = key::signature(tier1.collection.shard_of(page), page);
    let sound = store.get(&key).unwrap();
    store.commit(vec![(key.clone(), Some(vec![1, 2, 3]))]).unwrap();
    // The other pages now owe a recomputation.
    submit(&tier1, 0, 2, Body::Dead);
    assert_flush_reports_damage(&tier1);
    assert_flush_reports_damage(&tier1);
    store.commit(vec![(key, sound)]).unwrap();
    assert!(tier1.flush(PATIENCE).unwrap());
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
}

fn a_new_version_mends_a_damaged_member(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = start_three(&store, ranges);
    let page = url(1).id();
    store.commit(vec![(key::signature(tier1.collection.shard_of(page), page), Some(vec![1, 2, 3]))]).unwrap();
    submit(&tier1, 0, 2, Body::Dead);
    assert_flush_reports_damage(&tier1);
    submit(&tier1, 1, 3, content(7));
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
}

/// Prepares a group that owes a recomputation and whose row is damaged. Returns the write that mends the row.
fn damaged_and_owing(store: &Arc<Memory>, ranges: u16) -> (GroupId, Write) {
    let tier1 = start_three(store, ranges);
    let group: GroupId = tier1.pages(&[url(0).id()]).unwrap()[0].as_ref().unwrap().line.group.unwrap();
    tier1.stop();
    let (group_key, meta_key) = (key::group(group), key::meta(group.shard()));
    let row = |key: &[u8]| store.get(key).unwrap().unwrap();
    let GroupRecord::Active(mut record) = decode(&group_key, &row(&group_key)).unwrap() else {
        panic!("active")
    };
    let mut meta: Meta = decode(&meta_key, &row(&meta_key)).unwrap();
    record.dirty = true;
    meta.dirty += 1;
    let owing = (group_key.clone(), Some(encode(&GroupRecord::Active(record)).unwrap()));
    let meta: Write = (meta_key, Some(encode(&meta).unwrap()));
    store.commit(vec![(group_key, Some(vec![9; 9])), meta]).unwrap();
    (group, owing)
}

fn the_work_that_a_damaged_row_owes_is_done_when_the_row_is_mended(ranges: u16) {
    let store = Arc::new(Memory::default());
    let (_, owing) = damaged_and_owing(&store, ranges);
    let tier1 = start(&store, ranges);
    assert_flush_reports_damage(&tier1);
    // All other questions are answered.
    assert!(tier1.pages(&[url(0).id()]).unwrap()[0].is_some());
    store.commit(vec![owing]).unwrap();
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
}

fn a_new_scan_of_the_rows_clears_the_failure(ranges: u16) {
    let store = Arc::new(Memory::default());
    let (group, owing) = damaged_and_owing(&store, ranges);
    let tier1 = start(&store, ranges);
    let owner = tier1.answering_owner(tier1.collection.map.of_shard(group.shard())).unwrap();
    let is_stuck = |expected: bool| {
        let began = Instant::now();
        while owner.failures.reason_since(0).is_some() != expected {
            assert!(began.elapsed() < PATIENCE, "{:?}", owner.failures.reason_since(0));
            thread::sleep(Duration::from_millis(5));
        }
    };
    is_stuck(true);
    store.commit(vec![owing]).unwrap();
    // The writer sends this job after its disk was full. No caller waits for a flush.
    owner.jobs.send(Job::FindOwedAgain).unwrap();
    is_stuck(false);
    drop(owner);
    tier1.stop();
}
