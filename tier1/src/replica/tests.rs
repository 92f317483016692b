//! Tests of replicas of one range over a log in memory. The nodes take over from each other, die, and
//! restart.

mod engines;
mod lost_tail;
mod standby;

use std::collections::BTreeSet;

use bytes::Bytes;
use doppel_model::Random;
use doppel_protocol::Settlement;
use doppel_shared_log::AppendError;
use doppel_shared_log::memory::{LogFault, MemoryLog};

use super::entry::PART_BYTES;
use super::*;
use crate::storage::database::tests::{Disk, Model, apply, writes};
use crate::storage::log::Position;
use crate::storage::store::Store as _;

const RANGE: RangeId = RangeId(3);

/// A node with its replica, and the disk that survives its process.
struct Node {
    name: String,
    disk: Disk,
    limits: ReplicaLimits,
    replica: Arc<Replica>,
    /// Set while the node believes that it owns the range.
    owned: Option<OwnedRows>,
}

/// How long an append is repeated.
const APPEND: Duration = Duration::from_secs(2);

/// Limits under which a replica puts a lost tail back at once and repeats every report.
const LIMITS: ReplicaLimits = ReplicaLimits {
    append_retry: APPEND,
    part_bytes: PART_BYTES,
    settlement: Settlement::Log,
    tail_loss_grace: Duration::ZERO,
    trusted_for: Duration::MAX,
    report_interval: Duration::ZERO,
};

fn open(disk: &Disk, name: &str, log: &MemoryLog) -> Result<Arc<Replica>, ReplicaError> {
    open_within(LIMITS, disk, name, log)
}

fn open_within(
    limits: ReplicaLimits,
    disk: &Disk,
    name: &str,
    log: &MemoryLog,
) -> Result<Arc<Replica>, ReplicaError> {
    let id = log_id("cluster", RANGE);
    let database = Arc::new(disk.open_replica(id)?);
    Replica::open(limits, (RANGE, id), name.to_owned(), Arc::new(log.clone()), database).map(Arc::new)
}

impl Node {
    fn new(number: usize, log: &MemoryLog) -> Self {
        Self::within(LIMITS, number, log)
    }

    fn within(limits: ReplicaLimits, number: usize, log: &MemoryLog) -> Self {
        let (disk, name) = (Disk::new(), format!("node-{number}"));
        let replica = open_within(limits, &disk, &name, log).unwrap();
        Self { name, disk, limits, replica, owned: None }
    }

    /// The owner makes a commit of one row.
    fn commit(&self, number: u8) -> Result<(), StoreError> {
        self.owned.as_ref().unwrap().commit(row(number))
    }

    fn take_over(&mut self) -> Result<(), ReplicaError> {
        let epoch = self.replica.take_over()?;
        self.owned = Some(OwnedRows::new(Arc::clone(&self.replica), epoch));
        Ok(())
    }

    /// Kills the process of the node and starts it again.
    fn die(&mut self, random: &mut Random, log: &MemoryLog) {
        let left = self.disk.crash(random);
        let before = self.replica.sequence();
        self.owned = None;
        self.replica = open_within(self.limits, &left, &self.name, log).unwrap();
        assert_eq!(self.replica.sequence(), before, "copied records are on disk");
        self.disk = left;
    }

    fn rows(&self) -> Model {
        all(self.replica.database())
    }
}

fn row(number: u8) -> Vec<Write> {
    vec![(vec![0, 0, number], Some(vec![number]))]
}

fn all(rows: &Database) -> Model {
    let mut all = Model::new();
    rows.range(&[], &[0xff; 8], &mut |key, row| all.insert(key.to_vec(), row.to_vec()).is_none()).unwrap();
    all
}

/// The rows that result from the log alone, and the commits that count in it.
fn truth(log: &MemoryLog) -> (Model, Vec<Vec<Write>>) {
    let mut chain = Chain::after(log_id("cluster", RANGE), Position::default(), Sequence(0));
    let (mut model, mut counted) = (Model::new(), Vec::new());
    for entry in log.read(Sequence(0), usize::MAX).unwrap() {
        if let FoldedEntry::Record(chain::ChainRecord { body: RecordBody::Rows(rows), .. }) =
            chain.fold(&entry)
        {
            apply(&mut model, &rows);
            counted.push(rows);
        }
    }
    (model, counted)
}

/// Random rows, one of which no other commit has.
fn marked(random: &mut Random, number: u64) -> Vec<Write> {
    let mut rows = writes(random);
    rows.push((vec![9, 9, b'm', (number >> 8) as u8, number as u8], Some(number.to_be_bytes().to_vec())));
    rows
}

