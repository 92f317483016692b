//! Contents whose search was never completed. The page of such a content owes a deferred search. If the page
//! leaves its group before the search, the remaining members owe a search, because partners may have been
//! left out in reliance on the content.

use super::*;
use crate::rows::record::SearchState;

impl World {
    /// Submits a new content that the page's representative confirms.
    fn confirm(&mut self, name: &str, k: u64) {
        let hint = self.hint(PageId::of(name), &ModelBody::Content(k));
        assert!(hint.is_some_and(|hint| hint.with.similar), "{name} is not confirmed");
        self.submit_with_hint(name, k, hint);
        assert_eq!(self.owed(name), SearchState::Deferred);
    }

    /// Returns the state of a page's search.
    fn owed(&self, name: &str) -> SearchState {
        self.record(PageId::of(name)).unwrap().content().unwrap().search
    }

    /// Returns whether a page owes a deferred search, and asserts that the worker has been told.
    fn owes_deferred_search(&self, name: &str) -> bool {
        let listed = self.deferred.contains(&PageId::of(name));
        assert_eq!(listed, self.owed(name) == SearchState::Deferred, "{name}");
        listed
    }
}

const NAMES: [&str; 3] = ["http://h/a", "http://h/bb", "http://h/ccc"];

/// Creates a group of pages with these contents, at rest.
fn grouped(contents: &[u64]) -> World {
    let mut world = World::new(1, 2);
    for (name, k) in NAMES.iter().zip(contents) {
        world.submit_content(name, *k);
        world.compare_all();
    }
    world.settle();
    world.deferred.clear();
    assert!(NAMES[..contents.len()].iter().all(|name| world.owed(name) == SearchState::Compared));
    world
}

#[test]
fn a_stale_partner_among_others_leaves_a_deferred_search_owed() {
    let mut world = World::new(1, 2);
    for (name, k) in [(NAMES[0], 1), (NAMES[1], 3)] {
        world.submit_content(name, k);
        world.compare_all();
    }
    world.settle();
    world.submit_content(NAMES[2], 2);
    while !world.orders.is_empty() {
        world.index_step();
    }
    let found: Vec<Command> = world.commands.drain(..).collect();
    let [Command::Searched(SearchResult { pairs, .. })] = &found[..] else { panic!("{found:?}") };
    assert_eq!(pairs.len(), 2);
    // One of the two partners has another content when it is asked.
    world.submit_content(NAMES[1], 20);
    world.commit(found, usize::MAX);
    assert!(world.owes_deferred_search(NAMES[2]));
    let record = world.record(PageId::of(NAMES[2])).unwrap();
    let membership =
        record.content().unwrap().membership.as_ref().expect("the page is in the group of the other partner");
    assert!(!membership.compared);
    world.settle();
    world.check();
}

#[test]
fn a_member_that_leaves_uncompared_makes_the_others_search_again() {
    for compared in [false, true] {
        let mut world = grouped(&[1, 1, 1]);
        world.confirm(NAMES[2], 2);
        if compared {
            world.settle();
            world.deferred.clear();
        }
        world.submit_content(NAMES[2], 20);
        world.compare_all();
        for name in &NAMES[..2] {
            assert_eq!(world.owes_deferred_search(name), !compared, "{name}");
        }
        world.settle();
        world.check();
    }
}

#[test]
fn the_last_member_is_searched_for_as_new_when_the_other_leaves_uncompared() {
    for compared in [false, true] {
        let mut world = grouped(&[1, 1]);
        world.confirm(NAMES[1], 2);
        if compared {
            world.settle();
            world.deferred.clear();
        }
        let gone = Command::Purge { page: PageId::of(NAMES[1]) };
        world.model.remove(NAMES[1]);
        world.commit(vec![gone], usize::MAX);
        let expected = if compared { SearchState::Deferred } else { SearchState::Pending };
        assert_eq!(world.owed(NAMES[0]), expected);
        world.settle();
        world.check();
    }
}

#[test]
fn a_member_that_changes_uncompared_makes_the_others_search_again() {
    // The group confirms the next content, or tier 2 finds the group again.
    for confirmed in [true, false] {
        for compared in [false, true] {
            let mut world = grouped(&[1, 1, 1]);
            world.confirm(NAMES[2], 2);
            if compared {
                world.settle();
                world.deferred.clear();
            }
            if confirmed {
                world.confirm(NAMES[2], 0);
            } else {
                world.submit_content(NAMES[2], 0);
                world.compare_all();
            }
            world.commit(Vec::new(), usize::MAX);
            for name in &NAMES[..2] {
                assert_eq!(world.owes_deferred_search(name), !compared, "{name}, {confirmed}");
            }
            world.settle();
            world.check();
        }
    }
}
