//! Tests of the log on a simulated directory.

use std::borrow::Cow;

use super::*;
use crate::storage::files::simulated::SimulatedDirectory;
use crate::storage::store::Write;

fn rows(number: u8) -> Payload<'static> {
    let deleted: Write = (vec![number, 2], None);
    Payload::Rows(Cow::Owned(vec![(vec![number], Some(vec![number; 9])), deleted, (vec![9], Some(vec![]))]))
}

fn open(directory: &SimulatedDirectory, from: Position) -> Result<(FileLog, Vec<Record>), StoreError> {
    let mut records = Vec::new();
    let log = FileLog::open(
        Box::new(directory.clone()),
        LogId(7),
        SequencedPosition { position: from, sequence: 0 },
        &mut |record| {
            records.push(record);
            Ok(())
        },
    )?;
    Ok((log, records))
}

fn append(log: &mut FileLog, epoch: u64, payload: &Payload<'_>) -> Position {
    match log.append(log.last(), epoch, payload).unwrap() {
        AppendOutcome::Appended(position) => position,
        AppendOutcome::Refused(last) => panic!("refused at {last:?}"),
    }
}

#[test]
fn records_come_back_in_order_from_any_position() {
    let directory = SimulatedDirectory::default();
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
fn an_append_after_another_record_or_of_an_earlier_epoch_is_refused() {
    let directory = SimulatedDirectory::default();
    let (mut log, _) = open(&directory, Position::default()).unwrap();
    let first = append(&mut log, 3, &Payload::TakeOver(Cow::Borrowed(&[])));
    let second = append(&mut log, 3, &rows(1));
    assert_eq!(log.append(first, 3, &rows(2)).unwrap(), AppendOutcome::Refused(second));
    assert_eq!(log.append(second, 2, &rows(2)).unwrap(), AppendOutcome::Refused(second));
    assert_eq!(open(&directory, Position::default()).unwrap().1.len(), 2);
}

#[test]
fn trimming_keeps_the_later_records_and_at_least_one_file() {
    let directory = SimulatedDirectory::default();
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
fn kept_records_can_be_read_while_the_log_is_open() {
    let directory = SimulatedDirectory::default();
    let (mut log, _) = open(&directory, Position::default()).unwrap();
    log.set_file_bytes(300);
    let positions: Vec<Position> = (0..20).map(|number| append(&mut log, 1, &rows(number))).collect();
    log.trim(positions[15].index, positions[4].index).unwrap();
    let read = |log: &FileLog, id: LogId, from: Position| {
        let reader = log.records_after(id, from).unwrap()?;
        let mut records = Vec::new();
        let is_whole = reader.read(&mut |record| {
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
fn after_a_failed_write_the_log_refuses_every_append() {
    let directory = SimulatedDirectory::default();
    let (mut log, _) = open(&directory, Position::default()).unwrap();
    let first = append(&mut log, 1, &rows(1));
    directory.allow(Some(0));
    assert!(log.append(first, 1, &rows(2)).is_err());
    directory.allow(None);
    assert!(log.append(first, 1, &rows(2)).is_err());
}
