//! Checks the plans that the rebalancer makes against its invariants.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use doppel_model::PartitionId;

use crate::partition_index::PartitionIndex;
use crate::{MappingLoad, PartitionMap};
use doppel_model::{Tau, stable_hash64};

const DIMENSIONS: usize = 3;

/// Contents in a few clusters of length-vector space, cluster after cluster.
fn clusters() -> impl Strategy<Value = Vec<LengthVector>> {
    let cluster = (20u32..2_000, 0.0..1.0, 0.0..1.0, 1u32..200, 1usize..400);
    vec((cluster, any::<u64>()), 1..6).prop_map(|clusters| {
        let mut all = Vec::new();
        for ((total, first, second, spread, count), seed) in clusters {
            let mut random = seed;
            let mut next = |below: u32| {
                random = stable_hash64(&random.to_le_bytes());
                (random % u64::from(below.max(1))) as u32
            };
            for _ in 0..count {
                let total = total + next(spread);
                let mut half = |share: f64| (share * f64::from(total)) as u32 * 9 / 10 + next(total / 10 + 1);
                let halves = [half(first), half(second)];
                all.push(LengthVector::new(&[total, halves[0].min(total), halves[1].min(total)]).unwrap());
            }
        }
        all
    })
}

fn settings() -> impl Strategy<Value = Rebalancer> {
    (1.0..1.4f64, 0.0..0.5f64, 0.0..1.0f64, 0.0..0.5f64, 1u32..10).prop_map(
        |(target, more, moved_max, tidied_max, each)| Rebalancer {
            limit: target + more,
            target,
            moved_max,
            tidied_max,
            each,
        },
    )
}

/// A plan with one partition, on the first node.
fn single_partition(nodes: u32) -> Plan {
    Plan::on_first(PartitionMap::one(DIMENSIONS, Tau::DEFAULT).unwrap(), nodes).unwrap()
}

/// Runs rounds until no plan is due, but at most `rounds`.
fn rebalance_until_even(
    mut plan: Plan,
    rebalancer: Rebalancer,
    lengths: &[LengthVector],
    rounds: usize,
) -> Plan {
    for _ in 0..rounds {
        match rebalancer.next(&plan, lengths, 1) {
            Some(next) => plan = next.plan,
            None => break,
        }
    }
    plan
}

fn homes(plan: &Plan, lengths: &[LengthVector]) -> Vec<(PartitionId, NodeId)> {
    let assignment = |vector| plan.assignments()[plan.map().home(vector).index()];
    lengths.iter().map(assignment).map(|assignment| (assignment.id, assignment.node)).collect()
}

/// The largest number of contents per serving node divided by the mean, recomputed.
fn imbalance(plan: &Plan, lengths: &[LengthVector]) -> f64 {
    let stored = plan.measure(lengths).stored;
    let stored: Vec<u64> = plan.serving().map(|node| stored[node.index()]).collect();
    let (most, sum) = (*stored.iter().max().unwrap() as f64, stored.iter().sum::<u64>() as f64);
    if sum == 0.0 { 1.0 } else { most * stored.len() as f64 / sum }
}

