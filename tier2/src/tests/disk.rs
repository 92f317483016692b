//! Tests of damage, loss and compaction of the files.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

use doppel_model::pairwise::Policy;
use proptest::prelude::*;

use super::model::{World, page, signature_of, text};
use super::source::Source;
use crate::state_files::PLAN;
use crate::{Error, Tier2};

/// Signature file of the only node.
const SIGNATURES: &str = "node-0/signatures.dat";

fn filled(pages: usize) -> World {
    let mut world = World::new(Policy::default(), 8, 1);
    for number in 0..pages {
        world.put(page(number), signature_of(&text(number as u32 / 6, number as u32 % 6)), true);
    }
    world.pass();
    world
}

#[test]
fn a_reopened_index_has_all_contents_and_fetches_none() {
    let mut world = filled(600);
    let plan = world.parts.router.plan();
    assert_eq!(plan.map().partitions(), 8);
    world = world.reopen();
    let bytes = world.file_bytes();
    assert_eq!(world.parts.router.plan(), plan);
    world.search_all();
    world.pass();
    assert_eq!(world.file_bytes(), bytes);
}

#[test]
fn lost_files_are_rebuilt() {
    let world = filled(360);
    for name in [SIGNATURES, PLAN] {
        fs::remove_file(world.dir.path().join(name)).unwrap();
    }
    let mut world = world.reopen();
    world.search_all();
    world.pass();
    assert_eq!(world.parts.router.plan().map().partitions(), 8);
}

#[test]
fn a_signature_that_is_damaged_at_run_time_is_fetched_and_stored_again() {
    let mut world = filled(100);
    world.flush();
    let path = world.dir.path().join(SIGNATURES);
    let length = fs::metadata(&path).unwrap().len();
    let file = OpenOptions::new().write(true).open(&path).unwrap();
    // The whole file is overwritten, so that searches, removals, moves to another home and compaction all
    // read damaged records.
    file.write_all_at(&vec![0x5a; length as usize], 0).unwrap();
    world.search_all();
    for number in 0..20 {
        world.remove(page(number));
    }
    for number in 100..400 {
        world.put(page(number), signature_of(&text(number as u32 / 6, number as u32 % 6)), true);
    }
    world.pass();
    assert!(world.file_bytes() > length);
    world.search_all();
    world.pass();
}

#[test]
fn a_file_that_is_mostly_dead_is_compacted() {
    let mut world = World::new(Policy::default(), 1, 1);
    let long = |number: u32| signature_of(&(0..2_000).map(|i| number * 10_000 + i).collect::<Vec<_>>());
    for number in 0..1_000 {
        world.put(page(number as usize % 300), long(number), true);
        if number % 100 == 99 {
            world.pass();
        }
    }
    let file_bytes = world.file_bytes();
    let live: u64 = world.pages.lock().unwrap().values().map(|s| s.as_bytes().len() as u64 + 4).sum();
    assert!(file_bytes < 1_000 * 10_000 && file_bytes <= 3 * live, "{file_bytes} for {live}");
    let mut world = world.reopen();
    world.search_all();
    world.pass();
}

#[test]
fn a_directory_is_used_by_one_index() {
    let world = filled(1);
    let again = Tier2::open(world.config.clone(), Source::empty());
    assert!(matches!(again.map(drop), Err(Error::InUse(_))));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn damage_is_never_served(
        name in prop::sample::select(vec![SIGNATURES, PLAN]),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<bool>(),
    ) {
        let world = filled(330);
        world.flush();
        let path = world.dir.path().join(name);
        let mut bytes = fs::read(&path).unwrap();
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if cut {
            bytes.truncate(at);
        }
        fs::write(&path, bytes).unwrap();
        let mut world = world.reopen();
        world.search_all();
        world.pass();
    }
}
