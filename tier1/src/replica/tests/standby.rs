//! Tests of commits that are settled by a standby.

use std::thread::{scope, yield_now};

use super::*;

const STANDBY: ReplicaLimits = ReplicaLimits { settlement: Settlement::Standby, ..LIMITS };

fn nodes(log: &MemoryLog) -> [Node; 3] {
    [0, 1, 2].map(|number| Node::within(STANDBY, number, log))
}

fn await_trouble(node: &Node) {
    while node.replica.wait_reason().is_none() {
        yield_now();
    }
}

#[test]
fn a_commit_waits_until_a_standby_reports_it() {
    let log = MemoryLog::default();
    let [mut owner, standby, _] = nodes(&log);
    owner.take_over().unwrap();
    scope(|scope| {
        let commit = scope.spawn(|| owner.commit(1));
        await_trouble(&owner);
        let trouble = owner.replica.wait_reason().unwrap();
        assert!(trouble.contains("no standby") && trouble.contains("range 3"), "{trouble}");
        // The commit can already be read, and the owner can check the log while the commit waits.
        assert_eq!(owner.rows().len(), 1);
        owner.replica.check_log().unwrap();
        assert!(owner.replica.has_contact(Duration::from_secs(60)) && !commit.is_finished());
        standby.replica.follow().unwrap();
        commit.join().unwrap().unwrap();
    });
    assert!(owner.replica.wait_reason().is_none());
    // A report of the previous record does not settle this one, and lost reports are repeated.
    scope(|scope| {
        let commit = scope.spawn(|| owner.commit(2));
        log.lose_reports(3);
        let mut follows = 0;
        while !commit.is_finished() {
            standby.replica.follow().unwrap();
            follows += 1;
            yield_now();
        }
        assert!(follows > 3);
        commit.join().unwrap().unwrap();
    });
}

/// While an operator changes the settlement, the owner may still have the previous one.
#[test]
fn a_standby_with_settlement_log_reports_as_well() {
    let log = MemoryLog::default();
    let (mut owner, standby) = (Node::within(STANDBY, 0, &log), Node::within(LIMITS, 1, &log));
    owner.take_over().unwrap();
    scope(|scope| {
        let (began, commit) = (Instant::now(), scope.spawn(|| owner.commit(1)));
        while !commit.is_finished() && began.elapsed() < Duration::from_secs(60) {
            standby.replica.follow().unwrap();
            yield_now();
        }
        owner.replica.stop();
        commit.join().unwrap().unwrap();
    });
}

#[test]
fn a_take_over_or_the_end_of_the_process_ends_the_wait_for_a_report() {
    let log = MemoryLog::default();
    let [mut owner, mut next, _] = nodes(&log);
    owner.take_over().unwrap();
    scope(|scope| {
        let commit = scope.spawn(|| owner.commit(1));
        await_trouble(&owner);
        next.take_over().unwrap();
        // The next owner has the record, so the record counts. The previous owner may not have learnt this in
        // time to acknowledge it.
        owner.replica.check_log().unwrap();
        let deposed = commit.join().unwrap();
        assert!(matches!(deposed, Ok(()) | Err(StoreError::Deposed(RANGE))), "{deposed:?}");
    });
    scope(|scope| {
        let commit = scope.spawn(|| next.commit(2));
        await_trouble(&next);
        next.replica.stop();
        assert!(matches!(commit.join().unwrap(), Err(StoreError::Deposed(RANGE))));
    });
}

/// Asserts that a commit that waits for a standby fails after `happens`.
fn ends_the_wait(owner: &Node, happens: impl FnOnce()) {
    scope(|scope| {
        let commit = scope.spawn(|| owner.commit(9));
        await_trouble(owner);
        happens();
        let ended = commit.join().unwrap();
        assert!(matches!(ended, Err(StoreError::Deposed(RANGE))), "{ended:?}");
    });
    assert!(owner.replica.is_ownership_over());
}

#[test]
fn a_log_that_has_continued_without_the_owner_ends_the_wait() {
    // The log is shorter than the owner's copy, as long, longer, or trimmed past the owner's last record.
    for (entries, is_trimmed) in [(1, false), (2, false), (5, false), (5, true)] {
        let log = MemoryLog::default();
        let [mut owner, behind, standby] = nodes(&log);
        owner.take_over().unwrap();
        behind.replica.follow().unwrap();
        let settles = scope(|scope| {
            let commits = scope.spawn(|| (1..3).try_for_each(|number| owner.commit(number)));
            while !commits.is_finished() {
                standby.replica.follow().unwrap();
            }
            commits.join().unwrap()
        });
        settles.unwrap();
        ends_the_wait(&owner, || {
            log.lose_tail(Sequence(1));
            behind.replica.take_over().unwrap();
            for number in 1..entries {
                let next = row(number);
                let epoch = behind.replica.owner().0;
                behind.replica.commit_rows(&mut lock(&behind.replica.state), epoch, next).unwrap();
            }
            if is_trimmed {
                log.trim(Sequence(5)).unwrap();
            }
            let found = owner.replica.check_log().unwrap_err();
            assert!(found.is_final(), "{found}");
        });
    }
}

