//! A start from a snapshot, beside one without.

use std::fs;
use std::sync::atomic::Ordering;

use doppel_model::pairwise::Policy;
use proptest::prelude::*;

use super::model::{World, page, signature_of, text};

/// The snapshot of the only node.
const SNAPSHOT: &str = "node-0/snapshot.dat";

/// A collection whose tier 1 keeps a log.
fn filled(pages: usize, partitions: u32) -> World {
    let mut world = World::new(Policy::default(), partitions, 1);
    *world.source.log.lock().unwrap() = Some(Vec::new());
    put(&mut world, 0..pages, 0);
    world.pass();
    world
}

fn put(world: &mut World, pages: std::ops::Range<usize>, shift: u32) {
    for number in pages {
        let (family, member) = (number as u32 / 6, number as u32 % 6 + shift);
        world.put(page(number), signature_of(&text(family, member)), true);
    }
}

/// How often a start has gone through all contents.
fn gone_through(world: &World) -> usize {
    world.source.gone_through.load(Ordering::Relaxed)
}

/// Searches for everything, checks the answers, and goes on.
fn check(mut world: World) {
    world.search_all();
    world.pass();
    put(&mut world, 0..40, 3);
    world.pass();
    world.search_all();
    world.pass();
}

#[test]
fn a_start_takes_the_snapshot_up_and_goes_through_nothing() {
    for partitions in [1, 8] {
        let world = filled(600, partitions);
        world.save();
        let bytes = world.file_bytes();
        let world = world.reopen();
        assert_eq!((gone_through(&world), world.file_bytes()), (0, bytes));
        check(world);
    }
}

#[test]
fn what_has_changed_since_is_told_and_nothing_else() {
    let mut world = filled(600, 4);
    world.save();
    put(&mut world, 100..160, 1);
    put(&mut world, 600..620, 0);
    for number in 200..240 {
        world.remove(page(number));
    }
    world.pass();
    // These never reach the index.
    put(&mut world, 0..20, 2);
    world.remove(page(30));
    let world = world.reopen_as_it_is();
    assert_eq!(gone_through(&world), 0);
    check(world);
}

#[test]
fn without_the_log_all_contents_are_compared() {
    let mut world = filled(300, 4);
    world.save();
    put(&mut world, 100..160, 1);
    world.remove(page(200));
    world.pass();
    *world.source.log.lock().unwrap() = None;
    let world = world.reopen_as_it_is();
    assert!(gone_through(&world) > 0);
    check(world);
}

#[test]
fn a_snapshot_of_other_partitions_is_not_used() {
    let mut world = filled(300, 4);
    world.save();
    world.config.dimensions = 2;
    let world = world.reopen();
    assert!(gone_through(&world) > 0);
    check(world);
}

#[test]
fn one_that_would_be_the_same_is_not_written() {
    let world = filled(100, 1);
    let path = world.dir.path().join(SNAPSHOT);
    world.save();
    fs::remove_file(&path).unwrap();
    world.save();
    assert!(!path.exists());
    let mut world = world;
    put(&mut world, 100..101, 0);
    world.pass();
    world.save();
    assert!(path.exists());
    let world = world.reopen();
    fs::remove_file(&path).unwrap();
    world.save();
    assert!(!path.exists());
}

#[derive(Debug, Clone)]
enum Step {
    Put(usize, u32),
    Remove(usize),
    Pass,
    Save,
    Kill,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => (0..60_usize, 0..8_u32).prop_map(|(page, member)| Step::Put(page, member)),
        4 => (0..60_usize).prop_map(Step::Remove),
        4 => Just(Step::Pass),
        2 => Just(Step::Save),
        1 => Just(Step::Kill),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn whenever_it_is_written_and_killed_every_pair_is_found(
        steps in prop::collection::vec(step(), 20..160), partitions in 1..5_u32,
    ) {
        let mut world = filled(60, partitions);
        for step in steps {
            match step {
                Step::Put(number, member) => {
                    world.put(page(number), signature_of(&text(number as u32 % 4, member)), true);
                }
                Step::Remove(number) => world.remove(page(number)),
                Step::Pass => drop(world.pass()),
                Step::Save => world.save(),
                Step::Kill => {
                    world = world.reopen_as_it_is();
                    // What is owed is searched for again.
                    world.search_all();
                }
            }
        }
        world.pass();
        world.search_all();
        world.pass();
    }

    #[test]
    fn a_damaged_one_is_never_used(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>(),
    ) {
        let world = filled(200, 3);
        world.save();
        let path = world.dir.path().join(SNAPSHOT);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        let changed = bytes[at] != byte || cut;
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        fs::write(&path, bytes).unwrap();
        let report = crate::check::of_directory(world.dir.path()).unwrap();
        prop_assert_eq!(report.damage.len(), usize::from(changed), "{:?}", report.damage);
        let world = world.reopen();
        prop_assert_eq!(gone_through(&world) > 0, changed);
        check(world);
    }
}