/// Checks the properties that any plan and its successor must have.
fn check(
    plan: &Plan,
    rebalancer: &Rebalancer,
    lengths: &[LengthVector],
) -> Result<Option<Plan>, TestCaseError> {
    let Some(next) = rebalancer.next(plan, lengths, 3) else { return Ok(None) };
    prop_assert_eq!(
        rebalancer.next(plan, lengths, 3),
        Some(next.clone()),
        "the plan must depend only on the arguments"
    );
    let NextPlan { plan: after, change } = next;
    let json = serde_json::to_string(&after).unwrap();
    prop_assert_eq!(&serde_json::from_str::<Plan>(&json).unwrap(), &after);
    prop_assert_eq!(change.plan_version, plan.map().version());
    prop_assert_eq!(after.map().version(), change.plan_version + 1);
    prop_assert_eq!((after.nodes(), after.drained()), (plan.nodes(), plan.drained()));
    prop_assert_eq!(after.map().lexicon(), plan.map().lexicon());
    let (splits, joins) = (change.splits as usize, change.joins as usize);
    prop_assert_eq!(plan.assignments().len() + splits - joins, after.assignments().len());
    let most = 2 * after.serving().count() * rebalancer.each as usize;
    prop_assert!(after.assignments().len() <= most.max(plan.assignments().len()));

    // Recount the moved contents one by one.
    let (old, new) = (homes(plan, lengths), homes(&after, lengths));
    let moved = old.iter().zip(&new).filter(|(old, new)| old.1 != new.1).count() as u64;
    prop_assert_eq!((change.contents_moved, change.contents), (3 * moved, 3 * lengths.len() as u64));
    prop_assert!(moved as f64 <= rebalancer.moved_max * lengths.len() as f64);
    prop_assert!(!change.moves.is_empty());
    for one in &change.moves {
        let position = after.find(one.partition).unwrap();
        prop_assert!(after.node(position) == one.to && one.to != one.from);
        let is_one = |(old, new): &(&(PartitionId, NodeId), &(PartitionId, NodeId))| {
            old.1 == one.from && new.0 == one.partition
        };
        prop_assert_eq!(one.contents, 3 * old.iter().zip(&new).filter(is_one).count() as u64);
    }
    // Equal ids have equal boxes.
    let bounds = |plan: &Plan, id| plan.find(id).map(|position| plan.map().bounds()[position.index()]);
    for assignment in after.assignments() {
        if let Some(before) = bounds(plan, assignment.id) {
            prop_assert_eq!(Some(before), bounds(&after, assignment.id));
        }
    }
    prop_assert!((change.imbalance_before - imbalance(plan, lengths)).abs() < 1e-9);
    prop_assert!((change.imbalance_after - imbalance(&after, lengths)).abs() < 1e-9);
    Ok(Some(after))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// While the collection grows, and nodes are drained and rejoined, every plan is a valid successor of the
    /// previous plan.
    #[test]
    fn every_new_plan_is_a_valid_successor(
        lengths in clusters(),
        nodes in 1u32..9,
        rebalancer in settings(),
        steps in vec((any::<prop::sample::Index>(), (0u32..9).prop_map(NodeId), any::<bool>()), 1..8),
    ) {
        let mut plan = single_partition(nodes);
        let mut stored = 0;
        for (end, node, drained) in steps {
            stored = stored.max(end.index(lengths.len() + 1));
            if plan.set_drained(node, drained).is_err() {
                prop_assert!(node.0 >= nodes || drained);
            }
            let is_drained =
                |assignment: &crate::PartitionAssignment| plan.drained().contains(&assignment.node);
            let drains = plan.assignments().iter().any(is_drained);
            let before = imbalance(&plan, &lengths[..stored]);
            if let Some(next) = check(&plan, &rebalancer, &lengths[..stored])? {
                let after = imbalance(&next, &lengths[..stored]);
                let most = before.max(rebalancer.target) + 1e-9;
                prop_assert!(drains || after <= most, "imbalance {before} before, {after} after");
                plan = next;
            }
        }
    }

    #[test]
    fn a_drained_node_is_emptied(
        lengths in clusters(),
        nodes in 2u32..9,
        node in 0u32..9,
        rebalancer in settings(),
    ) {
        let node = NodeId(node % nodes);
        let rebalancer = rebalancer.requested();
        let mut plan = rebalance_until_even(single_partition(nodes), rebalancer, &lengths, 9);
        plan.set_drained(node, true).unwrap();
        let empty = rebalance_until_even(plan.clone(), rebalancer, &lengths, 1);
        prop_assert!(empty.assignments().iter().all(|assignment| assignment.node != node));
        // Without a budget, nothing moves.
        let without_budget = Rebalancer { moved_max: 0.0, ..rebalancer };
        let unchanged = rebalance_until_even(plan.clone(), without_budget, &lengths, 1);
        prop_assert_eq!(homes(&unchanged, &lengths), homes(&plan, &lengths));
    }
}

/// Contents with many different totals and shares.
fn varied(count: u32) -> Vec<LengthVector> {
    let vector = |n: u32| {
        let total = 50 + n % 997;
        LengthVector::new(&[total, total * (n % 89) / 89, total * (n % 61) / 61]).unwrap()
    };
    (0..count).map(vector).collect()
}

#[test]
fn a_plan_with_one_partition_becomes_even() {
    let lengths = varied(6_000);
    let rebalancer = Rebalancer::default();
    let first = rebalancer.requested().next(&single_partition(8), &lengths, 1).unwrap();
    assert!(
        first.change.imbalance_before > 7.9 && first.change.imbalance_after <= 1.11,
        "{:?}",
        first.change
    );
    assert_eq!(rebalancer.next(&first.plan, &lengths, 1), None, "an even plan must not be due");
    // Several rounds that each move at most a fifth reach about the same result.
    let plan = rebalance_until_even(single_partition(8), rebalancer, &lengths, 9);
    assert!(imbalance(&plan, &lengths) <= 1.15);
    assert!(MappingLoad::fan_out_saved(&plan.measure(&lengths)) > 0.5);
}

