//! A database that is opened anew in place after a call of its files has failed.

use doppel_model::Random;

use super::*;

#[test]
fn opened_anew_it_has_what_was_acknowledged_and_goes_on() {
    for calls in 0..60 {
        let random = &mut Random::new(calls);
        let (disk, mut model) = (Disk::new(), Model::new());
        let database = disk.database(None).unwrap();
        let reader = database.uncached();
        database.keep_log(Reader::Index, Some(7));
        let (epoch, commit) = (database.epoch(), |writes: &[Write]| database.commit(writes.to_vec()));
        for turn in 0..3 {
            // The last calls that succeed are those of the log, or those of the signatures.
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
            assert!(commit(&writes(random)).is_err(), "nothing is written before it is open anew");
            database.reopen().unwrap();
            assert_eq!(
                (all(&database.live().unwrap().inner).unwrap(), database.epoch()),
                (model.clone(), epoch)
            );
            for (key, row) in &model {
                assert_eq!(reader.get(key).unwrap().as_ref(), Some(row));
            }
        }
        assert_eq!(database.is_kept_after(Reader::Index), Some(7));
        drop((database, reader));
        assert_eq!(all(&disk.open().unwrap()).unwrap(), model);
    }
}

#[test]
fn whoever_reads_is_waited_for_and_nobody_is_cut_off() {
    let (disk, random) = (Disk::new(), &mut Random::new(1));
    let database = disk.database(None).unwrap();
    let writes = writes(random);
    database.commit(writes.clone()).unwrap();
    let reading = database.signatures().unwrap();
    assert!(matches!(database.reopen(), Err(StoreError::InUse)));
    let mut model = Model::new();
    apply(&mut model, &writes);
    assert_eq!(all(&database.live().unwrap().inner).unwrap(), model);
    drop(reading);
    database.reopen().unwrap();
    database.commit(super::writes(random)).unwrap();
}

#[test]
fn a_database_that_cannot_be_opened_is_closed_until_it_can() {
    let (disk, random) = (Disk::new(), &mut Random::new(1));
    let database = disk.database(None).unwrap();
    database.commit(writes(random)).unwrap();
    disk.allow(Some((0, 0)));
    assert!(database.commit(writes(random)).is_err());
    assert!(database.reopen().is_err(), "its log cannot be cut");
    disk.allow(Some((2, 0)));
    assert!(database.reopen().is_err(), "its files cannot be read");
    assert!(matches!(database.get(b"key"), Err(StoreError::DiskFull)));
    disk.allow(None);
    database.reopen().unwrap();
    assert_eq!(database.get(b"key").unwrap(), None);
    database.commit(writes(random)).unwrap();
}