#[test]
fn the_end_of_an_ownership_ends_the_waits_for_a_report_and_for_the_log() {
    let log = MemoryLog::default();
    let [mut owner, ..] = nodes(&log);
    owner.take_over().unwrap();
    ends_the_wait(&owner, || owner.replica.end_ownership());
    // The commit now waits for the log.
    owner.take_over().unwrap();
    log.set_missing(true);
    ends_the_wait(&owner, || owner.replica.end_ownership());
}

#[test]
fn only_a_configured_replica_of_the_range_settles_a_commit() {
    let log = MemoryLog::default();
    let [mut owner, standby, former] = nodes(&log);
    let id = log_id("cluster", RANGE);
    let database = Arc::clone(owner.replica.database());
    let opened = Replica::open(STANDBY, (RANGE, id), "node-0".to_owned(), Arc::new(log.clone()), database);
    owner.replica = Arc::new(opened.unwrap().with_replicas(&["node-0", "node-1"].map(str::to_owned)));
    owner.take_over().unwrap();
    let last = lock(&owner.replica.state).chain.last();
    former.replica.follow().unwrap();
    assert!(!owner.replica.is_settled(last, Duration::ZERO));
    standby.replica.follow().unwrap();
    assert!(owner.replica.is_settled(last, Duration::ZERO));
}

/// The records before a take-over may not be settled yet, because the previous owner may have died before a
/// standby had copied them.
#[test]
fn records_before_a_take_over_are_settled_before_effects_leave() {
    let log = MemoryLog::default();
    let [mut owner, standby, _] = nodes(&log);
    owner.take_over().unwrap();
    let epoch = owner.replica.owner().0;
    scope(|scope| {
        let settled = scope.spawn(|| owner.owned.as_ref().unwrap().settle());
        await_trouble(&owner);
        assert!(!owner.replica.has_settled(epoch));
        standby.replica.follow().unwrap();
        settled.join().unwrap().unwrap();
    });
    assert!(owner.replica.has_settled(epoch) && owner.replica.wait_reason().is_none());
    let mut alone = Node::new(7, &MemoryLog::default());
    alone.take_over().unwrap();
    assert!(alone.owned.as_ref().unwrap().settle().is_ok() && alone.replica.has_settled(epoch));
}

#[test]
fn a_standby_with_another_record_at_the_same_index_settles_nothing() {
    let log = MemoryLog::default();
    let [mut owner, mut fork, _] = nodes(&log);
    owner.take_over().unwrap();
    fork.replica.follow().unwrap();
    log.lose_tail(Sequence(0));
    let other = MemoryLog::default();
    let mut elsewhere = Node::within(STANDBY, 1, &other);
    elsewhere.take_over().unwrap();
    elsewhere.replica.follow().unwrap();
    assert_ne!(elsewhere.replica.index(), 0);
    // The two records have the same index and different hashes.
    let report = |node: &Node| lock(&node.replica.state).chain.last();
    assert_eq!(report(&elsewhere).index, report(&owner).index);
    assert!(!owner.replica.is_settled(report(&elsewhere), Duration::ZERO));
    assert!(owner.replica.is_settled(report(&owner), Duration::ZERO));
    drop(fork.take_over());
}

#[test]
fn with_settlement_standby_all_replicas_but_one_must_report() {
    let of = |settlement: Settlement| [1, 2, 3, 5].map(|replicas| settlement.answers(replicas));
    assert_eq!(of(Settlement::Log), [1, 1, 1, 1]);
    assert_eq!(of(Settlement::Standby), [1, 1, 2, 4]);
}

