//! Owners whose disk is full, while no other node can take their range over.

use doppel_protocol::membership::SILENCE;

use super::*;

#[test]
fn an_owner_that_meets_a_full_disk_opens_its_replica_anew_though_no_commit_has_failed() {
    let cluster = Cluster::new();
    let node = cluster.start(0);
    await_that("all to have owners", || cluster.owners().iter().all(Option::is_some));
    (0..20).for_each(|page| submit(&node.tier1, page));
    let page = of_first_range(20);
    node.tier1.ranges.replica(RangeId(0)).unwrap().database().close_as_full();
    await_that("the range to refuse", || {
        let refused = Tier1Api::submit(&*node.tier1, vec![submission(page)]);
        matches!(refused, Err(Tier1Error::DiskFull(_)))
    });
    // There is room, so the range continues by itself.
    await_that("the range to go on", || Tier1Api::submit(&*node.tier1, vec![submission(page)]).is_ok());
    let totals = node.tier1.totals().unwrap();
    assert_eq!((totals.full_disks, totals.disk_recoveries), (0, 1));
    assert_at_rest(&node.tier1, 20);
    cluster.end(node);
}

#[test]
fn a_node_whose_range_waits_for_its_turn_is_heard_and_ends_in_time() {
    let cluster = Cluster::new();
    let node = cluster.start(0);
    await_that("all to have owners", || cluster.owners().iter().all(Option::is_some));
    let refusals = Arc::clone(&node.tier1.refusals);
    let turn = refusals.try_turn();
    assert!(turn.is_some());
    node.tier1.ranges.replica(RangeId(0)).unwrap().database().close_as_full();
    let page = of_first_range(0);
    await_that("its trouble to be heard", || {
        // The owner notices the full disk with a page.
        drop(Tier1Api::submit(&*node.tier1, vec![submission(page)]));
        let replicas = cluster.membership.replicas(RangeId(0), Instant::now());
        replicas.iter().any(|replica| replica.trouble.is_some() && !replica.owns)
    });
    let began = Instant::now();
    while began.elapsed() < 2 * SILENCE {
        let silence = cluster.membership.silence(&node.name, Instant::now()).unwrap();
        assert!(silence < SILENCE, "{silence:?}");
        thread::sleep(Duration::from_millis(50));
    }
    cluster.end(node);
    drop(turn);
}
