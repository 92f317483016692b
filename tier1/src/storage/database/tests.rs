//! Tests of the database against a map in memory. The process is killed at any call of its files.

mod damaged_files;
mod erasure;
mod failed_calls;
mod reopening;

use std::collections::BTreeMap;
use std::sync::Arc;

use doppel_model::{PageId, Random, ShardId};
use doppel_protocol::LogPosition;

use super::handle::DatabaseHandle;
pub(crate) use super::simulated::Disk;
use super::{Database, Inner, LogConsumer, is_signature, lock};
use crate::rows::key;
use crate::storage::files::simulated::SimulatedDirectory;
use crate::storage::log::{Log as _, LogId};
use crate::storage::store::{Store, StoreError, Write};

pub(crate) type Model = BTreeMap<Vec<u8>, Vec<u8>>;

pub(crate) fn page(number: u64) -> PageId {
    doppel_model::PageUrl::parse(&format!("http://a.example/{number}")).unwrap().id()
}

/// Returns the bytes of a signature. There are few different contents.
fn signature(content: u64) -> Vec<u8> {
    let mut random = Random::new(content);
    let length = 24 + random.below(60);
    (0..length).map(|_| random.number() as u8).collect()
}

pub(crate) fn writes(random: &mut Random) -> Vec<Write> {
    let mut writes = BTreeMap::new();
    for _ in 0..=random.below(6) {
        let (shard, page) = (ShardId(random.below(2) as u16), page(random.below(12)));
        let (key, row) = if random.below(2) == 0 {
            (key::signature(shard, page), signature(random.below(16)))
        } else {
            (key::page(shard, page), vec![random.number() as u8; random.below(20) as usize])
        };
        writes.insert(key, (random.below(4) > 0).then_some(row));
    }
    writes.into_iter().collect()
}

pub(crate) fn apply(model: &mut Model, writes: &[Write]) {
    for (key, row) in writes {
        match row {
            Some(row) => drop(model.insert(key.clone(), row.clone())),
            None => drop(model.remove(key)),
        }
    }
}

fn all(inner: &Inner) -> Result<Model, StoreError> {
    let (mut rows, mut unreadable) = (Model::new(), None);
    inner.range(&[], &[0xff; 8], &mut |key, row| {
        assert_eq!(rows.insert(key.to_vec(), row.to_vec()), None, "a row is read twice");
        // The signatures of these tests are longer than an id. A reader gets the id of an unreadable
        // signature.
        if is_signature(key) && row.len() == 12 {
            unreadable = Some(key.to_vec());
        }
        true
    })?;
    match unreadable {
        Some(key) => Err(inner.get(&key, true).expect_err("an unreadable row cannot be read alone either")),
        None => Ok(rows),
    }
}

fn check(inner: &Inner, model: &Model, random: &mut Random) -> Result<(), StoreError> {
    assert_eq!(all(inner)?, *model);
    for key in model.keys() {
        assert_eq!(inner.get(key, true)?.as_ref(), model.get(key));
    }
    let absent = key::page(ShardId(3), page(random.below(100)));
    assert_eq!(inner.get(&absent, true)?, None);
    Ok(())
}

/// The position after which the log is kept, and the rows at that time.
type KeptState = Option<(LogPosition, Model)>;

/// Checks that the log names every page whose row has changed since a position, unless its files fail.
fn check_changes(inner: &Inner, dies: bool, model: &Model, kept: &KeptState) -> Result<(), StoreError> {
    let Some((position, before)) = kept else { return Ok(()) };
    let Some(changed) = inner.changed_since(*position)? else {
        assert!(dies, "the log was kept after this position");
        return Ok(());
    };
    assert!(changed.is_sorted_by(|a, b| a < b));
    for key in model.keys().chain(before.keys()).filter(|key| key.get(2) == Some(&b'p')) {
        let page = key::last_page(key).unwrap();
        assert!(
            model.get(key) == before.get(key) || changed.contains(&page),
            "the log does not name {page:?}, whose row has changed"
        );
    }
    Ok(())
}

