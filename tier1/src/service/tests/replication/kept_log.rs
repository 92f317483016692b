//! Readers for which a replica keeps its log.

use super::*;

#[test]
fn the_log_of_a_replica_is_kept_for_the_index_only_while_it_owns_the_range() {
    let cluster = Cluster::new();
    let nodes: Vec<Node> = (0..2).map(|number| cluster.start(number)).collect();
    let is_kept = |node: &Node| {
        let replica = node.tier1.owned.ranges.replica(RangeId(0))?;
        Some(
            [LogConsumer::Index, LogConsumer::Statuses]
                .map(|reader| replica.database().kept_log_after(reader).is_some()),
        )
    };
    for (owner, other) in [(0, 1), (1, 0), (0, 1)] {
        nodes[owner].keeper.take_over(RangeId(0)).unwrap();
        let name = Some(nodes[owner].name.clone());
        wait_for("the owner", || cluster.owners()[0] == name && nodes[owner].tier1.state(RangeId(0)).is_ok());
        assert_eq!(is_kept(&nodes[owner]).map(|[index, _]| index), Some(true));
        RangeOwner::keep_log(&*nodes[owner].tier1, RangeId(0), Some(1)).unwrap();
        let database = Arc::clone(nodes[owner].tier1.owned.ranges.replica(RangeId(0)).unwrap().database());
        database.keep_log(LogConsumer::Statuses, Some(1));
        wait_for("the other node to keep no log", || is_kept(&nodes[other]) == Some([false; 2]));
    }
    nodes.into_iter().for_each(|node| cluster.end(node));
}
