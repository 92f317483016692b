//! The status table after a start.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use doppel_contract::answer::Advice;

use super::*;
use crate::rows::key::RowKind;
use crate::storage::store::{Intercept, Intercepted, StoreError};

over_ranges! {
    a_start_fills_the_status_table_while_the_service_runs,
    a_start_fills_the_status_table_from_the_snapshot_of_a_stop,
}

/// Waits until the table has an answer for which `wanted` holds.
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

fn a_start_fills_the_status_table_while_the_service_runs(ranges: u16) {
    let store = Arc::new(Memory::default());
    let tier1 = start(&store, ranges);
    for page in 0..40 {
        submit(&tier1, page, 1, content(page % 20 * 1_000));
    }
    submit(&tier1, 50, 1, Body::Dead);
    assert!(tier1.flush(PATIENCE).unwrap());
    let all = || (0..40).chain([50, 60]);
    // Only a complete table knows that a page is unknown.
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

/// A store whose pages cannot be scanned while this is set, like a database that is being opened anew.
#[derive(Default)]
struct UnreadablePages(AtomicBool);

impl Intercept for UnreadablePages {
    fn range(
        &self,
        rows: &Memory,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        let fails = self.0.load(Ordering::SeqCst) && RowKind::Page.is_of(from);
        if fails { Err(StoreError::DiskFull) } else { rows.range(from, to, each) }
    }
}

#[test]
fn rows_that_could_not_be_read_are_put_in_the_table_later() {
    let store = Arc::new(Intercepted::new(UnreadablePages::default()));
    let start = || start_with(&store, &config(Retention::DEFAULT, 1), usize::MAX).0;
    let tier1 = start();
    for page in 0..20 {
        submit(&tier1, page, 1, content(page * 1_000));
    }
    assert!(tier1.flush(PATIENCE).unwrap());
    tier1.stop();
    drop(tier1);

    store.by.0.store(true, Ordering::SeqCst);
    let tier1 = start();
    std::thread::sleep(Duration::from_millis(300));
    assert!(tier1.known_advice(&url(1_000)).is_none(), "the rows could not be read");
    // Commits go on in the meantime.
    submit(&tier1, 3, 2, Body::Dead);
    submit(&tier1, 30, 1, content(30_000));
    store.by.0.store(false, Ordering::SeqCst);
    await_advice(&tier1, 1_000, |_| true);
    for page in (0..20).chain([30]) {
        let advice = await_advice(&tier1, page, |_| true);
        assert_eq!(advice.status == Status::Dead, page == 3, "{page}: {advice:?}");
    }
    tier1.stop();
}

fn open(dir: &Path, ranges: u16) -> Arc<Tier1> {
    let tier1 = Tier1::open(&Config { dir: dir.to_owned(), ..config(Retention::DEFAULT, ranges) }).unwrap();
    let tier2 = Arc::new(LinkingIndex::naming(usize::MAX));
    assert!(tier2.answer.set(Arc::clone(&tier1) as Arc<dyn ContentSource>).is_ok());
    tier1.start(tier2 as Arc<dyn IndexOrders>).unwrap();
    tier1
}

fn a_start_fills_the_status_table_from_the_snapshot_of_a_stop(ranges: u16) {
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
    // The snapshots are sound, then outdated, then damaged, then missing.
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
