//! Tests with a log that has lost its tail, as happens if its servers acknowledge entries before they sync
//! them.

use super::*;
use crate::storage::database::LogConsumer;

/// Positions and sequence numbers of the records that count in the log.
fn places(log: &MemoryLog) -> Vec<(Position, Sequence)> {
    let mut chain = Chain::after(log_id("cluster", RANGE), Position::default(), Sequence(0));
    let mut places = Vec::new();
    for entry in log.read(Sequence(0), usize::MAX).unwrap() {
        if let FoldedEntry::Record(record) = chain.fold(&entry) {
            places.push((record.position, record.sequence));
        }
    }
    places
}

/// Nodes that have written to the log in turn. Records have many small parts, and some entries are void.
fn nodes_with_records(log: &MemoryLog) -> Vec<Node> {
    let limits = ReplicaLimits { part_bytes: 60, ..LIMITS };
    let mut nodes: Vec<Node> = (0..3).map(|number| Node::within(limits, number, log)).collect();
    let random = &mut Random::new(7);
    for number in 0..24_u64 {
        let at = (number / 8) as usize;
        if number % 8 == 0 {
            nodes[at].take_over().unwrap();
        }
        nodes[at].owned.as_ref().unwrap().commit(marked(random, number)).unwrap();
        if number % 3 == 0 {
            log.append(log.end().unwrap(), &Bytes::from_static(b"of a deposed owner")).unwrap();
        }
    }
    nodes.iter().for_each(|node| while node.replica.follow().unwrap() {});
    nodes
}

#[test]
fn lost_records_go_back_to_their_sequence_numbers_wherever_the_log_ends() {
    let log = MemoryLog::default();
    let mut nodes = nodes_with_records(&log);
    let (before, end, rows) = (places(&log), log.end().unwrap(), nodes[2].rows());
    assert!(before.len() == 27 && end.0 > 60, "{} records, {end:?}", before.len());
    let random = &mut Random::new(8);
    for left in (0..end.0).rev() {
        log.lose_tail(Sequence(left));
        match left % 4 {
            // Two replicas put the tail back at the same time.
            0 => std::thread::scope(|scope| {
                nodes.iter().take(2).for_each(|node| drop(scope.spawn(|| node.replica.check_log().unwrap())));
            }),
            // A replica restarts while calls to the log fail.
            1 => {
                nodes[1].die(random, &log);
                log.plan([LogFault::CallLost, LogFault::AnswerLost, LogFault::CallLate]);
                nodes[1].replica.follow().unwrap();
                log.heal();
            }
            // The owner makes a commit, which ends its ownership. It must take the range over again.
            2 => {
                let lost = nodes[2].owned.as_ref().unwrap().commit(row(1));
                assert!(matches!(lost, Err(StoreError::Deposed(RANGE))), "{lost:?}");
                assert!(nodes[2].replica.is_ownership_over());
                nodes[2].take_over().unwrap();
                assert!(!nodes[2].replica.is_ownership_over());
            }
            _ => nodes[0].replica.check_log().unwrap(),
        }
        assert!(places(&log).starts_with(&before), "the log ended at {left}");
    }
    for node in &mut nodes {
        while node.replica.follow().unwrap() {}
        assert_eq!(node.rows(), rows);
        node.die(random, &log);
        while node.replica.follow().unwrap() {}
    }
    nodes[0].take_over().unwrap();
    nodes[0].commit(9).unwrap();
}

#[test]
fn a_standby_puts_lost_records_back_before_it_takes_over() {
    let log = MemoryLog::default();
    let (mut owner, mut standby) = (Node::new(0, &log), Node::new(1, &log));
    owner.take_over().unwrap();
    (1..4).for_each(|number| owner.commit(number).unwrap());
    standby.replica.follow().unwrap();
    log.lose_tail(Sequence(1));
    standby.take_over().unwrap();
    standby.commit(4).unwrap();
    assert_eq!(truth(&log).1.len(), 4);
    assert!(matches!(owner.commit(5), Err(StoreError::Deposed(RANGE))));
    assert_eq!(owner.rows(), standby.rows());
}

