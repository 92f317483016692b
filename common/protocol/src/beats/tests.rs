//! Tests of the membership with a clock that the test sets.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const RANGE: RangeId = RangeId(3);

fn claim(epoch: u32, owns: bool) -> RangeClaim {
    RangeClaim {
        range: RANGE,
        epoch: Epoch(epoch.into()),
        owns,
        index: 7,
        known: true,
        sequence: 9,
        needs: 9,
        trouble: None,
    }
}

fn beat(node: &str, ranges: Vec<RangeClaim>) -> Beat {
    Beat { node: node.to_owned(), incarnation: 1, ranges }
}

fn owner(epoch: u32, node: &str) -> Option<(Epoch, String)> {
    Some((Epoch(epoch.into()), node.to_owned()))
}

#[test]
fn the_greatest_epoch_owns_and_an_earlier_one_never_returns() {
    let (membership, now) = (ClusterMembership::new(), Instant::now());
    assert_eq!((membership.owner(RANGE), membership.owner_silence(RANGE, now)), (None, None));
    membership.take(beat("a", vec![claim(1, false)]), now);
    assert_eq!((membership.owner(RANGE), membership.owner_silence(RANGE, now)), (None, None));
    membership.take(beat("a", vec![claim(4, true)]), now);
    assert_eq!(membership.owner(RANGE), owner(4, "a"));
    assert_eq!(membership.owner(RangeId(4)), None);
    // A replica that knows of a later epoch does not own it.
    membership.take(beat("c", vec![claim(9, false)]), now);
    assert_eq!(membership.owner(RANGE), owner(4, "a"));
    membership.take(beat("b", vec![claim(5, true)]), now + SECOND);
    assert_eq!(membership.owner(RANGE), owner(5, "b"));
    // The deposed owner has not noticed yet.
    membership.take(beat("a", vec![claim(4, true)]), now + 2 * SECOND);
    assert_eq!(membership.owner(RANGE), owner(5, "b"));
    assert_eq!(membership.owner_silence(RANGE, now + 3 * SECOND), Some(2 * SECOND));
    // The owner gives up the range, and no node owns it. The silence still counts from the last claim.
    membership.take(beat("b", vec![claim(5, false)]), now + 3 * SECOND);
    assert_eq!(
        (membership.owner(RANGE), membership.owner_silence(RANGE, now + 4 * SECOND)),
        (None, Some(3 * SECOND))
    );
    membership.take(beat("a", vec![claim(4, true)]), now + 4 * SECOND);
    assert_eq!(membership.owner(RANGE), None);
    membership.take(beat("a", vec![claim(6, true)]), now + 4 * SECOND);
    assert_eq!(membership.owner(RANGE), owner(6, "a"));
    assert_eq!(membership.owner_silence(RANGE, now + 4 * SECOND), Some(Duration::ZERO));
}

#[test]
fn of_two_claims_under_one_epoch_the_later_beat_wins() {
    let (membership, now) = (ClusterMembership::new(), Instant::now());
    for node in ["b", "a", "b"] {
        membership.take(beat(node, vec![claim(4, true)]), now);
        assert_eq!(membership.owner(RANGE), owner(4, node));
    }
}

#[test]
fn a_restarted_node_loses_its_earlier_claims() {
    let (membership, now) = (ClusterMembership::new(), Instant::now());
    let other = RangeClaim { range: RangeId(8), ..claim(2, true) };
    membership.take(beat("a", vec![claim(4, true), other]), now);
    membership.take(Beat { incarnation: 2, ..beat("a", vec![claim(4, false)]) }, now + SECOND);
    assert_eq!((membership.owner(RANGE), membership.owner(RangeId(8))), (None, None));
    assert!(membership.replicas(RangeId(8), now).is_empty());
    let nodes = membership.nodes(now + 3 * SECOND);
    assert_eq!(nodes, [HeardNode { node: "a".to_owned(), incarnation: 2, silence: 2 * SECOND }]);
}

#[test]
fn replicas_are_reported_with_their_age() {
    let (membership, now) = (ClusterMembership::new(), Instant::now());
    let trouble = Some("simulated trouble".to_owned());
    membership
        .take(beat("b", vec![RangeClaim { index: 5, trouble: trouble.clone(), ..claim(4, false) }]), now);
    membership.take(beat("a", vec![claim(4, true)]), now + SECOND);
    membership.take(beat("c", Vec::new()), now);
    let replica = |node: &str, owns, index, trouble, age| ReportedReplica {
        node: node.to_owned(),
        claim: RangeClaim {
            range: RANGE,
            epoch: Epoch(4),
            owns,
            index,
            known: true,
            sequence: 9,
            needs: 9,
            trouble,
        },
        age,
    };
    let expected = [replica("a", true, 7, None, SECOND), replica("b", false, 5, trouble, 2 * SECOND)];
    assert_eq!(membership.replicas(RANGE, now + 2 * SECOND), expected);
    assert_eq!(membership.silence("c", now + SECOND), Some(SECOND));
    assert_eq!(membership.silence("d", now), None);
    // The caller's clock may be behind.
    assert_eq!(membership.silence("a", now), Some(Duration::ZERO));
}

