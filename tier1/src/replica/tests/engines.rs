//! Tests of replicas over real log servers, with every installed version of the server program. The log alone
//! decides which node may write.

use std::path::Path;

use doppel_shared_log::{JetStreamLog, StreamSettings, append_surely};

use super::*;
use crate::storage::database::tests::Disk;
use servers::{Servers, patiently, programs};

#[path = "../../../../common/shared_log/tests/servers/mod.rs"]
#[allow(dead_code, reason = "some of it is for the log's own tests")]
mod servers;

const COPIES: usize = 3;

fn with_each(test: impl Fn(&Servers)) {
    let run = |program: &Path| test(&Servers::start(program, COPIES));
    programs().iter().for_each(|program| run(program));
}

fn create(servers: &Servers) -> JetStreamLog {
    let (engine, settings) = (servers.connect(), StreamSettings { replicas: COPIES, max_bytes: 64 << 20 });
    patiently(|| engine.create("range", settings).map_err(|error| error.to_string()))
}

/// Opens a replica with its own connection, like a separate process.
fn replica(servers: &Servers, number: usize, settlement: Settlement) -> Arc<Replica> {
    let log = patiently(|| servers.connect().open("range", COPIES).map_err(|error| error.to_string()));
    let (id, limits) = (log_id("cluster", RANGE), ReplicaLimits::new(settlement));
    let database = Arc::new(Disk::new().open_replica(id).unwrap());
    let name = format!("node-{number}");
    Arc::new(Replica::open(limits, (RANGE, id), name, Arc::new(log), database).unwrap())
}

fn take_over(replica: &Arc<Replica>) -> OwnedRows {
    OwnedRows::new(Arc::clone(replica), replica.take_over().unwrap())
}

fn follow(replica: &Replica) -> Model {
    while replica.follow().unwrap() {}
    all(replica.database())
}

fn named(text: &str) -> Vec<Write> {
    vec![(b"\0\0pkey".to_vec(), Some(text.as_bytes().to_vec()))]
}

/// The log refuses the first append, but accepts the second append after the take-over. Only the chain makes
/// the second entry void.
#[test]
fn no_append_under_way_counts_after_a_take_over() {
    with_each(|servers| {
        let log = create(servers);
        let [old, new, standby] = [0, 1, 2].map(|number| replica(servers, number, Settlement::Log));
        let owned = take_over(&old);
        owned.commit(named("before")).unwrap();
        let last = lock(&old.state).chain.last();
        let record = |behind: Position, text| {
            encode(old.id, (behind, last.epoch), &RecordBody::Rows(named(text)), PART_BYTES).unwrap()
        };
        let first = record(last, "first");
        let second = record(first.position, "second");
        let place = log.end().unwrap();
        let owned_by_new = take_over(&new);
        let append = |expected: Sequence, entry: &Bytes| append_surely(&log, expected, entry, APPEND);
        assert_eq!(append(place, &first.parts[0]), Err(AppendError::Refused));
        assert_eq!(append(place.next(), &second.parts[0]), Ok(Sequence(place.0 + 2)));
        assert!(matches!(owned.commit(named("late")), Err(StoreError::Deposed(RANGE))));
        owned_by_new.commit(named("after")).unwrap();
        let late = replica(servers, 3, Settlement::Log);
        for node in [&old, &new, &standby, &late] {
            assert_eq!(follow(node).into_values().collect::<Vec<_>>(), [b"after"], "{}", node.node);
            assert_eq!((node.index(), node.owner().0), (4, Epoch(2)));
        }
    });
}

#[test]
fn entries_of_an_owner_that_was_deposed_while_suspended_do_not_count() {
    with_each(|servers| {
        let log = create(servers);
        let [old, new, late] = [0, 1, 2].map(|number| replica(servers, number, Settlement::Log));
        let owned = take_over(&old);
        owned.commit(named("before")).unwrap();
        // The old owner is suspended in the middle of a long record.
        let long: Vec<u8> = (0..3 * PART_BYTES).map(|byte| byte as u8).collect();
        let mut commit = {
            let rows = vec![(b"\0\0plong".to_vec(), Some(long))];
            old.start_commit(&lock(&old.state), Epoch(1), rows).unwrap()
        };
        let part = commit.part(0);
        let end = append_surely(&log, log.end().unwrap(), &part, APPEND).unwrap();
        let owned_by_new = take_over(&new);
        owned_by_new.commit(named("by the new owner")).unwrap();
        let expected = follow(&new);
        // The old owner continues with that record, and then with another commit.
        let woken = old.advance_commit(&mut lock(&old.state), &mut commit);
        assert!(matches!(woken, Err(StoreError::Deposed(RANGE))), "{woken:?}");
        assert!(matches!(owned.commit(named("late")), Err(StoreError::Deposed(RANGE))));
        // The remaining parts of that record land at the end of the log.
        for number in 1..3 {
            append_surely(&log, log.end().unwrap(), &commit.part(number), APPEND).unwrap();
        }
        assert!(log.end().unwrap() > end);
        owned_by_new.commit(named("still the new owner")).unwrap();
        for node in [&old, &new, &late] {
            let rows = follow(node);
            assert_eq!(rows.len(), expected.len());
            assert_eq!(rows.into_values().collect::<Vec<_>>(), [b"still the new owner"], "{}", node.node);
            assert_eq!(node.owner().0, Epoch(2));
        }
    });
}

#[test]
fn a_standby_reports_its_records_to_the_owner_at_once() {
    with_each(|servers| {
        let _log = create(servers);
        let [owner, standby] = [0, 1].map(|number| replica(servers, number, Settlement::Standby));
        let stopped = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !stopped.load(Ordering::Relaxed) {
                    // A log server does not answer during an election.
                    drop(standby.follow().and_then(|_| standby.follow_announced(Duration::from_millis(300))));
                }
            });
            let owned = take_over(&owner);
            owned.settle().unwrap();
            let began = Instant::now();
            for number in 0..100 {
                owned.commit(row(number)).unwrap();
            }
            let took = began.elapsed();
            stopped.store(true, Ordering::Relaxed);
            println!("100 commits that are settled by a standby took {took:?}");
            // Each commit takes much less than the time between two beats.
            assert!(took < Duration::from_secs(12), "{took:?}");
        });
        assert_eq!(follow(&standby).len(), 100);
    });
}