/// The log loses its tail again and again, owners die, and other nodes take over while one replica is silent.
/// Every acknowledged commit counts in the end.
#[test]
fn acknowledged_commits_survive_the_loss_of_the_logs_tail() {
    let (mut lost, mut settled, mut wiped, mut take_overs) = (0, 0, 0, 0);
    for seed in 0..40 {
        let random = &mut Random::new(seed);
        let log = MemoryLog::default();
        let mut nodes = nodes(&log).map(Some);
        let mut acknowledged = Vec::new();
        for number in 0..60 {
            let at = random.index(3);
            let others = [(at + 1) % 3, (at + 2) % 3];
            match random.below(14) {
                0..6 => {
                    let node = nodes[at].as_ref().unwrap();
                    let Some(owned) = &node.owned else { continue };
                    if random.below(8) == 0 {
                        log.plan([
                            [LogFault::AnswerLost, LogFault::CallLost, LogFault::CallLate][random.index(3)]
                        ]);
                    }
                    let rows = marked(random, number);
                    let standby = nodes[others[random.index(2)]].as_ref().unwrap();
                    let committed = scope(|scope| {
                        let commit = scope.spawn(|| owned.commit(rows.clone()));
                        let mut turns = 0;
                        // A standby with other records settles nothing, and a deposed owner notices that it
                        // is deposed.
                        while !commit.is_finished() && turns < 1_000 {
                            drop(standby.replica.follow());
                            if turns == 300 {
                                drop(node.replica.check_log());
                            }
                            turns += 1;
                            std::thread::sleep(Duration::from_micros(100));
                        }
                        let gives_up = !commit.is_finished();
                        if gives_up {
                            node.replica.stop();
                        }
                        (commit.join().unwrap(), gives_up)
                    });
                    match committed {
                        (Ok(()), _) => acknowledged.push(rows),
                        (Err(StoreError::Deposed(RANGE)), gives_up) => {
                            nodes[at].as_mut().unwrap().owned = None;
                            if gives_up {
                                let mut node = nodes[at].take().unwrap();
                                nodes[at] = restarted(&mut node, random, &log, &mut wiped);
                            }
                        }
                        (Err(error), _) => panic!("seed {seed}: {error}"),
                    }
                }
                6..8 => {
                    let node = nodes[at].take().unwrap();
                    nodes[at] = Some(followed(node, &log, &mut wiped));
                }
                8..10 => {
                    // One of the other two replicas is silent.
                    let reporting = others[random.index(2)];
                    for one in [reporting, at] {
                        let node = nodes[one].take().unwrap();
                        nodes[one] = Some(followed(node, &log, &mut wiped));
                    }
                    let ahead = nodes[reporting].as_ref().unwrap().replica.index();
                    let node = nodes[at].as_mut().unwrap();
                    if ahead <= node.replica.index() {
                        node.take_over().unwrap();
                        take_overs += 1;
                    }
                }
                10 => {
                    let mut node = nodes[at].take().unwrap();
                    nodes[at] = restarted(&mut node, random, &log, &mut wiped);
                }
                11..13 => {
                    let end = log.end().unwrap().0;
                    log.lose_tail(Sequence(end.saturating_sub(random.below(9))));
                    // An owner that misses the loss of the record that deposed it needs an operator, so such
                    // owners give up here.
                    let last = nodes.iter().flatten().map(|node| node.replica.owner().0).max();
                    for node in nodes.iter_mut().flatten().filter(|node| Some(node.replica.owner().0) != last)
                    {
                        node.owned = None;
                    }
                    lost += 1;
                }
                _ => nodes[at].as_ref().unwrap().replica.database().flush().unwrap(),
            }
        }
        log.heal();
        for node in &mut nodes {
            let one = followed(node.take().unwrap(), &log, &mut wiped);
            *node = Some(one);
        }
        let (model, counted) = truth(&log);
        let all: Vec<_> = counted.into_iter().filter(|rows| acknowledged.contains(rows)).collect();
        assert_eq!(all, acknowledged, "seed {seed}");
        settled += acknowledged.len();
        for node in nodes.into_iter().flatten() {
            let node = followed(node, &log, &mut wiped);
            assert_eq!(node.rows(), model, "seed {seed}");
        }
    }
    assert!(
        lost > 150 && settled > 100 && wiped > 5 && take_overs > 80,
        "{lost} {settled} {wiped} {take_overs}"
    );
}

/// The node after it has followed the log to its end. If its records contradict the log, the node starts with
/// an empty disk.
fn followed(node: Node, log: &MemoryLog, wiped: &mut u32) -> Node {
    loop {
        match node.replica.follow() {
            Ok(true) => {}
            Ok(false) => return node,
            Err(ReplicaError::Contradiction { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    *wiped += 1;
    let number = node.name.strip_prefix("node-").unwrap().parse().unwrap();
    followed(Node::within(STANDBY, number, log), log, wiped)
}

/// The node after its process was killed and restarted.
fn restarted(node: &mut Node, random: &mut Random, log: &MemoryLog, wiped: &mut u32) -> Option<Node> {
    let disk = node.disk.crash(random);
    let name = node.name.clone();
    match open_within(STANDBY, &disk, &name, log) {
        Ok(replica) => Some(Node { name, disk, limits: STANDBY, replica, owned: None }),
        Err(ReplicaError::Contradiction { .. }) => {
            *wiped += 1;
            let number = name.strip_prefix("node-").unwrap().parse().unwrap();
            Some(Node::within(STANDBY, number, log))
        }
        Err(error) => panic!("{error}"),
    }
}
