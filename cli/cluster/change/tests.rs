//! Changes that are made, those that are refused, and what is to be done then.

use super::*;
use crate::cluster::steps::{changes, steps};
use crate::cluster::tests::replicated;

fn name(text: &str) -> NodeName {
    text.parse().unwrap()
}

fn node(text: &str, port: u16) -> Node {
    Node { name: name(text), address: format!("10.0.0.9:{port}") }
}

fn names(description: &Description, range: u16) -> Vec<String> {
    description.replicas_of(RangeId(range)).iter().map(ToString::to_string).collect()
}

/// Six ranges on three nodes, each on two of them.
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

fn apply(change: &Change, before: &Description) -> Result<Description, String> {
    change.apply(before, &Owners::new())
}

fn replicas(range: u16, nodes: &[&str]) -> Change {
    Change::Replicas { range: RangeId(range), nodes: nodes.iter().map(|node| name(node)).collect() }
}

#[test]
fn a_new_node_follows_its_share_and_owns_nothing() {
    let before = three();
    before.check().unwrap();
    let after = apply(&Change::AddTier1 { node: node("r-4", 1), follow: None }, &before).unwrap();
    assert_eq!((after.tier1[3].ranges.len(), after.tier1[3].standby.len()), (0, 3));
    let named = Some(vec![RangeId(1), RangeId(4)]);
    let after = apply(&Change::AddTier1 { node: node("r-4", 1), follow: named }, &before).unwrap();
    assert_eq!(names(&after, 1), ["r-2", "r-3", "r-4"]);
    let told = changes(&before, &after);
    assert_eq!(told[0], "tier-1 node r-4 at 10.0.0.9:1 is in");
    assert!(told[1].starts_with("range 1: replicas at r-2, r-3, r-4, and no longer at r-2, r-3"), "{told:?}");
    let steps = steps(&before, &after, "c.toml");
    assert_eq!(steps[0], "start the new node: doppel tier1 --cluster c.toml --name r-4 --data DIR");
    assert!(
        steps[1].starts_with("restart the nodes of tier 1 r-1, r-2, r-3, one after the other"),
        "{steps:?}"
    );
    assert_eq!(steps[2], "restart the nodes of tier 2 index-1, index-2");
    assert_eq!((steps.len(), &*steps[3]), (4, "restart the coordinators"));
    for (change, says) in [
        (Change::AddTier1 { node: node("r-1", 1), follow: None }, "there is a node r-1 already"),
        (Change::AddTier1 { node: node("r-4", 1), follow: Some(vec![RangeId(6)]) }, "there is no range 6"),
        (Change::AddTier1 { node: node("r-4", 1), follow: Some(Vec::new()) }, "at least one range"),
        (Change::AddTier2(node("r-1", 1)), "same name or address"),
    ] {
        let refused = apply(&change, &before).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }
}

#[test]
fn only_what_has_the_router_is_restarted_for_another_node_of_the_index() {
    let before = three();
    let after = apply(&Change::AddTier2(node("index-3", 1)), &before).unwrap();
    let done = steps(&before, &after, "c.toml");
    assert!(done[1].starts_with("restart the nodes of tier 1 r-1, r-2, one after"), "{done:?}");
    assert_eq!(done.len(), 3);
    assert_eq!(apply(&Change::Remove(name("index-3")), &after).unwrap(), before);
    let refused = apply(&Change::Remove(name("index-2")), &after).unwrap_err();
    assert!(refused.contains("not the last node of tier 2"), "{refused}");
    let drain = Change::Remove(name("index-3")).before(&after).unwrap();
    assert!(drain.contains("--drain 2 --wait"), "{drain}");
}

