//! The status table after a start.

use std::path::{Path, PathBuf};
use std::time::Instant;

use doppel_protocol::answer::Advice;

use super::*;

over_ranges! {
    a_start_fills_the_table_beside_the_service,
    a_start_goes_on_from_the_snapshot_of_a_stop,
}

/// Waits until the table has an answer that is wanted.
pub(super) fn await_advice(tier1: &Tier1, page: u64, wanted: impl Fn(&Advice) -> bool) -> Advice {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match tier1.known_advice(&url(page)).filter(&wanted) {
            Some(advice) => return advice,
            None => assert!(Instant::now() < deadline, "{:?}", tier1.known_advice(&url(page))),
        }
        std::thread::yield_now();
    }
}

fn a_start_fills_the_table_beside_the_service(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = start(&store, ranges);
    for page in 0..40 {
        submit(&tier1, page, 1, content(page % 20 * 1_000));
    }
    submit(&tier1, 50, 1, Body::Dead);
    assert!(tier1.flush(PATIENCE).unwrap());
    let all = || (0..40).chain([50, 60]);
    // What was never heard of is known to be unknown at the end alone.
    let answers = |tier1: &Tier1| -> Vec<Advice> {
        await_advice(tier1, 1_000, |_| true);
        all().map(|page| await_advice(tier1, page, |_| true)).collect()
    };
    let before = answers(&tier1);
    tier1.stop();

    let tier1 = start(&store, ranges);
    assert_eq!(answers(&tier1), before);
    assert!(tier1.totals().unwrap().status_table_bytes > 0);
    tier1.stop();
}

fn open(dir: &Path, ranges: u16) -> Arc<Tier1> {
    let tier1 = Tier1::open(&Config { dir: dir.to_owned(), ..config(Retention::DEFAULT, ranges) }).unwrap();
    let tier2 = Arc::new(Everybody::naming(usize::MAX));
    assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
    tier1.start(tier2 as Arc<dyn IndexOrders>).unwrap();
    tier1
}

fn a_start_goes_on_from_the_snapshot_of_a_stop(ranges: u16) {
    let home = tempfile::tempdir().unwrap();
    let snapshots: Vec<PathBuf> =
        (0..ranges).map(|range| home.path().join(format!("range-{range}/statuses.dat"))).collect();
    let answers = |tier1: &Tier1| -> Vec<Advice> {
        await_advice(tier1, 1_000, |_| true);
        (0..60).map(|page| await_advice(tier1, page, |_| true)).collect()
    };
    let tier1 = open(home.path(), ranges);
    for page in 0..40 {
        submit(&tier1, page, 1, content(page % 20 * 1_000));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    let mut before = answers(&tier1);
    tier1.stop();
    drop(tier1);
    // A sound one, one of before, one that is damaged, and none.
    let mut old = Vec::new();
    for turn in 0_u64..4 {
        for (at, path) in snapshots.iter().enumerate() {
            match turn {
                0 => old.push(std::fs::read(path).unwrap()),
                1 => std::fs::write(path, &old[at]).unwrap(),
                2 => std::fs::write(path, &old[at][..old[at].len() / 2]).unwrap(),
                _ => std::fs::remove_file(path).unwrap(),
            }
        }
        let tier1 = open(home.path(), ranges);
        assert_eq!(answers(&tier1), before, "turn {turn}");
        submit(&tier1, turn, 10, Body::Dead);
        submit(&tier1, 40 + turn, 10, content(turn * 1_000));
        assert!(tier1.flush(PATIENCE).unwrap());
        before = answers(&tier1);
        tier1.stop();
        assert!(snapshots.iter().all(|path| path.exists()));
    }
}
