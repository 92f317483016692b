//! Merges, the forwards that they leave behind, and the pair that caused them.

use doppel_model::ClientId;
use doppel_model::pairwise::Similarity;

use super::*;
use crate::machine::{Message, Transfer, TransferEnd};
use crate::rows::record::{ContentState, Evidence, Forward, LinkedPage, PartnerGroup, SearchState};

/// Returns the messages that are under way.
fn under_way(world: &World) -> Vec<Message> {
    world.shards.queue.iter().map(|(envelope, _)| envelope.message.clone()).collect()
}

/// Returns the pair of two pages as evidence for a merge of their groups.
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
fn the_group_with_the_larger_id_becomes_the_forward() {
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
fn a_merge_of_a_merged_group_continues_at_the_survivor() {
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
fn a_forwarding_entry_keeps_the_latest_membership_number() {
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
fn a_forward_without_forwarding_entries_is_dropped_after_its_retention_period() {
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
        assert_eq!(kept, [true, true, !ends], "done: {done}, forwarding entries: {forwarding_entries}");
        world.commit_only(|machine| machine.txn.put_group(group, None).unwrap());
    }
}

/// Creates the last piece of a transfer, without members. The merge was caused by this pair.
fn last_piece(from: GroupId, first: bool, evidence: Evidence) -> Transfer {
    let done = TransferEnd { dirty: false, search_again: false, evidence };
    Transfer { from, first, members: Vec::new(), done: Some(done) }
}

#[test]
fn a_pair_links_two_groups_only_while_both_members_are_unchanged() {
    let other = World::new(1, 1).signatures[30].content();
    type Change = fn(&mut LinkedPage, ContentHash);
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
    // Number of groups that come at once, whether the first piece came to this group, and whether a member
    // was lost.
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
fn a_member_that_leaves_before_its_transfer_marks_the_forward_dirty() {
    let mut world = World::new(1, 1);
    let pages = world.copies(2, 1);
    let (group, pair) = (world.group(pages[0]), evidence(&world, pages[0], pages[1]));
    let LinkedPage { page, membership_number: number, .. } = world.linked(pages[0]);
    for (number, is_missed) in [(number - 1, false), (number, true)] {
        let mut merged = forward(GroupId::new(1, ShardId(0)), pair);
        world.commit_only(|machine| {
            machine.current_shard = group.shard();
            machine.forget_unforwarded(group, &mut merged, page, number).unwrap();
        });
        assert_eq!(merged.dirty, is_missed);
        let row = read::<Member>(&world.store, &key::member(group, page)).unwrap();
        assert_eq!(row.is_none(), is_missed);
    }
}

#[test]
fn a_merge_names_the_partner_in_the_surviving_group() {
    let mut world = World::new(1, 1);
    let (first, second) = (world.copies(2, 1), world.copies(2, 9));
    let (into, own) = (world.group(first[0]), world.group(second[0]));
    let found = |page: PageId| PartnerGroup { group: world.group(page), partner: world.linked(page) };
    let all = [found(second[1]), found(first[1])];
    let page = world.linked(second[0]);
    world.commit_only(|machine| {
        machine.current_shard = ShardId(0);
        machine.merge_groups(page, &all, Some(own), into);
    });
    let evidence = Evidence { page, partner: all[1].partner };
    assert_eq!(under_way(&world), [Message::Merge { group: own, into, evidence }]);
}

#[test]
fn an_evicted_member_reports_whether_its_search_was_completed() {
    for compared in [false, true] {
        let mut world = World::new(1, 1);
        let page = world.copies(2, 1)[1];
        let number = world.linked(page).membership_number;
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
fn a_founder_that_comes_after_others_makes_the_group_owe_a_recomputation() {
    let mut world = World::new(1, 1);
    let pages = world.copies(2, 1);
    let group = world.group(pages[0]);
    let member: Member = read(&world.store, &key::member(group, pages[0])).unwrap().unwrap();
    let refresh =
        Message::Enroll { group, page: pages[0], member: member.clone(), via: None, uncompared: false };
    world.receive(group.shard(), refresh);
    assert!(!world.in_use(group).dirty, "the page was a member before");
    let late = PageId::from_bytes([7; 16]);
    world.receive(group.shard(), Message::Enroll { group, page: late, member, via: None, uncompared: false });
    assert!(world.in_use(group).dirty);
}

#[test]
fn a_comparison_that_fails_is_counted() {
    let mut world = World::new(1, 1);
    for (name, k) in [("http://h/a", 1), ("http://h/bb", 2)] {
        world.submit_content(name, k);
        world.compare_all();
    }
    world.settle();
    let page = PageId::of("http://h/bb");
    let winner = world.signatures[1].content();
    let counted = |world: &World| {
        let counters = &world.shards.metas[0].counters;
        (counters.verified, counters.rejected)
    };
    let content = world.linked(page).content;
    let (verified, rejected) = counted(&world);
    for (number, similar) in [(1, false), (2, true)] {
        world.change(page, |record| {
            if let State::Content(state) = &mut record.state {
                state.measured.clear();
                state.membership.as_mut().unwrap().verdict = None;
            }
        });
        let with =
            ContentComparison { content: winner, similarity: Similarity { shared: 1, of: 2 }, similar };
        world.commit_only(|machine| machine.command(Command::Verified { page, content, with }).unwrap());
        assert_eq!(counted(&world), (verified + number, rejected + 1));
    }
}

#[test]
fn an_update_is_confirmed_only_by_a_comparison_that_is_still_about_it() {
    let hint = |world: &World, page: PageId| {
        let LinkedPage { membership_number, content: previous, .. } = world.linked(page);
        let with = ContentComparison {
            content: previous,
            similarity: Similarity { shared: 1, of: 1 },
            similar: true,
        };
        Hint { previous, membership_number, with }
    };
    let other = |world: &World| world.signatures[30].content();
    type Change = fn(&mut World, PageId, Hint) -> Hint;
    let cases: [(Change, bool); 5] = [
        (|_, _, hint| hint, true),
        (|_, _, hint| Hint { previous: ContentHash([7; 16]), ..hint }, false),
        (|_, _, hint| Hint { membership_number: hint.membership_number + 1, ..hint }, false),
        (|_, _, hint| Hint { with: ContentComparison { similar: false, ..hint.with }, ..hint }, false),
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
        assert_ne!(world.linked(page).content, other(&world));
        let hint = hint(&world, page);
        let hint = change(&mut world, page, hint);
        world.submit_with_hint("http://h1/xx", 2, Some(hint));
        let search = world.record(page).unwrap().content().unwrap().search;
        assert_eq!(search == SearchState::Deferred, is_confirmed, "case {number}");
    }
}

/// Creates a group of many pages, and another group that is a chain of the contents 2, 3 and 4.
fn many_and_a_chain() -> World {
    let mut world = World::new(1, 1);
    for n in 1..=24 {
        world.submit_content(&format!("http://s/{}", "x".repeat(n)), 0);
        world.compare_all();
    }
    for (name, k) in [("http://g/x", 2), ("http://g/rr", 3), ("http://g/yyy", 4)] {
        world.clock += 1;
        world.submit_content(name, k);
        world.compare_all();
    }
    world.settle();
    world.check();
    let [many, chain] = ["http://s/x", "http://g/x"].map(|name| world.group(PageId::of(name)));
    assert!(many < chain);
    world
}

/// Takes the only answer of tier 2, before the machine applies it.
fn answer(world: &mut World) -> Command {
    while !world.orders.is_empty() {
        world.index_step();
    }
    assert_eq!(world.commands.len(), 1);
    world.commands.pop_front().unwrap()
}

#[test]
fn a_member_whose_next_membership_overtakes_its_transfer_causes_a_recomputation() {
    let mut world = many_and_a_chain();
    // A page links the two groups, and the middle of the chain moves to the other group on its own.
    world.submit_content("http://z/z", 1);
    let link = answer(&mut world);
    world.submit_content("http://g/rr", 0);
    let other = answer(&mut world);
    world.commit(vec![link], 0);
    let asks = world.shards.undelivered();
    world.commit(Vec::new(), asks);
    world.commit(vec![other], 0);
    while world.shards.undelivered() > 0 {
        world.commit(Vec::new(), 1);
    }
    world.settle();
    world.check();
}

#[test]
fn a_member_that_arrives_before_its_group_and_is_evicted_causes_a_recomputation() {
    let mut world = many_and_a_chain();
    let middle = PageId::of("http://g/rr");
    let many = world.group(PageId::of("http://s/x"));
    world.submit_content("http://s/xxxxx", 20);
    world.compare_all();
    assert!(world.in_use(many).dirty);
    world.submit_content("http://z/z", 1);
    let link = answer(&mut world);
    world.commit(vec![link], 0);
    while !under_way(&world).iter().any(|message| matches!(message, Message::Merge { .. })) {
        world.commit(Vec::new(), 1);
    }
    // An older version of the middle of the chain arrives, so the page sends its rank again.
    let older = Submission {
        url: PageUrl::parse("http://g/rr").unwrap(),
        fetched_at: Timestamp::from_millis(27),
        popularity: None,
        language: None,
        canonical: None,
        body: Body::Content(Arc::clone(&world.signatures[30])),
    };
    world.model_submit("http://g/rr", 27, None, &ModelBody::Content(30));
    world
        .commit(vec![Command::Submit { submission: Box::new(older), hint: None, client: ClientId::NONE }], 0);
    let row = |world: &World| read::<Member>(&world.store, &key::member(many, middle)).unwrap();
    while row(&world).is_none() {
        world.commit(Vec::new(), 1);
    }
    world.dirty.retain(|group| *group == many);
    world.regroup_step();
    while let Some(command) = world.commands.pop_front() {
        world.commit(vec![command], 0);
    }
    while world.shards.undelivered() > 0 {
        world.commit(Vec::new(), 1);
    }
    world.submit_content("http://g/rr", 20);
    world.settle();
    world.check();
}

#[test]
fn cover_messages_are_numbered_across_merged_groups() {
    let mut world = World::new(1, 1);
    let other = world.copies(2, 1)[0];
    let names: Vec<String> = (1..=4).map(|n| format!("http://h/{}", "x".repeat(n))).collect();
    for (name, k) in names.iter().zip(17..) {
        world.submit_content(name, k);
        world.compare_all();
    }
    world.settle();
    let (page, kept) = (PageId::of(&names[3]), PageId::of(&names[2]));
    let (small, large) = (world.group(other), world.group(page));
    assert!(small < large);
    let row =
        |world: &World, group| read::<Member>(&world.store, &key::member(group, page)).unwrap().unwrap();
    let told = |world: &World| {
        let record = world.record(page).unwrap();
        record.content().unwrap().membership.clone().unwrap().covered_by
    };
    let by = told(&world);
    assert_eq!(by.as_ref().map(|by| by.page), Some(kept));
    let number = row(&world, large).cover_number;
    assert!(number > 0);
    let evidence = evidence(&world, other, page);
    world.receive(large.shard(), Message::Merge { group: large, into: small, evidence });
    world.commit(Vec::new(), usize::MAX);
    assert_eq!((world.group(page), row(&world, small).cover_number), (small, number));
    // The latest cover from the merged group arrives after the page knows the survivor. An earlier cover
    // arrives last.
    let LinkedPage { membership_number, content, .. } = world.linked(page);
    for (number, by) in [(number + 1, None), (number, by)] {
        let shard = world.shards.owner(page);
        world.receive(shard, Message::Cover { page, membership_number, number, content, by });
        assert_eq!(told(&world), None);
    }
}