#[test]
fn a_joined_node_gets_its_share_and_nothing_else_moves() {
    let lengths = varied(8_000);
    let mut plan = rebalance_until_even(single_partition(8), Rebalancer::default().requested(), &lengths, 3);
    plan.extend(9).unwrap();
    let rebalancer = Rebalancer { tidied_max: 0.0, ..Rebalancer::default() };
    let next = rebalancer.next(&plan, &lengths, 1).unwrap();
    let part = next.plan.measure(&lengths).stored[8];
    assert!((800..=990).contains(&part), "{part} of {}", lengths.len());
    assert!(next.change.moves.iter().all(|one| one.to == NodeId(8)), "{:?}", next.change);
}

#[test]
fn having_moved_reduces_the_budgets() {
    let rebalancer = Rebalancer { moved_max: 0.2, tidied_max: 0.1, ..Rebalancer::default() };
    let left = |share| {
        let Rebalancer { moved_max, tidied_max, .. } = rebalancer.having_moved(share);
        ((moved_max * 100.0).round(), (tidied_max * 100.0).round())
    };
    assert_eq!([left(0.0), left(0.15), left(0.5)], [(20.0, 10.0), (5.0, 0.0), (0.0, 0.0)]);
    let nothing = rebalancer.having_moved(0.2).next(&single_partition(8), &varied(6_000), 1);
    assert_eq!(nothing, None);
}

#[test]
fn partitions_that_cannot_be_divided_stay() {
    let same = vec![LengthVector::new(&[50, 20, 30]).unwrap(); 5_000];
    // Equal vectors cannot be separated. Only empty boxes next to them can move.
    let plan = rebalance_until_even(single_partition(4), Rebalancer::default().requested(), &same, 5);
    assert!((imbalance(&plan, &same) - 4.0).abs() < 1e-9);
    assert_eq!(Rebalancer::default().next(&single_partition(4), &[], 1), None);
    assert_eq!(
        Rebalancer::default().next(&single_partition(4), &same[..10], 1),
        None,
        "ten contents are too few for imbalance to count"
    );
    assert_eq!(Rebalancer::default().next(&single_partition(1), &varied(1_000), 1), None);
}

/// The incrementally updated counts equal the recomputed counts.
#[test]
fn incremental_fan_out_equals_recomputed_fan_out() {
    let lengths = varied(700);
    let plan = rebalance_until_even(single_partition(5), Rebalancer::default().requested(), &lengths, 2);
    let mut leaves = Leaves::new(&plan, &lengths);
    let mut fan_out = fan_out::FanOut::new(&leaves);
    let received = |leaves: &Leaves<'_>| leaves.plan.measure(&lengths).received.iter().sum::<u64>() as i64;
    let mut random = 1u64;
    for _ in 0..200 {
        random = stable_hash64(&random.to_le_bytes());
        let leaf = PartitionIndex((random % plan.assignments().len() as u64) as u32);
        let to = NodeId((random >> 32) as u32 % 5);
        if leaves.plan.node(leaf) == to {
            continue;
        }
        let (before, cost) = (received(&leaves), fan_out.cost(leaf, to));
        fan_out.move_partition(leaf, to);
        leaves.move_partition(leaf, to);
        assert_eq!(received(&leaves) - before, cost);
    }
}

/// There are a few large partitions and more nodes. No partition fits anywhere, but halves of partitions do.
#[test]
fn partitions_that_fit_nowhere_are_halved() {
    let lengths: Vec<LengthVector> =
        (0..6_000).map(|n| LengthVector::new(&[100 + n, 40 + n / 3, 30 + n / 5]).unwrap()).collect();
    for (nodes, each) in [(6, 3), (5, 4), (9, 2), (63, 1)] {
        let rebalancer = Rebalancer { each, ..Rebalancer::default() };
        let coarse = Rebalancer { each: 4, ..rebalancer };
        let four = rebalance_until_even(single_partition(4), coarse.requested(), &lengths, 10);
        let mut more = four.clone();
        more.extend(nodes).unwrap();
        let next = rebalancer.requested().next(&more, &lengths, 1).unwrap();
        assert!(next.change.imbalance_after <= 1.2, "{nodes} nodes: {:?}", next.change);
    }
}