/// Runs random steps of one process. If `dies` is set, its files fail at some point. Then returns the commit
/// of which it is unknown whether it was made.
fn live(
    inner: &Inner,
    dies: bool,
    (model, kept): (&mut Model, &mut KeptState),
    random: &mut Random,
) -> Result<(), Vec<Write>> {
    let dead = |error: StoreError| {
        assert!(dies, "{error}");
        Vec::new()
    };
    for _ in 0..random.below(30) {
        match random.below(11) {
            0..5 => {
                let writes = writes(random);
                inner.commit(writes.clone()).map_err(dead).map_err(|_| writes.clone())?;
                apply(model, &writes);
            }
            5 => inner.move_rows().map_err(dead)?,
            6 => drop(inner.compact([50, 100][random.index(2)]).map_err(dead)?),
            7 => {
                *kept = inner.log_position().map(|position| (position, model.clone()));
                // One of the two consumers reads from there on, and the other one is ahead or needs nothing.
                let mut readers = [LogConsumer::Index, LogConsumer::Statuses];
                random.shuffle(&mut readers);
                inner.keep_log(readers[0], kept.as_ref().map(|(position, _)| position.index));
                inner.keep_log(readers[1], None);
            }
            9 => {
                drop(inner.begin_purge().map_err(dead)?);
                lock(&inner.erasure).end_pause();
                inner.erase_if_owed().map_err(dead)?;
            }
            8 => check_changes(inner, dies, model, kept).map_err(dead)?,
            _ => check(inner, model, random).map_err(dead)?,
        }
    }
    Ok(())
}

#[test]
fn acknowledged_commits_survive_any_crash() {
    for seed in 0..1_500 {
        let random = &mut Random::new(seed);
        let (mut disk, mut model, mut unknown) = (Disk::new(), Model::new(), Vec::new());
        // With the larger limit many segments are small.
        disk.segment_bytes = [400, 8_000][random.index(2)];
        let mut kept = None;
        for _ in 0..6 {
            let inner = loop {
                let dies = random.below(4) == 0;
                disk.allow(dies.then(|| (random.below(12), random.below(12))));
                let opened = disk.open();
                disk.allow(None);
                match opened {
                    Ok(inner) => break inner,
                    Err(error) => assert!(dies, "seed {seed}: {error}"),
                }
                disk = disk.crash(random);
            };
            // The uncertain commit was made as a whole or not at all.
            let mut after = model.clone();
            apply(&mut after, &unknown);
            let found = all(&inner).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            if found == after {
                model = after;
            }
            assert_eq!(found, model, "seed {seed}");
            check_changes(&inner, false, &model, &kept).unwrap();
            let dies = random.below(3) > 0;
            disk.allow(dies.then(|| (random.below(80), random.below(80))));
            unknown = live(&inner, dies, (&mut model, &mut kept), random).err().unwrap_or_default();
            drop(inner);
            disk.allow(None);
            disk = if random.below(3) == 0 { disk } else { disk.crash(random) };
        }
    }
}

