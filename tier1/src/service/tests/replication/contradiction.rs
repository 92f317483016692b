//! Replicas whose files contradict their log.

use super::*;

/// Starts two nodes and has the first own all ranges, whatever other nodes have reported.
fn start_both(cluster: &Cluster) -> Vec<Node> {
    let nodes: Vec<Node> = [1, 2].map(|number| cluster.start(number)).into();
    thread::sleep(Duration::from_secs(2));
    (0..RANGES).for_each(|range| nodes[0].keeper.take_over(RangeId(range)).unwrap());
    wait_for("one node to own all ranges", || {
        cluster.owners().iter().all(|owner| owner.as_deref() == Some("node-1"))
    });
    nodes
}

#[test]
fn a_contradicting_replica_stays_even_when_the_log_was_trimmed() {
    let mut cluster = Cluster::new();
    let first = cluster.start(0);
    wait_for("an owner", || cluster.owners().iter().all(Option::is_some));
    (0..20).for_each(|page| submit(&first.tier1, page));
    assert_at_rest(&first.tier1, 20);
    let has = cluster.logs[0].end().unwrap().0;
    cluster.end(first);
    // The log loses acknowledged entries, and the other nodes, which have nothing, go on without them.
    for log in &cluster.logs {
        let lost = 2..=log.end().unwrap().0;
        log.lose_tail(Sequence(1));
        // The log announces none of these entries.
        lost.for_each(|place| log.lose_news(Sequence(place)));
    }
    let nodes = start_both(&cluster);
    (20..40).for_each(|page| submit(&nodes[1].tier1, page));
    let first = cluster.start(0);
    wait_for("the contradiction to be reported", || {
        last_report(&cluster, "node-0").1.contains("Keep this directory")
    });
    cluster.end(first);
    nodes.into_iter().for_each(|node| cluster.end(node));
    // The log goes on and is trimmed. What the first node has last reported is forgotten.
    (cluster.log_window, cluster.membership) = (Duration::ZERO, Arc::default());
    let nodes = start_both(&cluster);
    (40..80).for_each(|page| submit(&nodes[1].tier1, page));
    let is_trimmed = |log: &MemoryLog| log.extent().unwrap().trimmed.0 > has;
    wait_for("the log to be trimmed", || is_trimmed(&cluster.logs[0]));
    let first = cluster.start(0);
    wait_for("the contradiction to be reported again", || {
        last_report(&cluster, "node-0").1.contains("the only copy")
    });
    cluster.end(first);
    // An operator deletes the directory.
    std::fs::remove_dir_all(cluster.home.path().join("node-0/range-0")).unwrap();
    let first = cluster.start(0);
    wait_for("the node to follow the log", || {
        let (index, trouble) = last_report(&cluster, "node-0");
        trouble.is_empty() && index > has
    });
    cluster.end(first);
    nodes.into_iter().for_each(|node| cluster.end(node));
}