#[test]
fn no_range_is_left_without_a_copy() {
    let before = three();
    let remove = Change::Remove(name("r-2"));
    let owners: Owners = [(RangeId(4), "r-2".to_owned())].into();
    let refused = remove.apply(&before, &owners).unwrap_err();
    assert!(refused.contains("r-2 owns range 4 at present"), "{refused}");
    assert!(refused.contains("doppel cluster takeover --range 4 --to r-1"), "{refused}");
    // One copy is too few for a settlement that needs two.
    let refused = apply(&remove, &before).unwrap_err();
    assert!(refused.contains("without r-2 ranges 0, 1, 4, 5 would have too few replicas"), "{refused}");
    assert!(refused.contains("cluster replicas --cluster FILE --range 0 --nodes r-1,r-2,r-3"), "{refused}");
    let alone = apply(&remove, &unsettled(before.clone())).unwrap();
    assert_eq!((names(&alone, 1), names(&alone, 4)), (vec!["r-3".to_owned()], vec!["r-1".to_owned()]));
    let told = changes(&unsettled(before.clone()), &alone);
    assert!(told.iter().any(|told| told.ends_with("With a single copy nobody can take it over")), "{told:?}");
    // Others have it first.
    let mut more = before.clone();
    for (range, nodes) in [
        (0, ["r-1", "r-2", "r-3"]),
        (1, ["r-2", "r-3", "r-1"]),
        (4, ["r-2", "r-1", "r-3"]),
        (5, ["r-3", "r-1", "r-2"]),
    ] {
        more = apply(&replicas(range, &nodes), &more).unwrap();
    }
    let owners: Owners = (0..6).map(|range| (RangeId(range), "r-3".to_owned())).collect();
    let after = remove.apply(&more, &owners).unwrap();
    assert_eq!(
        (names(&after, 1), names(&after, 4)),
        (vec!["r-3".to_owned(), "r-1".to_owned()], vec!["r-3".to_owned(), "r-1".to_owned()])
    );
    let done = steps(&more, &after, "c.toml");
    assert!(done.iter().any(|step| step == "stop r-2; it cannot be started again"), "{done:?}");
    // Nobody is known to have all of a range.
    let unowned: Owners = [(RangeId(2), "r-3".to_owned())].into();
    let refused = remove.apply(&more, &unowned).unwrap_err();
    assert!(refused.contains("range 0 has no owner at present"), "{refused}");
    assert!(
        apply(&Change::Remove(name("r-9")), &before)
            .unwrap_err()
            .contains("no node r-9 in the cluster; it has r-1")
    );
}

#[test]
fn a_range_moves_by_way_of_a_node_that_has_it() {
    let before = three();
    let after = apply(&replicas(0, &["r-3", "r-1"]), &before).unwrap();
    assert_eq!(names(&after, 0), ["r-3", "r-1"]);
    let done = steps(&before, &after, "c.toml");
    // Whoever gets it comes before whoever loses it.
    assert!(done[0].starts_with("restart the nodes of tier 1 r-3, r-1, r-2, one"), "{done:?}");
    assert!(done[0].ends_with("wait until it follows it"), "{done:?}");
    let owners: Owners = [(RangeId(0), "r-2".to_owned())].into();
    for (change, says) in [
        (replicas(9, &["r-1"]), "there is no range 9; they are 0 to 5"),
        (replicas(0, &["r-1", "x"]), "no tier-1 node x"),
        (replicas(0, &["r-1", "r-1"]), "r-1 is named twice"),
        (replicas(0, &["r-3"]), "none of these nodes has anything of range 0; keep one of r-1, r-2"),
        (replicas(0, &["r-1", "r-3"]), "r-2 owns range 0 at present"),
        (replicas(0, &["r-2"]), "range 0 is on one node alone"),
    ] {
        let refused = change.apply(&before, &owners).unwrap_err();
        assert!(refused.contains(says), "{refused}");
    }
    assert_eq!(apply(&replicas(0, &["r-1", "r-2"]), &before), Err("it is so already".to_owned()));
}

#[test]
fn an_address_and_the_log_change() {
    let before = three();
    let after = apply(&Change::Address(node("index-1", 7)), &before).unwrap();
    assert_eq!(
        changes(&before, &after),
        ["tier-2 node index-1 is at 10.0.0.9:7, and no longer at 127.0.0.1:2"]
    );
    assert!(apply(&Change::Address(node("index-9", 7)), &before).unwrap_err().contains("no node index-9"));
    let log = |settlement| Change::Log { settlement, monitors: None, window_minutes: Some(5) };
    let after = apply(&log(None), &before).unwrap();
    assert_eq!(changes(&before, &after), ["the log is kept for 5 minutes"]);
    let refused = apply(&log(Some(Settlement::Log)), &before).unwrap_err();
    assert!(refused.contains("with settlement `log` one URL for each log server"), "{refused}");
    let done = steps(&before, &after, "c.toml");
    assert!(done[0].starts_with("restart the nodes of tier 1 r-1, r-2, r-3") && done.len() == 2, "{done:?}");
}
