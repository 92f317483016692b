//! Merges, the forwards they leave behind, and what is written down of the pair that caused them.

use super::*;
use crate::machine::{Message, Transfer, TransferEnd};
use crate::record::{ContentState, Evidence, Forward, Found, Linked, SearchState};

/// The messages that are under way.
fn under_way(world: &World) -> Vec<Message> {
    world.shards.queue.iter().map(|(envelope, _)| envelope.message.clone()).collect()
}

/// A page of each of two groups, as the pair that links them.
fn evidence(world: &World, first: PageId, second: PageId) -> Evidence {
    Evidence { page: world.linked(first), partner: world.linked(second) }
}

fn forward(into: GroupId, evidence: Evidence) -> Forward {
    Forward {
        into,
        dirty: false,
        search_again: false,
        evidence,
        begun: true,
        done: true,
        forwarding_entries: 0,
        ended: None,
    }
}

#[test]
fn the_larger_id_gives_way_whichever_was_told() {
    let mut world = World::new(1, 1);
    let (first, second) = (world.copies(2, 1), world.copies(2, 9));
    let (small, large) = (world.group(first[0]), world.group(second[0]));
    assert!(small < large);
    let evidence = evidence(&world, first[0], second[0]);
    world.receive(small.shard(), Message::Merge { group: small, into: large, evidence });
    world.commit(Vec::new(), usize::MAX);
    assert!(
        matches!(world.group_record(large), Some(GroupRecord::Forward(Forward { into, .. })) if into == small)
    );
    assert_eq!(world.in_use(small).members, 4);
}

#[test]
fn a_merge_that_meets_a_merged_group_goes_on_with_the_survivor() {
    let mut world = World::new(1, 1);
    let pages = [1, 9, 17].map(|k| world.copies(2, k)[0]);
    let [small, middle, large] = pages.map(|page| world.group(page));
    assert!(small < middle && middle < large);
    let pair = evidence(&world, pages[1], pages[2]);
    let merged = GroupRecord::Forward(forward(small, pair));
    world.commit_only(|machine| machine.txn.put_group(large, Some(merged)).unwrap());
    world.receive(large.shard(), Message::Merge { group: large, into: small, evidence: pair });
    assert_eq!(under_way(&world), []);
    world.receive(large.shard(), Message::Merge { group: large, into: middle, evidence: pair });
    assert_eq!(under_way(&world), [Message::Merge { group: middle, into: small, evidence: pair }]);
}

#[test]
fn a_merged_group_keeps_the_last_membership_whose_messages_come_by() {
    let mut world = World::new(1, 1);
    let (first, second) = (world.copies(2, 1), world.copies(2, 9));
    let (small, large) = (world.group(first[0]), world.group(second[0]));
    let merged = GroupRecord::Forward(forward(small, evidence(&world, first[0], second[0])));
    world.commit_only(|machine| machine.txn.put_group(large, Some(merged)).unwrap());
    let page = first[0];
    let entry = |world: &World| read::<u32>(&world.store, &key::forwarding_entry(large, page)).unwrap();
    let member: Member = read(&world.store, &key::member(small, page)).unwrap().unwrap();
    for (number, known) in [(5, 5), (7, 7), (6, 7)] {
        let member = Member { membership_number: number, ..member.clone() };
        let message = Message::Enroll { group: large, page, member, via: None, uncompared: false };
        world.receive(large.shard(), message);
        assert_eq!(entry(&world), Some(known));
    }
}

#[test]
fn a_merged_group_goes_when_its_time_is_over_and_no_messages_come_by() {
    let mut world = World::new(1, 1);
    let pages = world.copies(2, 1);
    let (small, pair) = (world.group(pages[0]), evidence(&world, pages[0], pages[1]));
    for (done, forwarding_entries, ends) in [(true, 0, true), (true, 1, false), (false, 0, false)] {
        let group = GroupId::new(5_000, ShardId(0));
        let record = GroupRecord::Forward(Forward { done, forwarding_entries, ..forward(small, pair) });
        world.commit_only(|machine| machine.txn.put_group(group, Some(record)).unwrap());
        let kept: Vec<bool> = [100, 100 + KEEP_MS as i64 - 1, 100 + KEEP_MS as i64]
            .map(|now| {
                let now = Timestamp::from_millis(now);
                let expire = Command::ExpireGroup { group, now };
                world.commit_only(|machine| machine.command(expire).unwrap());
                world.group_record(group).is_some()
            })
            .into();
        assert_eq!(kept, [true, true, !ends], "{done} {forwarding_entries}");
        world.commit_only(|machine| machine.txn.put_group(group, None).unwrap());
    }
}

