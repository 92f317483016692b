//! The log by itself.

use std::borrow::Cow;

use super::*;
use crate::files::simulated::Simulated;
use crate::store::Write;

fn rows(number: u8) -> Payload<'static> {
    let deleted: Write = (vec![number, 2], None);
    Payload::Rows(Cow::Owned(vec![(vec![number], Some(vec![number; 9])), deleted, (vec![9], Some(vec![]))]))
}

fn open(directory: &Simulated, from: Position) -> Result<(Local, Vec<Record>), StoreError> {
    let mut records = Vec::new();
    let log = Local::open(
        Box::new(directory.clone()),
        LogId(7),
        Reached { position: from, sequence: 0 },
        &mut |record| {
            records.push(record);
            Ok(())
        },
    )?;
    Ok((log, records))
}

fn append(log: &mut Local, epoch: u64, payload: &Payload<'_>) -> Position {
    match log.append(log.last(), epoch, payload).unwrap() {
        Appended::Done(position) => position,
        Appended::Refused(last) => panic!("refused at {last:?}"),
    }
}

#[test]
fn records_come_back_in_order_from_any_position() {
    let directory = Simulated::default();
    let (mut log, _) = open(&directory, Position::default()).unwrap();
    log.set_file_bytes(300);
    let mut positions = vec![append(&mut log, 1, &Payload::TakeOver(Cow::Borrowed(&[])))];
    positions.extend((0..20).map(|number| append(&mut log, 1, &rows(number))));
    drop(log);
    for (at, from) in positions.iter().enumerate() {
        let (log, records) = open(&directory, *from).unwrap();
        assert_eq!(log.last(), positions[20]);
        let found: Vec<Position> = records.iter().map(|record| record.position).collect();
        assert_eq!(found, positions[at + 1..]);
        assert!(records.iter().zip(at as u8..).all(|(record, number)| record.payload == rows(number)));
    }
}

#[test]
fn an_append_behind_another_record_or_of_an_earlier_epoch_is_refused() {
    let directory = Simulated::default();
    let (mut log, _) = open(&directory, Position::default()).unwrap();
    let first = append(&mut log, 3, &Payload::TakeOver(Cow::Borrowed(&[])));
    let second = append(&mut log, 3, &rows(1));
    assert_eq!(log.append(first, 3, &rows(2)).unwrap(), Appended::Refused(second));
    assert_eq!(log.append(second, 2, &rows(2)).unwrap(), Appended::Refused(second));
    assert_eq!(open(&directory, Position::default()).unwrap().1.len(), 2);
}

#[test]
fn a_trimmed_log_has_what_comes_after_and_always_a_file() {
    let directory = Simulated::default();
    let (mut log, _) = open(&directory, Position::default()).unwrap();
    log.set_file_bytes(300);
    let positions: Vec<Position> = (0..20).map(|number| append(&mut log, 1, &rows(number))).collect();
    let all = directory.files().len();
    log.trim(positions[9].index, u64::MAX).unwrap();
    assert!(directory.files().len() < all);
    assert_eq!(open(&directory, positions[9]).unwrap().1.len(), 10);
    let missing = open(&directory, positions[0]).err().unwrap().to_string();
    assert!(missing.contains("are missing"), "{missing}");
    log.trim(u64::MAX, u64::MAX).unwrap();
    assert_eq!(directory.files().len(), 1);
    drop(log);
    assert_eq!(open(&directory, positions[19]).unwrap().1, []);
}

#[test]
fn records_that_are_of_use_are_kept_and_read_while_the_log_goes_on() {
    let directory = Simulated::default();
    let (mut log, _) = open(&directory, Position::default()).unwrap();
    log.set_file_bytes(300);
    let positions: Vec<Position> = (0..20).map(|number| append(&mut log, 1, &rows(number))).collect();
    log.trim(positions[15].index, positions[4].index).unwrap();
    let read = |log: &Local, id: LogId, from: Position| {
        let since = log.since(id, from).unwrap()?;
        let mut records = Vec::new();
        let is_whole = since.read(&mut |record| {
            records.push(record.position);
            Ok(())
        });
        is_whole.then_some(records)
    };
    let id = log.id();
    assert_eq!(read(&log, id, positions[4]).unwrap(), positions[5..]);
    assert_eq!(read(&log, id, positions[19]), Some(Vec::new()));
    assert_eq!(read(&log, LogId(id.0 + 1), positions[4]), None);
    assert_eq!(read(&log, id, Position { hash: 1, ..positions[10] }), None);
    assert_eq!(read(&log, id, Position { index: 99, ..positions[10] }), None);
    let (mut log, _) = open(&directory, positions[15]).unwrap();
    assert_eq!(read(&log, id, positions[4]).unwrap(), positions[5..]);
    log.trim(positions[15].index, u64::MAX).unwrap();
    assert_eq!(read(&log, id, positions[4]), None);
    assert_eq!(read(&log, id, positions[15]).unwrap(), positions[16..]);
}

#[test]
fn after_a_failed_write_nothing_more_is_taken() {
    let directory = Simulated::default();
    let (mut log, _) = open(&directory, Position::default()).unwrap();
    let first = append(&mut log, 1, &rows(1));
    directory.allow(Some(0));
    assert!(log.append(first, 1, &rows(2)).is_err());
    directory.allow(None);
    assert!(log.append(first, 1, &rows(2)).is_err());
}
