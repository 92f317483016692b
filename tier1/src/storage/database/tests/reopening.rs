//! Tests of a database that is reopened in place after a call of its files has failed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use doppel_model::Random;

use super::*;

#[test]
fn a_reopened_database_has_the_acknowledged_commits_and_takes_more() {
    for calls in 0..60 {
        let random = &mut Random::new(calls);
        let (disk, mut model) = (Disk::new(), Model::new());
        let database = disk.database(None).unwrap();
        let reader = database.uncached();
        database.keep_log(LogConsumer::Index, Some(7));
        let (epoch, commit) = (database.epoch(), |writes: &[Write]| database.commit(writes.to_vec()));
        for turn in 0..3 {
            // The first failing call belongs to the log or to the signatures.
            let many = 1_000_000;
            disk.allow(Some(if turn == 1 { (many, calls) } else { (calls, many) }));
            loop {
                let writes = writes(random);
                if commit(&writes).is_err() {
                    break;
                }
                apply(&mut model, &writes);
            }
            disk.allow(None);
            assert!(
                commit(&writes(random)).is_err(),
                "a commit was accepted before the database was reopened"
            );
            database.reopen().unwrap();
            assert_eq!(
                (all(&database.current().unwrap().inner).unwrap(), database.epoch()),
                (model.clone(), epoch)
            );
            for (key, row) in &model {
                assert_eq!(reader.get(key).unwrap().as_ref(), Some(row));
            }
        }
        assert_eq!(database.kept_log_after(LogConsumer::Index), Some(7));
        drop((database, reader));
        assert_eq!(all(&disk.open().unwrap()).unwrap(), model);
    }
}

#[test]
fn reopening_waits_for_slow_readers_and_cuts_no_reader_off() {
    let (disk, random) = (Disk::new(), &mut Random::new(1));
    let database = disk.database(None).unwrap();
    let writes = writes(random);
    database.commit(writes.clone()).unwrap();
    let reading = database.signatures().unwrap();
    thread::scope(|scope| {
        let reopening = scope.spawn(|| database.reopen());
        // Other readers go on meanwhile.
        let mut reads = 0;
        while !reopening.is_finished() {
            assert!(database.get(b"key").unwrap().is_none());
            reads += 1;
            thread::sleep(Duration::from_millis(1));
        }
        assert!(reads > 30, "{reads}");
        assert!(matches!(reopening.join().unwrap(), Err(StoreError::Busy)));
    });
    let mut model = Model::new();
    apply(&mut model, &writes);
    assert_eq!(all(&database.current().unwrap().inner).unwrap(), model);
    drop(reading);
    database.reopen().unwrap();
    database.commit(super::writes(random)).unwrap();
}

#[test]
fn a_database_that_cannot_be_reopened_stays_closed_until_it_can() {
    let (disk, random) = (Disk::new(), &mut Random::new(1));
    let database = disk.database(None).unwrap();
    database.commit(writes(random)).unwrap();
    disk.allow(Some((0, 0)));
    assert!(database.commit(writes(random)).is_err());
    assert!(database.reopen().is_err(), "reopening succeeded though the log cannot be cut");
    disk.allow(Some((2, 0)));
    assert!(database.reopen().is_err(), "reopening succeeded though the files cannot be read");
    // Readers learn that reopening will be tried again.
    assert!(matches!(database.get(b"key"), Err(StoreError::Reopening)));
    disk.allow(None);
    database.reopen().unwrap();
    assert_eq!(database.get(b"key").unwrap(), None);
    database.commit(writes(random)).unwrap();
}

#[test]
fn readers_get_the_error_of_damage_and_otherwise_that_reopening_is_retried() {
    let (disk, failure) = (Disk::new(), Arc::new(Mutex::new(None::<StoreError>)));
    let open = {
        let failure = Arc::clone(&failure);
        move || failure.lock().unwrap().clone().map_or_else(|| disk.open_as(None), Err)
    };
    let database = Database { handle: Arc::new(DatabaseHandle::open(Box::new(open)).unwrap()) };
    let fails = |error: StoreError| {
        *failure.lock().unwrap() = Some(error.clone());
        assert_eq!(database.reopen().unwrap_err().to_string(), error.to_string());
        let (told, again) = (database.get(b"key").unwrap_err(), StoreError::Reopening.to_string());
        assert!(matches!(told, StoreError::Reopening) || told.to_string() == error.to_string());
        told.to_string() != again
    };
    assert!(!fails(StoreError::InUse) && !fails(StoreError::Engine("no such device".to_owned())));
    assert!(fails(StoreError::DiskFull) && fails(StoreError::Missing("somewhere".into())));
    assert!(fails(StoreError::Damaged { key: "00".to_owned(), reason: "it is short" }));
    assert!(fails(StoreError::Version { found: 1, expected: 2 }));
    *failure.lock().unwrap() = None;
    database.reopen().unwrap();
    assert_eq!(database.get(b"key").unwrap(), None);
}

