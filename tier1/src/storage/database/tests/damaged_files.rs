//! Tests with files that are damaged, cut, missing or swapped while no process has them open.

use doppel_model::Random;

use super::*;

/// Creates a database with several files of each kind. Its last commits are only in the log.
fn sample(seed: u64) -> (Disk, Model) {
    let (disk, mut model, random) = (Disk::new(), Model::new(), &mut Random::new(seed));
    let inner = disk.open().unwrap();
    [LogConsumer::Index, LogConsumer::Statuses].iter().for_each(|reader| inner.keep_log(*reader, None));
    for turn in 0..40 {
        let writes = writes(random);
        inner.commit(writes.clone()).unwrap();
        apply(&mut model, &writes);
        if turn == 20 {
            inner.move_rows().unwrap();
        }
    }
    assert!(disk.log.files().len() > 2 && disk.signatures.files().len() > 2);
    (disk, model)
}

/// Opens the database and reads all rows. Returns the error, if there is one.
fn open_error(disk: &Disk) -> Option<String> {
    disk.open().and_then(|inner| all(&inner)).err().map(|error| error.to_string())
}

#[test]
fn the_error_names_a_missing_file() {
    let (disk, _) = sample(1);
    // A log without its last file looks like an earlier state. `progress` detects that.
    let last = disk.log.files().pop().unwrap().0;
    for (files, kind) in [(&disk.log, "log"), (&disk.signatures, "signatures")] {
        for (name, bytes) in files.files().into_iter().filter(|(name, _)| *name != last) {
            files.set(&name, None);
            let message = open_error(&disk)
                .unwrap_or_else(|| panic!("opening succeeds without the {kind} file {name}"));
            assert!(
                message.contains("missing") || message.contains("it ends with record"),
                "{name}: {message}"
            );
            files.set(&name, Some(bytes));
        }
    }
    assert_eq!(open_error(&disk), None);
}

#[test]
fn a_flipped_bit_is_detected_unless_it_is_in_the_last_record() {
    let (disk, model) = sample(2);
    let last = disk.log.files().pop().unwrap().0;
    for (name, bytes) in disk.log.files() {
        for at in (0..bytes.len()).step_by(7) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            let copy = disk.crash(&mut Random::new(0));
            copy.log.set(&name, Some(damaged));
            match open_error(&copy) {
                Some(message) => assert!(message.contains(&name) && message.contains("at byte"), "{message}"),
                None => {
                    assert_eq!(name, last, "byte {at}");
                    assert_ne!(all(&copy.open().unwrap()).unwrap(), model);
                }
            }
        }
    }
}

#[test]
fn a_cut_in_the_last_record_loses_that_record_and_any_other_cut_is_damage() {
    let (disk, _) = sample(3);
    let files = disk.log.files();
    let (last, bytes) = files.last().unwrap();
    let ends: Vec<usize> =
        (0..=bytes.len()).filter(|at| *at == bytes.len() || bytes[*at..].starts_with(b"dlogrec")).collect();
    for length in ends[ends.len() - 2]..bytes.len() {
        let copy = disk.crash(&mut Random::new(0));
        copy.log.set(last, Some(bytes[..length].to_vec()));
        assert_eq!(open_error(&copy), None, "{length}");
        let inner = copy.open().unwrap();
        inner.commit(vec![(vec![0, 0, b'p', 1], Some(vec![1]))]).unwrap();
        drop(inner);
        assert_eq!(open_error(&copy), None, "{length}, and a commit");
    }
    for (name, bytes) in &files[..files.len() - 1] {
        let copy = disk.crash(&mut Random::new(0));
        copy.log.set(name, Some(bytes[..bytes.len() - 1].to_vec()));
        assert!(open_error(&copy).unwrap().contains("damaged"), "{name}");
    }
}

#[test]
fn swapped_files_are_detected() {
    let (disk, _) = sample(4);
    let (other, _) = sample(5);
    let swap = |files: &SimulatedDirectory, others: &SimulatedDirectory, what: &str| {
        let copy = disk.crash(&mut Random::new(0));
        let target = if what == "log" { &copy.log } else { &copy.signatures };
        let (one, two) = (&files.files()[1], &others.files()[0]);
        target.set(&one.0, Some(two.1.clone()));
        open_error(&copy)
    };
    for others in [&disk, &other] {
        assert!(swap(&disk.log, &others.log, "log").is_some());
    }
    // Swapped files of signatures are not tested, because the signatures of these tests have no checksums.
    let copy = disk.crash(&mut Random::new(0));
    let logs = other.log.files();
    copy.log.files().iter().for_each(|(name, _)| copy.log.set(name, None));
    logs.iter().for_each(|(name, bytes)| copy.log.set(name, Some(bytes.clone())));
    assert!(
        open_error(&copy).is_some_and(|message| message.contains("a record of another log") || message.contains("missing"))
    );
}

#[test]
fn a_store_of_rows_that_is_behind_or_ahead_is_detected() {
    let (disk, _) = sample(6);
    let behind = Disk { rows: Arc::default(), ..disk.clone() };
    assert!(open_error(&behind).is_some());
    let before = disk.crash(&mut Random::new(0));
    let inner = disk.open().unwrap();
    inner.commit(writes(&mut Random::new(1))).unwrap();
    inner.move_all().unwrap();
    drop(inner);
    let ahead = Disk { rows: Arc::clone(&disk.rows), ..before };
    assert!(open_error(&ahead).unwrap().contains("it ends with record"));
}
