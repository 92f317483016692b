//! The guarantees of every log, as a test suite. It panics if a log breaks a guarantee.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::log::{AppendError, LogEntry, LogError, Sequence, SharedLog, append_surely};

/// How long a call is repeated if the log is unavailable.
const PATIENCE: Duration = Duration::from_secs(30);

/// Runs the whole suite. `new` creates an empty log for each part.
pub fn run<L: SharedLog + 'static>(new: &mut dyn FnMut() -> L) {
    an_append_names_the_last_entry(&new());
    entries_are_read_in_pieces(&new());
    reading_trimmed_entries_is_an_error(&new());
    a_long_entry_comes_back_whole(&new());
    one_of_two_appends_at_a_position_succeeds(&Arc::new(new()));
    a_deposed_writer_may_append_after_its_successor(&new());
    a_waiting_reader_gets_the_next_entry(&Arc::new(new()));
    announced_entries_are_in_the_log(&new());
}

fn bytes(text: &str) -> Bytes {
    Bytes::copy_from_slice(text.as_bytes())
}

/// Repeats a call while the log is unavailable, for at most [`PATIENCE`]. Panics if the time has passed, or
/// if the call fails for another reason.
fn patiently<T>(mut ask: impl FnMut() -> Result<T, LogError>) -> T {
    let began = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(LogError::Unavailable { .. }) if began.elapsed() < PATIENCE => {}
            Err(error) => panic!("{error}"),
        }
    }
}

fn append(log: &dyn SharedLog, expected: Sequence, entry: &Bytes) -> Result<Sequence, AppendError> {
    append_surely(log, expected, entry, PATIENCE)
}

fn all(log: &dyn SharedLog) -> Vec<LogEntry> {
    let mut entries: Vec<LogEntry> = Vec::new();
    loop {
        let after = entries.last().map_or(Sequence(0), |last| last.sequence);
        let more = patiently(|| log.read(after, 1 << 20));
        if more.is_empty() {
            return entries;
        }
        entries.extend(more);
    }
}

fn an_append_names_the_last_entry(log: &dyn SharedLog) {
    let empty = patiently(|| log.extent());
    assert_eq!((empty.trimmed, empty.end, empty.bytes), (Sequence(0), Sequence(0), 0));
    assert_eq!(patiently(|| log.read(Sequence(0), 100)), Vec::new());
    assert_eq!(append(log, Sequence(0), &bytes("a")), Ok(Sequence(1)));
    for wrong in [0, 2, 7] {
        let refused = patiently(|| match log.append(Sequence(wrong), &bytes("b")) {
            Err(AppendError::Unknown(error) | AppendError::Failed(error)) => Err(error),
            other => Ok(other),
        });
        assert_eq!(refused, Err(AppendError::Refused), "{wrong}");
    }
    assert_eq!(append(log, Sequence(1), &bytes("")), Ok(Sequence(2)), "an entry may be empty");
    // A second entry with equal content is a new entry.
    assert_eq!(append(log, Sequence(2), &bytes("a")), Ok(Sequence(3)));
    assert_eq!(patiently(|| log.end()), Sequence(3));
    let texts: Vec<Bytes> = all(log).into_iter().map(|entry| entry.bytes).collect();
    assert_eq!(texts, [bytes("a"), bytes(""), bytes("a")]);
}

fn entries_are_read_in_pieces(log: &dyn SharedLog) {
    for place in 0..10 {
        append(log, Sequence(place), &bytes(&format!("entry {place}"))).expect("the append succeeds");
    }
    let two = patiently(|| log.read(Sequence(3), 10));
    assert!((1..=2).contains(&two.len()) && two[0].sequence == Sequence(4), "{two:?}");
    assert_eq!(two[0].bytes, bytes("entry 3"));
    assert_eq!(patiently(|| log.read(Sequence(10), 100)), Vec::new());
    let sequences: Vec<u64> = all(log).iter().map(|entry| entry.sequence.0).collect();
    assert_eq!(sequences, Vec::from_iter(1..=10));
}