#[test]
fn a_standby_continues_with_a_record_of_which_it_had_read_a_part() {
    let log = MemoryLog::default();
    let limits = ReplicaLimits { part_bytes: 60, ..LIMITS };
    let (mut owner, standby) = (Node::within(limits, 0, &log), Node::within(limits, 1, &log));
    owner.take_over().unwrap();
    let long = vec![(vec![0, 0, 1], Some(vec![1; 200]))];
    owner.owned.as_ref().unwrap().commit(long.clone()).unwrap();
    let entries = log.read(Sequence(0), usize::MAX).unwrap();
    assert!(entries.len() > 4);
    log.lose_tail(Sequence(3));
    standby.replica.follow().unwrap();
    assert_eq!(standby.replica.index(), 1);
    log.lose_tail(Sequence(2));
    let over = owner.replica.check_log();
    assert!(matches!(over, Err(ReplicaError::Store(StoreError::Deposed(RANGE)))), "{over:?}");
    assert_eq!(log.read(Sequence(0), usize::MAX).unwrap(), entries);
    standby.replica.follow().unwrap();
    assert_eq!(standby.rows(), owner.rows());
}

#[test]
fn a_replica_does_not_put_back_records_that_it_no_longer_keeps() {
    let log = MemoryLog::default();
    let mut owner = Node::new(0, &log);
    owner.take_over().unwrap();
    (1..60).for_each(|number| owner.commit(number).unwrap());
    let database = owner.replica.database();
    // The range has no owner service here, so the shared log is the only reader of the local log.
    database.keep_log(LogConsumer::SharedLog, None);
    database.flush().unwrap();
    (60..70).for_each(|number| owner.commit(number).unwrap());
    // The replica still keeps the last records, but not the earlier ones.
    log.lose_tail(Sequence(68));
    assert!(owner.replica.check_log().is_err() && owner.replica.is_ownership_over());
    assert_eq!(log.end(), Ok(Sequence(70)));
    log.lose_tail(Sequence(9));
    let found = owner.replica.check_log();
    assert!(matches!(found, Err(ReplicaError::NotPutBack { copied: 70, end: 9, .. })), "{found:?}");
    assert_eq!(log.end(), Ok(Sequence(9)));
    assert!(owner.take_over().is_err());
    assert!(
        !owner.replica.has_contact(Duration::from_secs(60)),
        "it cannot know what another node has written"
    );
}

#[test]
fn a_log_that_has_continued_differently_is_left_alone() {
    let log = MemoryLog::default();
    let (mut owner, mut behind) = (Node::new(0, &log), Node::new(1, &log));
    owner.take_over().unwrap();
    owner.commit(1).unwrap();
    behind.replica.follow().unwrap();
    (2..6).for_each(|number| owner.commit(number).unwrap());
    log.lose_tail(Sequence(2));
    // A node with fewer copied records does not notice the loss.
    behind.take_over().unwrap();
    behind.commit(7).unwrap();
    let entries = log.read(Sequence(0), usize::MAX).unwrap();
    let contradicts = |found: Result<(), ReplicaError>| {
        assert!(matches!(found, Err(ReplicaError::Contradiction { .. })), "{found:?}");
    };
    // The log is first shorter than the owner's copy, and then longer.
    contradicts(owner.replica.check_log());
    assert!(matches!(owner.commit(8), Err(StoreError::Deposed(RANGE))));
    (8..20).for_each(|number| behind.commit(number).unwrap());
    contradicts(owner.replica.check_log());
    contradicts(owner.replica.take_over().map(drop));
    // A replica that reads on notices the contradiction by void entries.
    let entry = |number: usize| entries[number].bytes.clone();
    assert_eq!(log.read(Sequence(0), usize::MAX).unwrap()[3].bytes, entry(3));
    let opened = open(&owner.disk.crash(&mut Random::new(1)), "node-0", &log);
    assert!(matches!(opened, Err(ReplicaError::Contradiction { .. })));
}

#[test]
fn a_standby_detects_that_the_log_has_continued_without_its_last_record() {
    let log = MemoryLog::default();
    let (mut owner, mut behind, standby) = (Node::new(0, &log), Node::new(1, &log), Node::new(2, &log));
    owner.take_over().unwrap();
    owner.commit(1).unwrap();
    behind.replica.follow().unwrap();
    owner.commit(2).unwrap();
    standby.replica.follow().unwrap();
    log.lose_tail(Sequence(2));
    behind.take_over().unwrap();
    behind.commit(3).unwrap();
    // The new entries are void after the standby's last record.
    let found = standby.replica.follow();
    assert!(matches!(found, Err(ReplicaError::Contradiction { at: 3, .. })), "{found:?}");
}

