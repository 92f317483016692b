//! All readers of the stream agree on the description, and of two concurrent changes only one is made.

use doppel_shared_log::memory::{LogFault, MemoryLog};
use proptest::prelude::*;

use super::*;
use crate::cluster::tests::replicated;

fn described(address: u16) -> Description {
    replicated(|description| description.tier2[1].address = format!("10.0.0.1:{}", 1_000 + address))
}

fn meta(log: &MemoryLog) -> Meta {
    Meta::new(described(1).cluster.as_str().into(), Arc::new(log.clone()))
}

fn put(log: &MemoryLog, entry: &Bytes) {
    let end = log.end().unwrap();
    log.append(end, entry).unwrap();
}

fn entry(version: u64, description: Description) -> Bytes {
    encode(&Change { version, change: random_number(), description }).unwrap()
}

#[test]
fn a_change_is_read_by_all() {
    let log = MemoryLog::default();
    let meta = meta(&log);
    assert_eq!(meta.read(), Err(MetaError::Empty("doppel-0123456789ab-meta".to_owned())));
    meta.begin(&described(7)).unwrap();
    assert_eq!(meta.begin(&described(8)), Err(MetaError::Outrun));
    let first = meta.read().unwrap();
    assert_eq!((first.version, &first.description), (1, &described(7)));
    assert_eq!(meta.read_if_newer(&first), Ok(None));
    let second = meta.change(&first, &described(8)).unwrap();
    assert_eq!(meta.read_if_newer(&first), Ok(Some(second.clone())));
    assert_eq!(meta.read(), Ok(second));
}

#[test]
fn of_two_changes_of_one_description_one_is_made() {
    let log = MemoryLog::default();
    let meta = meta(&log);
    meta.begin(&described(7)).unwrap();
    let seen = meta.read().unwrap();
    meta.change(&seen, &described(8)).unwrap();
    // The second change is refused even if it wants the same description.
    for wanted in [8, 9] {
        assert_eq!(meta.change(&seen, &described(wanted)), Err(MetaError::Outrun));
    }
    assert_eq!(meta.read().unwrap().description, described(8));
    // After reading again, a change succeeds.
    meta.change(&meta.read().unwrap(), &described(9)).unwrap();
    assert_eq!(meta.read().unwrap().version, 3);
}

#[test]
fn damaged_and_foreign_entries_are_ignored_and_a_newer_form_is_refused() {
    let log = MemoryLog::default();
    let meta = meta(&log);
    put(&log, &Bytes::from_static(b"rubbish"));
    let foreign = Description { cluster: "f".repeat(32), ..described(9) };
    put(&log, &entry(9, foreign));
    put(&log, &entry(3, described(7)));
    let mut torn = entry(4, described(8)).to_vec();
    *torn.last_mut().unwrap() ^= 1;
    put(&log, &Bytes::from(torn));
    // An entry with an old version is published again.
    put(&log, &entry(3, described(8)));
    let found = meta.read().unwrap();
    assert_eq!((found.version, &found.description), (3, &described(7)));
    // A change can follow ignored entries.
    meta.change(&found, &described(8)).unwrap();
    assert_eq!(meta.read().unwrap().version, 4);
    put(&log, &framed(FORM + 1, "{}"));
    let refused = meta.read().unwrap_err();
    assert_eq!(refused, MetaError::Form { log: "doppel-0123456789ab-meta".to_owned(), form: 2 });
    assert!(!refused.passes());
}

#[test]
fn a_description_that_contradicts_itself_is_refused() {
    for (body, says) in [
        (entry(1, Description { tier2: Vec::new(), ..described(7) }), "tier2: 1 to 128"),
        (framed(FORM, "{\"version\": 1}"), "missing field"),
    ] {
        let log = MemoryLog::default();
        put(&log, &body);
        let refused = meta(&log).read().unwrap_err().to_string();
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn a_missing_stream_is_an_error_and_is_never_created_again() {
    let log = MemoryLog::default();
    let meta = meta(&log);
    meta.begin(&described(7)).unwrap();
    let seen = meta.read().unwrap();
    log.set_missing(true);
    for refused in [meta.read().unwrap_err(), meta.change(&seen, &described(8)).unwrap_err()] {
        assert!(matches!(refused, MetaError::Log(LogError::Missing { .. })), "{refused}");
        assert!(refused.passes(), "a missing stream may come back");
    }
    log.set_missing(false);
    assert_eq!(meta.read(), Ok(seen));
}

#[test]
fn old_descriptions_are_removed_and_the_last_stays() {
    let log = MemoryLog::default();
    let meta = meta(&log);
    meta.begin(&described(1)).unwrap();
    for n in 2..100 {
        meta.change(&meta.read().unwrap(), &described(n)).unwrap();
    }
    assert_eq!(meta.read().unwrap().description, described(99));
    let extent = log.extent().unwrap();
    assert_eq!(extent.end.0 - extent.trimmed.0, KEPT);
}

/// A step of the random test.
#[derive(Debug, Clone)]
enum Put {
    /// A change by a reader that has read the stream this many steps ago.
    Change(usize),
    Rubbish,
    Replay(u64),
    Trim(u64),
    Fails(LogFault),
}

fn puts() -> impl Strategy<Value = Vec<Put>> {
    let fault = prop_oneof![
        Just(LogFault::AnswerLost),
        Just(LogFault::CallLost),
        Just(LogFault::CallLate),
        Just(LogFault::Away)
    ];
    let one = prop_oneof![
        4 => (0..3_usize).prop_map(Put::Change),
        1 => Just(Put::Rubbish),
        1 => (1..6_u64).prop_map(Put::Replay),
        1 => (0..4_u64).prop_map(Put::Trim),
        1 => fault.prop_map(Put::Fails),
    ];
    proptest::collection::vec(one, 1..16)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn all_that_fold_the_stream_agree(puts in puts()) {
        let log = MemoryLog::default();
        let meta = meta(&log);
        meta.begin(&described(1)).unwrap();
        // The descriptions that were read after each step.
        let mut looks = vec![meta.read().unwrap()];
        for (n, put_in) in (2..).zip(puts) {
            match put_in {
                Put::Change(ago) => {
                    let seen = &looks[looks.len().saturating_sub(1 + ago)];
                    let is_present = log.end().unwrap() == seen.end;
                    let made = meta.change(seen, &described(n));
                    prop_assert_eq!(made.is_ok(), is_present, "{:?}", made);
                    prop_assert!(is_present || made == Err(MetaError::Outrun));
                }
                Put::Rubbish => {
                    log.heal();
                    put(&log, &Bytes::from_static(b"doppel-meta 0 1\n{}"));
                }
                Put::Replay(version) => {
                    log.heal();
                    if version <= looks.last().unwrap().version {
                        put(&log, &entry(version, described(500)));
                    }
                }
                Put::Trim(ahead) => {
                    // Trim only entries before the one that counts.
                    let last = looks.iter().find(|look| look.version == looks.last().unwrap().version);
                    let through = last.unwrap().end.0.saturating_sub(1 + ahead);
                    log.trim(Sequence(through)).unwrap();
                }
                Put::Fails(fault) => log.plan([fault]),
            }
            log.heal();
            let look = meta.read().unwrap();
            prop_assert_eq!(&meta.read().unwrap(), &look);
            let before = looks.last().unwrap();
            let is_same = look.version == before.version && look.description == before.description;
            prop_assert!(is_same || look.version == before.version + 1);
            looks.push(look);
        }
    }
}
