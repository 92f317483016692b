//! Random histories of made-up families of texts.

use proptest::collection::vec;
use proptest::prelude::*;

use doppel_common::pairwise::Policy;

use super::model::{Components, World, page, signature_of, text};

/// One step of a history.
#[derive(Debug, Clone, Copy)]
enum Step {
    Put {
        page: usize,
        family: u32,
        member: u32,
        look: bool,
    },
    Remove {
        page: usize,
    },
    Look {
        page: usize,
    },
    /// A whole family at once, of as many pages.
    Flood {
        page: usize,
        family: u32,
        members: u32,
    },
    Pass,
    Reopen,
}

fn step(removals: bool) -> impl Strategy<Value = Step> {
    let removes = u32::from(removals);
    prop_oneof![
        10 => (0usize..400, 0u32..24, 0u32..60, any::<bool>())
            .prop_map(|(page, family, member, look)| Step::Put { page, family, member, look }),
        3 * removes => (0usize..400).prop_map(|page| Step::Remove { page }),
        4 => (0usize..400).prop_map(|page| Step::Look { page }),
        1 => (0usize..400, 0u32..24, 20u32..120)
            .prop_map(|(page, family, members)| Step::Flood { page, family, members }),
        2 => Just(Step::Pass),
        removes => Just(Step::Reopen),
    ]
}

fn policies() -> impl Strategy<Value = Policy> {
    prop::sample::select(vec!["0.5", "0.8", "0.9"]).prop_map(|tau| Policy { tau: tau.parse().unwrap() })
}

fn run(policy: Policy, partitions: u32, threads: usize, removals: bool, steps: &[Step]) {
    let mut world = World::new(policy, partitions, threads);
    let mut answered = Components::default();
    let free = |world: &World, number| removals || !world.pages.lock().unwrap().contains_key(&page(number));
    for step in steps {
        match *step {
            Step::Put { page: number, family, member, look } if free(&world, number) => {
                world.put(page(number), signature_of(&text(family, member)), look);
            }
            Step::Flood { page: first, family, members } => {
                for member in 0..members {
                    let number = first + member as usize;
                    if free(&world, number) {
                        world.put(page(number), signature_of(&text(family, member)), true);
                    }
                }
            }
            Step::Put { .. } => (),
            Step::Remove { page: number } => world.remove(page(number)),
            Step::Look { page: number } => world.look(page(number)),
            Step::Pass => answered.take(&world.pass()),
            Step::Reopen => {
                world.pass();
                world = world.reopen();
            }
        }
    }
    answered.take(&world.pass());
    if removals {
        // A new process in which everything is looked at: nothing that was said before counts.
        world = world.reopen();
        answered = Components::default();
    }
    world.look_at_all();
    answered.take(&world.pass());
    let signatures: Vec<_> = world.pages.lock().unwrap().values().cloned().collect();
    assert_eq!(answered.roots(), Components::of(policy, &signatures).roots());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn answers_close_to_the_components(
        policy in policies(),
        partitions in 1u32..=64,
        threads in 1usize..=3,
        steps in vec(step(false), 1..120),
    ) {
        run(policy, partitions, threads, false, &steps);
    }

    #[test]
    fn every_answer_is_whole_under_removals(
        policy in policies(),
        partitions in 1u32..=64,
        threads in 1usize..=3,
        steps in vec(step(true), 1..120),
    ) {
        run(policy, partitions, threads, true, &steps);
    }
}