/// The last piece of a group that goes into `into`, joined on this pair.
fn last_piece(from: GroupId, first: bool, evidence: Evidence) -> Transfer {
    let done = TransferEnd { dirty: false, search_again: false, evidence };
    Transfer { from, first, members: Vec::new(), done: Some(done) }
}

#[test]
fn a_pair_links_two_groups_while_both_are_members_as_they_were() {
    let other = World::new(1, 1).signatures[30].content();
    type Change = fn(&mut Linked, ContentHash);
    let changes: [(Change, bool); 4] = [
        (|_, _| (), false),
        (|linked, _| linked.membership_number -= 1, true),
        (|linked, other| linked.content = other, true),
        (|linked, _| linked.page = PageId::of("http://h/other"), true),
    ];
    for (change, is_dirty) in changes {
        for of_page in [true, false] {
            let mut world = World::new(1, 1);
            let pages = world.copies(2, 1);
            let (into, mut pair) = (world.group(pages[0]), evidence(&world, pages[0], pages[1]));
            change(if of_page { &mut pair.page } else { &mut pair.partner }, other);
            let transfer = last_piece(GroupId::new(900, ShardId(0)), true, pair);
            world.receive(into.shard(), Message::TransferMembers { into, transfer });
            assert_eq!(world.in_use(into).dirty, is_dirty);
        }
    }
}

#[test]
fn a_group_that_loses_a_member_while_others_come_in_steps_is_recomputed() {
    let from = |number: u64| GroupId::new(900 + number, ShardId(0));
    let first = |from| Transfer { from, first: true, members: Vec::new(), done: None };
    // How many groups come at once, whether the first piece came here, whether a member was lost.
    for (groups, is_seen, is_lost) in
        [(1, true, false), (1, true, true), (1, false, false), (16, true, false), (17, true, false)]
    {
        let mut world = World::new(1, 1);
        let pages = world.copies(4, 1);
        let (into, pair) = (world.group(pages[0]), evidence(&world, pages[0], pages[1]));
        let receive = |world: &mut World, transfer| {
            world.receive(into.shard(), Message::TransferMembers { into, transfer });
        };
        (0..groups).filter(|_| is_seen).for_each(|number| receive(&mut world, first(from(number))));
        if is_lost {
            world.push("http://h1/xxx", Body::Dead);
            world.settle();
            assert!(!world.in_use(into).dirty);
        }
        receive(&mut world, last_piece(from(groups - 1), false, pair));
        assert_eq!(world.in_use(into).dirty, is_lost || !is_seen || groups > 16);
        assert!(world.in_use(into).incoming.iter().all(|incoming| incoming.from != from(groups - 1)));
    }
}

#[test]
fn a_member_that_leaves_before_its_transfer_is_missed_unless_it_comes_back_the_same() {
    let mut world = World::new(1, 1);
    let pages = world.copies(3, 1);
    let (group, pair) = (world.group(pages[0]), evidence(&world, pages[0], pages[1]));
    let other = world.signatures[30].content();
    let mut dirty = false;
    for (page, as_it_was, expected) in
        [(pages[0], true, false), (pages[1], false, true), (pages[2], true, true)]
    {
        let (_, number, content) = world.named(page);
        let mut merged = Forward { dirty, ..forward(GroupId::new(1, ShardId(0)), pair) };
        world.commit_only(|machine| {
            machine.here = group.shard();
            let content = Some(if as_it_was { content } else { other });
            machine.forget_unforwarded(group, &mut merged, (page, number), content).unwrap();
        });
        dirty = merged.dirty;
        assert_eq!(dirty, expected);
        assert!(read::<Member>(&world.store, &key::member(group, page)).unwrap().is_none());
    }
}

#[test]
fn a_merge_names_the_partner_in_the_group_that_stays() {
    let mut world = World::new(1, 1);
    let (first, second) = (world.copies(2, 1), world.copies(2, 9));
    let (into, own) = (world.group(first[0]), world.group(second[0]));
    let found = |page: PageId| Found { group: world.group(page), partner: world.linked(page) };
    let all = [found(second[1]), found(first[1])];
    let page = world.linked(second[0]);
    world.commit_only(|machine| {
        machine.here = ShardId(0);
        machine.merge_found(page, &all, Some(own), into);
    });
    let evidence = Evidence { page, partner: all[1].partner };
    assert_eq!(under_way(&world), [Message::Merge { group: own, into, evidence }]);
}