#[test]
fn acknowledged_commits_count_at_every_node_despite_crashes_and_take_overs() {
    let (mut faults, mut heard) = (0, 0);
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let log = MemoryLog::default();
        let mut nodes: Vec<Node> = (0..3).map(|number| Node::new(number, &log)).collect();
        let (mut acknowledged, mut refused) = (Vec::new(), Vec::new());
        for number in 0..60 {
            let node = &mut nodes[random.index(3)];
            match random.below(12) {
                0..6 => {
                    let Some(owned) = &node.owned else { continue };
                    if random.below(12) == 0 {
                        log.plan([
                            [LogFault::AnswerLost, LogFault::CallLost, LogFault::CallLate][random.index(3)]
                        ]);
                        faults += 1;
                    }
                    let rows = marked(random, number);
                    match owned.commit(rows.clone()) {
                        Ok(()) => {
                            acknowledged.push(rows);
                            let here = node.rows();
                            assert_eq!(
                                here,
                                truth(&log).0,
                                "seed {seed}: the owner lacks a commit that counts"
                            );
                        }
                        Err(StoreError::Deposed(RANGE)) => {
                            refused.push(rows);
                            node.owned = None;
                        }
                        Err(error) => panic!("seed {seed}: {error}"),
                    }
                }
                6 => drop(node.replica.follow().unwrap()),
                7 => {
                    // Some announcements are lost.
                    (0..random.below(3)).for_each(|_| log.lose_news(Sequence(random.below(number + 1))));
                    heard += u32::from(node.replica.take_announced().unwrap());
                }
                8..10 => node.take_over().unwrap(),
                10 => node.die(random, &log),
                _ => node.replica.database().flush().unwrap(),
            }
        }
        log.heal();
        let (model, counted) = truth(&log);
        // Every acknowledged commit counts once, in the order of acknowledgement.
        let all: Vec<_> = counted.iter().filter(|rows| acknowledged.contains(rows)).cloned().collect();
        assert_eq!(all, acknowledged, "seed {seed}");
        let counted: BTreeSet<_> = counted.into_iter().collect();
        assert!(
            refused.iter().all(|rows| !counted.contains(rows)),
            "seed {seed}: a refused commit of a deposed owner counts"
        );
        for node in &mut nodes {
            node.replica.follow().unwrap();
            assert_eq!(node.rows(), model, "seed {seed}");
            node.die(random, &log);
            node.replica.follow().unwrap();
            assert_eq!(node.rows(), model, "seed {seed}: after a crash");
            assert_eq!(node.replica.index(), last_index(&log), "seed {seed}");
        }
    }
    assert!(faults > 50 && heard > 50, "{faults} faults, heard {heard} times");
}

#[test]
fn announced_entries_are_copied_without_the_log_and_gaps_are_read_from_the_log() {
    let log = MemoryLog::default();
    let (mut owner, mut next, standby) = (Node::new(0, &log), Node::new(1, &log), Node::new(2, &log));
    owner.take_over().unwrap();
    let row = |number: u8| vec![(vec![0, 0, number], Some(vec![number]))];
    let commit = |node: &Node, number| node.owned.as_ref().unwrap().commit(row(number));
    commit(&owner, 1).unwrap();
    log.set_missing(true);
    standby.replica.follow_announced(Duration::from_millis(1)).unwrap();
    assert_eq!(standby.rows(), owner.rows());
    assert_eq!(standby.replica.owner(), (Epoch(1), Some("node-0".to_owned())));
    log.set_missing(false);
    // The announcement of one entry is lost, so no later announced entry is taken.
    let lost = log.end().unwrap().next();
    commit(&owner, 2).unwrap();
    log.lose_news(lost);
    commit(&owner, 3).unwrap();
    assert!(!standby.replica.take_announced().unwrap());
    assert!(standby.replica.follow().unwrap() && !standby.replica.follow().unwrap());
    assert_eq!(standby.rows(), owner.rows());
    // An entry of a deposed owner is void, also if it is announced.
    let last = lock(&owner.replica.state).chain.last();
    let late = encode(owner.replica.id, (last, last.epoch), &RecordBody::Rows(row(9)), PART_BYTES).unwrap();
    next.take_over().unwrap();
    log.append(log.end().unwrap(), &late.parts[0]).unwrap();
    assert!(!standby.replica.take_announced().unwrap());
    assert_eq!(standby.replica.owner(), (Epoch(2), Some("node-1".to_owned())));
    assert!(standby.replica.follow().unwrap());
    commit(&next, 4).unwrap();
    assert!(standby.replica.take_announced().unwrap());
    assert_eq!((standby.rows(), standby.replica.index()), (next.rows(), last_index(&log)));
}

