//! Which changes are accepted and which are refused, and the steps that follow a change.

use doppel_model::Epoch;

use doppel_protocol::beats::RangeClaim;

use super::*;
use crate::cluster::tests::replicated;
use crate::description::steps::{changes, steps};

fn name(text: &str) -> NodeName {
    text.parse().unwrap()
}

fn node(text: &str, port: u16) -> Tier2Node {
    Tier2Node { name: name(text), address: format!("10.0.0.9:{port}") }
}

fn names(description: &Description, range: u16) -> Vec<String> {
    description.replicas_of(RangeId(range)).iter().map(ToString::to_string).collect()
}

/// A cluster of three nodes with six ranges, each on two nodes.
fn three() -> Description {
    replicated(|description| {
        description.ranges = 6;
        let of = |at: usize| Tier1Node {
            name: name(&format!("r-{}", at + 1)),
            address: format!("10.0.0.1:{}", at + 1),
            ranges: vec![RangeId(at as u16), RangeId(at as u16 + 3)],
            standby: vec![RangeId((at as u16 + 2) % 3), RangeId((at as u16 + 1) % 3 + 3)],
        };
        description.tier1 = (0..3).map(of).collect();
    })
}

fn unsettled(description: Description) -> Description {
    let mut description = description;
    let log = description.log.as_mut().unwrap();
    (log.settlement, log.monitors) = (Settlement::Log, vec!["http://10.0.0.1:8222".to_owned()]);
    description
}

/// Applies a change with `--force`, so that no reports of nodes are needed.
fn apply(change: &ClusterChange, before: &Description) -> Result<Description, String> {
    change.apply(before, &NodeReports { force: true, ..NodeReports::default() })
}

/// Report of a replica that owns or follows its range.
fn replica(node: &str, owns: bool) -> ReportedReplica {
    ReportedReplica {
        node: node.to_owned(),
        claim: RangeClaim {
            range: RangeId(0),
            epoch: Epoch(7),
            owns,
            index: 5_000,
            known: true,
            sequence: 9_000,
            needs: 9_000,
            trouble: None,
        },
        age: Duration::from_millis(300),
    }
}

/// Reports in which all replicas follow, and `owners` names the owners of some ranges.
fn heard(description: &Description, owners: &[(u16, &str)]) -> NodeReports {
    let replicas = |range| {
        let owner = owners.iter().find(|(owned, _)| *owned == range).map(|(_, owner)| *owner);
        let all = description.replicas_of(RangeId(range));
        all.iter().map(|name| replica(name.as_str(), Some(name.as_str()) == owner)).collect()
    };
    NodeReports { replicas: (0..description.ranges).map(replicas).collect(), ..NodeReports::default() }
}

fn replicas(range: u16, nodes: &[&str]) -> ClusterChange {
    ClusterChange::Replicas { range: RangeId(range), nodes: nodes.iter().map(|node| name(node)).collect() }
}

