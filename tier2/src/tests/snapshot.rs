//! Tests of a start from a snapshot, beside a start without one.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_model::stable_hash64;
use doppel_protocol::SearchResult;
use proptest::prelude::*;

use super::model::{World, page, signature_of, text};

/// Snapshot of the only node.
const SNAPSHOT: &str = "node-0/snapshot.dat";

/// A collection in an index, whose tier 1 keeps a log.
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

/// Number of times that an index has read all contents from tier 1.
fn full_reads(world: &World) -> usize {
    world.source.full_reads.load(Ordering::Relaxed)
}

/// Searches for everything, checks the answers, and continues with changes.
fn check(mut world: World) {
    world.search_all();
    world.pass();
    put(&mut world, 0..40, 3);
    world.pass();
    world.search_all();
    world.pass();
}

#[test]
fn a_start_restores_the_snapshot_and_reads_no_other_contents() {
    for partitions in [1, 8] {
        let world = filled(600, partitions);
        world.save();
        let bytes = world.file_bytes();
        let world = world.reopen();
        assert_eq!((full_reads(&world), world.file_bytes()), (0, bytes));
        check(world);
    }
}

#[test]
fn only_contents_that_changed_since_the_snapshot_are_fed() {
    let mut world = filled(600, 4);
    world.save();
    put(&mut world, 100..160, 1);
    put(&mut world, 600..620, 0);
    for number in 200..240 {
        world.remove(page(number));
    }
    world.pass();
    // These changes do not reach the index.
    put(&mut world, 0..20, 2);
    world.remove(page(30));
    let world = world.reopen_as_it_is();
    assert_eq!(full_reads(&world), 0);
    check(world);
}

#[test]
fn without_the_log_all_contents_are_fed() {
    let mut world = filled(300, 4);
    world.save();
    put(&mut world, 100..160, 1);
    world.remove(page(200));
    world.pass();
    *world.source.log.lock().unwrap() = None;
    let world = world.reopen_as_it_is();
    assert!(full_reads(&world) > 0);
    check(world);
}

#[test]
fn a_snapshot_of_other_partitions_is_not_used() {
    let mut world = filled(300, 4);
    world.save();
    world.config.dimensions = 2;
    let world = world.reopen();
    assert!(full_reads(&world) > 0);
    check(world);
}

#[test]
fn a_snapshot_equal_to_the_last_one_is_not_written() {
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
    fn every_pair_is_found_whenever_snapshots_are_written_and_the_process_is_killed(
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
                    // Owed searches are requested again.
                    world.search_all();
                }
            }
        }
        world.pass();
        world.search_all();
        world.pass();
    }

    #[test]
    fn a_damaged_snapshot_is_never_used(
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
        prop_assert_eq!(report.snapshot_contents.is_some(), !changed, "{:?}", report);
        let world = world.reopen();
        prop_assert_eq!(full_reads(&world) > 0, changed);
        check(world);
    }
}

/// Tests four pages, of which two leave and come back unchanged. In the last snapshot, these two are centers
/// of a third. `log` says whether the log of tier 1 shows that they left.
fn check_pages_that_left_and_came_back(log: bool) {
    let policy = Policy::default();
    let words = |salt: u64| -> Vec<u32> {
        (0..300).map(|at| (stable_hash64(&(salt << 32 | at).to_le_bytes()) % 100_000) as u32).collect()
    };
    let edited = |words: &[u32], at: &[usize], mark: u32| -> Vec<u32> {
        let mut words = words.to_vec();
        at.iter().for_each(|at| words[*at] = 1_000_000 + mark * 1_000 + *at as u32);
        words
    };
    let linked = |a: &Signature, b: &Signature| policy.similar(a, b) && policy.linked(a, b);
    // u, v and x are near each other, and w is near v only. So x has both u and v as centers.
    let four = (0..200).find_map(|salt| {
        let u = words(salt);
        let v = edited(&u, &[10, 20, 30], 1);
        let (w, x) = (edited(&v, &[100, 120, 140, 160], 2), edited(&v, &[200], 3));
        let [u, v, w, x] = [u, v, w, x].map(|words| signature_of(&words));
        let are_near = linked(&u, &v) && linked(&u, &x) && linked(&v, &x) && linked(&v, &w);
        let mut world = World::new(policy, 1, 1);
        *world.source.log.lock().unwrap() = Some(Vec::new());
        for (number, signature) in [&u, &v, &w, &x].into_iter().enumerate() {
            world.put(page(number), Arc::clone(signature), true);
            world.pass();
        }
        let (node, at) = world.find(x.content());
        let has_two = {
            let core = world.parts.nodes[node].read();
            core.tables.partition(at).columns.second_center(at.slot).is_entry()
        };
        (are_near && !policy.similar(&u, &w) && has_two).then_some((world, u, v))
    });
    let (mut world, u, v) = four.expect("a salt for which the four pages have the links");
    world.save();
    // Both pages are deleted, and tier 1 leaves x alone in its group. They come back unchanged, and the
    // process is killed.
    world.remove(page(0));
    world.remove(page(1));
    world.pass();
    world.put(page(0), u, true);
    world.put(page(1), v, true);
    if !log {
        *world.source.log.lock().unwrap() = None;
    }
    let mut world = world.reopen_as_it_is();
    assert_eq!(full_reads(&world) > 0, !log);
    world.unchecked = true;
    world.search(page(0));
    world.search(page(1));
    let answers = world.pass();
    let names_x = |answer: &SearchResult| answer.pairs.iter().any(|pair| pair.page == page(3));
    assert!(answers.iter().any(names_x), "no answer links x");
}

#[test]
fn a_page_that_left_and_came_back_is_no_longer_a_center() {
    check_pages_that_left_and_came_back(true);
}

#[test]
fn a_page_that_left_and_came_back_is_no_longer_a_center_without_the_log() {
    check_pages_that_left_and_came_back(false);
}