/// An entry that is void for every replica makes a replica verify the log once, not at every call.
#[test]
fn a_void_entry_causes_one_verification_of_the_log() {
    let log = MemoryLog::default();
    let (mut owner, standby) = (Node::new(0, &log), Node::new(1, &log));
    owner.take_over().unwrap();
    log.append(Sequence(1), &Bytes::from_static(b"nothing")).unwrap();
    for _ in 0..3 {
        standby.replica.follow().unwrap();
    }
    assert!(!standby.replica.follow().unwrap());
    owner.commit(1).unwrap();
    while standby.replica.follow().unwrap() {}
    assert_eq!(standby.rows(), owner.rows());
}

#[test]
fn an_owner_whose_entry_was_lost_and_replaced_appends_nothing_after_it() {
    let log = MemoryLog::default();
    // The owner waits for the log to show its tail again.
    let patient = ReplicaLimits { tail_loss_grace: Duration::from_secs(60), ..LIMITS };
    let (mut owner, mut behind) = (Node::within(patient, 0, &log), Node::new(1, &log));
    owner.take_over().unwrap();
    let owned = owner.owned.take().unwrap();
    owned.commit(row(1)).unwrap();
    behind.replica.follow().unwrap();
    owned.commit(row(2)).unwrap();
    log.lose_tail(Sequence(2));
    std::thread::scope(|scope| {
        let late = scope.spawn(|| owned.commit(row(3)));
        while owner.replica.wait_reason().is_none() {
            std::thread::yield_now();
        }
        assert!(
            !owner.replica.has_contact(Duration::from_secs(60)),
            "the log does not show an entry that it has acknowledged"
        );
        // The log is now as long as the owner has read it, but has another last entry.
        behind.take_over().unwrap();
        assert_eq!(log.end(), Ok(Sequence(3)));
        let late = late.join().unwrap();
        assert!(matches!(late, Err(StoreError::Deposed(RANGE))), "{late:?}");
    });
    assert_eq!(log.end(), Ok(Sequence(3)));
}

/// The sequence number that the owner expects is free. Only the replaced entry before it shows that the log
/// has changed.
#[test]
fn an_owner_appends_nothing_after_entries_that_have_replaced_the_tail() {
    let log = MemoryLog::default();
    let careful = ReplicaLimits { trusted_for: Duration::ZERO, ..LIMITS };
    let (mut owner, mut next) = (Node::within(careful, 0, &log), Node::within(careful, 1, &log));
    owner.take_over().unwrap();
    log.lose_tail(Sequence(0));
    next.take_over().unwrap();
    let late = owner.commit(1);
    assert!(matches!(late, Err(StoreError::Deposed(RANGE))), "{late:?}");
    assert_eq!((log.end(), owner.replica.is_ownership_over()), (Ok(Sequence(1)), true));
    next.commit(2).unwrap();
}

/// The log has more records than the replica, but fewer entries.
#[test]
fn a_shorter_log_with_more_records_contradicts_the_replica() {
    let log = MemoryLog::default();
    let limits = ReplicaLimits { part_bytes: 60, ..LIMITS };
    let (mut owner, mut behind) = (Node::within(limits, 0, &log), Node::within(LIMITS, 1, &log));
    owner.take_over().unwrap();
    behind.replica.follow().unwrap();
    owner.owned.as_ref().unwrap().commit(vec![(vec![0, 0, 1], Some(vec![1; 400]))]).unwrap();
    assert!(log.end().unwrap() > Sequence(4));
    log.lose_tail(Sequence(1));
    behind.take_over().unwrap();
    behind.commit(2).unwrap();
    let found = owner.replica.check_log();
    assert!(matches!(found, Err(ReplicaError::Contradiction { at: 3, .. })), "{found:?}");
    assert!(owner.replica.is_ownership_over());
}

#[test]
fn an_idle_owner_keeps_contact_with_a_log_that_ends_with_void_entries() {
    let log = MemoryLog::default();
    let mut owner = Node::new(0, &log);
    owner.take_over().unwrap();
    for entry in [&b"nothing"[..], b"nothing either"] {
        log.append(log.end().unwrap(), &Bytes::copy_from_slice(entry)).unwrap();
    }
    for _ in 0..3 {
        owner.replica.check_log().unwrap();
    }
    let (asked, complete) = (Instant::now(), owner.replica.complete_as_of());
    owner.replica.check_log().unwrap();
    assert!(lock(&owner.replica.last_contact).is_some_and(|contact| contact >= asked));
    assert!(owner.replica.complete_as_of() > complete);
}
