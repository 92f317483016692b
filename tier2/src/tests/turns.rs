//! Tests of searches that wait for their turn while other orders are carried out.

use std::sync::Arc;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_protocol::SearchResult;
use doppel_protocol::index_node::SearchLimits;

use super::model::{World, page, signature_of, text};

/// A world with these cost limits: for a search, and for all searches of a round together.
fn world(search: u64, call: u64) -> World {
    World::on_nodes_with(Policy::default(), 1, 1, 1, SearchLimits { search, call })
}

fn rounds(world: &mut World) -> Vec<SearchResult> {
    let mut answers = world.round();
    while world.has_searches() {
        answers.extend(world.round());
    }
    answers
}

/// Two linked contents of one family, and two of another.
fn linked() -> [[Arc<Signature>; 2]; 2] {
    let pair = |family: &u32| [0, 1].map(|member| signature_of(&text(*family, member)));
    let is_linked = |family: &u32| {
        let [a, b] = pair(family);
        a.content() != b.content() && Policy::default().similar(&a, &b) && Policy::default().linked(&a, &b)
    };
    let mut families = (0..).filter(is_linked).map(|family| pair(&family));
    [(); 2].map(|()| families.next().unwrap())
}

#[test]
fn a_search_that_is_put_off_and_given_up_does_not_hide_its_content() {
    let mut world = world(u64::MAX, 1);
    let [[a, b], [c, d]] = linked();
    // No search for the first page is ordered, as after feeding.
    world.put(page(0), Arc::clone(&a), false);
    world.put(page(1), c, true);
    rounds(&mut world);
    // The first search uses up the round. The search for the copy is planned and put off.
    world.put(page(2), d, true);
    world.put(page(3), a, true);
    let first: Vec<_> = world.round().iter().map(|answer| answer.page).collect();
    assert_eq!((first, world.has_searches()), (vec![page(2)], true));
    world.remove(page(3));
    world.put(page(4), b, true);
    let answers = rounds(&mut world);
    let answer = answers.iter().find(|answer| answer.page == page(4)).unwrap();
    assert!(answer.pairs.iter().any(|pair| pair.page == page(0)), "{answer:?} misses page 0, which stayed");
}

#[test]
fn void_searches_take_no_room_among_the_interrupted_searches() {
    let mut world = world(1, 1);
    // Near-duplicates with one word of their own, so a search visits all of them.
    let of = |family: u32, number: usize| signature_of(&text(family, 5 * number as u32 + 1));
    let all_similar = |family: &u32| {
        (0..12).all(|a| (0..a).all(|b| Policy::default().similar(&of(*family, a), &of(*family, b))))
    };
    let family = (0..).find(all_similar).unwrap();
    (0..12).for_each(|number| world.put(page(number), of(family, number), true));
    let mut interrupted = 0;
    for _ in 0..40 {
        world.round();
        interrupted = interrupted.max(world.parts.nodes[0].interrupted_searches());
    }
    assert!(interrupted > 0, "no search was interrupted");
    (0..12).for_each(|number| world.remove(page(number)));
    rounds(&mut world);
    assert_eq!(world.parts.nodes[0].interrupted_searches(), 0);
}