/// The log loses its tail and continues with other entries. The announcements of the lost entries remain.
#[test]
fn announcements_of_lost_entries_are_not_taken() {
    let log = MemoryLog::default();
    let (mut owner, mut next, other) = (Node::new(0, &log), Node::new(1, &log), Node::new(2, &log));
    owner.take_over().unwrap();
    let row = |number: u8| vec![(vec![0, 0, number], Some(vec![number]))];
    for number in 0..4 {
        owner.owned.as_ref().unwrap().commit(row(number)).unwrap();
    }
    log.lose_tail(Sequence(1));
    next.take_over().unwrap();
    next.owned.as_ref().unwrap().commit(row(7)).unwrap();
    assert!(other.replica.follow().unwrap());
    // The announcements of entries 4 and 5 come from the previous owner.
    assert_eq!(log.told(Sequence(3)).len(), 2);
    assert!(!other.replica.take_announced().unwrap());
    assert_eq!(other.rows(), next.rows());
}

/// Index of the last record that counts in the log.
fn last_index(log: &MemoryLog) -> u64 {
    let mut chain = Chain::after(log_id("cluster", RANGE), Position::default(), Sequence(0));
    log.read(Sequence(0), usize::MAX).unwrap().iter().for_each(|entry| drop(chain.fold(entry)));
    chain.last().index
}

#[test]
fn a_commit_that_lands_after_a_take_over_is_void() {
    let log = MemoryLog::default();
    let (mut old, mut new) = (Node::new(0, &log), Node::new(1, &log));
    old.take_over().unwrap();
    let owned = old.owned.take().unwrap();
    let row = |text: &str| vec![(b"\0\0pkey".to_vec(), Some(text.as_bytes().to_vec()))];
    owned.commit(row("before")).unwrap();
    // Two appends are under way when the other node takes over. The log refuses the first and accepts the
    // second.
    let last = lock(&old.replica.state).chain.last();
    let first =
        encode(old.replica.id, (last, last.epoch), &RecordBody::Rows(row("first")), PART_BYTES).unwrap();
    let second =
        encode(old.replica.id, (first.position, last.epoch), &RecordBody::Rows(row("second")), PART_BYTES)
            .unwrap();
    let place = log.end().unwrap();
    new.take_over().unwrap();
    assert_eq!(log.append(place, &first.parts[0]), Err(AppendError::Refused));
    log.append(place.next(), &second.parts[0]).unwrap();
    assert!(matches!(owned.commit(row("late")), Err(StoreError::Deposed(_))));
    new.owned.as_ref().unwrap().commit(row("after")).unwrap();
    old.replica.follow().unwrap();
    for node in [&old, &new] {
        assert_eq!(node.rows().into_values().collect::<Vec<_>>(), [b"after"]);
        assert_eq!(node.replica.owner(), (Epoch(2), Some("node-1".to_owned())));
    }
}

#[test]
fn a_long_commit_is_appended_in_parts() {
    let log = MemoryLog::default();
    let (mut owner, standby) = (Node::new(0, &log), Node::new(1, &log));
    owner.take_over().unwrap();
    let long: Vec<u8> = (0..3 * PART_BYTES + 17).map(|at| at as u8).collect();
    let row = (b"\0\0pkey".to_vec(), Some(long));
    // The answer to one part is lost, so the owner sends the part again.
    log.plan([LogFault::AnswerLost]);
    owner.owned.as_ref().unwrap().commit(vec![row.clone()]).unwrap();
    assert!(log.read(Sequence(1), usize::MAX).unwrap().len() > 3);
    standby.replica.follow().unwrap();
    assert_eq!(standby.rows(), Model::from([(row.0, row.1.unwrap())]));
}

#[test]
fn a_log_other_than_the_copied_one_is_detected() {
    let log = MemoryLog::default();
    let mut owner = Node::new(0, &log);
    owner.take_over().unwrap();
    for number in 0..3 {
        owner.owned.as_ref().unwrap().commit(vec![(vec![0, 0, number], Some(vec![number]))]).unwrap();
    }
    let other = MemoryLog::default();
    let mut node = Node::new(1, &other);
    (0..5).for_each(|_| node.take_over().unwrap());
    let opened = open(&owner.disk.crash(&mut Random::new(1)), "node-0", &other);
    assert!(matches!(opened, Err(ReplicaError::Contradiction { at: 4, .. })));
    log.set_missing(true);
    let opened = open(&owner.disk.crash(&mut Random::new(1)), "node-0", &log);
    assert!(matches!(opened, Err(ReplicaError::Log(LogError::Missing { .. }))));
}

