//! Tests that a series gives the state of its last backup, and that files that are not a series are refused.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use doppel_model::stable_hash64;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use tempfile::TempDir;

use super::*;
use crate::backup::state::SeriesState;

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

/// A full backup of `rows`, during which `changes` are committed.
fn full(rows: &Rows, changes: &[Write], manifest: &str) -> Vec<u8> {
    let mut file = Vec::new();
    let mut writer = BackupWriter::begin(&mut file, manifest).unwrap();
    for (key, value) in rows {
        writer.entry(BlockKind::Rows, key, Some(value)).unwrap();
    }
    for (key, value) in changes {
        writer.entry(BlockKind::Changes, key, value.as_deref()).unwrap();
    }
    writer.end().unwrap();
    file
}

/// Backup files in a temporary directory.
struct Backups {
    dir: TempDir,
    /// Memory for sorting changes, in bytes.
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

    fn state(&self, files: &[PathBuf]) -> Result<SeriesState, SeriesError> {
        SeriesState::sorted_in(files, self.dir.path(), self.sorted)
    }

    /// Makes the increment from the series `files` to the full backup `full`.
    fn increment(&self, files: &[PathBuf], mut full: &[u8], name: &str) -> (PathBuf, FinishedBackup) {
        let mut out = Vec::new();
        let written = increment(self.state(files).unwrap(), &mut full, &mut out).unwrap();
        assert_eq!(written.summary.bytes, out.len() as u64);
        (self.keep(name, &out), written)
    }

    /// A series of three files, the last of which only deletes a row.
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
            "the increment has more than the deletion"
        );
        [first, second, third]
    }
}

/// The rows and totals that a restore gets from the files.
fn restored(files: &[PathBuf]) -> (Rows, VerifiedSeries) {
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
    /// A full backup and three increments. Rows change while each backup is taken.
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
                prop_assert_eq!(written.summary.rows, (differ + gone) as u64, "the increment has unchanged rows");
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
            // An increment may also follow the full backup directly.
            let (cumulative, _) = backups.increment(&files[..1], &whole, "cumulative");
            prop_assert_eq!(&restored(&[files[0].clone(), cumulative]).0, &state);
            old = state.clone();
        }
    }
}

#[test]
fn an_increment_has_no_unchanged_rows() {
    let backups = Backups::new(usize::MAX);
    let rows: Rows = (0..200).map(|n| (vec![n], vec![n; 1_000])).collect();
    let whole = full(&rows, &[], MANIFEST);
    let files = [backups.keep("full", &whole)];
    let (again, written) = backups.increment(&files, &whole, "again");
    assert_eq!((written.summary.rows, written.summary.changes), (0, 0));
    let files = [files[0].clone(), again];
    assert_eq!(restored(&files).0, rows);
    // An empty increment is still a backup with its own hash and its own place in the series.
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
fn every_flipped_bit_and_every_cut_of_an_increment_is_detected() {
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
    // An increment with the signature of a full backup is still refused as a full backup.
    let renamed = [&MAGIC[..], &sound[MAGIC.len()..]].concat();
    let files = [backups.keep("renamed", &renamed)];
    assert!(matches!(Series::open(&files), Err(SeriesError::Unusable { .. })));
}

#[test]
fn no_increment_is_made_of_an_incomplete_backup() {
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
fn backups_with_rows_out_of_order_are_refused() {
    let backups = Backups::new(usize::MAX);
    let mut file = Vec::new();
    let mut writer = BackupWriter::begin(&mut file, MANIFEST).unwrap();
    for key in [[1], [3], [2]] {
        writer.entry(BlockKind::Rows, &key, Some(&[0])).unwrap();
    }
    writer.end().unwrap();
    let unordered = [backups.keep("unordered", &file)];
    let state: Result<Vec<_>, _> = backups.state(&unordered).unwrap().collect();
    assert!(matches!(state, Err(SeriesError::Unusable { source: BackupFileError::Unordered, .. })));
    let since = backups.state(&backups.three()).unwrap();
    let refused = increment(since, &mut file.as_slice(), &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, IncrementError::Unordered), "{refused}");
}

#[test]
fn a_file_that_changes_between_its_two_passes_is_detected() {
    let backups = Backups::new(usize::MAX);
    let whole = |seed: u64| {
        // The values cannot be compressed, so the file is longer than one read.
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
    // `since` has the file open, so only a change in place reaches it.
    fs::write(&files[0], &other).unwrap();
    let refused = increment(since, &mut sound.as_slice(), &mut Vec::new()).unwrap_err();
    assert!(matches!(refused, IncrementError::Series(SeriesError::Unusable { .. })), "{refused}");
}
