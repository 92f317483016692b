//! Tests of the signature store.

use super::*;
use crate::storage::files::simulated::{Fault, SimulatedDirectory};

fn signature(number: u64, length: usize) -> Vec<u8> {
    let mut random = doppel_model::Random::new(number);
    (0..length).map(|_| random.number() as u8).collect()
}

fn try_open(
    directory: &SimulatedDirectory,
    checkpoints: &[SegmentCheckpoint],
) -> Result<SignatureStore, StoreError> {
    SignatureStore::open(Box::new(directory.clone()), checkpoints, 0, None, 1_000)
}

fn open(directory: &SimulatedDirectory, checkpoints: &[SegmentCheckpoint]) -> SignatureStore {
    try_open(directory, checkpoints).unwrap()
}

#[test]
fn an_id_survives_compaction_and_a_restart() {
    let directory = SimulatedDirectory::default();
    let signatures = open(&directory, &[]);
    let ids: Vec<_> = (0..60).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
    signatures.write(true).unwrap();
    let kept = |number: usize| number.is_multiple_of(3) && number < 20 || number > 50;
    for round in 0..3 {
        let mut used = UsedSignatures::default();
        (0..60).filter(|number| kept(*number)).for_each(|number| used.add(ids[number]));
        let closed = signatures.close_segments();
        let (mut replaced, compacted) = signatures.compact(closed, used, 50 + round * 25, &mut |_| Ok(()));
        compacted.unwrap();
        signatures.remove(&mut replaced);
        assert!(replaced.is_empty());
        for (number, id) in ids.iter().enumerate() {
            let read = signatures.read(*id);
            assert!(
                !kept(number) || read.is_ok_and(|bytes| bytes == signature(number as u64, 90)),
                "{number}"
            );
        }
    }
    assert!(signatures.bytes() < 60 * 98 / 2);
    let checkpoints = signatures.checkpoints();
    drop(signatures);
    let again = open(&directory, &checkpoints);
    for number in (0..60).filter(|number| kept(*number)) {
        assert_eq!(again.read(ids[number]).unwrap(), signature(number as u64, 90));
    }
    let new = again.add(&signature(99, 90)).unwrap();
    again.write(true).unwrap();
    assert!(!ids.contains(&new), "an id is never used twice");
    assert_eq!(again.read(new).unwrap(), signature(99, 90));
}

/// Creates a store with one signature on disk and another one in the buffer. Returns the id of the latter.
fn with_one_more(directory: &SimulatedDirectory) -> (SignatureStore, SignatureId) {
    let signatures = open(directory, &[]);
    signatures.add(&signature(0, 90)).unwrap();
    signatures.write(true).unwrap();
    let id = signatures.add(&signature(1, 90)).unwrap();
    (signatures, id)
}

#[test]
fn after_a_failed_sync_every_write_fails() {
    type Write = fn(&SignatureStore) -> Result<(), StoreError>;
    let ways: [Write; 3] = [
        |signatures| signatures.write(true),
        |signatures| signatures.write(false).and_then(|()| signatures.sync_written()),
        SignatureStore::begin_segment,
    ];
    for (failing, later) in (0..3).flat_map(|failing| (0..3).map(move |later| (failing, later))) {
        let directory = SimulatedDirectory::default();
        let (signatures, _) = with_one_more(&directory);
        directory.fail_next_sync();
        assert!(ways[failing](&signatures).is_err(), "{failing}");
        // The disk works again, but does not have the buffered bytes.
        for _ in 0..2 {
            assert!(ways[later](&signatures).is_err(), "{failing}, {later}");
        }
    }
}

#[test]
fn a_start_rewrites_the_head_of_a_segment_whose_sync_failed() {
    for seed in 0..50 {
        let directory = SimulatedDirectory::default();
        let (signatures, first) = with_one_more(&directory);
        signatures.write(true).unwrap();
        // The magic bytes of the next segment are written, but their sync fails.
        let calls = directory.calls();
        directory.fail_at(Some((calls + 3, Fault::Device)));
        signatures.begin_segment().unwrap_err();
        let checkpoints = signatures.checkpoints();
        drop(signatures);
        let signatures = open(&directory, &checkpoints);
        let id = signatures.add(&signature(2, 90)).unwrap();
        assert!(id.segment > first.segment);
        signatures.write(true).unwrap();
        let checkpoints = signatures.checkpoints();
        let crashed = directory.crash(&mut doppel_model::Random::new(seed));
        assert_eq!(open(&crashed, &checkpoints).read(id).unwrap(), signature(2, 90), "{seed}");
    }
}

#[test]
fn a_start_syncs_a_cut_whose_earlier_sync_failed() {
    for seed in 0..50 {
        let directory = SimulatedDirectory::default();
        let (signatures, id) = with_one_more(&directory);
        let checkpoints = signatures.checkpoints();
        // The process ends in the middle of a write.
        directory.fail_at(Some((directory.calls() + 1, Fault::Short)));
        signatures.write(true).unwrap_err();
        drop(signatures);
        directory.fail_next_sync();
        assert!(try_open(&directory, &checkpoints).is_err());
        let signatures = open(&directory, &checkpoints);
        assert_eq!(signatures.checkpoints(), checkpoints);
        // Nothing more is written to this segment, so no later start cuts it.
        signatures.begin_segment().unwrap();
        let next = signatures.add(&signature(2, 90)).unwrap();
        assert!(next.segment > id.segment);
        signatures.write(true).unwrap();
        let checkpoints = signatures.checkpoints();
        let crashed = directory.crash(&mut doppel_model::Random::new(seed));
        let mut left = Vec::new();
        let all = open(&crashed, &checkpoints).for_each(&mut |id, _| {
            left.push(id);
            true
        });
        all.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!((left.len(), left.last()), (2, Some(&next)), "seed {seed}");
    }
}