#[test]
fn an_owner_learns_that_another_node_has_taken_over() {
    let log = MemoryLog::default();
    let (mut a, mut b) = (Node::new(0, &log), Node::new(1, &log));
    a.take_over().unwrap();
    b.take_over().unwrap();
    let contact = |node: &Node| node.replica.has_contact(Duration::from_secs(60));
    assert!(contact(&a) && !a.replica.has_contact(Duration::ZERO));
    a.replica.check_log().unwrap();
    assert_eq!(a.replica.owner(), (Epoch(2), Some("node-1".to_owned())));
    a.replica.stop();
    assert!(a.replica.follow().is_err() && a.replica.take_over().is_err());
    assert!(b.owned.unwrap().commit(vec![(vec![0, 0, 1], None)]).is_ok());
}

#[test]
fn a_commit_waits_while_the_log_does_not_answer() {
    let log = MemoryLog::default();
    let (mut old, mut new) = (Node::new(0, &log), Node::new(1, &log));
    old.take_over().unwrap();
    let owned = old.owned.take().unwrap();
    log.plan([LogFault::Away; 5]);
    owned.commit(vec![(vec![0, 0, 1], Some(vec![1]))]).unwrap();
    assert!(old.replica.wait_reason().is_none());
    // The owner is deposed, but cannot read the take-over at once.
    new.take_over().unwrap();
    log.plan([LogFault::CallLost, LogFault::Away, LogFault::CallLost, LogFault::Away]);
    assert!(matches!(owned.commit(vec![(vec![0, 0, 2], None)]), Err(StoreError::Deposed(_))));
    assert!(!old.replica.has_failed());
}

#[test]
fn a_commit_waits_for_a_leader_of_the_log_that_lags_behind() {
    let log = MemoryLog::default();
    let (mut owner, standby) = (Node::new(0, &log), Node::new(1, &log));
    owner.take_over().unwrap();
    let owned = owner.owned.take().unwrap();
    let row = |number: u8| vec![(vec![0, 0, number], Some(vec![number]))];
    owned.commit(row(1)).unwrap();
    log.lag(Some(Sequence(1)));
    let commit = std::thread::spawn(move || owned.commit(row(2)));
    while owner.replica.wait_reason().is_none() {
        std::thread::yield_now();
    }
    log.lag(None);
    commit.join().unwrap().unwrap();
    standby.replica.follow().unwrap();
    assert_eq!(standby.rows().into_values().collect::<Vec<_>>(), [[1], [2]]);
    assert!(owner.replica.wait_reason().is_none());
}

#[test]
fn a_deposed_owner_gives_no_wait_reason() {
    let log = MemoryLog::default();
    let (mut old, mut new) = (Node::new(0, &log), Node::new(1, &log));
    old.take_over().unwrap();
    let owned = old.owned.take().unwrap();
    new.take_over().unwrap();
    log.set_missing(true);
    let commit = std::thread::spawn(move || owned.commit(vec![(vec![0, 0, 1], None)]));
    while old.replica.wait_reason().is_none() {
        std::thread::yield_now();
    }
    log.set_missing(false);
    assert!(matches!(commit.join().unwrap(), Err(StoreError::Deposed(_))));
    assert!(old.replica.wait_reason().is_none(), "the commit has failed, so no commit waits");
}

#[test]
fn two_processes_with_one_node_name_are_distinguished() {
    let log = MemoryLog::default();
    let (mut first, mut second) = (Node::new(0, &log), Node::new(0, &log));
    first.take_over().unwrap();
    second.take_over().unwrap();
    let row = |number: u8| vec![(vec![0, 0, number], Some(vec![number]))];
    assert!(matches!(first.owned.as_ref().unwrap().commit(row(1)), Err(StoreError::Deposed(_))));
    second.owned.as_ref().unwrap().commit(row(2)).unwrap();
    first.replica.follow().unwrap();
    assert_eq!((first.rows(), second.rows()), (second.rows(), Model::from([(vec![0, 0, 2], vec![2])])));
}

