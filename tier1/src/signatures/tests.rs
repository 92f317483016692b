//! The signatures by themselves.

use super::*;
use crate::files::simulated::{Fault, Simulated};

fn signature(number: u64, length: usize) -> Vec<u8> {
    let mut random = doppel_model::Random::new(number);
    (0..length).map(|_| random.number() as u8).collect()
}

fn try_open(directory: &Simulated, noted: &[Noted]) -> Result<Signatures, StoreError> {
    Signatures::open(Box::new(directory.clone()), (noted, 0), None, 1_000)
}

fn open(directory: &Simulated, noted: &[Noted]) -> Signatures {
    try_open(directory, noted).unwrap()
}

#[test]
fn an_id_survives_compaction_and_a_restart() {
    let directory = Simulated::default();
    let signatures = open(&directory, &[]);
    let ids: Vec<_> = (0..60).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
    signatures.write(true).unwrap();
    let kept = |number: usize| number.is_multiple_of(3) && number < 20 || number > 50;
    for round in 0..3 {
        let mut used = Used::default();
        (0..60).filter(|number| kept(*number)).for_each(|number| used.add(ids[number]));
        let closed = signatures.close();
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
    let noted = signatures.noted();
    drop(signatures);
    let again = open(&directory, &noted);
    for number in (0..60).filter(|number| kept(*number)) {
        assert_eq!(again.read(ids[number]).unwrap(), signature(number as u64, 90));
    }
    let new = again.add(&signature(99, 90)).unwrap();
    again.write(true).unwrap();
    assert!(!ids.contains(&new), "an id is never used twice");
    assert_eq!(again.read(new).unwrap(), signature(99, 90));
}

/// Signatures of which one is on disk, and another was taken in.
fn with_one_more(directory: &Simulated) -> (Signatures, SignatureId) {
    let signatures = open(directory, &[]);
    signatures.add(&signature(0, 90)).unwrap();
    signatures.write(true).unwrap();
    let id = signatures.add(&signature(1, 90)).unwrap();
    (signatures, id)
}

#[test]
fn after_a_failed_sync_nothing_is_taken_for_written() {
    type Write = fn(&Signatures) -> Result<(), StoreError>;
    let ways: [Write; 3] = [
        |signatures| signatures.write(true),
        |signatures| signatures.write(false).and_then(|()| signatures.sync_written()),
        Signatures::begin_segment,
    ];
    for (failing, later) in (0..3).flat_map(|failing| (0..3).map(move |later| (failing, later))) {
        let directory = Simulated::default();
        let (signatures, _) = with_one_more(&directory);
        directory.fail_next_sync();
        assert!(ways[failing](&signatures).is_err(), "{failing}");
        // The disk works again, and has not what was taken in.
        for _ in 0..2 {
            assert!(ways[later](&signatures).is_err(), "{failing}, {later}");
        }
    }
}

#[test]
fn a_start_writes_again_the_head_of_a_segment_that_could_not_be_synced() {
    for seed in 0..50 {
        let directory = Simulated::default();
        let (signatures, first) = with_one_more(&directory);
        signatures.write(true).unwrap();
        // The next segment gets its head, which does not come to the disk.
        let calls = directory.calls();
        directory.fail_at(Some((calls + 3, Fault::Device)));
        signatures.begin_segment().unwrap_err();
        let noted = signatures.noted();
        drop(signatures);
        let signatures = open(&directory, &noted);
        let id = signatures.add(&signature(2, 90)).unwrap();
        assert!(id.segment > first.segment);
        signatures.write(true).unwrap();
        let noted = signatures.noted();
        let crashed = directory.crash(&mut doppel_model::Random::new(seed));
        assert_eq!(open(&crashed, &noted).read(id).unwrap(), signature(2, 90), "{seed}");
    }
}

#[test]
fn a_start_syncs_a_cut_that_an_earlier_start_could_not_sync() {
    for seed in 0..50 {
        let directory = Simulated::default();
        let (signatures, id) = with_one_more(&directory);
        let noted = signatures.noted();
        // The process ends while it writes a signature.
        directory.fail_at(Some((directory.calls() + 1, Fault::Short)));
        signatures.write(true).unwrap_err();
        drop(signatures);
        directory.fail_next_sync();
        assert!(try_open(&directory, &noted).is_err());
        let signatures = open(&directory, &noted);
        assert_eq!(signatures.noted(), noted);
        // Nothing more is written to this segment, and no later start cuts it.
        signatures.begin_segment().unwrap();
        let next = signatures.add(&signature(2, 90)).unwrap();
        assert!(next.segment > id.segment);
        signatures.write(true).unwrap();
        let noted = signatures.noted();
        let crashed = directory.crash(&mut doppel_model::Random::new(seed));
        let mut left = Vec::new();
        let all = open(&crashed, &noted).each(&mut |id, _| {
            left.push(id);
            true
        });
        all.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!((left.len(), left.last()), (2, Some(&next)), "seed {seed}");
    }
}

#[test]
fn nothing_is_shared_that_a_failed_compaction_may_have_left_out() {
    let mut failed = 0;
    for call in 1.. {
        let directory = Simulated::default();
        let signatures = open(&directory, &[]);
        let ids: Vec<_> = (0..20).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
        signatures.write(true).unwrap();
        let noted = signatures.noted();
        drop(signatures);
        // This process has not read yet which contents there are.
        let signatures = open(&directory, &noted);
        let mut used = Used::default();
        used.add(ids[0]);
        let before = directory.failed();
        let calls = directory.calls();
        directory.fail_at(Some((calls + call, Fault::Device)));
        let closed = signatures.close();
        let (_, compacted) = signatures.compact(closed, used, 50, &mut |_| Ok(()));
        let ended = directory.calls() < calls + call;
        directory.fail_at(None);
        assert_eq!(compacted.is_err(), directory.failed() > before);
        failed += u64::from(compacted.is_err());
        let mut learned = None;
        while signatures.learn_contents(&mut learned).unwrap() {}
        let named: Vec<_> = (0..20).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
        signatures.write(true).unwrap();
        let noted = signatures.noted();
        drop(signatures);
        let again = open(&directory, &noted);
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
fn what_another_thread_has_written_is_synced_with_the_next_commit() {
    for seed in 0..50 {
        let directory = Simulated::default();
        let (signatures, id) = with_one_more(&directory);
        signatures.write(false).unwrap();
        signatures.write(true).unwrap();
        let noted = signatures.noted();
        let crashed = directory.crash(&mut doppel_model::Random::new(seed));
        assert_eq!(open(&crashed, &noted).read(id).unwrap(), signature(1, 90), "{seed}");
    }
}

#[test]
fn copies_are_found_also_after_a_restart() {
    let directory = Simulated::default();
    let signatures = open(&directory, &[]);
    let ids: Vec<_> = (0..30).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
    signatures.write(true).unwrap();
    assert!((0..30).all(|number| signatures.add(&signature(number, 90)).unwrap() == ids[number as usize]));
    let noted = signatures.noted();
    let again = open(&directory, &noted);
    let mut learned = None;
    while again.learn_contents(&mut learned).unwrap() {}
    assert_eq!(lock(&again.contents).len(), 30);
    assert!((0..30).all(|number| again.add(&signature(number, 90)).unwrap() == ids[number as usize]));
    // Another content with the same beginning is another signature.
    let mut other = signature(3, 90);
    other[80] ^= 1;
    assert_ne!(again.add(&other).unwrap(), ids[3]);
}

#[test]
fn signatures_of_closed_segments_are_not_shared_while_it_is_found_out_what_is_used() {
    let signatures = open(&Simulated::default(), &[]);
    let first = signatures.add(&signature(0, 90)).unwrap();
    for number in 1..30 {
        signatures.add(&signature(number, 90)).unwrap();
    }
    signatures.write(true).unwrap();
    let _ = signatures.close();
    assert_ne!(signatures.add(&signature(0, 90)).unwrap(), first);
    signatures.reopen();
}

#[test]
fn a_segment_that_is_filled_while_it_is_found_out_what_is_used_is_not_compacted() {
    let signatures = open(&Simulated::default(), &[]);
    let first = signatures.add(&signature(0, 90)).unwrap();
    let closed = signatures.close();
    // The rows were gone through before these came.
    let ids: Vec<_> = (1..40).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
    signatures.write(true).unwrap();
    assert!(ids[38].segment > first.segment + 1);
    let (mut replaced, compacted) = signatures.compact(closed, Used::default(), 100, &mut |_| Ok(()));
    compacted.unwrap();
    signatures.remove(&mut replaced);
    assert!(replaced.is_empty());
    for (number, id) in (1..).zip(ids) {
        assert_eq!(signatures.read(id).unwrap(), signature(number, 90));
    }
}

#[test]
fn a_signature_is_counted_once_and_one_that_is_not_found_keeps_the_segment() {
    let directory = Simulated::default();
    let signatures = open(&directory, &[]);
    let ids: Vec<_> = (0..30).map(|number| signatures.add(&signature(number, 90)).unwrap()).collect();
    signatures.write(true).unwrap();
    let compact = |used: &[SignatureId]| {
        let closed = signatures.close();
        let mut all = Used::default();
        used.iter().for_each(|id| all.add(*id));
        signatures.compact(closed, all, 50, &mut |_| Ok(()))
    };
    // Many pages have the first one.
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