fn reading_trimmed_entries_is_an_error(log: &dyn SharedLog) {
    for place in 0..6 {
        append(log, Sequence(place), &bytes(&format!("{place}"))).expect("the append succeeds");
    }
    let all = patiently(|| log.extent());
    assert_eq!((all.trimmed, all.end), (Sequence(0), Sequence(6)));
    patiently(|| log.trim(Sequence(4)));
    let left = patiently(|| log.extent());
    assert_eq!((left.trimmed, left.end), (Sequence(4), Sequence(6)));
    assert!((1..all.bytes).contains(&left.bytes), "{left:?} of {all:?}");
    let trimmed = || match log.read(Sequence(2), 100) {
        Err(error @ LogError::Unavailable { .. }) => Err(error),
        other => Ok(other),
    };
    let trimmed = patiently(trimmed);
    let is_trimmed = matches!(&trimmed, Err(LogError::Trimmed { after, first, .. })
        if *after == Sequence(2) && *first == Sequence(5));
    assert!(is_trimmed, "{trimmed:?}");
    assert_eq!(patiently(|| log.read(Sequence(4), 100)).len(), 2);
    assert_eq!(patiently(|| log.end()), Sequence(6));
    // The last entry is never trimmed, so that the end stays known.
    patiently(|| log.trim(Sequence(60)));
    assert_eq!(patiently(|| log.end()), Sequence(6));
    assert_eq!(append(log, Sequence(6), &bytes("on")), Ok(Sequence(7)));
    assert_eq!(patiently(|| log.read(Sequence(6), 100)).len(), 1);
}

fn a_long_entry_comes_back_whole(log: &dyn SharedLog) {
    let long = Bytes::from_iter((0..600_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8));
    assert_eq!(append(log, Sequence(0), &long), Ok(Sequence(1)));
    assert_eq!(append(log, Sequence(1), &bytes("short")), Ok(Sequence(2)));
    assert!(patiently(|| log.read(Sequence(0), 1))[0].bytes == long);
}

fn one_of_two_appends_at_a_position_succeeds<L: SharedLog + 'static>(log: &Arc<L>) {
    const PLACES: u64 = 40;
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let log = Arc::clone(log);
            thread::spawn(move || {
                let mut own = BTreeSet::new();
                for place in 0..PLACES {
                    let entry = bytes(&format!("{place} by {writer}"));
                    match append(&*log, Sequence(place), &entry) {
                        Ok(sequence) => drop(own.insert((sequence, entry))),
                        Err(AppendError::Refused) => assert!(patiently(|| log.end()) > Sequence(place)),
                        Err(error) => panic!("{error}"),
                    }
                }
                own
            })
        })
        .collect();
    let succeeded: Vec<_> =
        writers.into_iter().flat_map(|writer| writer.join().expect("the writer does not panic")).collect();
    let mut succeeded = succeeded;
    succeeded.sort();
    let in_log: Vec<_> = all(&**log).into_iter().map(|entry| (entry.sequence, entry.bytes)).collect();
    assert_eq!(succeeded, in_log);
    assert_eq!(in_log.len() as u64, PLACES);
}

/// Two appends are under way, and the position of the first is taken by another writer. The second append may
/// still succeed. The log alone is not a fence, so a reader has to decide by the entries which of them count.
fn a_deposed_writer_may_append_after_its_successor(log: &dyn SharedLog) {
    append(log, Sequence(0), &bytes("by the old owner")).expect("the append succeeds");
    append(log, Sequence(1), &bytes("by the new owner")).expect("the append succeeds");
    assert_eq!(append(log, Sequence(1), &bytes("first under way")), Err(AppendError::Refused));
    assert_eq!(append(log, Sequence(2), &bytes("second under way")), Ok(Sequence(3)));
}

fn a_waiting_reader_gets_the_next_entry<L: SharedLog + 'static>(log: &Arc<L>) {
    append(&**log, Sequence(0), &bytes("before")).expect("the append succeeds");
    log.wait(Sequence(0), PATIENCE);
    let reader = {
        let log = Arc::clone(log);
        thread::spawn(move || {
            let began = Instant::now();
            while began.elapsed() < PATIENCE {
                log.wait(Sequence(1), Duration::from_secs(1));
                let found = patiently(|| log.read(Sequence(1), 100));
                if !found.is_empty() {
                    return found;
                }
            }
            Vec::new()
        })
    };
    thread::sleep(Duration::from_millis(100));
    append(&**log, Sequence(1), &bytes("then")).expect("the append succeeds");
    let found = reader.join().expect("the reader does not panic");
    assert_eq!(found.first().map(|entry| entry.bytes.clone()), Some(bytes("then")));
}

fn announced_entries_are_in_the_log(log: &dyn SharedLog) {
    for place in 0..20 {
        append(log, Sequence(place), &bytes(&format!("{place}"))).expect("the append succeeds");
        assert_eq!(append(log, Sequence(place), &bytes("refused")), Err(AppendError::Refused));
    }
    let in_log = all(log);
    for after in (0..25).rev() {
        let announced = log.told(Sequence(after));
        let expected: Vec<LogEntry> =
            in_log.iter().filter(|entry| entry.sequence.0 > after).cloned().collect();
        assert!(expected.starts_with(&announced), "after {after}: {announced:?}");
    }
}
