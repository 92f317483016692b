//! A full backup and its increments give the state of the last, and nothing else passes for a series.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use doppel_model::stable_hash64;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::backup::state::State;

type Rows = BTreeMap<Vec<u8>, Vec<u8>>;

const MANIFEST: &str = "the manifest";

fn apply(rows: &mut Rows, writes: &[Write]) {
    for (key, value) in writes {
        match value {
            Some(value) => drop(rows.insert(key.clone(), value.clone())),
            None => drop(rows.remove(key)),
        }
    }
}

/// A full backup that reads `rows`, while `changes` are committed.
fn full(rows: &Rows, changes: &[Write], manifest: &str) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = Writer::begin(&mut file, manifest).unwrap();
    for (key, value) in rows {
        writer.entry(Kind::Rows, key, Some(value)).unwrap();
    }
    for (key, value) in changes {
        writer.entry(Kind::Changes, key, value.as_deref()).unwrap();
    }
    writer.end().unwrap();
    file
}

/// Backups in files.
struct Backups {
    dir: TempDir,
    /// Bytes that are sorted in memory.
    sorted: usize,
}

impl Backups {
    fn new(sorted: usize) -> Self {
        Self { dir: tempfile::tempdir().unwrap(), sorted }
    }

    fn keep(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.dir.path().join(name);
        fs::write(&path, bytes).unwrap();
        path
    }

    fn state(&self, files: &[PathBuf]) -> Result<State, SeriesError> {
        State::sorted_in(files, self.dir.path(), self.sorted)
    }

    /// An increment after these files, of what a full backup has.
    fn increment(&self, files: &[PathBuf], mut full: &[u8], name: &str) -> (PathBuf, Written) {
        let mut out = Vec::new();
        let written = increment(self.state(files).unwrap(), &mut full, &mut out).unwrap();
        assert_eq!(written.summary.bytes, out.len() as u64);
        (self.keep(name, &out), written)
    }

    /// Three files of a series, the last of which deletes a row.
    fn three(&self) -> [PathBuf; 3] {
        let mut rows: Rows = (0..9).map(|n| (vec![n], vec![n; 9])).collect();
        let first = self.keep("first", &full(&rows, &[(vec![4], None)], MANIFEST));
        rows.remove([4].as_slice());
        rows.insert(vec![5], vec![1]);
        let files = [first.clone()];
        let (second, _) =
            self.increment(&files, &full(&rows, &[(vec![6], Some(vec![2]))], MANIFEST), "second");
        rows.insert(vec![6], vec![2]);
        rows.remove([7].as_slice());
        let files = [first.clone(), second.clone()];
        let (third, written) = self.increment(&files, &full(&rows, &[], MANIFEST), "third");
        assert_eq!(
            (written.summary.rows, written.summary.changes),
            (1, 0),
            "it has more than the row that went"
        );
        [first, second, third]
    }
}

/// What a restore makes of the files.
fn restored(files: &[PathBuf]) -> (Rows, Verified) {
    let (mut rows, mut series) = (Rows::new(), Series::open(files).unwrap());
    while let Some((_, writes)) = series.writes().unwrap() {
        apply(&mut rows, &writes);
    }
    (rows, series.verified())
}

