//! Commits that no standby has copied.

use super::*;

#[test]
fn commits_that_cannot_settle_refuse_new_pages_until_a_standby_comes() {
    let cluster = Cluster { settlement: Settlement::Standby, ..Cluster::new() };
    let nodes = [cluster.start(0), cluster.start(1)];
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    submit(&nodes[0].tier1, 0);
    let [stays, ends] = nodes;
    cluster.end(ends);
    let front = Arc::clone(&stays.tier1);
    // The first submission waits.
    let first = thread::spawn(move || Tier1Api::submit(&*front, vec![submission(of_first_range(1))]));
    wait_for("submissions to be refused", || {
        let began = Instant::now();
        let refused = stays.tier1.answering_owner(RangeId(0)).and_then(|owner| owner.check_commits());
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
