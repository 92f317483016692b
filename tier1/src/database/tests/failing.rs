//! Calls of files that fail alone, while the process lives on: `EIO`, `ENOSPC`, short writes, and syncs of which nothing comes to the disk.

use super::*;
use crate::files::simulated::{Fault, Forgotten};

/// What is known of a database.
struct Known {
    disk: Disk,
    /// What was acknowledged.
    model: Model,
    /// The first commit that was refused: it is there as a whole, or not at all.
    refused: Option<Vec<Write>>,
}

/// The rows of a database are what was acknowledged, with the refused commit or without.
fn holds(known: &mut Known, inner: &Inner) -> Result<(), String> {
    let found = all(inner).map_err(|error| error.to_string())?;
    let mut after = known.model.clone();
    apply(&mut after, known.refused.as_deref().unwrap_or_default());
    if found != known.model && found != after {
        return Err(format!("{found:?} is neither {:?} nor {after:?}", known.model));
    }
    known.model = found;
    Ok(())
}

/// Makes so many steps, whatever fails.
fn live(known: &mut Known, inner: &Inner, steps: u64, random: &mut Random) -> Result<(), String> {
    let (mut tends, mut learned) = (true, None);
    for _ in 0..steps {
        let step = random.below(9);
        match step {
            0..5 => {
                let writes = writes(random);
                match (inner.commit(writes.clone()), &known.refused) {
                    (Ok(_), Some(_)) => return Err("a commit is taken after one that was refused".to_owned()),
                    (Ok(_), None) => apply(&mut known.model, &writes),
                    (Err(_), Some(_)) => {}
                    (Err(_), None) => known.refused = Some(writes),
                }
            }
            // The product moves nothing more after a move that has failed. It goes on after a compaction or an erasure that has.
            5 if tends => tends = inner.move_rows().is_ok(),
            6 if tends => drop(inner.compact([50, 100][random.index(2)])),
            7 if tends => {
                drop(inner.begin_purge());
                lock(&inner.erasure).forget_pause();
                drop(inner.erase_if_owed());
            }
            8 => {
                let learns = inner.signatures.learn_contents(&mut learned);
                learns.map_err(|error| error.to_string())?;
            }
            _ => {}
        }
        // Nobody reads what was refused.
        let found = all(inner).map_err(|error| error.to_string())?;
        if found != known.model {
            return Err(format!("{found:?} is read, and {:?} was acknowledged", known.model));
        }
    }
    Ok(())
}

/// Lives of processes over one disk, whose files fail now and then. How many calls have failed.
fn lives(seed: u64, forgotten: Option<Forgotten>) -> Result<u64, String> {
    let random = &mut Random::new(seed);
    let mut known = Known { disk: Disk::new(), model: Model::new(), refused: None };
    known.disk.segment_bytes = [400, 8_000][random.index(2)];
    let mut failed = 0;
    for life in 0..6 {
        known.disk.fail([4, 30, 100][random.index(3)], seed ^ life, forgotten);
        // A start that fails leaves what it has found, and is tried again.
        let opened = known.disk.open();
        failed += known.disk.failed();
        if let Ok(inner) = opened {
            holds(&mut known, &inner)?;
            known.refused = None;
            let before = known.disk.failed();
            let lived = live(&mut known, &inner, random.below(30), random);
            failed += known.disk.failed() - before;
            lived?;
        }
        known.disk.fail(0, 0, None);
        if random.below(3) > 0 {
            known.disk = known.disk.crash(random);
        }
        let inner = known.disk.open().map_err(|error| error.to_string())?;
        holds(&mut known, &inner)?;
        known.refused = None;
    }
    Ok(failed)
}

#[test]
fn what_was_acknowledged_is_there_whatever_fails_and_nothing_is_there_in_part() {
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

/// The check above would find a database that forgets that a call has failed.
#[test]
fn a_forgotten_failure_is_found() {
    for forgotten in [Forgotten::Sync, Forgotten::ShortWrite, Forgotten::Write] {
        let found = (0..200).find_map(|seed| lives(seed, Some(forgotten)).err());
        assert!(found.is_some(), "{forgotten:?}");
    }
}

#[test]
fn every_call_of_a_file_may_fail_alone() {
    let run = |plan: &dyn Fn(&Disk)| {
        let random = &mut Random::new(7);
        let mut known = Known { disk: Disk::new(), model: Model::new(), refused: None };
        plan(&known.disk);
        let inner = known.disk.open().or_else(|_| known.disk.open());
        let lived = match inner {
            Ok(inner) => live(&mut known, &inner, 40, random),
            Err(error) => Err(error.to_string()),
        };
        (known, lived)
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
            let (mut known, lived) = run(&|disk| at(disk).fail_at(Some((call, fault))));
            lived.unwrap_or_else(|what| panic!("{fault:?} of call {call}, of the log: {is_log}: {what}"));
            failed += known.disk.failed();
            at(&known.disk).fail_at(None);
            for seed in 0..4 {
                let crashed =
                    if seed == 0 { known.disk.clone() } else { known.disk.crash(&mut Random::new(seed)) };
                let (model, inner) = (known.model.clone(), crashed.open());
                let held =
                    inner.map_err(|error| error.to_string()).and_then(|inner| holds(&mut known, &inner));
                held.unwrap_or_else(|what| panic!("{fault:?} of call {call}, of the log: {is_log}: {what}"));
                known.model = model;
            }
        }
    }
    assert!(failed > 300, "{failed}");
}