fn writes(most: usize) -> impl Strategy<Value = Vec<Write>> {
    let key = vec(0_u8..4, 1..4);
    vec((key, option::weighted(0.7, vec(any::<u8>(), 0..6))), 0..most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    /// Full, then three increments, each of them of rows that are read while others are changed.
    #[test]
    fn a_series_gives_the_state_of_its_last_backup(
        steps in vec((writes(60), writes(20)), 4..=4),
        sorted in prop_oneof![Just(1_usize), Just(500), Just(usize::MAX)],
    ) {
        let backups = Backups::new(sorted);
        let (mut state, mut files, mut hashes) = (Rows::new(), Vec::new(), Vec::new());
        let mut old = Rows::new();
        for (number, (before, during)) in steps.iter().enumerate() {
            apply(&mut state, before);
            let whole = full(&state, during, MANIFEST);
            let read = state.clone();
            apply(&mut state, during);
            let name = number.to_string();
            if number == 0 {
                files.push(backups.keep(&name, &whole));
                hashes.push(Series::open(&files).unwrap().verify().unwrap().hashes[0]);
            } else {
                let (file, written) = backups.increment(&files, &whole, &name);
                let differ = read.iter().filter(|(key, value)| old.get(*key) != Some(*value)).count();
                let gone = old.keys().filter(|key| !read.contains_key(*key)).count();
                prop_assert_eq!(written.summary.rows, (differ + gone) as u64, "it has rows that did not change");
                prop_assert_eq!(written.summary.changes, during.len() as u64);
                files.push(file);
                hashes.push(written.hash);
            }
            let (rows, verified) = restored(&files);
            prop_assert_eq!(&rows, &state);
            prop_assert_eq!(&verified.hashes, &hashes);
            let bytes: u64 = files.iter().map(|file| fs::metadata(file).unwrap().len()).sum();
            prop_assert_eq!(verified.summary.bytes, bytes);
            let in_order: Vec<_> = backups.state(&files).unwrap().map(Result::unwrap).collect();
            prop_assert_eq!(in_order, state.clone().into_iter().collect::<Vec<_>>());
            // Increments may also follow the full backup, each of them alone.
            let (cumulative, _) = backups.increment(&files[..1], &whole, "cumulative");
            prop_assert_eq!(&restored(&[files[0].clone(), cumulative]).0, &state);
            old = state.clone();
        }
    }
}

#[test]
fn what_did_not_change_is_not_in_an_increment() {
    let backups = Backups::new(usize::MAX);
    let rows: Rows = (0..200).map(|n| (vec![n], vec![n; 1_000])).collect();
    let whole = full(&rows, &[], MANIFEST);
    let files = [backups.keep("full", &whole)];
    let (again, written) = backups.increment(&files, &whole, "again");
    assert_eq!((written.summary.rows, written.summary.changes), (0, 0));
    let files = [files[0].clone(), again];
    assert_eq!(restored(&files).0, rows);
    // It is another backup nevertheless, and has a place of its own in the series.
    let (_, next) = backups.increment(&files, &whole, "next");
    assert_ne!(next.hash, written.hash);
}

#[test]
fn files_that_are_missing_mixed_up_or_of_another_collection_are_refused_by_name() {
    let backups = Backups::new(usize::MAX);
    let [first, second, third] = backups.three();
    let all = [first.clone(), second.clone(), third.clone()];
    let verify = |files: &[&PathBuf]| {
        let files: Vec<PathBuf> = files.iter().map(|file| (*file).clone()).collect();
        Series::open(&files).and_then(Series::verify).map_err(|error| error.to_string())
    };
    let named = |files: &[&PathBuf], path: &PathBuf, says: &str| {
        let error = verify(files).unwrap_err();
        assert!(error.contains(&path.display().to_string()) && error.contains(says), "{error}");
    };
    assert_eq!(verify(&[&first, &second, &third]).unwrap(), restored(&all).1);
    named(&[&first, &third], &third, "an increment between them is missing");
    named(&[&first, &third, &second], &third, "before it is");
    named(&[&first, &second, &second], &second, "follows the backup");
    named(&[&second, &third], &second, "name the full backup first");
    named(&[&first, &first], &first, "is a full backup: it comes first");
    named(
        &[&first, &second, &backups.dir.path().join("none")],
        &backups.dir.path().join("none"),
        "cannot use",
    );
    assert!(matches!(Series::open(&[]), Err(SeriesError::Empty)));
    let directory = backups.dir.path().to_owned();
    named(&[&directory], &directory, "is a directory");

    let (rows, _) = restored(&all);
    let other = backups.keep("other", &full(&rows, &[], "another manifest"));
    let (of_other, _) = {
        let mut out = Vec::new();
        let mut whole: &[u8] = &full(&rows, &[], "another manifest");
        let since = backups.state(std::slice::from_ref(&other)).unwrap();
        let written = increment(since, &mut whole, &mut out).unwrap();
        (backups.keep("of-other", &out), written)
    };
    named(&[&first, &second, &of_other], &of_other, "is of another collection");
    let mut whole: &[u8] = &full(&rows, &[], "another manifest");
    let since = backups.state(&all).unwrap();
    let refused = increment(since, &mut whole, &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, IncrementError::OtherCollection(path) if path == third));
}

