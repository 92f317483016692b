//! Checks that changes leave a plan valid, and that damaged stored plans are rejected.

use std::collections::BTreeMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

const NODES: u32 = 5;
const FIRST: PartitionIndex = PartitionIndex(0);

#[derive(Debug, Clone)]
enum Step {
    Split(PartitionIndex, usize, i64),
    Join(PartitionIndex),
    Place(PartitionIndex, NodeId),
    Drain(NodeId, bool),
}

fn partition() -> impl Strategy<Value = PartitionIndex> {
    (0u32..40).prop_map(PartitionIndex)
}

fn node() -> impl Strategy<Value = NodeId> {
    (0..=NODES).prop_map(NodeId)
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (partition(), 0usize..4, -60i64..120).prop_map(|(p, feature, at)| Step::Split(p, feature, at)),
        2 => partition().prop_map(Step::Join),
        2 => (partition(), node()).prop_map(|(p, node)| Step::Place(p, node)),
        1 => (node(), any::<bool>()).prop_map(|(node, drained)| Step::Drain(node, drained)),
    ];
    vec(step, 0..60)
}

fn vectors() -> impl Strategy<Value = Vec<LengthVector>> {
    let vector = (0u32..120, 0.0..=1.0f64, 0.0..=1.0f64).prop_map(|(total, a, b)| {
        let half = |share: f64| (share * f64::from(total)) as u32;
        LengthVector::new(&[total, half(a), half(b)]).unwrap()
    });
    vec(vector, 60)
}

fn single_partition() -> Plan {
    Plan::on_first(PartitionMap::one(3, Tau::DEFAULT).unwrap(), NODES).unwrap()
}

fn apply(plan: &mut Plan, step: &Step) -> Result<(), MappingError> {
    match *step {
        Step::Split(partition, feature, at) => plan.split(partition, feature, at),
        Step::Join(partition) => plan.join(partition),
        Step::Place(partition, node) => plan.place(partition, node),
        Step::Drain(node, drained) => plan.set_drained(node, drained),
    }
}

fn boxes(plan: &Plan) -> BTreeMap<PartitionId, Bounds> {
    plan.assignments()
        .iter()
        .map(|assignment| assignment.id)
        .zip(plan.map().bounds().iter().copied())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn any_steps_leave_a_valid_plan(steps in steps(), vectors in vectors()) {
        let mut plan = single_partition();
        // Every id that was ever used, and its box.
        let mut bounds_by_id = boxes(&plan);
        for step in &steps {
            let before = plan.clone();
            if apply(&mut plan, step).is_err() {
                prop_assert_eq!(&plan, &before, "a failed step must not change the plan");
                continue;
            }
            let now = boxes(&plan);
            prop_assert_eq!(now.len(), plan.assignments().len(), "two partitions have the same id");
            for (id, bounds) in now {
                let first = *bounds_by_id.entry(id).or_insert(bounds);
                prop_assert_eq!(first, bounds, "an id was given to another box");
            }
        }
        prop_assert!(plan.serving().next().is_some());
        prop_assert!(plan.assignments().iter().all(|assignment| assignment.node.0 < NODES));
        let mut probed_nodes = Vec::new();
        for vector in &vectors {
            let holds = |bounds: &Bounds| (0..3).all(|m| {
                (bounds.lo[m]..=bounds.hi[m]).contains(&vector.feature(m))
            });
            let bounds = plan.map().bounds().iter();
            let homes: Vec<usize> = bounds.enumerate().filter(|(_, b)| holds(b)).map(|(p, _)| p).collect();
            let home = plan.map().home(vector);
            prop_assert_eq!(homes, vec![home.index()], "every vector must be in exactly one box");
            plan.probed_nodes(vector, &mut probed_nodes);
            prop_assert!(probed_nodes.is_sorted_by(|a, b| a < b) && probed_nodes.contains(&plan.node(home)));
        }
        let load = plan.measure(&vectors);
        prop_assert_eq!(load.stored.iter().sum::<u64>(), vectors.len() as u64);

        let json = serde_json::to_string(&plan).unwrap();
        prop_assert_eq!(serde_json::from_str::<Plan>(&json).unwrap(), plan);
    }

    /// Joining the two sides of a split restores the boxes, with new ids.
    #[test]
    fn a_join_undoes_a_split(steps in steps(), partition in partition(), at in -60i64..120) {
        let mut plan = single_partition();
        steps.iter().for_each(|step| drop(apply(&mut plan, step)));
        let before = plan.clone();
        if plan.split(partition, 1, at).is_ok() {
            prop_assert!(plan.map().is_joinable(partition));
            plan.join(partition).unwrap();
            prop_assert_eq!(plan.map(), before.map());
            let number = partition.index();
            prop_assert_ne!(plan.assignments()[number].id, before.assignments()[number].id);
            prop_assert_eq!(plan.assignments()[number].node, before.assignments()[number].node);
        }
    }

    #[test]
    fn damaged_stored_plans_are_errors(steps in steps(), what in 0usize..7, value in 0u64..9) {
        let mut plan = single_partition();
        steps.iter().for_each(|step| drop(apply(&mut plan, step)));
        let mut json = serde_json::to_value(&plan).unwrap();
        let next = json["next_id"].as_u64().unwrap();
        let wrong = match what {
            0 => { json["doppel_plan"] = (2 + value).into(); "is of version" }
            1 => { json["nodes"] = 0.into(); "nodes, not 0" }
            2 => { json["partitions"][0]["node"] = (u64::from(NODES) + value).into(); "node" }
            3 => { json["partitions"][0]["id"] = (next + value).into(); "partition" }
            4 => { json["partitions"].as_array_mut().unwrap().pop(); "partitions, not" }
            5 => { json["drained"] = (0..NODES).collect::<Vec<u32>>().into(); "the only one" }
            _ => { json["more"] = value.into(); "unknown field" }
        };
        let error = serde_json::from_value::<Plan>(json).unwrap_err().to_string();
        prop_assert!(error.contains(wrong), "{error}");
    }
}

#[test]
fn a_plan_learned_anew_reuses_no_ids() {
    let mut before = single_partition();
    before.split(FIRST, 0, 50).unwrap();
    let after = single_partition().after(&before);
    let old = boxes(&before);
    assert!(
        after
            .assignments()
            .iter()
            .all(|assignment| !old.contains_key(&assignment.id) && assignment.id != PartitionId(0))
    );
    let mut later = after.clone();
    later.split(FIRST, 0, 50).unwrap();
    assert!(later.assignments().iter().all(|assignment| boxes(&after).keys().all(|id| *id < assignment.id)));
}

#[test]
fn the_last_serving_node_cannot_be_drained() {
    let mut plan = single_partition();
    for node in (0..NODES - 1).map(NodeId) {
        plan.set_drained(node, true).unwrap();
    }
    assert_eq!(plan.set_drained(NodeId(NODES - 1), true), Err(MappingError::LastNode(NodeId(NODES - 1))));
    assert_eq!(plan.serving().collect::<Vec<_>>(), [NodeId(NODES - 1)]);
    assert_eq!(
        plan.set_drained(NodeId(NODES), false),
        Err(MappingError::Node { node: NodeId(NODES), nodes: NODES })
    );
    plan.extend(NODES + 1).unwrap();
    assert_eq!(plan.serving().collect::<Vec<_>>(), [NODES - 1, NODES].map(NodeId));
    assert_eq!(plan.extend(NODES_MAX + 1), Err(MappingError::Nodes(NODES_MAX + 1)));
}
