//! A log that has lost its end, as its servers do that acknowledge what is not on their disks.

use super::*;
use crate::database::LogConsumer;

/// Where the records are that count.
fn places(log: &MemoryLog) -> Vec<(Position, Sequence)> {
    let mut chain = Chain::behind(log_id("cluster", RANGE), Position::default(), Sequence(0));
    let mut places = Vec::new();
    for entry in log.read(Sequence(0), usize::MAX).unwrap() {
        if let Folded::Record(record) = chain.take(&entry) {
            places.push((record.position, record.sequence));
        }
    }
    places
}

/// Small parts, so that records have many, and entries between that do not count.
fn written(log: &MemoryLog) -> Vec<Node> {
    let limits = Limits { part_bytes: 60, ..LIMITS };
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
fn what_is_lost_goes_back_to_its_places_wherever_the_log_ends() {
    let log = MemoryLog::default();
    let mut nodes = written(&log);
    let (before, end, rows) = (places(&log), log.end().unwrap(), nodes[2].rows());
    assert!(before.len() == 27 && end.0 > 60, "{} records, {end:?}", before.len());
    let random = &mut Random::new(8);
    for left in (0..end.0).rev() {
        log.lose_tail(Sequence(left));
        match left % 4 {
            // Two at once.
            0 => std::thread::scope(|scope| {
                nodes.iter().take(2).for_each(|node| drop(scope.spawn(|| node.replica.look().unwrap())));
            }),
            // A start, with calls that fail.
            1 => {
                nodes[1].die(random, &log);
                log.plan([Fault::CallLost, Fault::AnswerLost, Fault::CallLate]);
                nodes[1].replica.follow().unwrap();
                log.heal();
            }
            // The owner makes a commit: it has to take over anew.
            2 => {
                let lost = nodes[2].owned.as_ref().unwrap().commit(row(1));
                assert!(matches!(lost, Err(StoreError::Deposed(RANGE))), "{lost:?}");
                assert!(nodes[2].replica.is_over());
                nodes[2].take_over().unwrap();
                assert!(!nodes[2].replica.is_over());
            }
            _ => nodes[0].replica.look().unwrap(),
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
fn whoever_takes_over_puts_back_what_is_missing_before() {
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
fn a_standby_that_had_part_of_a_record_goes_on_with_it() {
    let log = MemoryLog::default();
    let limits = Limits { part_bytes: 60, ..LIMITS };
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
    let over = owner.replica.look();
    assert!(matches!(over, Err(ReplicaError::Store(StoreError::Deposed(RANGE)))), "{over:?}");
    assert_eq!(log.read(Sequence(0), usize::MAX).unwrap(), entries);
    standby.replica.follow().unwrap();
    assert_eq!(standby.rows(), owner.rows());
}

#[test]
fn what_a_replica_does_not_keep_any_more_it_does_not_put_back() {
    let log = MemoryLog::default();
    let mut owner = Node::new(0, &log);
    owner.take_over().unwrap();
    (1..60).for_each(|number| owner.commit(number).unwrap());
    let database = owner.replica.database();
    // Nobody else reads where the range has no owner.
    database.keep_log(LogConsumer::SharedLog, None);
    database.flush().unwrap();
    (60..70).for_each(|number| owner.commit(number).unwrap());
    // The last records are here still, and those before are not.
    log.lose_tail(Sequence(68));
    assert!(owner.replica.look().is_err() && owner.replica.is_over());
    assert_eq!(log.end(), Ok(Sequence(70)));
    log.lose_tail(Sequence(9));
    let found = owner.replica.look();
    assert!(matches!(found, Err(ReplicaError::NotPutBack { copied: 70, end: 9, .. })), "{found:?}");
    assert_eq!(log.end(), Ok(Sequence(9)));
    assert!(owner.take_over().is_err());
    assert!(!owner.replica.has_contact(Duration::from_secs(60)), "it cannot know what another has written");
}

#[test]
fn a_log_that_has_gone_on_in_another_way_is_left_alone() {
    let log = MemoryLog::default();
    let (mut owner, mut behind) = (Node::new(0, &log), Node::new(1, &log));
    owner.take_over().unwrap();
    owner.commit(1).unwrap();
    behind.replica.follow().unwrap();
    (2..6).for_each(|number| owner.commit(number).unwrap());
    log.lose_tail(Sequence(2));
    // One that has not copied so much does not know.
    behind.take_over().unwrap();
    behind.commit(7).unwrap();
    let entries = log.read(Sequence(0), usize::MAX).unwrap();
    let contradicts = |found: Result<(), ReplicaError>| {
        assert!(matches!(found, Err(ReplicaError::Contradicts { .. })), "{found:?}");
    };
    // The log is shorter than what the owner has, and then longer.
    contradicts(owner.replica.look());
    assert!(matches!(owner.commit(8), Err(StoreError::Deposed(RANGE))));
    (8..20).for_each(|number| behind.commit(number).unwrap());
    contradicts(owner.replica.look());
    contradicts(owner.replica.take_over().map(drop));
    // A replica that reads on notices by what does not count.
    let entry = |number: usize| entries[number].bytes.clone();
    assert_eq!(log.read(Sequence(0), usize::MAX).unwrap()[3].bytes, entry(3));
    let opened = open(&owner.disk.crash(&mut Random::new(1)), "node-0", &log);
    assert!(matches!(opened, Err(ReplicaError::Contradicts { .. })));
}

#[test]
fn a_standby_notices_that_the_log_has_gone_on_without_what_it_has() {
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
    // What it reads does not count behind what it has.
    let found = standby.replica.follow();
    assert!(matches!(found, Err(ReplicaError::Contradicts { at: 3, .. })), "{found:?}");
}

/// One that does not count for all raises no doubt that does not end.
#[test]
fn an_entry_that_does_not_count_is_looked_at_once() {
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
fn an_owner_whose_entry_was_lost_and_replaced_writes_nothing_behind_it() {
    let log = MemoryLog::default();
    // It waits for the log to show its end again.
    let patient = Limits { lost: Duration::from_secs(60), ..LIMITS };
    let (mut owner, mut behind) = (Node::within(patient, 0, &log), Node::new(1, &log));
    owner.take_over().unwrap();
    let owned = owner.owned.take().unwrap();
    owned.commit(row(1)).unwrap();
    behind.replica.follow().unwrap();
    owned.commit(row(2)).unwrap();
    log.lose_tail(Sequence(2));
    std::thread::scope(|scope| {
        let late = scope.spawn(|| owned.commit(row(3)));
        while owner.replica.trouble().is_none() {
            std::thread::yield_now();
        }
        assert!(
            !owner.replica.has_contact(Duration::from_secs(60)),
            "its log does not show what it has acknowledged"
        );
        // Now the log is as long as the owner has seen it, and another one.
        behind.take_over().unwrap();
        assert_eq!(log.end(), Ok(Sequence(3)));
        let late = late.join().unwrap();
        assert!(matches!(late, Err(StoreError::Deposed(RANGE))), "{late:?}");
    });
    assert_eq!(log.end(), Ok(Sequence(3)));
}

/// Its place is free then, and all that says that it is not behind what the owner has is another entry.
#[test]
fn an_owner_writes_nothing_behind_what_has_replaced_the_end_of_its_log() {
    let log = MemoryLog::default();
    let careful = Limits { trusted: Duration::ZERO, ..LIMITS };
    let (mut owner, mut next) = (Node::within(careful, 0, &log), Node::within(careful, 1, &log));
    owner.take_over().unwrap();
    log.lose_tail(Sequence(0));
    next.take_over().unwrap();
    let late = owner.commit(1);
    assert!(matches!(late, Err(StoreError::Deposed(RANGE))), "{late:?}");
    assert_eq!((log.end(), owner.replica.is_over()), (Ok(Sequence(1)), true));
    next.commit(2).unwrap();
}

/// The log has more records than the replica, in fewer entries.
#[test]
fn a_shorter_log_with_more_records_contradicts() {
    let log = MemoryLog::default();
    let limits = Limits { part_bytes: 60, ..LIMITS };
    let (mut owner, mut behind) = (Node::within(limits, 0, &log), Node::within(LIMITS, 1, &log));
    owner.take_over().unwrap();
    behind.replica.follow().unwrap();
    owner.owned.as_ref().unwrap().commit(vec![(vec![0, 0, 1], Some(vec![1; 400]))]).unwrap();
    assert!(log.end().unwrap() > Sequence(4));
    log.lose_tail(Sequence(1));
    behind.take_over().unwrap();
    behind.commit(2).unwrap();
    let found = owner.replica.look();
    assert!(matches!(found, Err(ReplicaError::Contradicts { at: 3, .. })), "{found:?}");
    assert!(owner.replica.is_over());
}

#[test]
fn an_owner_that_writes_nothing_keeps_contact_with_entries_that_do_not_count() {
    let log = MemoryLog::default();
    let mut owner = Node::new(0, &log);
    owner.take_over().unwrap();
    for entry in [&b"nothing"[..], b"nothing either"] {
        log.append(log.end().unwrap(), &Bytes::copy_from_slice(entry)).unwrap();
    }
    for _ in 0..3 {
        owner.replica.look().unwrap();
    }
    let (asked, complete) = (Instant::now(), owner.replica.complete());
    owner.replica.look().unwrap();
    assert!(lock(&owner.replica.contact).is_some_and(|contact| contact >= asked));
    assert!(owner.replica.complete() > complete);
}
