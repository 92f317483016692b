//! Tests of which entries become centers, and what they cover.

use std::sync::Arc;

use doppel_model::PageId;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;

use super::model::{World, page, signature_of};

/// A search that finds two partners compares them with each other before one becomes the center of the other.
/// Otherwise a later search that verifies the one would skip the other, although no answer has reported the
/// two as a pair.
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
    assert!(tried > 20, "only {tried} cases have the links that the test needs");
}

/// A text of 1,000 words in which the words of some blocks are replaced.
fn edited(salt: u32, blocks: &[std::ops::Range<u32>]) -> Arc<Signature> {
    let word = |word| {
        let edit = u32::from(blocks.iter().any(|block| block.contains(&word)));
        salt * 10_000 + 2 * word + edit
    };
    signature_of(&(0..1_000).map(word).collect::<Vec<_>>())
}

/// Stores the content of a page in a pass of its own, and searches for it. Returns its partners.
fn put(world: &mut World, number: usize, content: &Arc<Signature>) -> Vec<PageId> {
    world.put(page(number), Arc::clone(content), true);
    let mut partners: Vec<_> = world.pass()[0].pairs.iter().map(|pair| pair.page).collect();
    partners.sort_unstable();
    partners
}

fn pages(numbers: &[usize]) -> Vec<PageId> {
    let mut pages: Vec<_> = numbers.iter().map(|number| page(*number)).collect();
    pages.sort_unstable();
    pages
}

/// The center in between may have left its group. Tier 1 knows this before the index does.
#[test]
fn an_entry_two_steps_from_a_partner_is_compared() {
    let policy = Policy::default();
    let mut tried = 0;
    for salt in 0..30 {
        let (a, b) = (0..80, 500..580);
        let (y, c) = (edited(salt, &[]), edited(salt, std::slice::from_ref(&a)));
        let (z, x) = (edited(salt, &[a, b.clone()]), edited(salt, &[b]));
        if ![(&y, &c), (&c, &z), (&z, &x), (&x, &y)].iter().all(|(a, b)| policy.linked(a, b)) {
            continue;
        }
        assert!(!policy.similar(&x, &c) && !policy.similar(&y, &z));
        tried += 1;
        let mut world = World::new(policy, 1, 1);
        assert_eq!(put(&mut world, 0, &y), []);
        assert_eq!(put(&mut world, 1, &c), pages(&[0]));
        assert_eq!(put(&mut world, 2, &z), pages(&[1]));
        assert_eq!(put(&mut world, 3, &x), pages(&[0, 2]), "salt {salt}");
    }
    assert!(tried > 20, "only {tried} cases have the links that the test needs");
}

#[test]
fn a_second_center_covers_entries_until_it_leaves() {
    let policy = Policy::default();
    let mut tried = 0;
    for salt in 0..30 {
        let (a, b, t, x) = (0..95, 200..220, 400..490, 700..720);
        let (c, s) = (edited(salt, &[a]), edited(salt, std::slice::from_ref(&b)));
        let (around, z, x) = (edited(salt, &[b.clone(), t]), edited(salt, &[]), edited(salt, &[b, x]));
        if ![(&around, &s), (&z, &c), (&z, &s), (&x, &s), (&x, &z)].iter().all(|(a, b)| policy.linked(a, b)) {
            continue;
        }
        assert!(![(&c, &s), (&around, &z), (&x, &c)].iter().any(|(a, b)| policy.similar(a, b)));
        tried += 1;
        let mut world = World::new(policy, 1, 1);
        assert_eq!(put(&mut world, 0, &c), []);
        assert_eq!(put(&mut world, 1, &s), []);
        assert_eq!(put(&mut world, 2, &around), pages(&[1]));
        assert_eq!(put(&mut world, 3, &z), pages(&[0, 1]));
        assert_eq!(put(&mut world, 4, &x), pages(&[1]), "salt {salt}");
        world.parts.nodes[0].renew().unwrap();
        assert_eq!(
            put(&mut world, 4, &x),
            pages(&[1]),
            "rebuilding the tables lost the second center, salt {salt}"
        );
        world.remove(page(1));
        world.pass();
        assert_eq!(put(&mut world, 4, &x), pages(&[3]), "salt {salt}");
    }
    assert!(tried > 20, "only {tried} cases have the links that the test needs");
}
