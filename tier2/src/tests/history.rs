//! Tests of random histories of generated families of texts.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;

use doppel_model::pairwise::Policy;
use doppel_protocol::index_node::SearchLimits;

use super::model::{Components, World, page, signature_of, signature_under, text};

/// One step of a history.
#[derive(Debug, Clone, Copy)]
enum Step {
    Put {
        page: usize,
        family: u32,
        member: u32,
        search: bool,
    },
    Remove {
        page: usize,
    },
    Search {
        page: usize,
    },
    /// Stores a whole family at once, on consecutive pages.
    Flood {
        page: usize,
        family: u32,
        members: u32,
    },
    Pass,
    /// Another plan begins, if none is under way.
    Change {
        dice: u64,
    },
    /// Makes steps of a plan change.
    Work {
        steps: usize,
    },
    Reopen,
}

fn step(removals: bool) -> impl Strategy<Value = Step> {
    let removes = u32::from(removals);
    prop_oneof![
        10 => (0usize..400, 0u32..24, 0u32..60, any::<bool>())
            .prop_map(|(page, family, member, search)| Step::Put { page, family, member, search }),
        3 * removes => (0usize..400).prop_map(|page| Step::Remove { page }),
        4 => (0usize..400).prop_map(|page| Step::Search { page }),
        1 => (0usize..400, 0u32..24, 20u32..120)
            .prop_map(|(page, family, members)| Step::Flood { page, family, members }),
        2 => Just(Step::Pass),
        1 => any::<u64>().prop_map(|dice| Step::Change { dice }),
        2 => (1usize..4).prop_map(|steps| Step::Work { steps }),
        removes => Just(Step::Reopen),
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    // The other policies are as lenient as possible, otherwise these families would contain no pair.
    let all = [
        "jaccard:tau=0.5",
        "jaccard:tau=0.8",
        "jaccard:tau=0.9",
        "supershingle:equal=1",
        "projection:agreeing=361",
        "combined:equal=1,agreeing=300",
        "by-site:across=361,equal=1,agreeing=300",
        "simhash:differing=6",
        "imatch:idf-from=0,idf-to=100",
        "multi-simhash:below=7",
        "content",
        "copies:text=0.8,within=0.9,across=0.75",
        "overlap:lines=2,shared=20",
    ];
    prop::sample::select(all.to_vec()).prop_map(|policy| policy.parse().unwrap())
}

/// Limits of searches: a few steps, a few comparisons, or none.
fn limits() -> impl Strategy<Value = SearchLimits> {
    let some = [(5, 200), (100, 20), (200, 2_000), (u64::MAX, u64::MAX)];
    prop::sample::select(some.to_vec()).prop_map(|(search, call)| SearchLimits { search, call })
}

fn run(
    policy: Policy,
    (nodes, partitions): (u32, u32),
    (threads, limits): (usize, SearchLimits),
    removals: bool,
    steps: &[Step],
) {
    let mut world = World::on_nodes_with(policy, nodes, partitions, threads, limits);
    let mut answered = Components::default();
    let free = |world: &World, number| removals || !world.pages.lock().unwrap().contains_key(&page(number));
    for step in steps {
        match *step {
            Step::Put { page: number, family, member, search } if free(&world, number) => {
                world.put(page(number), signature_under(policy, &text(family, member)), search);
            }
            Step::Flood { page: first, family, members } => {
                for member in 0..members {
                    let number = first + member as usize;
                    if free(&world, number) {
                        world.put(page(number), signature_under(policy, &text(family, member)), true);
                    }
                }
            }
            Step::Put { .. } => (),
            Step::Remove { page: number } => world.remove(page(number)),
            Step::Search { page: number } => world.search(page(number)),
            Step::Change { dice } => world.change_plan(dice),
            Step::Work { steps } => world.work(steps),
            Step::Pass => answered.take(&world.pass()),
            Step::Reopen => {
                world.pass();
                world = world.reopen();
            }
        }
    }
    answered.take(&world.pass());
    if removals {
        // In a new process, everything is searched for again. Earlier answers do not count.
        world = world.reopen();
        answered = Components::default();
    }
    world.search_all();
    answered.take(&world.pass());
    let signatures: Vec<_> = world.pages.lock().unwrap().values().cloned().collect();
    assert_eq!(answered.roots(), Components::of(policy, &signatures).roots());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn answers_produce_the_components_of_the_definition(
        policy in policies(),
        nodes in 1u32..=4,
        partitions in 1u32..=64,
        threads in 1usize..=3,
        limits in limits(),
        steps in vec(step(false), 1..120),
    ) {
        run(policy, (nodes, partitions), (threads, limits), false, &steps);
    }

    #[test]
    fn every_answer_is_complete_under_removals(
        policy in policies(),
        nodes in 1u32..=4,
        partitions in 1u32..=64,
        threads in 1usize..=3,
        limits in limits(),
        steps in vec(step(true), 1..120),
    ) {
        run(policy, (nodes, partitions), (threads, limits), true, &steps);
    }
}

#[test]
fn the_first_copy_that_searches_is_compared_for_all() {
    let mut world = World::new(Policy::default(), 1, 1);
    let words: Vec<u32> = (0..101).collect();
    let (long, short) = (signature_of(&words), signature_of(&words[..100]));
    world.put(page(0), long, true);
    world.put(page(1), Arc::clone(&short), false);
    world.pass();
    let partners = |world: &mut World| -> Vec<_> { world.pass()[0].pairs.iter().map(|p| p.page).collect() };
    // Page 1 never searched, so page 2 searches and reports that they are linked.
    world.put(page(2), Arc::clone(&short), true);
    assert_eq!(partners(&mut world), [page(1), page(0)]);
    world.put(page(3), short, true);
    assert_eq!(partners(&mut world), [page(2)]);
    world.search(page(1));
    assert_eq!(partners(&mut world), [page(2)]);
    // The links that page 2 reported end with it. The next search is compared, whichever page it is for.
    world.remove(page(2));
    world.search(page(3));
    assert_eq!(partners(&mut world), [page(1), page(0)]);
}

/// The cost of copies of a page does not grow with the cluster of that page.
#[test]
fn copies_of_a_center_do_not_compare_its_cluster() {
    const MEMBERS: usize = 500;
    let words: Vec<u32> = (0..400).collect();
    let center = signature_of(&words);
    let mut world = World::new(Policy::default(), 1, 1);
    world.unchecked = true;
    world.put(page(0), Arc::clone(&center), true);
    for n in 1..MEMBERS {
        let mut words = words.clone();
        words[n % 400] = 1_000 + n as u32;
        world.put(page(n), signature_of(&words), true);
    }
    world.pass();
    let comparisons = World::comparisons;
    let before = comparisons(&world);
    for n in MEMBERS..2 * MEMBERS {
        world.put(page(n), Arc::clone(&center), true);
    }
    let pairs: usize = world.pass().iter().map(|answer| answer.pairs.len()).sum();
    assert_eq!((pairs, comparisons(&world) - before), (MEMBERS, 0));
}

/// When the center of a cluster leaves, its members do not compare each other one by one.
#[test]
fn a_cluster_finds_another_center() {
    const MEMBERS: usize = 1_000;
    let words: Vec<u32> = (0..400).collect();
    let mut world = World::new(Policy::default(), 1, 1);
    world.unchecked = true;
    world.put(page(0), signature_of(&words), true);
    for n in 1..MEMBERS {
        let mut words = words.clone();
        words[n % 400] = 1_000 + n as u32;
        world.put(page(n), signature_of(&words), true);
    }
    world.pass();
    world.remove(page(0));
    world.search_all();
    let comparisons = World::comparisons;
    let before = comparisons(&world);
    let mut answered = Components::default();
    answered.take(&world.pass());
    let made = comparisons(&world) - before;
    assert!(made < 10 * MEMBERS as u64, "{made} comparisons");
    let signatures: Vec<_> = world.pages.lock().unwrap().values().cloned().collect();
    assert_eq!(answered.roots(), Components::of(world.policy(), &signatures).roots());
}

/// The cost of a search does not grow with the size of its cluster.
#[test]
fn a_search_does_not_compare_a_whole_cluster() {
    const MEMBERS: usize = 3_000;
    let base: Vec<u32> = (0..400).collect();
    // Each page differs from the base in at most two words, and from the others in at most four.
    let member = |n: usize| {
        let mut words = base.clone();
        (words[n % 400], words[n / 7 % 400]) = (1_000 + n as u32, 9_000 + n as u32 % 11);
        signature_of(&words)
    };
    let comparisons = World::comparisons;
    for threads in [1, 2] {
        let mut world = World::new(Policy::default(), 1, threads);
        world.unchecked = true;
        for n in 0..MEMBERS {
            world.put(page(n), member(n), true);
        }
        let answers = world.pass();
        let pairs: usize = answers.iter().map(|a| a.pairs.len()).sum();
        // One pair per search, or with several threads also pairs with the others of the same step.
        let few = if threads == 1 { 2 } else { 6 } * MEMBERS;
        assert!((MEMBERS - 1..=few).contains(&pairs), "{pairs} pairs");
        assert!(comparisons(&world) <= few as u64, "{} comparisons in the first pass", comparisons(&world));

        // As many pages again in several passes, then deferred searches for all pages.
        for n in MEMBERS..2 * MEMBERS {
            world.put(page(n), member(n), true);
            if n % 500 == 0 {
                world.pass();
            }
        }
        world.pass();
        assert!(
            comparisons(&world) <= 2 * few as u64,
            "{} comparisons after the second half",
            comparisons(&world)
        );
        world.search_all();
        world.pass();
        assert!(
            comparisons(&world) <= 4 * few as u64,
            "{} comparisons after the deferred searches",
            comparisons(&world)
        );

        // A new process has no centers. The first step of searches compares all entries, later steps do not.
        world = world.reopen();
        world.unchecked = true;
        for n in 0..100 {
            world.search(page(n));
        }
        world.pass();
        let slice = if threads == 1 { 1 } else { 8 };
        let most = (slice * 2 * MEMBERS + 1_000) as u64;
        assert!(comparisons(&world) <= most, "{} comparisons after reopening", comparisons(&world));
    }
}

#[test]
fn when_the_first_page_of_a_content_leaves_the_next_one_is_searched_for_again() {
    let mut world = World::new(Policy::default(), 1, 1);
    let words: Vec<u32> = (0..100).collect();
    for number in 0..3 {
        world.put(page(number), signature_of(&words), true);
    }
    world.pass();
    let repeats = |world: &World| -> Vec<_> {
        world.source.repeats.lock().unwrap().iter().map(|repeat| repeat.page).collect()
    };
    world.remove(page(1));
    world.pass();
    assert_eq!(repeats(&world), []);
    world.remove(page(0));
    world.pass();
    assert_eq!(repeats(&world), [page(2)]);
    world.remove(page(2));
    world.pass();
    assert_eq!(repeats(&world), []);
}

/// A removal makes the search void that was ordered before it, also if the page gets the same content again.
#[test]
fn a_search_before_a_removal_is_void() {
    let steps = [
        Step::Flood { page: 68, family: 3, members: 20 },
        Step::Put { page: 68, family: 3, member: 25, search: false },
    ];
    assert_eq!(text(3, 0), text(3, 25));
    let limits = SearchLimits { search: 5, call: 200 };
    run("jaccard:tau=0.5".parse().unwrap(), (1, 1), (1, limits), true, &steps);
}
