//! Work that fails: a flush reports the reason, and the work is done as soon as it can be.

use std::thread;
use std::time::Instant;

use doppel_model::GroupId;

use super::*;
use crate::record::{GroupRecord, Meta, decode, encode};
use crate::service::job::Job;
use crate::store::Write;

over_ranges! {
    a_row_that_can_be_read_again_is_not_in_the_way_any_more,
    another_version_mends_a_member,
    what_a_damaged_row_owes_is_done_when_it_is_mended,
    nothing_is_stuck_when_the_rows_have_been_gone_through_again,
}

/// A service with three near-duplicates, which are decided.
fn three(store: &Arc<Memory>, ranges: u16) -> Arc<Tier1> {
    let tier1 = start(store, ranges);
    for page in 0..3 {
        submit(&tier1, page, 1, content(page));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1
}

fn is_damaged(tier1: &Tier1) {
    let refused = tier1.flush(PATIENCE).unwrap_err();
    assert!(matches!(refused, Tier1Error::Damaged(_)), "{refused}");
}

fn a_row_that_can_be_read_again_is_not_in_the_way_any_more(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = three(&store, ranges);
    let page = url(1).id();
    let key = key::signature(tier1.shard_of(page), page);
    let sound = store.get(&key).unwrap();
    store.commit(vec![(key.clone(), Some(vec![1, 2, 3]))]).unwrap();
    // The others are to be recomputed now.
    submit(&tier1, 0, 2, Body::Dead);
    is_damaged(&tier1);
    is_damaged(&tier1);
    store.commit(vec![(key, sound)]).unwrap();
    assert!(tier1.flush(PATIENCE).unwrap());
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
}

fn another_version_mends_a_member(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = three(&store, ranges);
    let page = url(1).id();
    store.commit(vec![(key::signature(tier1.shard_of(page), page), Some(vec![1, 2, 3]))]).unwrap();
    submit(&tier1, 0, 2, Body::Dead);
    is_damaged(&tier1);
    submit(&tier1, 1, 3, content(7));
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
}

/// Prepares a group that owes a recomputation and whose row is damaged. Returns the write that mends the row.
fn damaged_and_owing(store: &Arc<Memory>, ranges: u16) -> (GroupId, Write) {
    let tier1 = three(store, ranges);
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

fn what_a_damaged_row_owes_is_done_when_it_is_mended(ranges: u16) {
    let store = Arc::new(Memory::default());
    let (_, owing) = damaged_and_owing(&store, ranges);
    let tier1 = start(&store, ranges);
    is_damaged(&tier1);
    // All other questions are answered.
    assert!(tier1.pages(&[url(0).id()]).unwrap()[0].is_some());
    store.commit(vec![owing]).unwrap();
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
}

fn nothing_is_stuck_when_the_rows_have_been_gone_through_again(ranges: u16) {
    let store = Arc::new(Memory::default());
    let (group, owing) = damaged_and_owing(&store, ranges);
    let tier1 = start(&store, ranges);
    let owner = tier1.own(tier1.map.of_shard(group.shard())).unwrap();
    let is_stuck = |expected: bool| {
        let began = Instant::now();
        while owner.stuck.since(0).is_some() != expected {
            assert!(began.elapsed() < PATIENCE, "{:?}", owner.stuck.since(0));
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