#[test]
fn acknowledged_commits_survive_a_death_at_any_call_of_a_file() {
    let run = |budget: Option<(u64, u64)>, seed: u64| {
        let random = &mut Random::new(seed);
        let (disk, mut model) = (Disk::new(), Model::new());
        disk.allow(budget);
        let mut unknown = Vec::new();
        if let Ok(inner) = disk.open() {
            for turn in 0..8 {
                let writes = writes(random);
                if inner.commit(writes.clone()).is_err() {
                    unknown = writes;
                    break;
                }
                apply(&mut model, &writes);
                let done = if turn == 3 { inner.move_rows() } else { Ok(()) };
                if done.and_then(|()| if turn == 6 { inner.compact(100).map(drop) } else { Ok(()) }).is_err()
                {
                    break;
                }
            }
        }
        disk.allow(None);
        (disk, model, unknown)
    };
    let (whole, ..) = run(None, 7);
    let (log, signatures) = (whole.log.calls(), whole.signatures.calls());
    assert!(log > 20 && signatures > 15, "{log} {signatures}");
    let budgets =
        (0..log).map(|calls| (calls, u64::MAX)).chain((0..signatures).map(|calls| (u64::MAX, calls)));
    for (number, budget) in (0..).zip(budgets) {
        for turn in 0..4 {
            let random = &mut Random::of(number, [turn, 0, 0]);
            let (disk, model, unknown) = run(Some(budget), 7);
            let inner = disk.crash(random).open().unwrap_or_else(|error| panic!("{budget:?}: {error}"));
            let mut after = model.clone();
            apply(&mut after, &unknown);
            let found = all(&inner).unwrap();
            assert!(found == model || found == after, "{budget:?}: {found:?} is not {model:?}");
        }
    }
}

#[test]
fn copies_share_a_signature_and_overwritten_rows_are_never_stored() {
    let disk = Disk::new();
    let inner = disk.open().unwrap();
    let commit = |writes: Vec<Write>| assert!(!inner.commit(writes).unwrap());
    let before = inner.signatures.bytes();
    commit((0..50).map(|n| (key::signature(ShardId(0), page(n)), Some(signature(1)))).collect());
    assert_eq!(inner.signatures.bytes() - before, signature(1).len() as u64 + 8);
    let row = |n: u8| vec![(key::page(ShardId(0), page(1)), Some(vec![n]))];
    (0..9).for_each(|n| commit(row(n)));
    commit(vec![(key::page(ShardId(0), page(2)), Some(vec![1]))]);
    commit(vec![(key::page(ShardId(0), page(2)), None)]);
    [LogConsumer::Index, LogConsumer::Statuses].iter().for_each(|reader| inner.keep_log(*reader, None));
    inner.move_all().unwrap();
    assert_eq!(disk.rows.writes(|key| key.get(2) == Some(&b'p')), 1);
    assert_eq!(disk.log.files().len(), 1, "the log was not trimmed");
}

#[test]
fn a_start_after_a_compaction_needs_no_segment_that_only_the_old_log_names() {
    let disk = Disk::new();
    let inner = disk.open().unwrap();
    let key = |n: u64| key::signature(ShardId(0), page(n));
    let commit = |writes: Vec<Write>| inner.commit(writes).map(drop).unwrap();
    // Fill several segments. No row names the signatures of the first one.
    (0..12).for_each(|n| commit(vec![(key(n), Some(signature(n)))]));
    (0..12).for_each(|n| commit(vec![(key(n), Some(signature(100 + n)))]));
    inner.move_rows().unwrap();
    // Only the log names this signature now.
    commit(vec![(key(50), Some(signature(0)))]);
    commit(vec![(key(50), None)]);
    inner.compact(50).unwrap();
    drop(inner);
    let inner = disk.open().unwrap();
    assert_eq!(inner.get(&key(3), false).unwrap(), Some(signature(103)));
}

#[test]
fn a_replica_without_ownership_keeps_its_log_only_for_the_shared_log() {
    let disk = Disk::new();
    let inner = disk.open_as(Some(LogId(7))).unwrap();
    (0..60).for_each(|n| erasure::copy_content(&inner, n, Some(n)));
    inner.move_all().unwrap();
    let all = disk.log.files().len();
    assert!(all > 3);
    inner.keep_log(LogConsumer::SharedLog, Some(30));
    inner.move_all().unwrap();
    lock(&inner.commits).log.as_mut().unwrap().trim(60, inner.log_retention.min()).unwrap();
    let left = disk.log.files().len();
    assert!((2..all).contains(&left), "{left} of {all}");
}
