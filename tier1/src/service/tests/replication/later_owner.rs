//! Owners that hear of a later owner from another range before their own log tells them.

use doppel_protocol::range_owner::{AppliedPosition, PeerError, Receipt};

use super::*;
use crate::service::writer::task::Task;

fn map() -> RangeMap {
    RangeMap::new(config(Retention::DEFAULT, RANGES).shards, RANGES).unwrap()
}

#[test]
fn messages_of_a_later_owner_end_an_ownership_and_nothing_else() {
    let cluster = Cluster::new();
    let nodes: Vec<Node> = (0..2).map(|number| cluster.start(number)).collect();
    wait_for("all ranges to have owners", || cluster.owners().iter().all(Option::is_some));
    (0..20).for_each(|page| submit(&nodes[1].tier1, page));
    assert_at_rest(&nodes[0].tier1, 20);
    assert_eq!(cluster.owners()[0].as_deref(), Some("node-0"));
    // A redirect from the first range to the second sends messages.
    let [source, target] = [0, 1].map(|range| {
        (1_000..)
            .find(|page| map().of_shard(url(*page).id().shard(map().shards())) == RangeId(range))
            .unwrap()
    });
    let redirect = Submission { body: Body::Redirect(url(target)), ..submission(source) };
    Tier1Api::submit(&*nodes[0].tier1, vec![redirect]).unwrap();
    assert_at_rest(&nodes[0].tier1, 20);
    let owner = nodes[0].tier1.answering_owner(RangeId(0)).unwrap();
    // Range 1 reports that it has applied messages that this owner has never sent.
    let [from, to] = [source, target].map(|page| url(page).id().shard(map().shards()));
    let receipt = Receipt { applied: vec![AppliedPosition { from, to, number: 1_000_000 }] };
    owner.send_task(Task::Receipt { by: RangeId(1), answer: Ok(receipt) }).unwrap();
    wait_for("the ownership to end", || owner.is_stopping());
    wait_for("the range to have an owner again", || {
        cluster.owners()[0].is_some() && nodes[1].tier1.answering_owner(RangeId(0)).is_ok()
            || nodes[0].tier1.answering_owner(RangeId(0)).is_ok()
    });
    (20..40).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[1].tier1, 40);
    // A range that has forgotten confirmed messages has an earlier owner, so it is asked again.
    let owner = nodes.iter().find_map(|node| node.tier1.answering_owner(RangeId(0)).ok()).unwrap();
    let gap = PeerError::Gap { from, to, expected: 1, found: 2 };
    owner.send_task(Task::Receipt { by: RangeId(1), answer: Err(gap) }).unwrap();
    (40..60).for_each(|page| submit(&nodes[0].tier1, page));
    assert_at_rest(&nodes[1].tier1, 60);
    assert!(nodes.iter().all(|node| node.tier1.check().is_ok()));
    drop(owner);
    nodes.into_iter().for_each(|node| cluster.end(node));
}
