//! Tests of a snapshot that is written while commits go on and is read by the next process.

use std::io::Cursor;

use doppel_model::Random;
use doppel_protocol::LogPosition;
use proptest::prelude::*;

use super::*;
use crate::statuses::snapshot::TableWriter;

const PAGES: [&str; 12] = ["w", "copy", "a", "b", "c", "d", "e", "f", "g", "h", "i", "j"];

fn basis() -> Basis {
    let moment = LogPosition { log: 1, epoch: 1, index: 0, hash: 0 };
    Basis { first: ShardId(0), end: ShardId(SHARDS), moment }
}

/// Returns a random row of a page or group.
fn some_row(random: &mut Random) -> Write {
    let page = PAGES[random.below(PAGES.len() as u64) as usize];
    let number = random.below(3) as u8;
    let winner = PAGES[random.below(3) as usize];
    match random.below(9) {
        0 => gone(page_row(page, State::Dead)),
        1 => page_row(page, State::Dead),
        2 => page_row(page, State::Purged),
        3 => page_row(page, ungrouped(number)),
        4 => group_row(a_group(), winner, number, random.below(4) == 0),
        5 => gone(group_row(a_group(), winner, number, false)),
        _ => page_row(page, compared(number, a_group(), (winner, number), random.below(3) > 0)),
    }
}

/// Starts from a snapshot over the rows of `before`. Calls `commits` between the steps of the start.
fn started_from(
    before: &Ranges,
    snapshot: Vec<u8>,
    since: &[Write],
    mut commits: impl FnMut(&Ranges),
) -> Ranges {
    let length = snapshot.len() as u64;
    let snapshot = Snapshot::read(Box::new(Cursor::new(snapshot)), length).unwrap();
    let statuses = Statuses::new(before.map, WinnerOrder::DEFAULT, snapshot.key);
    let store = Arc::clone(&before.stores[0]);
    let watched = TrackedStore::new(Arc::clone(&store) as Arc<dyn Store>, statuses.of_range(RangeId(0)));
    let of = Ranges { map: before.map, statuses, stores: vec![store], watched: vec![watched] };
    let mut fill = of.statuses.fill(RangeId(0));
    let from_snapshot = fill.begin_from(snapshot, |each| {
        since.iter().for_each(|(key, row)| each(key, row.as_deref()));
        Ok(true)
    });
    assert!(from_snapshot.unwrap());
    loop {
        commits(&of);
        fill.read(&UnreadableStore, 1).unwrap();
        commits(&of);
        if !fill.put() {
            return of;
        }
    }
}

/// A store that must not be read.
struct UnreadableStore;

impl Store for UnreadableStore {
    fn get(&self, _: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        panic!("the start read a row")
    }

    fn range(&self, _: &[u8], _: &[u8], _: &mut dyn FnMut(&[u8], &[u8]) -> bool) -> Result<(), StoreError> {
        panic!("the start read rows")
    }

    fn commit(&self, _: Vec<Write>) -> Result<(), StoreError> {
        panic!("the start wrote a row")
    }
}

proptest! {
    #[test]
    fn a_table_filled_from_a_snapshot_agrees_with_the_rows(seed: u64) {
        let random = &mut Random::new(seed);
        let of = Ranges::complete(1);
        for _ in 0..random.below(40) {
            of.commit(some_row(random));
        }
        let table = of.statuses.of_range(RangeId(0));
        let mut saving = TableWriter::new(&table, basis(), Vec::new()).unwrap();
        let mut since = Vec::new();
        while saving.step(&table).unwrap() {
            if random.below(10) == 0 {
                let row = some_row(random);
                since.push(row.clone());
                of.commit(row);
            }
        }
        let snapshot = saving.finish().unwrap();
        for _ in 0..random.below(20) {
            let row = some_row(random);
            since.push(row.clone());
            of.commit(row);
        }
        let mut left = random.below(8);
        let next = started_from(&of, snapshot, &since, |next| {
            if left > 0 {
                left -= 1;
                next.commit(some_row(random));
            }
        });
        let filled = Ranges { statuses: Statuses::new(of.map, WinnerOrder::DEFAULT, SecretKey::random()), ..of };
        filled.fill();
        for page in PAGES {
            prop_assert_eq!(next.advise(page), filled.advise(page), "{}", page);
        }
        let never = Some(Status::Unknown);
        prop_assert_eq!((next.status("never"), next.statuses.bytes() > 0), (never, true));
    }
}

