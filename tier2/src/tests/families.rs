//! Tests of pages of one template: their crowded buckets are refined, and no partner is missed.

use std::sync::Arc;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::{Random, stable_hash64};
use proptest::prelude::*;

use super::model::{World, page, signature_under};
use crate::CrowdingLimits;
use crate::node::search::{SearchScratch, Subject};
use crate::node::signatures::fetch::FetchedSignatures;
use crate::node::signatures::signature_cache::{SharedSignatures, SignatureCache};

/// A page of a template of 60 words with up to `own_max` words of its own.
fn member(policy: Policy, number: u64, own_max: u64) -> Arc<Signature> {
    let hash = |i: u64| stable_hash64(&(number << 8 | i).to_le_bytes());
    let mut words: Vec<u32> = (0..60).collect();
    for own in 0..hash(0) % (own_max + 1) {
        words[(hash(2 * own + 1) % 60) as usize] = 1_000 + (hash(2 * own + 2) % 1_000_000) as u32;
    }
    signature_under(policy, &words)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_partner_of_a_page_of_a_template_is_missed(
        seed: u64,
        policy in prop::sample::select(vec!["jaccard:tau=0.8", "jaccard:tau=0.6", "content", "simhash:differing=6"]),
        own_max in 1_u64..8,
        partitions in 1_u32..4,
        reopens: bool,
    ) {
        let policy: Policy = policy.parse().unwrap();
        let mut world = World::new(policy, partitions, 1);
        let mut random = Random::new(seed);
        for round in 0..6 {
            for _ in 0..60 {
                let (at, number) = (random.index(250), random.index(400) as u64);
                match random.index(8) {
                    0 => world.remove(page(at)),
                    1 => world.search(page(at)),
                    _ => world.put(page(at), member(policy, number, own_max), true),
                }
            }
            world.pass();
            if round == 3 && reopens {
                world.save();
                world = world.reopen();
            } else if round == 4 {
                world.parts.nodes.iter().for_each(|node| node.renew().unwrap());
            }
        }
        world.search_all();
        world.pass();
    }
}

/// Cost of a search for a page that the index does not store.
fn cost(world: &World, signature: &Signature) -> u64 {
    let core = world.parts.nodes[0].read();
    let (cache, fetched) = (SignatureCache::disabled(), FetchedSignatures::default());
    let shared = SharedSignatures { fetched: &fetched, cache: &cache };
    let lengths = core.tables.lexicon().lengths(signature);
    let subject = Subject { signature, lengths, own: None, interrupted: None, limit: None };
    core.search(subject, shared, &mut SearchScratch::default()).unwrap().0.cost
}

#[test]
fn a_search_in_a_family_visits_few_candidates() {
    let page_of = |number: u32| {
        let mut words: Vec<u32> = (0..100).collect();
        let mut random = Random::new(number.into());
        (0..3).for_each(|own| words[random.index(100)] = 1_000 + 3 * number + own);
        signature_under(Policy::default(), &words)
    };
    let cost_with = |crowding: CrowdingLimits| {
        let mut world = World::with_crowding(Policy::default(), crowding);
        world.unchecked = true;
        *world.source.log.lock().unwrap() = Some(Vec::new());
        for batch in 0..20 {
            (batch * 100..(batch + 1) * 100)
                .for_each(|number| world.put(page(number), page_of(number as u32), true));
            world.pass();
        }
        let cost = |world: &World| (2_000..2_020).map(|number| cost(world, &page_of(number))).sum::<u64>();
        let before = cost(&world);
        world.parts.nodes[0].renew().unwrap();
        assert!(cost(&world) < before + before / 4, "the rebuilt tables are not refined");
        world.save();
        world = world.reopen();
        assert!(cost(&world) < before + before / 4, "the restored tables are not refined");
        before
    };
    let refined = cost_with(CrowdingLimits { vain_free: 0, vain_per_member: 1, learn_min: 1 });
    let unrefined = cost_with(CrowdingLimits { vain_free: u64::MAX, ..CrowdingLimits::DEFAULT });
    assert!(5 * refined < unrefined, "the costs are {refined} and {unrefined}");
}
