//! Beats with a clock of the test.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);
const RANGE: RangeId = RangeId(3);

fn claim(epoch: u32, owns: bool) -> Claim {
    Claim {
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

fn beat(node: &str, ranges: Vec<Claim>) -> Beat {
    Beat { node: node.to_owned(), incarnation: 1, ranges }
}

fn owner(epoch: u32, node: &str) -> Option<(Epoch, String)> {
    Some((Epoch(epoch.into()), node.to_owned()))
}

#[test]
fn the_greatest_epoch_owns_and_none_before_it_comes_back() {
    let (heard, now) = (Membership::new(), Instant::now());
    assert_eq!((heard.owner(RANGE), heard.owner_silence(RANGE, now)), (None, None));
    heard.take(beat("a", vec![claim(1, false)]), now);
    assert_eq!((heard.owner(RANGE), heard.owner_silence(RANGE, now)), (None, None));
    heard.take(beat("a", vec![claim(4, true)]), now);
    assert_eq!(heard.owner(RANGE), owner(4, "a"));
    assert_eq!(heard.owner(RangeId(4)), None);
    // A replica that knows of a later epoch does not own it.
    heard.take(beat("c", vec![claim(9, false)]), now);
    assert_eq!(heard.owner(RANGE), owner(4, "a"));
    heard.take(beat("b", vec![claim(5, true)]), now + SECOND);
    assert_eq!(heard.owner(RANGE), owner(5, "b"));
    // The deposed one has not noticed.
    heard.take(beat("a", vec![claim(4, true)]), now + 2 * SECOND);
    assert_eq!(heard.owner(RANGE), owner(5, "b"));
    assert_eq!(heard.owner_silence(RANGE, now + 3 * SECOND), Some(2 * SECOND));
    // It gives the range up, and nobody has it: the silence is still that of its last claim.
    heard.take(beat("b", vec![claim(5, false)]), now + 3 * SECOND);
    assert_eq!((heard.owner(RANGE), heard.owner_silence(RANGE, now + 4 * SECOND)), (None, Some(3 * SECOND)));
    heard.take(beat("a", vec![claim(4, true)]), now + 4 * SECOND);
    assert_eq!(heard.owner(RANGE), None);
    heard.take(beat("a", vec![claim(6, true)]), now + 4 * SECOND);
    assert_eq!(heard.owner(RANGE), owner(6, "a"));
    assert_eq!(heard.owner_silence(RANGE, now + 4 * SECOND), Some(Duration::ZERO));
}

#[test]
fn of_two_under_one_epoch_the_later_heard_is_the_owner() {
    let (heard, now) = (Membership::new(), Instant::now());
    for node in ["b", "a", "b"] {
        heard.take(beat(node, vec![claim(4, true)]), now);
        assert_eq!(heard.owner(RANGE), owner(4, node));
    }
}

#[test]
fn a_node_that_was_started_anew_has_claimed_nothing() {
    let (heard, now) = (Membership::new(), Instant::now());
    let other = Claim { range: RangeId(8), ..claim(2, true) };
    heard.take(beat("a", vec![claim(4, true), other]), now);
    heard.take(Beat { incarnation: 2, ..beat("a", vec![claim(4, false)]) }, now + SECOND);
    assert_eq!((heard.owner(RANGE), heard.owner(RangeId(8))), (None, None));
    assert!(heard.replicas(RangeId(8), now).is_empty());
    let nodes = heard.nodes(now + 3 * SECOND);
    assert_eq!(nodes, [HeardNode { node: "a".to_owned(), incarnation: 2, silence: 2 * SECOND }]);
}

#[test]
fn replicas_are_told_with_their_age() {
    let (heard, now) = (Membership::new(), Instant::now());
    let trouble = Some("as it should".to_owned());
    heard.take(beat("b", vec![Claim { index: 5, trouble: trouble.clone(), ..claim(4, false) }]), now);
    heard.take(beat("a", vec![claim(4, true)]), now + SECOND);
    heard.take(beat("c", Vec::new()), now);
    let replica = |node: &str, owns, index, trouble, age| Replica {
        node: node.to_owned(),
        epoch: Epoch(4),
        owns,
        index,
        known: true,
        sequence: 9,
        needs: 9,
        trouble,
        age,
    };
    let expected = [replica("a", true, 7, None, SECOND), replica("b", false, 5, trouble, 2 * SECOND)];
    assert_eq!(heard.replicas(RANGE, now + 2 * SECOND), expected);
    assert_eq!(heard.silence("c", now + SECOND), Some(SECOND));
    assert_eq!(heard.silence("d", now), None);
    // The clock of whoever asks may be behind.
    assert_eq!(heard.silence("a", now), Some(Duration::ZERO));
}

#[test]
fn what_is_too_much_is_ignored() {
    let (heard, now) = (Membership::new(), Instant::now());
    let range = |range| Claim { range: RangeId(range), ..claim(1, true) };
    heard.take(beat("0", (0..=CLAIMS_MAX as u16).map(range).collect()), now);
    assert!(heard.owner(RangeId(CLAIMS_MAX as u16 - 1)).is_some());
    assert_eq!(heard.owner(RangeId(CLAIMS_MAX as u16)), None);
    heard.take(beat(&"n".repeat(TEXT_BYTES_MAX + 1), Vec::new()), now);
    assert_eq!(heard.nodes(now).len(), 1);
    for node in 0..300 {
        heard.take(beat(&node.to_string(), vec![claim(9, node > 290)]), now);
    }
    assert_eq!((heard.nodes(now).len(), heard.owner(RANGE)), (NODES_MAX, None));
    // Those that are known are listened to.
    let trouble = Some(format!("a{}", "\u{e9}".repeat(TEXT_BYTES_MAX)));
    heard.take(beat("200", vec![Claim { trouble, ..claim(9, true) }]), now);
    assert_eq!(heard.owner(RANGE), owner(9, "200"));
    let replicas = heard.replicas(RANGE, now);
    let told = replicas.iter().find_map(|replica| replica.trouble.as_ref()).unwrap();
    assert_eq!(told.len(), TEXT_BYTES_MAX - 1);
}

/// The lives of four nodes: their beats in order, each with the epoch, whether it owns the range, and whether it is started
/// anew. No two nodes have the same epoch.
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

/// The owner after all beats, when `turns` says whose is next.
fn final_owner(lives: &[Vec<Beat>], turns: &[usize]) -> Option<(Epoch, String)> {
    let (heard, now) = (Membership::new(), Instant::now());
    let mut left: Vec<_> = lives.iter().map(|life| life.iter()).collect();
    let all = turns.iter().copied().chain((0..lives.len()).flat_map(|node| vec![node; lives[node].len()]));
    for node in all {
        if let Some(beat) = left[node].next() {
            heard.take(beat.clone(), now);
        }
    }
    heard.owner(RANGE)
}

proptest! {
    #[test]
    fn the_order_among_nodes_does_not_matter(
        lives in lives(),
        turns in proptest::collection::vec(0..4_usize, 0..24),
        others in proptest::collection::vec(0..4_usize, 0..24),
    ) {
        prop_assert_eq!(final_owner(&lives, &turns), final_owner(&lives, &others));
    }
}

#[test]
fn questions_go_to_a_present_owner_and_else_to_replicas_that_know_of_the_last_one() {
    let (heard, now) = (Membership::new(), Instant::now());
    let at = |tenths: u32| now + SECOND / 10 * tenths;
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let troubled = Claim { trouble: Some("its log does not answer".to_owned()), index: 9, ..claim(4, false) };
    heard.take(beat("a", vec![claim(4, true)]), now);
    heard.take(beat("b", vec![troubled.clone()]), now);
    heard.take(beat("c", vec![claim(4, false)]), now);
    heard.take(beat("d", vec![claim(3, false)]), now);
    heard.take(beat("e", vec![]), now);
    assert_eq!((heard.epoch(RANGE), heard.epoch(RangeId(4))), (Some(Epoch(4)), None));
    assert_eq!(heard.present_owner(RANGE, None), Some("a".to_owned()));
    assert_eq!(heard.answering(RANGE, None), names(&["c", "b", "a"]));
    // Nobody is heard for a while, and then all but two.
    heard.take(beat("b", vec![troubled]), at(16));
    heard.take(beat("d", vec![claim(3, false)]), at(16));
    assert_eq!((heard.present_owner(RANGE, None), heard.answering(RANGE, None)), (None, names(&["b"])));
    heard.take(beat("a", vec![claim(4, true)]), at(17));
    assert_eq!(heard.present_owner(RANGE, None), Some("a".to_owned()));
    assert_eq!(heard.answering(RANGE, None), names(&["b", "a"]));
    // What a node says of itself tells it nothing of the others.
    heard.take(beat("c", vec![claim(4, false)]), at(40));
    assert_eq!((heard.present_owner(RANGE, None), heard.answering(RANGE, None)), (None, names(&["c"])));
    assert_eq!(heard.present_owner(RANGE, Some("c")), Some("a".to_owned()));
    assert_eq!(heard.answering(RANGE, Some("c")), names(&["c", "b", "a"]));
    assert_eq!(heard.answering(RangeId(4), None), names(&[]));
}
