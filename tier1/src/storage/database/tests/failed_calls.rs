//! Tests with single failing calls of files, while the process lives on: `EIO`, `ENOSPC`, short writes, and
//! syncs that write nothing to the disk.

use super::*;
use crate::storage::files::simulated::{Fault, Forgotten};

/// What the test knows about a database.
struct TestState {
    disk: Disk,
    /// Rows of the acknowledged commits.
    model: Model,
    /// The first commit that was refused. It was made as a whole or not at all.
    refused: Option<Vec<Write>>,
}

/// Checks that the rows are those of the acknowledged commits, with or without the refused commit.
fn check_rows(state: &mut TestState, inner: &Inner) -> Result<(), String> {
    let found = all(inner).map_err(|error| error.to_string())?;
    let mut after = state.model.clone();
    apply(&mut after, state.refused.as_deref().unwrap_or_default());
    if found != state.model && found != after {
        return Err(format!("the rows are {found:?}, expected {:?} or {after:?}", state.model));
    }
    state.model = found;
    Ok(())
}

/// Makes `steps` random steps, even if calls fail.
fn live(state: &mut TestState, inner: &Inner, steps: u64, random: &mut Random) -> Result<(), String> {
    let (mut tends, mut learned) = (true, None);
    for _ in 0..steps {
        let step = random.below(9);
        match step {
            0..5 => {
                let writes = writes(random);
                match (inner.commit(writes.clone()), &state.refused) {
                    (Ok(_), Some(_)) => return Err("a commit was accepted after a refused one".to_owned()),
                    (Ok(_), None) => apply(&mut state.model, &writes),
                    (Err(_), Some(_)) => {}
                    (Err(_), None) => state.refused = Some(writes),
                }
            }
            // The program moves no more rows after a failed move. It continues after a failed compaction or
            // erasure.
            5 if tends => tends = inner.move_rows().is_ok(),
            6 if tends => drop(inner.compact([50, 100][random.index(2)])),
            7 if tends => {
                drop(inner.begin_purge());
                lock(&inner.erasure).end_pause();
                drop(inner.erase_if_owed());
            }
            8 => {
                let learns = inner.signatures.learn_contents(&mut learned);
                learns.map_err(|error| error.to_string())?;
            }
            _ => {}
        }
        // No reader gets the rows of a refused commit.
        let found = all(inner).map_err(|error| error.to_string())?;
        if found != state.model {
            return Err(format!("the rows are {found:?}, acknowledged were {:?}", state.model));
        }
    }
    Ok(())
}

/// Runs several processes after each other on one disk whose files fail now and then. Returns the number of
/// failed calls.
fn lives(seed: u64, forgotten: Option<Forgotten>) -> Result<u64, String> {
    let random = &mut Random::new(seed);
    let mut state = TestState { disk: Disk::new(), model: Model::new(), refused: None };
    state.disk.segment_bytes = [400, 8_000][random.index(2)];
    let mut failed = 0;
    for life in 0..6 {
        state.disk.fail([4, 30, 100][random.index(3)], seed ^ life, forgotten);
        // A failed start leaves the files as they are, and is tried again.
        let opened = state.disk.open();
        failed += state.disk.failed();
        if let Ok(inner) = opened {
            check_rows(&mut state, &inner)?;
            state.refused = None;
            let before = state.disk.failed();
            let lived = live(&mut state, &inner, random.below(30), random);
            failed += state.disk.failed() - before;
            lived?;
        }
        state.disk.fail(0, 0, None);
        if random.below(3) > 0 {
            state.disk = state.disk.crash(random);
        }
        let inner = state.disk.open().map_err(|error| error.to_string())?;
        check_rows(&mut state, &inner)?;
        state.refused = None;
    }
    Ok(failed)
}

#[test]
fn acknowledged_commits_survive_failing_calls_and_no_commit_is_made_in_part() {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse::<u64>().ok());
    let (first, seeds) = (number("DOPPEL_SEED").unwrap_or(0), number("DOPPEL_SEEDS").unwrap_or(4_000));
    let mut failed = 0;
    for seed in first..first + seeds {
        let lived = lives(seed, None);
        failed +=
            lived.unwrap_or_else(|what| panic!("failed with DOPPEL_SEED={seed} DOPPEL_SEEDS=1: {what}"));
    }
    assert!(seeds < 100 || failed > seeds, "{failed}");
}

/// The test above would detect a database that ignores a failed call.
#[test]
fn the_test_detects_a_failure_that_is_not_reported() {
    for forgotten in [Forgotten::Sync, Forgotten::ShortWrite, Forgotten::Write] {
        let found = (0..200).find_map(|seed| lives(seed, Some(forgotten)).err());
        assert!(found.is_some(), "{forgotten:?}");
    }
}

#[test]
fn acknowledged_commits_survive_the_failure_of_any_single_call() {
    let run = |plan: &dyn Fn(&Disk)| {
        let random = &mut Random::new(7);
        let mut state = TestState { disk: Disk::new(), model: Model::new(), refused: None };
        plan(&state.disk);
        let inner = state.disk.open().or_else(|_| state.disk.open());
        let lived = match inner {
            Ok(inner) => live(&mut state, &inner, 40, random),
            Err(error) => Err(error.to_string()),
        };
        (state, lived)
    };
    let (whole, lived) = run(&|_| {});
    lived.unwrap();
    let calls = (whole.disk.log.calls(), whole.disk.signatures.calls());
    assert!(calls.0 > 50 && calls.1 > 100, "{calls:?}");
    let mut failed = 0;
    for fault in Fault::ALL {
        let of = |is_log: bool| (1..=if is_log { calls.0 } else { calls.1 }).map(move |call| (is_log, call));
        for (is_log, call) in of(true).chain(of(false)) {
            let at = |disk: &Disk| if is_log { disk.log.clone() } else { disk.signatures.clone() };
            let (mut state, lived) = run(&|disk| at(disk).fail_at(Some((call, fault))));
            lived.unwrap_or_else(|what| panic!("{fault:?} of call {call}, of the log: {is_log}: {what}"));
            failed += state.disk.failed();
            at(&state.disk).fail_at(None);
            for seed in 0..4 {
                let crashed =
                    if seed == 0 { state.disk.clone() } else { state.disk.crash(&mut Random::new(seed)) };
                let (model, inner) = (state.model.clone(), crashed.open());
                let held =
                    inner.map_err(|error| error.to_string()).and_then(|inner| check_rows(&mut state, &inner));
                held.unwrap_or_else(|what| panic!("{fault:?} of call {call}, of the log: {is_log}: {what}"));
                state.model = model;
            }
        }
    }
    assert!(failed > 300, "{failed}");
}