#[test]
fn rows_are_read_if_the_log_is_incomplete_or_the_snapshot_breaks_off() {
    let of = Ranges::complete(1);
    three().into_iter().for_each(|row| of.commit(row));
    let table = of.statuses.of_range(RangeId(0));
    let bytes = table.snapshot_bytes(basis()).unwrap();
    for (cut, is_known) in [(0, false), (9, true)] {
        let whole = bytes.len() as u64;
        let part = bytes[..bytes.len() - cut].to_vec();
        let snapshot = Snapshot::read(Box::new(Cursor::new(part)), whole).unwrap();
        let next = Ranges::new(1);
        let statuses = Statuses::new(of.map, WinnerOrder::DEFAULT, snapshot.key);
        let mut fill = statuses.fill(RangeId(0));
        assert_eq!(fill.begin_from(snapshot, |_| Ok(is_known)).unwrap(), is_known);
        loop {
            fill.read(&*of.stores[0], 2).unwrap();
            if !fill.put() {
                break;
            }
        }
        let next = Ranges { statuses, ..next };
        let statuses = ["w", "copy", "never"].map(|page| next.status(page).unwrap());
        assert_eq!(statuses, [Status::Winner, Status::Duplicate, Status::Unknown], "{cut}");
    }
}

#[test]
fn a_snapshot_file_replaces_the_earlier_one_and_damage_is_detected() {
    let of = Ranges::complete(1);
    three().into_iter().for_each(|row| of.commit(row));
    let table = of.statuses.of_range(RangeId(0));
    let dir = tempfile::tempdir().unwrap();
    assert!(Snapshot::open(dir.path()).unwrap().is_none());
    for index in [4, 5] {
        let moment = LogPosition { index, ..basis().moment };
        table.save(Basis { moment, ..basis() }, dir.path()).unwrap();
        let found = Snapshot::open(dir.path()).unwrap().unwrap();
        assert_eq!((found.basis.moment, found.key == table.key), (moment, true));
    }
    assert_eq!(damage(dir.path()).unwrap(), None);
    let path = std::fs::read_dir(dir.path()).unwrap().next().unwrap().unwrap().path();
    let sound = std::fs::read(&path).unwrap();
    for at in 0..sound.len() {
        let mut changed = sound.clone();
        changed[at] ^= 1;
        std::fs::write(&path, &changed).unwrap();
        assert!(damage(dir.path()).unwrap().is_some(), "byte {at}");
        std::fs::write(&path, &sound[..at]).unwrap();
        assert!(damage(dir.path()).unwrap().is_some(), "cut at {at}");
    }
}

#[test]
fn a_snapshot_during_a_commit_misses_no_page() {
    let of = Ranges::complete(1);
    let pages: Vec<String> = (0..1_000).map(|n| format!("page-{n}")).collect();
    of.commit(group_row(a_group(), "w", 1, false));
    of.commit(page_row("w", member(1, a_group(), ("w", 1))));
    pages.iter().for_each(|page| of.commit(page_row(page, ungrouped(3))));
    let table = of.statuses.of_range(RangeId(0));
    // The rows are committed, but the table does not have them yet.
    let rows = || pages.iter().map(|page| page_row(page, member(3, a_group(), ("w", 1))));
    let changes: Vec<_> =
        rows().filter_map(|(key, row)| EntryChange::of(table.key, &key, row.as_deref())).collect();
    table.leave_to_rows(&changes);
    rows().for_each(|row| of.stores[0].commit(vec![row]).unwrap());
    let mut saving = TableWriter::new(&table, basis(), Vec::new()).unwrap();
    (0..100).for_each(|_| assert!(saving.step(&table).unwrap()));
    table.apply(changes);
    while saving.step(&table).unwrap() {}
    let next = started_from(&of, saving.finish().unwrap(), &[], |_| ());
    let is_right = |page: &String| next.status(page).is_none_or(|status| status == Status::Duplicate);
    assert!(pages.iter().all(is_right), "the table reports a wrong status");
}