#[test]
fn beats_and_claims_beyond_the_limits_are_ignored() {
    let (membership, now) = (ClusterMembership::new(), Instant::now());
    let range = |range| RangeClaim { range: RangeId(range), ..claim(1, true) };
    membership.take(beat("0", (0..=CLAIMS_MAX as u16).map(range).collect()), now);
    assert!(membership.owner(RangeId(CLAIMS_MAX as u16 - 1)).is_some());
    assert_eq!(membership.owner(RangeId(CLAIMS_MAX as u16)), None);
    membership.take(beat(&"n".repeat(TEXT_BYTES_MAX + 1), Vec::new()), now);
    assert_eq!(membership.nodes(now).len(), 1);
    for node in 0..300 {
        membership.take(beat(&node.to_string(), vec![claim(9, node > 290)]), now);
    }
    assert_eq!((membership.nodes(now).len(), membership.owner(RANGE)), (NODES_MAX, None));
    // Beats of known nodes still count.
    let trouble = Some(format!("a{}", "\u{e9}".repeat(TEXT_BYTES_MAX)));
    membership.take(beat("200", vec![RangeClaim { trouble, ..claim(9, true) }]), now);
    assert_eq!(membership.owner(RANGE), owner(9, "200"));
    let replicas = membership.replicas(RANGE, now);
    let trouble = replicas.iter().find_map(|replica| replica.claim.trouble.as_ref()).unwrap();
    assert_eq!(trouble.len(), TEXT_BYTES_MAX - 1);
}

/// The lives of four nodes: their beats in order. Each beat has an epoch, whether the node owns the range,
/// and whether the node was restarted. No two nodes have the same epoch.
fn lives() -> impl Strategy<Value = Vec<Vec<Beat>>> {
    let one = (0..6_u32, any::<bool>(), any::<bool>());
    proptest::collection::vec(proptest::collection::vec(one, 0..6), 4).prop_map(|lives| {
        let life = |(node, life): (usize, Vec<(u32, bool, bool)>)| {
            let mut incarnation = 0;
            let beat = |(epoch, owns, anew)| {
                incarnation += u64::from(anew);
                let epoch = 4 * epoch + node as u32;
                Beat { incarnation, ..beat(&node.to_string(), vec![claim(epoch, owns)]) }
            };
            life.into_iter().map(beat).collect()
        };
        lives.into_iter().enumerate().map(life).collect()
    })
}

/// Returns the owner after all beats; `turns` says which node sends the next beat.
fn final_owner(lives: &[Vec<Beat>], turns: &[usize]) -> Option<(Epoch, String)> {
    let (membership, now) = (ClusterMembership::new(), Instant::now());
    let mut remaining: Vec<_> = lives.iter().map(|life| life.iter()).collect();
    let all = turns.iter().copied().chain((0..lives.len()).flat_map(|node| vec![node; lives[node].len()]));
    for node in all {
        if let Some(beat) = remaining[node].next() {
            membership.take(beat.clone(), now);
        }
    }
    membership.owner(RANGE)
}

proptest! {
    #[test]
    fn the_order_of_beats_among_nodes_does_not_matter(
        lives in lives(),
        turns in proptest::collection::vec(0..4_usize, 0..24),
        others in proptest::collection::vec(0..4_usize, 0..24),
    ) {
        prop_assert_eq!(final_owner(&lives, &turns), final_owner(&lives, &others));
    }
}

#[test]
fn questions_go_to_a_present_owner_or_to_replicas_of_its_epoch() {
    let (membership, now) = (ClusterMembership::new(), Instant::now());
    let at = |tenths: u32| now + SECOND / 10 * tenths;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let troubled =
        RangeClaim { trouble: Some("its log does not answer".to_owned()), index: 9, ..claim(4, false) };
    membership.take(beat("a", vec![claim(4, true)]), now);
    membership.take(beat("b", vec![troubled.clone()]), now);
    membership.take(beat("c", vec![claim(4, false)]), now);
    membership.take(beat("d", vec![claim(3, false)]), now);
    membership.take(beat("e", vec![]), now);
    assert_eq!((membership.epoch(RANGE), membership.epoch(RangeId(4))), (Some(Epoch(4)), None));
    assert_eq!(membership.present_owner(RANGE, None), Some("a".to_owned()));
    assert_eq!(membership.answering(RANGE, None), names(&["c", "b", "a"]));
    // For a while no beat arrives, and then only two nodes send one.
    membership.take(beat("b", vec![troubled]), at(16));
    membership.take(beat("d", vec![claim(3, false)]), at(16));
    assert_eq!(
        (membership.present_owner(RANGE, None), membership.answering(RANGE, None)),
        (None, names(&["b"]))
    );
    membership.take(beat("a", vec![claim(4, true)]), at(17));
    assert_eq!(membership.present_owner(RANGE, None), Some("a".to_owned()));
    assert_eq!(membership.answering(RANGE, None), names(&["b", "a"]));
    // A node learns nothing about other nodes from its own beats.
    membership.take(beat("c", vec![claim(4, false)]), at(40));
    assert_eq!(
        (membership.present_owner(RANGE, None), membership.answering(RANGE, None)),
        (None, names(&["c"]))
    );
    assert_eq!(membership.present_owner(RANGE, Some("c")), Some("a".to_owned()));
    assert_eq!(membership.answering(RANGE, Some("c")), names(&["c", "b", "a"]));
    assert_eq!(membership.answering(RangeId(4), None), names(&[]));
}