#[test]
fn reading_one_signature_after_another_does_not_prevent_reopening() {
    let disk = Disk::new();
    let database = disk.database(None).unwrap();
    let key = key::signature(ShardId(0), page(1));
    database.commit(vec![(key.clone(), Some(vec![7; 900]))]).unwrap();
    let id = database.signature_id(&key).unwrap().unwrap();
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut buffer = Vec::new();
                while !is_over.load(Ordering::SeqCst) {
                    database.read_signature(id, &mut buffer).unwrap();
                    assert_eq!(buffer, [7; 900]);
                }
            });
        }
        let reopened: Vec<_> = (0..5).map(|_| database.reopen()).collect();
        is_over.store(true, Ordering::SeqCst);
        assert!(reopened.iter().all(Result::is_ok), "{reopened:?}");
    });
}

/// Longer than anything in these tests waits.
const LONG: Duration = Duration::from_secs(20);

#[test]
fn a_store_that_does_not_answer_a_batch_blocks_no_reader() {
    let (disk, random) = (Disk::new(), &mut Random::new(1));
    let database = disk.database(None).unwrap();
    let writes = writes(random);
    let mut model = Model::new();
    database.commit(writes.clone()).unwrap();
    apply(&mut model, &writes);
    let (held, came) = (disk.rows.gate.lock().unwrap(), disk.rows.came.load(Ordering::SeqCst));
    database.current().unwrap().mover.wake();
    let begun = Instant::now();
    while disk.rows.came.load(Ordering::SeqCst) == came {
        assert!(begun.elapsed() < LONG);
        thread::yield_now();
    }
    assert!(matches!(database.reopen(), Err(StoreError::Busy)));
    assert!(begun.elapsed() < LONG);
    assert_eq!(all(&database.current().unwrap().inner).unwrap(), model);
    assert!(
        database.commit(super::writes(random)).is_err(),
        "a commit was accepted before the database was reopened"
    );
    drop(held);
    while let Err(error) = database.reopen() {
        assert!(matches!(error, StoreError::Busy) && begun.elapsed() < LONG, "{error}");
    }
    assert_eq!(all(&database.current().unwrap().inner).unwrap(), model);
}

#[test]
fn a_reader_during_a_slow_reopening_gets_an_error_in_time() {
    let (disk, random) = (Disk::new(), &mut Random::new(1));
    let (gate, is_opening): (Arc<Mutex<()>>, Arc<AtomicBool>) = Default::default();
    let open = {
        let (disk, gate, is_opening) = (disk.clone(), Arc::clone(&gate), Arc::clone(&is_opening));
        move || {
            is_opening.store(true, Ordering::SeqCst);
            let _passed = gate.lock().unwrap();
            disk.open_as(None)
        }
    };
    let database = Database { handle: Arc::new(DatabaseHandle::open(Box::new(open)).unwrap()) };
    database.commit(writes(random)).unwrap();
    is_opening.store(false, Ordering::SeqCst);
    let held = gate.lock().unwrap();
    thread::scope(|scope| {
        let reopening = scope.spawn(|| database.reopen());
        while !is_opening.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        let reading = scope.spawn(|| database.get(b"key"));
        let begun = Instant::now();
        while !reading.is_finished() && begun.elapsed() < LONG {
            thread::sleep(Duration::from_millis(5));
        }
        let is_told = reading.is_finished();
        // A reader that comes late enough gets its answer.
        let late = scope.spawn(|| database.get(b"key"));
        drop(held);
        reopening.join().unwrap().unwrap();
        assert!(matches!(late.join().unwrap(), Ok(None)));
        assert!(is_told && matches!(reading.join().unwrap(), Err(StoreError::Reopening)));
    });
}

#[test]
fn a_long_read_of_all_rows_continues_after_a_reopening() {
    let disk = Disk::new();
    let database = disk.database(None).unwrap();
    let key = |n: u64| key::page(ShardId(0), page(n));
    database.commit((0..3_000).map(|n| (key(n), Some(vec![1]))).collect()).unwrap();
    let (begun, is_over) = (AtomicBool::new(false), AtomicBool::new(false));
    thread::scope(|scope| {
        let reading = scope.spawn(|| {
            let mut count = 0;
            let read = database.range(&[], &[0xff; 8], &mut |_, _| {
                begun.store(true, Ordering::SeqCst);
                count += 1;
                // All rows together take longer than the limit for readers, but one piece does not.
                thread::sleep(Duration::from_micros(300));
                true
            });
            is_over.store(true, Ordering::SeqCst);
            read.map(|()| count)
        });
        while !begun.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        database.reopen().unwrap();
        assert!(!is_over.load(Ordering::SeqCst), "reopening waited for the end of the read");
        assert_eq!(reading.join().unwrap().unwrap(), 3_000);
    });
}
