//! Commits that no standby has copied.

use super::*;

#[test]
fn what_cannot_be_settled_is_refused_after_some_seconds_and_taken_when_a_standby_comes() {
    let cluster = Cluster { settlement: Settlement::Standby, ..Cluster::new() };
    let nodes = [cluster.start(0), cluster.start(1)];
    await_that("all to have owners", || cluster.owners().iter().all(Option::is_some));
    submit(&nodes[0].tier1, 0);
    let [stays, ends] = nodes;
    cluster.end(ends);
    let front = Arc::clone(&stays.tier1);
    // The first submission waits.
    let first = thread::spawn(move || Tier1Api::submit(&*front, vec![submission(of_first_range(1))]));
    await_that("submissions to be refused", || {
        let began = Instant::now();
        let refused = stays.tier1.own(RangeId(0)).and_then(|owner| owner.check_commits());
        refused.is_err_and(|error| error.to_string().contains("no standby"))
            && Tier1Api::submit(&*stays.tier1, vec![submission(of_first_range(500))]).is_err()
            && began.elapsed() < Duration::from_secs(1)
    });
    assert!(!first.is_finished());
    let comes = cluster.start(1);
    first.join().unwrap().unwrap();
    submit(&stays.tier1, of_first_range(500));
    [stays, comes].into_iter().for_each(|node| cluster.end(node));
}
