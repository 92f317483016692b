use std::convert::Infallible;
use std::sync::atomic::AtomicBool;

use doppel_model::pairwise::{Features, Policy, Signer};
use doppel_model::{Random, UnionFind};

use super::*;
use crate::atomic_union_find::AtomicUnionFind;
use crate::components::DIFFERENCES_MAX;
use crate::{ContentIndex, Contents};

/// Refines a run of all contents with a budget of `visits` for each content. Returns whether that sufficed,
/// and the root of each content.
fn refine(signatures: &[Arc<Signature>], visits: u64, differences_max: u64) -> (bool, Vec<usize>) {
    let mut contents = Contents::new(Policy::default());
    signatures.iter().for_each(|signature| _ = contents.add(signature));
    let columns = contents.columns();
    let mut run: Vec<SortEntry> = (0..signatures.len() as u32)
        .map(|content| SortEntry { key: 0, size: contents.size(ContentIndex(content)), content })
        .collect();
    run.sort_unstable();
    let connected = AtomicUnionFind::new(signatures.len());
    let stop = AtomicBool::new(false);
    let read = |content: u32| Ok::<_, Infallible>(Arc::clone(&signatures[content as usize]));
    let turn = Turn {
        columns: &columns,
        turn: 0,
        connected: &connected,
        read: &read,
        stop: &stop,
        differences: Budget::new(differences_max),
    };
    let mut refinement = RunRefinement::Untried;
    let Ok(suffices) = refinement.connect(&turn, &run, visits * run.len() as u64);
    drop(refinement);
    assert_eq!(turn.differences.spent(), 0);
    (suffices, connected.into_roots().into_iter().map(|root| root as usize).collect())
}

/// Pages of one template of 100 words, each with three words of its own.
fn pages(count: usize) -> Vec<Arc<Signature>> {
    let mut random = Random::new(1);
    let mut signer = Signer::new(Policy::default());
    let template: Vec<u64> = (0..100).map(|_| random.below(1 << 40)).collect();
    let mut page = || {
        let mut tokens = template.clone();
        (0..3).for_each(|_| tokens[random.below(100) as usize] = random.below(1 << 40));
        Arc::new(signer.sign(Features { tokens: &tokens, ..Features::default() }))
    };
    (0..count).map(|_| page()).collect()
}

#[test]
fn a_family_costs_a_small_part_of_its_pairs() {
    let pages = pages(2_000);
    let mut connected = UnionFind::new(pages.len());
    for a in 0..pages.len() {
        for b in (0..a).filter(|b| Policy::default().compare(&pages[a], &pages[*b]).similar) {
            connected.union(a, b);
        }
    }
    let expected: Vec<usize> = (0..pages.len()).map(|page| connected.root(page)).collect();
    // A page has pairs with 1,000 others on average.
    assert_eq!(refine(&pages, 50, DIFFERENCES_MAX), (true, expected));
}

#[test]
fn a_refinement_ends_when_its_budget_or_memory_is_spent() {
    let pages = pages(500);
    assert!(!refine(&pages, 10, DIFFERENCES_MAX).0);
    assert!(!refine(&pages, 1_000, 100).0);
    assert!(refine(&pages, 1_000, 500 * 100).0);
}

#[test]
fn a_long_content_in_the_run_does_not_raise_the_cost() {
    let mut pages = pages(2_000);
    let mut random = Random::new(2);
    let long: Vec<u64> = (0..700).map(|_| random.below(1 << 40)).collect();
    pages.push(Arc::new(
        Signer::new(Policy::default()).sign(Features { tokens: &long, ..Features::default() }),
    ));
    assert!(refine(&pages, 50, DIFFERENCES_MAX).0);
}
