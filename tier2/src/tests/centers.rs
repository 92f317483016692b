//! Which entry becomes the center of one that never searched.

use std::sync::Arc;

use doppel_model::pairwise::Policy;

use super::model::{World, page, signature_of};

/// A search that finds two partners compares them with each other before one becomes the other's center: otherwise a
/// later search that meets the one would pass over the other, though nobody reports the two as a pair.
#[test]
fn partners_that_are_not_linked_do_not_cover_each_other() {
    let policy = Policy::default();
    let mut tried = 0;
    for salt in 0..60 {
        let words = |words: std::ops::Range<u32>| {
            signature_of(&words.map(|word| salt * 10_000 + word).collect::<Vec<_>>())
        };
        let (left, middle, right, again) = (words(0..900), words(50..950), words(100..1_000), words(49..950));
        let links = |content| policy.linked(content, &left) && policy.linked(content, &right);
        if !links(&middle) || !links(&again) {
            continue;
        }
        assert!(!policy.similar(&left, &right));
        tried += 1;
        let mut world = World::new(policy, 1, 1);
        world.put(page(0), Arc::clone(&left), false);
        world.put(page(1), Arc::clone(&right), false);
        world.pass();
        let mut partners = |number: usize, content| {
            world.put(page(number), content, true);
            let mut partners: Vec<_> = world.pass()[0].pairs.iter().map(|pair| pair.page).collect();
            world.remove(page(number));
            world.pass();
            partners.sort_unstable();
            partners
        };
        let both = {
            let mut both = [page(0), page(1)];
            both.sort_unstable();
            both
        };
        assert_eq!(partners(2, middle), both, "salt {salt}");
        assert_eq!(partners(3, again), both, "salt {salt}");
    }
    assert!(tried > 20, "only {tried} texts are linked as they should be");
}
