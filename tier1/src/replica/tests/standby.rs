//! Commits that are settled when a standby has them.

use std::thread::{scope, yield_now};

use super::*;

const STANDBY: Limits = Limits { settlement: Settlement::Standby, ..LIMITS };

fn nodes(log: &MemoryLog) -> [Node; 3] {
    [0, 1, 2].map(|number| Node::within(STANDBY, number, log))
}

fn await_trouble(node: &Node) {
    while node.replica.trouble().is_none() {
        yield_now();
    }
}

#[test]
fn a_commit_waits_until_a_standby_has_it_and_says_so() {
    let log = MemoryLog::default();
    let [mut owner, standby, _] = nodes(&log);
    owner.take_over().unwrap();
    scope(|scope| {
        let commit = scope.spawn(|| owner.commit(1));
        await_trouble(&owner);
        let trouble = owner.replica.trouble().unwrap();
        assert!(trouble.contains("no standby") && trouble.contains("range 3"), "{trouble}");
        // It is read already, and the log is looked at meanwhile.
        assert_eq!(owner.rows().len(), 1);
        owner.replica.look().unwrap();
        assert!(owner.replica.has_contact(Duration::from_secs(60)) && !commit.is_finished());
        standby.replica.follow().unwrap();
        commit.join().unwrap().unwrap();
    });
    assert!(owner.replica.trouble().is_none());
    // A report of the record before is none of this one, and one that is lost is made again.
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

/// While the settlement is changed, the owner may still have the one before.
#[test]
fn a_standby_that_needs_no_reports_itself_makes_them_all_the_same() {
    let log = MemoryLog::default();
    let (mut owner, standby) = (Node::within(STANDBY, 0, &log), Node::within(LIMITS, 1, &log));
    owner.take_over().unwrap();
    scope(|scope| {
        let (began, commit) = (Instant::now(), scope.spawn(|| owner.commit(1)));
        while !commit.is_finished() && began.elapsed() < Duration::from_secs(10) {
            standby.replica.follow().unwrap();
            yield_now();
        }
        owner.replica.stop();
        commit.join().unwrap().unwrap();
    });
}

#[test]
fn a_deposition_and_the_end_of_the_process_end_the_wait() {
    let log = MemoryLog::default();
    let [mut owner, mut next, _] = nodes(&log);
    owner.take_over().unwrap();
    scope(|scope| {
        let commit = scope.spawn(|| owner.commit(1));
        await_trouble(&owner);
        next.take_over().unwrap();
        // It has the record, and so it counts, but the owner before did not learn in time that it may say so.
        owner.replica.look().unwrap();
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

/// Whether a commit that waits for a standby ends when something has happened.
fn ends_the_wait(owner: &Node, happens: impl FnOnce()) {
    scope(|scope| {
        let commit = scope.spawn(|| owner.commit(9));
        await_trouble(owner);
        happens();
        let ended = commit.join().unwrap();
        assert!(matches!(ended, Err(StoreError::Deposed(RANGE))), "{ended:?}");
    });
    assert!(owner.replica.is_over());
}

#[test]
fn a_log_that_has_gone_on_without_the_owner_ends_the_wait() {
    // The log is shorter than what the owner has, as long, and longer; and trimmed past it.
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
            let found = owner.replica.look().unwrap_err();
            assert!(found.is_final(), "{found}");
        });
    }
}

#[test]
fn the_end_of_an_ownership_ends_the_wait() {
    let log = MemoryLog::default();
    let [mut owner, ..] = nodes(&log);
    owner.take_over().unwrap();
    ends_the_wait(&owner, || owner.replica.end_ownership());
    // And the one for the log.
    owner.take_over().unwrap();
    log.set_missing(true);
    ends_the_wait(&owner, || owner.replica.end_ownership());
}

#[test]
fn only_a_replica_of_the_range_settles_a_commit() {
    let log = MemoryLog::default();
    let [mut owner, standby, former] = nodes(&log);
    let id = log_id("cluster", RANGE);
    let database = Arc::clone(owner.replica.database());
    let opened = Replica::open(STANDBY, (RANGE, id), "node-0".to_owned(), Arc::new(log.clone()), database);
    owner.replica = Arc::new(opened.unwrap().of(&["node-0", "node-1"].map(str::to_owned)));
    owner.take_over().unwrap();
    let last = lock(&owner.replica.state).chain.last();
    former.replica.follow().unwrap();
    assert!(!owner.replica.is_settled(last, Duration::ZERO));
    standby.replica.follow().unwrap();
    assert!(owner.replica.is_settled(last, Duration::ZERO));
}

/// What an owner begins with may be settled by nobody: the owner before may have died with what only the log had.
#[test]
fn what_an_owner_begins_with_is_settled_before_anything_leaves() {
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
    assert!(owner.replica.has_settled(epoch) && owner.replica.trouble().is_none());
    let mut alone = Node::new(7, &MemoryLog::default());
    alone.take_over().unwrap();
    assert!(alone.owned.as_ref().unwrap().settle().is_ok() && alone.replica.has_settled(epoch));
}

#[test]
fn a_standby_with_another_record_of_that_index_settles_nothing() {
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
    // The same index, another hash.
    let report = |node: &Node| lock(&node.replica.state).chain.last();
    assert_eq!(report(&elsewhere).index, report(&owner).index);
    assert!(!owner.replica.is_settled(report(&elsewhere), Duration::ZERO));
    assert!(owner.replica.is_settled(report(&owner), Duration::ZERO));
    drop(fork.take_over());
}

#[test]
fn all_replicas_but_one_have_to_say_what_they_have() {
    let of = |settlement: Settlement| [1, 2, 3, 5].map(|replicas| settlement.answers(replicas));
    assert_eq!(of(Settlement::Log), [1, 1, 1, 1]);
    assert_eq!(of(Settlement::Standby), [1, 1, 2, 4]);
}

/// The log loses its end again and again, owners die, and others take over with one replica that says nothing. What was
/// acknowledged counts in the end.
#[test]
fn what_was_acknowledged_is_not_lost_with_the_tail_of_the_log() {
    let (mut lost, mut settled, mut wiped, mut taken) = (0, 0, 0, 0);
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
                        log.plan([[Fault::AnswerLost, Fault::CallLost, Fault::CallLate][random.index(3)]]);
                    }
                    let rows = marked(random, number);
                    let standby = nodes[others[random.index(2)]].as_ref().unwrap();
                    let committed = scope(|scope| {
                        let commit = scope.spawn(|| owned.commit(rows.clone()));
                        let mut turns = 0;
                        // A standby that has something else settles nothing, and an owner that is none any more finds out.
                        while !commit.is_finished() && turns < 1_000 {
                            drop(standby.replica.follow());
                            if turns == 300 {
                                drop(node.replica.look());
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
                    // Of the other two one says nothing.
                    let said = others[random.index(2)];
                    for one in [said, at] {
                        let node = nodes[one].take().unwrap();
                        nodes[one] = Some(followed(node, &log, &mut wiped));
                    }
                    let ahead = nodes[said].as_ref().unwrap().replica.index();
                    let node = nodes[at].as_mut().unwrap();
                    if ahead <= node.replica.index() {
                        node.take_over().unwrap();
                        taken += 1;
                    }
                }
                10 => {
                    let mut node = nodes[at].take().unwrap();
                    nodes[at] = restarted(&mut node, random, &log, &mut wiped);
                }
                11..13 => {
                    let end = log.end().unwrap().0;
                    log.lose_tail(Sequence(end.saturating_sub(random.below(9))));
                    // An owner that sleeps through the loss of what deposed it is left to a person.
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
    assert!(lost > 150 && settled > 100 && wiped > 5 && taken > 80, "{lost} {settled} {wiped} {taken}");
}

/// A node that has followed to the end; with an empty disk where what it had contradicts the log.
fn followed(node: Node, log: &MemoryLog, wiped: &mut u32) -> Node {
    loop {
        match node.replica.follow() {
            Ok(true) => {}
            Ok(false) => return node,
            Err(ReplicaError::Contradicts { .. }) => break,
            Err(error) => panic!("{error}"),
        }
    }
    *wiped += 1;
    let number = node.name.strip_prefix("node-").unwrap().parse().unwrap();
    followed(Node::within(STANDBY, number, log), log, wiped)
}

/// A node whose process is killed and started anew.
fn restarted(node: &mut Node, random: &mut Random, log: &MemoryLog, wiped: &mut u32) -> Option<Node> {
    let disk = node.disk.crash(random);
    let name = node.name.clone();
    match open_within(STANDBY, &disk, &name, log) {
        Ok(replica) => Some(Node { name, disk, limits: STANDBY, replica, owned: None }),
        Err(ReplicaError::Contradicts { .. }) => {
            *wiped += 1;
            let number = name.strip_prefix("node-").unwrap().parse().unwrap();
            Some(Node::within(STANDBY, number, log))
        }
        Err(error) => panic!("{error}"),
    }
}