#[test]
fn an_owner_is_deposed_if_the_log_was_trimmed_past_its_last_record() {
    let log = MemoryLog::default();
    let (mut old, mut new) = (Node::new(0, &log), Node::new(1, &log));
    old.take_over().unwrap();
    let owned = old.owned.take().unwrap();
    new.take_over().unwrap();
    let row = |number: u8| vec![(vec![0, 0, number], Some(vec![number]))];
    (1..5).for_each(|number| new.owned.as_ref().unwrap().commit(row(number)).unwrap());
    log.trim(Sequence(4)).unwrap();
    assert!(matches!(owned.commit(row(9)), Err(StoreError::Deposed(RANGE))));
    let trimmed =
        |found: Result<(), ReplicaError>| matches!(found, Err(ReplicaError::Log(LogError::Trimmed { .. })));
    assert!(trimmed(old.replica.check_log()) && trimmed(old.take_over()));
    // A replica whose last record was trimmed cannot tell whether it is the same log.
    let opened = open(&old.disk.crash(&mut Random::new(1)), "node-0", &log);
    assert!(trimmed(opened.map(drop)));
}

#[test]
fn the_sequence_number_of_an_entry_is_read_from_the_log() {
    let log = MemoryLog::default();
    let (mut owner, standby) = (Node::new(0, &log), Node::new(1, &log));
    for number in 0..3 {
        log.plan([LogFault::Misplaced]);
        if number == 0 {
            owner.take_over().unwrap();
        } else {
            owner.commit(number).unwrap();
        }
        assert_eq!(Ok(owner.replica.sequence()), log.end());
    }
    while standby.replica.follow().unwrap() {}
    assert_eq!((standby.rows(), truth(&log).1.len()), (owner.rows(), 2));
}

/// A replica has every record that was acknowledged before [`Replica::complete_as_of`]. This holds for
/// records of all owners, for announced and read records, and if the log lags.
#[test]
fn a_complete_replica_has_every_record_acknowledged_before_its_completeness_time() {
    let (mut advanced, mut stood) = (0, 0);
    for seed in 0..60 {
        let random = &mut Random::new(seed);
        let log = MemoryLog::default();
        // The log only lags in this test, so no replica puts a tail back.
        let limits = ReplicaLimits { tail_loss_grace: Duration::from_secs(3_600), ..LIMITS };
        let mut nodes: Vec<Node> = (0..3).map(|number| Node::within(limits, number, &log)).collect();
        let mut acknowledged: Vec<(Instant, u64)> = Vec::new();
        let mut behind = None;
        for number in 0..80 {
            let at = random.index(3);
            let node = &mut nodes[at];
            let before = node.replica.complete_as_of();
            match random.below(14) {
                0..6 if behind.is_none() => {
                    let Some(owned) = &node.owned else { continue };
                    if random.below(8) == 0 {
                        log.plan([
                            [LogFault::AnswerLost, LogFault::CallLost, LogFault::CallLate][random.index(3)]
                        ]);
                    }
                    match owned.commit(marked(random, number)) {
                        Ok(()) => acknowledged.push((Instant::now(), node.replica.index())),
                        Err(_) => node.owned = None,
                    }
                }
                6 if behind.is_none() => {
                    node.take_over().unwrap();
                    acknowledged.push((Instant::now(), node.replica.index()));
                }
                7 => drop(node.replica.take_announced().unwrap()),
                8 => {
                    log.set_missing(true);
                    assert!(node.replica.catch_up().is_err());
                    assert_eq!(node.replica.complete_as_of(), before);
                    log.set_missing(false);
                }
                9 => {
                    // A replica with more records than the log shows does not believe the log's end.
                    let end = log.read(Sequence(0), usize::MAX).unwrap().len() as u64;
                    behind = behind.is_none().then(|| Sequence(random.below(end + 1)));
                    log.lag(behind);
                }
                10 if behind.is_none() => node.die(random, &log),
                _ if behind.is_none() => drop(node.replica.catch_up().unwrap()),
                // The call may fail because the log seems to have lost its tail.
                _ if node.replica.sequence() > behind.unwrap_or_default() => drop(node.replica.catch_up()),
                _ => {}
            }
            log.heal();
            let node = &nodes[at];
            let now = node.replica.complete_as_of();
            advanced += u32::from(now > before);
            stood += u32::from(now == before);
            if let Some(complete) = now {
                let lacks =
                    acknowledged.iter().find(|(at, index)| *at < complete && *index > node.replica.index());
                assert_eq!(lacks, None, "seed {seed}, step {number}");
            }
        }
        log.lag(None);
        for node in &nodes {
            while node.replica.catch_up().unwrap() {}
            assert!(node.replica.complete_as_of().is_some());
            assert_eq!(node.rows(), truth(&log).0, "seed {seed}: a replica has copied a void entry");
        }
    }
    assert!(advanced > 500 && stood > 500, "{advanced} {stood}");
}