#[test]
fn an_evicted_member_says_whether_it_was_compared() {
    for compared in [false, true] {
        let mut world = World::new(1, 1);
        let (page, number, _) = {
            let page = world.copies(2, 1)[1];
            world.named(page)
        };
        world.change(page, |record| {
            if let State::Content(ContentState { membership: Some(membership), .. }) = &mut record.state {
                membership.compared = compared;
            }
        });
        let evict = Message::Evict { page, membership_number: number, compare: false };
        world.receive(ShardId(0), evict);
        let left = under_way(&world).into_iter().find_map(|message| match message {
            Message::Leave { uncompared, .. } => Some(uncompared),
            _ => None,
        });
        assert_eq!(left, Some(!compared));
    }
}

#[test]
fn a_member_with_another_content_makes_the_group_owe_a_recomputation() {
    let mut world = World::new(1, 1);
    let page = world.copies(2, 1)[1];
    let group = world.group(page);
    let member: Member = read(&world.store, &key::member(group, page)).unwrap().unwrap();
    for content in [member.content, world.signatures[2].content()] {
        let changes = content != member.content;
        let member = Member { content, ..member.clone() };
        let enroll = Message::Enroll { group, page, member, via: None, uncompared: false };
        world.receive(group.shard(), enroll);
        assert_eq!(world.in_use(group).dirty, changes);
    }
}

#[test]
fn a_comparison_that_fails_is_counted() {
    let mut world = World::new(1, 1);
    for (name, k) in [("http://h/a", 1), ("http://h/bb", 2)] {
        world.give(name, k);
        world.compare_all();
    }
    world.settle();
    let page = PageId::of("http://h/bb");
    let winner = world.signatures[1].content();
    let counted = |world: &World| {
        let counters = &world.shards.metas[0].counters;
        (counters.verified, counters.rejected)
    };
    let (_, _, content) = world.named(page);
    let (verified, rejected) = counted(&world);
    for (number, similar) in [(1, false), (2, true)] {
        world.change(page, |record| {
            if let State::Content(state) = &mut record.state {
                state.measured.clear();
                state.membership.as_mut().unwrap().verdict = None;
            }
        });
        let with = Measured { content: winner, shared: 1, shingles: 2, similar };
        world.commit_only(|machine| machine.command(Command::Verified { page, content, with }).unwrap());
        assert_eq!(counted(&world), (verified + number, rejected + 1));
    }
}

#[test]
fn an_update_is_confirmed_only_by_a_comparison_that_is_still_about_it() {
    let hint = |world: &World, page: PageId| {
        let (_, membership_number, previous) = world.named(page);
        let with = Measured { content: previous, shared: 1, shingles: 1, similar: true };
        Hint { previous, membership_number, with }
    };
    let other = |world: &World| world.signatures[30].content();
    type Change = fn(&mut World, PageId, Hint) -> Hint;
    let cases: [(Change, bool); 5] = [
        (|_, _, hint| hint, true),
        (|_, _, hint| Hint { previous: ContentHash([7; 16]), ..hint }, false),
        (|_, _, hint| Hint { membership_number: hint.membership_number + 1, ..hint }, false),
        (|_, _, hint| Hint { with: Measured { similar: false, ..hint.with }, ..hint }, false),
        (
            |world, page, hint| {
                world.change(page, |record| {
                    if let State::Content(state) = &mut record.state {
                        state.search = SearchState::Pending;
                    }
                });
                hint
            },
            false,
        ),
    ];
    for (number, (change, is_confirmed)) in cases.into_iter().enumerate() {
        let mut world = World::new(1, 1);
        let page = world.copies(2, 1)[1];
        assert_ne!(world.named(page).2, other(&world));
        let hint = hint(&world, page);
        let hint = change(&mut world, page, hint);
        world.give_with("http://h1/xx", 2, Some(hint));
        let search = world.record(page).unwrap().content().unwrap().search;
        assert_eq!(search == SearchState::Deferred, is_confirmed, "case {number}");
    }
}
