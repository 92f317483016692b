//! Pages with many redirects that change faster than the redirects can be told.

use doppel_contract::CROWDED_REDIRECTS;

use super::*;
use crate::machine::Message;
use crate::rows::record::State;

const TARGET: &str = "http://h/target";

/// Creates a target with this number of redirects, at rest.
fn redirected(redirects: usize) -> (World, Vec<PageId>) {
    // This seed gives steps of three rows.
    let mut world = World::new(4, 1);
    assert_eq!(world.shards.settings.step_rows, 3);
    world.submit_content(TARGET, 1);
    let sources: Vec<String> = (0..redirects).map(|n| format!("http://h/source/{n}")).collect();
    for source in &sources {
        let version = world.version(source, Body::Redirect(PageUrl::parse(TARGET).unwrap()));
        world.commit(vec![version], 0);
    }
    world.settle();
    let sources: Vec<PageId> = sources.iter().map(|name| PageId::of(name)).collect();
    assert_statuses(&world, &sources, Status::Duplicate);
    (world, sources)
}

#[track_caller]
fn assert_statuses(world: &World, pages: &[PageId], status: Status) {
    for page in pages {
        assert_eq!(world.record(*page).unwrap().published.status, status);
    }
    for_each_row(&world.store, ShardId(0), RowKind::FanOut, |key, _| {
        panic!("a round is still under way: {key:?}")
    })
    .unwrap();
}

/// Creates a version that ends the target or brings it back.
fn flip(world: &mut World, is_gone: bool) -> Command {
    let body = if is_gone { Body::Dead } else { Body::Content(Arc::clone(&world.signatures[1])) };
    world.version(TARGET, body)
}

#[test]
fn any_number_of_changes_of_a_page_costs_two_rounds() {
    const FLIPS: usize = 60;
    let (mut world, sources) = redirected(120);
    let mut rounds = Vec::new();
    for is_gone in [true, false] {
        let before = world.written;
        let version = flip(&mut world, is_gone);
        world.commit(vec![version], 0);
        world.settle();
        rounds.push(world.written - before);
    }
    assert_statuses(&world, &sources, Status::Duplicate);
    let before = world.written;
    for at in 0..FLIPS {
        let version = flip(&mut world, at % 2 == 0);
        // Every change comes during a round.
        world.commit(vec![version], 5);
        assert!(world.shards.undelivered() > 0);
    }
    world.settle();
    assert_statuses(&world, &sources, Status::Duplicate);
    let (written, one) = (world.written - before, rounds.iter().sum::<usize>());
    // The commit of each change has some rows of its own.
    let beside = FLIPS * 6_000;
    assert!(written < one + beside, "{written} bytes written; two rounds write {one} bytes");
    assert!(
        beside < FLIPS / 4 * one / 2,
        "the bound must be tight enough to detect a round for every fourth change"
    );
}

#[test]
fn a_round_continues_after_a_crash() {
    for delivered in 0..60 {
        let (mut world, sources) = redirected(10);
        let gone = flip(&mut world, true);
        world.commit(vec![gone], delivered);
        if delivered % 3 == 0 {
            let back = flip(&mut world, false);
            world.commit(vec![back], delivered / 3);
        }
        world.crash();
        world.settle();
        let status = if delivered % 3 == 0 { Status::Duplicate } else { Status::Unresolved };
        assert_statuses(&world, &sources, status);
    }
}

#[test]
fn redirects_learn_the_latest_state_of_their_final_target() {
    let (mut world, sources) = redirected(30);
    // The target gets other contents, and so other groups, again and again.
    for k in [9, 17, 25, 9, 17, 33] {
        let body = Body::Content(Arc::clone(&world.signatures[k]));
        let version = world.version(TARGET, body);
        world.commit(vec![version], 4);
        world.compare_all();
    }
    world.settle();
    assert_statuses(&world, &sources, Status::Duplicate);
    let group = world.record(PageId::of(TARGET)).unwrap().published.group;
    assert!(group.is_some());
    for source in sources {
        assert_eq!(world.record(source).unwrap().published.group, group);
    }
}

#[test]
fn a_page_with_too_many_inbound_redirects_is_reported() {
    let (mut world, sources) = redirected(1);
    let page = PageId::of(TARGET);
    let mut record = world.record(page).unwrap();
    record.inbound_redirects = CROWDED_REDIRECTS;
    let row = crate::rows::record::encode(&record).unwrap();
    world.store.commit(vec![(key::page(ShardId(0), page), Some(row))]).unwrap();
    let told = |world: &mut World, message: Message| {
        let effects = world.commit_only(|machine| {
            machine.current_shard = ShardId(0);
            machine.receive(message).unwrap();
        });
        let told: Vec<(Option<String>, u32, bool)> = effects
            .into_iter()
            .filter_map(|effect| match effect {
                Effect::Crowded { url, redirects, begins } => {
                    Some((url.map(|url| url.to_string()), redirects, begins))
                }
                _ => None,
            })
            .collect();
        (told, world.shards.metas[0].counters.crowded)
    };
    let [one, other, known] = [PageId::of("http://h/1"), PageId::of("http://h/2"), sources[0]];
    let attach = |source| Message::AttachRedirect { target: page, source };
    let detach = |source| Message::DetachRedirect { target: page, source };
    let many = CROWDED_REDIRECTS;
    assert_eq!(told(&mut world, attach(known)), (vec![], 0), "the redirect was attached before");
    let named = || Some(TARGET.to_owned());
    assert_eq!(told(&mut world, attach(one)), (vec![(named(), many + 1, true)], 1));
    assert_eq!(told(&mut world, attach(other)), (vec![], 1));
    assert_eq!(told(&mut world, detach(other)), (vec![], 1));
    assert_eq!(told(&mut world, detach(one)), (vec![(named(), many, false)], 0));
    assert_eq!(told(&mut world, detach(known)), (vec![], 0));
    // The effect does not name a purged page.
    let mut record = world.record(page).unwrap();
    (record.inbound_redirects, record.state) = (many, State::Purged);
    let row = crate::rows::record::encode(&record).unwrap();
    world.store.commit(vec![(key::page(ShardId(0), page), Some(row))]).unwrap();
    assert_eq!(told(&mut world, attach(one)).0, [(None, many + 1, true)]);
    assert_eq!(told(&mut world, detach(one)).0, [(None, many, false)]);
}
