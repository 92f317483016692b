//! Owners whose disk is full, while no other node can take their range over.

use doppel_protocol::beats::DEAD_AFTER;

use super::*;

#[test]
fn an_owner_with_a_full_disk_reopens_its_replica_although_no_commit_failed() {
    let cluster = Cluster::new();
    let node = cluster.start(0);
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    (0..20).for_each(|page| submit(&node.tier1, page));
    let page = of_first_range(20);
    node.tier1.owned.ranges.replica(RangeId(0)).unwrap().database().close_as_full();
    wait_for("the range to refuse", || {
        let refused = Tier1Api::submit(&*node.tier1, vec![submission(page)]);
        matches!(refused, Err(Tier1Error::DiskFull(_)))
    });
    // There is room, so the range continues by itself.
    wait_for("the range to go on", || Tier1Api::submit(&*node.tier1, vec![submission(page)]).is_ok());
    let totals = node.tier1.totals().unwrap();
    assert_eq!((totals.full_disks, totals.disk_recoveries), (0, 1));
    assert_at_rest(&node.tier1, 20);
    cluster.end(node);
}

#[test]
fn a_node_whose_replica_waits_to_be_reopened_sends_beats_and_stops_in_time() {
    let cluster = Cluster::new();
    let node = cluster.start(0);
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    let refusals = Arc::clone(&node.tier1.owned.refusals);
    let turn = refusals.try_reopening_turn();
    assert!(turn.is_some());
    node.tier1.owned.ranges.replica(RangeId(0)).unwrap().database().close_as_full();
    let page = of_first_range(0);
    wait_for("the trouble of the replica to be reported", || {
        // The owner notices the full disk with a page.
        drop(Tier1Api::submit(&*node.tier1, vec![submission(page)]));
        let replicas = cluster.membership.replicas(RangeId(0), Instant::now());
        replicas.iter().any(|replica| replica.claim.trouble.is_some() && !replica.claim.owns)
    });
    let began = Instant::now();
    while began.elapsed() < 2 * DEAD_AFTER {
        let silence = cluster.membership.silence(&node.name, Instant::now()).unwrap();
        assert!(silence < DEAD_AFTER, "{silence:?}");
        thread::sleep(Duration::from_millis(50));
    }
    cluster.end(node);
    drop(turn);
}