#[test]
fn every_flipped_bit_and_every_cut_of_an_increment_is_noticed() {
    let backups = Backups::new(usize::MAX);
    let [first, second, _] = backups.three();
    let sound = fs::read(&second).unwrap();
    let bad = |bytes: &[u8]| {
        let files = [first.clone(), backups.keep("bad", bytes)];
        let error = Series::open(&files).and_then(Series::verify).err();
        assert!(backups.state(&files).is_err());
        matches!(error, Some(SeriesError::Unusable { path, .. }) if path == files[1])
    };
    for at in 0..sound.len() {
        let mut flipped = sound.clone();
        flipped[at] ^= 1 << (at % 8);
        assert!(bad(&flipped), "byte {at} of {}", sound.len());
        assert!(bad(&sound[..at]), "cut at {at} of {}", sound.len());
    }
    // An increment does not become a full backup by its first line.
    let renamed = [&MAGIC[..], &sound[MAGIC.len()..]].concat();
    let files = [backups.keep("renamed", &renamed)];
    assert!(matches!(Series::open(&files), Err(SeriesError::Unusable { .. })));
}

#[test]
fn a_backup_that_breaks_off_makes_no_increment() {
    let backups = Backups::new(usize::MAX);
    let files = backups.three();
    let whole = full(&restored(&files).0, &[(vec![1], None)], MANIFEST);
    for at in 0..whole.len() {
        let since = backups.state(&files).unwrap();
        let mut out = Vec::new();
        assert!(increment(since, &mut &whole[..at], &mut out).is_err(), "cut at {at}");
        let files = [&files[..], &[backups.keep("unfinished", &out)]].concat();
        assert!(Series::open(&files).and_then(Series::verify).is_err(), "cut at {at}");
    }
}

#[test]
fn rows_out_of_order_are_not_compared() {
    let backups = Backups::new(usize::MAX);
    let mut file = Vec::new();
    let mut writer = Writer::begin(&mut file, MANIFEST).unwrap();
    for key in [[1], [3], [2]] {
        writer.entry(Kind::Rows, &key, Some(&[0])).unwrap();
    }
    writer.end().unwrap();
    let unordered = [backups.keep("unordered", &file)];
    let state: Result<Vec<_>, _> = backups.state(&unordered).unwrap().collect();
    assert!(matches!(state, Err(SeriesError::Unusable { source: Unusable::Unordered, .. })));
    let since = backups.state(&backups.three()).unwrap();
    let refused = increment(since, &mut file.as_slice(), &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, IncrementError::Unordered), "{refused}");
}

#[test]
fn a_file_that_is_changed_between_its_two_readings_is_noticed() {
    let backups = Backups::new(usize::MAX);
    let whole = |seed: u64| {
        // They cannot be packed, so that the file is longer than what is read of it at once.
        let value = |n: u64| {
            (0..8_000)
                .flat_map(move |at: u64| stable_hash64(&(seed + 10_000 * n + at).to_le_bytes()).to_le_bytes())
        };
        let rows: Rows = (0..64).map(|n| (vec![n], value(n.into()).collect())).collect();
        full(&rows, &[], MANIFEST)
    };
    let (sound, other) = (whole(0), whole(1 << 40));
    let files = [backups.keep("full", &sound)];
    let since = backups.state(&files).unwrap();
    // The same file, not another one of its name.
    fs::write(&files[0], &other).unwrap();
    let refused = increment(since, &mut sound.as_slice(), &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, IncrementError::Series(SeriesError::Unusable { .. })), "{refused}");
}