#[test]
fn signatures_that_a_failed_compaction_may_lack_are_not_shared() {
    let mut failed = 0;
    for call in 1.. {
        let directory = SimulatedDirectory::default();
        let signatures = open(&directory, &[]);
        let ids: Vec<_> = (0..20).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
        signatures.write(true).unwrap();
        let checkpoints = signatures.checkpoints();
        drop(signatures);
        // This store has not yet read which contents exist.
        let signatures = open(&directory, &checkpoints);
        let mut used = UsedSignatures::default();
        used.add(ids[0]);
        let before = directory.failed();
        let calls = directory.calls();
        directory.fail_at(Some((calls + call, Fault::Device)));
        let closed = signatures.close_segments();
        let (_, compacted) = signatures.compact(closed, used, 50, &mut |_| Ok(()));
        let ended = directory.calls() < calls + call;
        directory.fail_at(None);
        assert_eq!(compacted.is_err(), directory.failed() > before);
        failed += u64::from(compacted.is_err());
        let mut learned = None;
        while signatures.learn_contents(&mut learned).unwrap() {}
        let named: Vec<_> = (0..20).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
        signatures.write(true).unwrap();
        let checkpoints = signatures.checkpoints();
        drop(signatures);
        let again = open(&directory, &checkpoints);
        for (number, id) in named.into_iter().enumerate() {
            assert_eq!(again.read(id).unwrap(), signature(number as u64, 90), "{number}, call {call}");
        }
        if ended {
            break;
        }
    }
    assert!(failed > 4, "{failed}");
}

#[test]
fn bytes_written_without_a_sync_are_synced_by_the_next_commit() {
    for seed in 0..50 {
        let directory = SimulatedDirectory::default();
        let (signatures, id) = with_one_more(&directory);
        signatures.write(false).unwrap();
        signatures.write(true).unwrap();
        let checkpoints = signatures.checkpoints();
        let crashed = directory.crash(&mut doppel_model::Random::new(seed));
        assert_eq!(open(&crashed, &checkpoints).read(id).unwrap(), signature(1, 90), "{seed}");
    }
}

#[test]
fn the_same_content_gets_the_same_id_also_after_a_restart() {
    let directory = SimulatedDirectory::default();
    let signatures = open(&directory, &[]);
    let ids: Vec<_> = (0..30).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
    signatures.write(true).unwrap();
    assert!((0..30).all(|number| signatures.add(&signature(number, 90)).unwrap() == ids[number as usize]));
    let checkpoints = signatures.checkpoints();
    let again = open(&directory, &checkpoints);
    let mut learned = None;
    while again.learn_contents(&mut learned).unwrap() {}
    assert_eq!(lock(&again.contents).len(), 30);
    assert!((0..30).all(|number| again.add(&signature(number, 90)).unwrap() == ids[number as usize]));
    // Another content with the same hash is another signature.
    let mut other = signature(3, 90);
    other[80] ^= 1;
    assert_ne!(again.add(&other).unwrap(), ids[3]);
}

#[test]
fn signatures_in_closed_segments_are_not_shared_during_a_compaction() {
    let signatures = open(&SimulatedDirectory::default(), &[]);
    let first = signatures.add(&signature(0, 90)).unwrap();
    for number in 1..30 {
        signatures.add(&signature(number, 90)).unwrap();
    }
    signatures.write(true).unwrap();
    let _ = signatures.close_segments();
    assert_ne!(signatures.add(&signature(0, 90)).unwrap(), first);
    signatures.end_compaction();
}

#[test]
fn a_segment_that_is_filled_during_a_compaction_is_not_compacted() {
    let signatures = open(&SimulatedDirectory::default(), &[]);
    let first = signatures.add(&signature(0, 90)).unwrap();
    let closed = signatures.close_segments();
    // These signatures are added after the scan of the rows.
    let ids: Vec<_> = (1..40).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
    signatures.write(true).unwrap();
    assert!(ids[38].segment > first.segment + 1);
    let (mut replaced, compacted) =
        signatures.compact(closed, UsedSignatures::default(), 100, &mut |_| Ok(()));
    compacted.unwrap();
    signatures.remove(&mut replaced);
    assert!(replaced.is_empty());
    for (number, id) in (1..).zip(ids) {
        assert_eq!(signatures.read(id).unwrap(), signature(number, 90));
    }
}

#[test]
fn a_signature_counts_once_and_a_missing_one_leaves_the_segment_unchanged() {
    let directory = SimulatedDirectory::default();
    let signatures = open(&directory, &[]);
    let ids: Vec<_> = (0..30).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
    signatures.write(true).unwrap();
    let compact = |used: &[SignatureId]| {
        let closed = signatures.close_segments();
        let mut all = UsedSignatures::default();
        used.iter().for_each(|id| all.add(*id));
        signatures.compact(closed, all, 50, &mut |_| Ok(()))
    };
    // Many pages share the first signature.
    let files = directory.files().len();
    let elsewhere = SignatureId { offset: ids[0].offset + 1, ..ids[0] };
    let (_, compacted) = compact(&[ids[0], elsewhere]);
    assert!(compacted.unwrap_err().to_string().contains("lacks signatures"));
    assert_eq!(directory.files().len(), files, "nothing unfinished is left");
    assert_eq!(signatures.read(ids[1]).unwrap(), signature(1, 90));
    let (mut replaced, compacted) = compact(&[ids[0]; 20]);
    compacted.unwrap();
    signatures.remove(&mut replaced);
    assert!(replaced.is_empty());
    assert!(signatures.read(ids[1]).is_err() && signatures.read(ids[0]).is_ok());
}