#[test]
fn a_new_node_follows_its_share_and_owns_nothing() {
    let before = three();
    before.check().unwrap();
    let after = apply(&ClusterChange::AddTier1 { node: node("r-4", 1), follow: None }, &before).unwrap();
    assert_eq!((after.tier1[3].ranges.len(), after.tier1[3].standby.len()), (0, 3));
    let named = Some(vec![RangeId(1), RangeId(4)]);
    let after = apply(&ClusterChange::AddTier1 { node: node("r-4", 1), follow: named }, &before).unwrap();
    assert_eq!(names(&after, 1), ["r-2", "r-3", "r-4"]);
    let told = changes(&before, &after);
    assert_eq!(told[0], "tier-1 node r-4 at 10.0.0.9:1 joins");
    assert!(told[1].starts_with("range 1: replicas at r-2, r-3, r-4, before at r-2, r-3;"), "{told:?}");
    let steps = steps(&before, &after, "c.toml");
    assert_eq!(steps[0], "start the new node: doppel tier1 --cluster c.toml --name r-4 --data DIR");
    assert_eq!(steps[1], "restart the coordinators, which show only the nodes that they were started with");
    assert!(
        steps[2].starts_with("restart the nodes of tier 1 r-1, r-2, r-3, one after the other"),
        "{steps:?}"
    );
    assert_eq!((steps.len(), &*steps[3]), (4, "restart the nodes of tier 2 index-1, index-2"));
    for (change, says) in [
        (ClusterChange::AddTier1 { node: node("r-1", 1), follow: None }, "there is a node r-1 already"),
        (
            ClusterChange::AddTier1 { node: node("r-4", 1), follow: Some(vec![RangeId(6)]) },
            "there is no range 6",
        ),
        (ClusterChange::AddTier1 { node: node("r-4", 1), follow: Some(Vec::new()) }, "at least one range"),
        (ClusterChange::AddTier2(node("r-1", 1)), "same name or address"),
    ] {
        let refused = apply(&change, &before).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn a_new_node_of_the_index_restarts_only_coordinators_and_nodes_with_the_router() {
    let before = three();
    let after = apply(&ClusterChange::AddTier2(node("index-3", 1)), &before).unwrap();
    let done = steps(&before, &after, "c.toml");
    assert!(done[1].starts_with("restart the coordinators"), "{done:?}");
    assert!(done[2].starts_with("restart the nodes of tier 1 r-1, r-2, one after"), "{done:?}");
    assert_eq!(done.len(), 3);
    assert_eq!(apply(&ClusterChange::Remove(name("index-3")), &after).unwrap(), before);
    // The coordinators are restarted last, so they show the leaving node until it is gone.
    let done = steps(&after, &before, "c.toml");
    assert_eq!((done.len(), done.last().map(String::as_str)), (3, Some("restart the coordinators")));
    let refused = apply(&ClusterChange::Remove(name("index-2")), &after).unwrap_err();
    assert!(refused.contains("not the last node of tier 2"), "{refused}");
}

#[test]
fn a_node_of_the_index_goes_when_it_is_empty() {
    let before = apply(&ClusterChange::AddTier2(node("index-3", 1)), &three()).unwrap();
    let remove = ClusterChange::Remove(name("index-3"));
    assert_eq!(remove.needed_reports(&before), NeededReports::Partitions);
    let has = |partitions| NodeReports { partitions, ..NodeReports::default() };
    assert_eq!(remove.apply(&before, &has(Some(vec![2, 1, 0]))).unwrap(), three());
    // The plan is older than the node.
    assert_eq!(remove.apply(&before, &has(Some(vec![2, 1]))).unwrap(), three());
    let refused = remove.apply(&before, &has(Some(vec![2, 1, 4]))).unwrap_err();
    assert!(refused.starts_with("index-3 has 4 of the partitions of the index"), "{refused}");
    for says in ["`doppel rebalance --drain 2 --wait`", "pass --force", "new pages stay pending"] {
        assert!(refused.contains(says), "{refused}");
    }
    let refused = remove.apply(&before, &has(None)).unwrap_err();
    assert!(
        refused.contains("is not known whether index-3 has partitions") && refused.contains("--force"),
        "{refused}"
    );
    assert_eq!(apply(&remove, &before).unwrap(), three());
    let mut alone = three();
    alone.tier2.truncate(1);
    let refused = apply(&ClusterChange::Remove(name("index-1")), &alone).unwrap_err();
    assert!(refused.contains("is the only node of tier 2"), "{refused}");
    assert!(remove.note(&before, true).unwrap().contains("new pages stay pending"));
    assert_eq!(remove.note(&before, false), None);
    assert_eq!(ClusterChange::Remove(name("r-1")).needed_reports(&before), NeededReports::Replicas);
}

#[test]
fn no_range_is_left_without_a_copy() {
    let before = three();
    let remove = ClusterChange::Remove(name("r-2"));
    let refused = remove.apply(&before, &heard(&before, &[(4, "r-2")])).unwrap_err();
    assert!(refused.contains("r-2 owns range 4 at present"), "{refused}");
    assert!(refused.contains("doppel cluster takeover --range 4 --to r-1"), "{refused}");
    // One copy is too few for a settlement that needs two.
    let refused = apply(&remove, &before).unwrap_err();
    assert!(refused.contains("without r-2 ranges 0, 1, 4, 5 would have too few replicas"), "{refused}");
    assert!(refused.contains("cluster replicas --cluster FILE --range 0 --nodes r-1,r-2,r-3"), "{refused}");
    let alone = apply(&remove, &unsettled(before.clone())).unwrap();
    assert_eq!((names(&alone, 1), names(&alone, 4)), (vec!["r-3".to_owned()], vec!["r-1".to_owned()]));
    let told = changes(&unsettled(before.clone()), &alone);
    assert!(
        told.iter().any(|told| told.ends_with("With a single replica, no other node can take over")),
        "{told:?}"
    );
    // Other nodes get the ranges first.
    let mut more = before.clone();
    for (range, nodes) in [
        (0, ["r-1", "r-2", "r-3"]),
        (1, ["r-2", "r-3", "r-1"]),
        (4, ["r-2", "r-1", "r-3"]),
        (5, ["r-3", "r-1", "r-2"]),
    ] {
        more = apply(&replicas(range, &nodes), &more).unwrap();
    }
    let owned: Vec<(u16, &str)> = [0, 1, 2, 3, 4, 5].map(|range| (range, "r-3")).to_vec();
    let all = heard(&more, &owned);
    let after = remove.apply(&more, &all).unwrap();
    assert_eq!(
        (names(&after, 1), names(&after, 4)),
        (vec!["r-3".to_owned(), "r-1".to_owned()], vec!["r-3".to_owned(), "r-1".to_owned()])
    );
    let done = steps(&more, &after, "c.toml");
    assert!(done.iter().any(|step| step == "stop r-2; it cannot be started again"), "{done:?}");
    // Refused if no owner of a range is heard, or if the other remaining replica does not follow.
    let refused = remove.apply(&more, &heard(&more, &[(2, "r-3")])).unwrap_err();
    assert!(refused.contains("no owner of range 0 is heard"), "{refused}");
    let others: [fn(&mut ReportedReplica); 6] = [
        |replica| replica.claim.known = false,
        |replica| replica.claim.trouble = Some("the log is away".to_owned()),
        |replica| replica.claim.index = 3_999,
        |replica| replica.claim.epoch = Epoch(6),
        |replica| replica.age = Duration::from_secs(2),
        |replica| replica.node = "r-9".to_owned(),
    ];
    for spoil in others {
        let mut heard = all.clone();
        heard.replicas[1].iter_mut().filter(|replica| replica.node == "r-1").for_each(spoil);
        let refused = remove.apply(&more, &heard).unwrap_err();
        assert!(
            refused.contains("range 1, which are r-3, r-1, have to follow it; now r-3 does"),
            "{refused}"
        );
        assert_eq!(remove.apply(&more, &NodeReports { force: true, ..heard }).unwrap(), after);
    }
    assert!(
        apply(&ClusterChange::Remove(name("r-9")), &before)
            .unwrap_err()
            .contains("no node r-9 in the cluster; it has r-1")
    );
}

#[test]
fn a_range_moves_only_while_a_node_with_a_replica_stays() {
    let before = three();
    let after = apply(&replicas(0, &["r-3", "r-1"]), &before).unwrap();
    assert_eq!(names(&after, 0), ["r-3", "r-1"]);
    let done = steps(&before, &after, "c.toml");
    // The node that gains the range is restarted before the node that loses it.
    assert!(done[0].starts_with("restart the coordinators") && done.len() == 2, "{done:?}");
    assert!(done[1].starts_with("restart the nodes of tier 1 r-3, r-1, r-2, one"), "{done:?}");
    assert!(done[1].ends_with("wait until it follows that range"), "{done:?}");
    let heard = heard(&before, &[(0, "r-2")]);
    for (change, says) in [
        (replicas(9, &["r-1"]), "there is no range 9; they are 0 to 5"),
        (replicas(0, &["r-1", "x"]), "no tier-1 node x"),
        (replicas(0, &["r-1", "r-1"]), "r-1 is named twice"),
        (replicas(0, &["r-3"]), "none of these nodes has a replica of range 0; keep one of r-1, r-2"),
        (replicas(0, &["r-1", "r-3"]), "r-2 owns range 0 at present"),
        (replicas(0, &["r-2"]), "range 0 is on one node alone"),
    ] {
        let refused = change.apply(&before, &heard).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }
    assert!(apply(&replicas(0, &["r-1", "r-2"]), &before).unwrap_err().contains("is so already"));
    // A named node that was never started stores nothing. A node that is only added need not follow yet.
    let more = replicas(0, &["r-1", "r-2", "r-3"]).apply(&before, &heard).unwrap();
    let fewer = replicas(0, &["r-2", "r-3"]);
    let refused = fewer.apply(&more, &heard).unwrap_err();
    assert!(
        refused.contains("2 of the remaining nodes of range 0, which are r-2, r-3, have to"),
        "{refused}"
    );
    assert!(refused.contains("follow it; now r-2 does"), "{refused}");
    assert!(fewer.apply(&more, &NodeReports { force: true, ..heard.clone() }).is_ok());
    let mut follows = heard.clone();
    follows.replicas[0].push(replica("r-3", false));
    assert_eq!(names(&fewer.apply(&more, &follows).unwrap(), 0), ["r-2", "r-3"]);
    let unheard = fewer.apply(&more, &NodeReports::default()).unwrap_err();
    assert!(unheard.contains("no owner of range 0 is heard"), "{unheard}");
}

#[test]
fn an_address_and_the_log_change() {
    let before = three();
    let after = apply(&ClusterChange::Address(node("index-1", 7)), &before).unwrap();
    assert_eq!(changes(&before, &after), ["tier-2 node index-1 moves from 127.0.0.1:2 to 10.0.0.9:7"]);
    assert!(
        apply(&ClusterChange::Address(node("index-9", 7)), &before).unwrap_err().contains("no node index-9")
    );
    let log = |settlement| ClusterChange::Log { settlement, monitors: None, window_minutes: Some(5) };
    let after = apply(&log(None), &before).unwrap();
    assert_eq!(changes(&before, &after), ["the log is kept for 5 minutes"]);
    let refused = apply(&log(Some(Settlement::Log)), &before).unwrap_err();
    assert!(refused.contains("with settlement `log` one URL for each log server"), "{refused}");
    let done = steps(&before, &after, "c.toml");
    assert!(done[0].starts_with("restart the nodes of tier 1 r-1, r-2, r-3") && done.len() == 2, "{done:?}");
}
