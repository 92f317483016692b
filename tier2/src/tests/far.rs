//! Tests the edge of the rule by which a search skips far entries.

use std::sync::Arc;

use doppel_model::pairwise::{Policy, Similarity};
use doppel_model::signature::Signature;

use super::model::{World, page, signature_of};

/// The distance of two contents in 255ths, rounded down and rounded up.
fn distance(a: &Signature, b: &Signature) -> (u32, u32) {
    let Similarity { shared, of } = Policy::default().compare(a, b).similarity;
    let apart = 255 * (of - shared);
    (apart / of, apart.div_ceil(of))
}

/// The center is not similar to the searched content. By 1/255 only, the metric does not exclude the content
/// around the center.
#[test]
fn a_partner_just_short_of_far_is_found() {
    let policy = Policy::default();
    let mut edges = 0;
    for salt in 0..40 {
        let words = |words: std::ops::Range<u32>| {
            signature_of(&words.map(|word| salt * 10_000 + word).collect::<Vec<_>>())
        };
        // The front is linked to the whole by a margin of one shingle. The center lacks words that the front
        // has.
        let (whole, front, center) = (words(0..1_000), words(0..808), words(3..1_000));
        if !policy.linked(&whole, &front) || !policy.linked(&whole, &center) {
            continue;
        }
        assert!(!policy.similar(&front, &center));
        assert_eq!(
            distance(&front, &center).0 - distance(&whole, &center).1,
            50,
            "the distances differ by 50; from 51 on the entry is far"
        );
        let mut world = World::new(policy, 1, 1);
        for (number, signature) in [center, whole].into_iter().enumerate() {
            world.put(page(number), signature, true);
            world.pass();
        }
        let comparisons = |world: &World| {
            let core = world.parts.nodes[0].read();
            core.tables.serving().map(|partition| partition.comparisons).sum::<u64>()
        };
        let before = comparisons(&world);
        world.put(page(2), Arc::clone(&front), true);
        let answers = world.pass();
        let partners: Vec<_> = answers[0].pairs.iter().map(|pair| pair.page).collect();
        assert_eq!(partners, [page(1)], "salt {salt}");
        // Without a common band, the front is not compared with the center.
        edges += u64::from(comparisons(&world) - before == 2);
    }
    assert!(edges > 25, "only {edges} searches were compared with the center");
}
