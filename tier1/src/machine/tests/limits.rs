//! Single rules at their limits, for which random runs are too coarse.

use doppel_contract::{SubmissionOutcome, TrailEvent};
use doppel_model::pairwise::Similarity;

use super::*;
use crate::machine::{Envelope, EvictedMember, Message, Transfer};
use crate::rows::record::{Evidence, Forward, Group, LinkedPage, PartnerGroup, SearchState};

#[test]
fn a_group_is_rechecked_when_enough_members_differ_and_again_when_they_have_doubled() {
    let mut world = World::new(1, 1);
    assert_eq!(world.shards.settings.low_cohesion_percent, 25);
    let pages = world.copies(8, 1);
    let group = world.group(pages[0]);
    let report_difference = |world: &mut World, page: PageId| {
        let membership_number = world.linked(page).membership_number;
        let message = Message::Dissimilar { group, page, membership_number, dissimilar: true };
        world.receive(group.shard(), message);
        world.in_use(group).dirty
    };
    assert!(!report_difference(&mut world, pages[1]));
    assert!(report_difference(&mut world, pages[2]));
    world.recompute(group, 0, Vec::new());
    assert!(!world.in_use(group).dirty);
    assert!(!report_difference(&mut world, pages[3]));
    assert!(report_difference(&mut world, pages[4]));

    let mut never = World::new(1, 1);
    never.shards.settings.low_cohesion_percent = 0;
    let pages = never.copies(8, 1);
    assert!(!pages[1..].iter().any(|page| report_difference(&mut never, *page)));
}

#[test]
fn a_recomputation_is_repeated_only_for_changes_that_it_may_have_missed() {
    let mut world = World::new(1, 1);
    let pages = world.copies(4, 1);
    let group = world.group(pages[0]);
    // A page that has joined since is linked to a member that stays.
    world.recompute(group, 1, Vec::new());
    assert!(!world.in_use(group).dirty);
    // A content that has changed since was not compared.
    let changed = EvictedMember { content: world.signatures[30].content(), ..world.evicted(pages[1]) };
    world.recompute(group, 0, vec![changed]);
    assert_eq!((world.in_use(group).members, world.in_use(group).dirty), (4, false));
    // A page that has joined since may have been linked to the evicted member.
    let evicted = vec![world.evicted(pages[1])];
    let before = world.in_use(group);
    world.recompute(group, 1, evicted);
    let after = world.in_use(group);
    assert_eq!((after.members, after.dirty), (3, true));
    assert_eq!((after.changes, after.losses), (before.changes + 1, before.losses + 1));
}

#[test]
fn a_member_that_leaves_twice_is_removed_once() {
    let mut world = World::new(1, 1);
    let pages = world.copies(4, 1);
    let group = world.group(pages[0]);
    let LinkedPage { page, membership_number, .. } = world.linked(pages[1]);
    let leave = |world: &mut World, uncompared| {
        let message = Message::Leave { group, page, membership_number, uncompared };
        world.receive(group.shard(), message);
    };
    leave(&mut world, false);
    world.recompute(group, 0, Vec::new());
    let before = world.in_use(group);
    assert_eq!((before.members, before.dirty), (3, false));
    leave(&mut world, false);
    assert_eq!(world.in_use(group), before);
    // Tier 2 may have left out partners because it relied on a content whose search was never completed.
    leave(&mut world, true);
    assert!(world.in_use(group).dirty);
}

#[test]
fn a_comparison_of_another_content_gives_no_verdict() {
    let mut world = World::new(1, 1);
    // The last page is found through the second, and was not compared with the winner.
    for (name, k) in [("http://h/a", 0), ("http://h/bb", 1), ("http://h/ccc", 2)] {
        world.submit_content(name, k);
        world.compare_all();
    }
    let (page, content, _, winner_content) = world.verify.pop().unwrap();
    let with = ContentComparison {
        content: winner_content,
        similarity: Similarity { shared: 1, of: 2 },
        similar: true,
    };
    let status = |world: &World| world.record(page).unwrap().published.status;
    let other = world.signatures[30].content();
    world.commit(vec![Command::Verified { page, content: other, with }], usize::MAX);
    assert_eq!(status(&world), Status::Secondary);
    world.commit(vec![Command::Verified { page, content, with }], usize::MAX);
    assert_eq!(status(&world), Status::Duplicate);
}

#[test]
fn all_redirects_to_a_target_are_told_even_in_several_steps() {
    // This seed gives steps of three rows.
    let mut world = World::new(4, 1);
    assert_eq!(world.shards.settings.step_rows, 3);
    let target = "http://h/target";
    world.submit_content(target, 1);
    let sources: Vec<String> = (0..8).map(|n| format!("http://h/source/{n}")).collect();
    for source in &sources {
        world.push(source, Body::Redirect(PageUrl::parse(target).unwrap()));
    }
    world.settle();
    let statuses = |world: &World| {
        let status = |name: &String| world.record(PageId::of(name)).unwrap().published.status;
        sources.iter().map(status).collect::<Vec<_>>()
    };
    assert_eq!(statuses(&world), [Status::Duplicate; 8]);
    world.push(target, Body::Dead);
    world.settle();
    assert_eq!(statuses(&world), [Status::Unresolved; 8]);
}

#[test]
fn copies_count_as_one_content_and_cause_no_quarantine() {
    let mut world = World::new(1, 1);
    world.repairs = false;
    world.shards.settings.group_members_max = 2;
    let pages = world.copies(9, 1);
    let group = world.group(pages[0]);
    let record = world.in_use(group);
    assert_eq!((record.members, record.quarantined), (9, false));
    // Copies of the winner need no count.
    assert_eq!((record.contents_max, record.changes, record.losses), (1, 9, 0));
    // Copies of another content may each be a new content, until a recomputation counts.
    for copy in 0..5 {
        world.submit_content(&format!("http://h1/near/{copy}"), 2);
        world.compare_all();
    }
    assert!(world.in_use(group).dirty);
    world.settle();
    let record = world.in_use(group);
    assert_eq!((record.members, record.contents_max, record.quarantined), (14, 2, false));
    assert!(world.quarantines.is_empty());
    world.submit_content("http://h1/near/third", 3);
    world.compare_all();
    world.settle();
    assert_eq!(world.quarantines, [(group, 15, true)]);
    // Without the third content, two contents remain, however many copies they have.
    world.push("http://h1/near/third", Body::Dead);
    world.settle();
    assert_eq!(world.quarantines, [(group, 15, true), (group, 14, false)]);
}

#[test]
fn a_count_of_contents_is_repeated_if_later_changes_make_it_uncertain() {
    let mut world = World::new(1, 1);
    let chain = world.chain(3, 0);
    let group = world.group(chain[0]);
    for copy in 0..3 {
        world.submit_content(&format!("http://h0/yyyy/{copy}"), 0);
        world.compare_all();
    }
    world.settle();
    assert_eq!(world.in_use(group).members, 6);
    let state = |world: &World| {
        let record = world.in_use(group);
        (record.contents_max, record.quarantined, record.dirty)
    };
    // Three contents, and two changes since, which may have added two contents.
    world.shards.settings.group_members_max = 4;
    world.recompute(group, 2, Vec::new());
    assert_eq!(state(&world), (5, false, true));
    world.recompute(group, 1, Vec::new());
    assert_eq!(state(&world), (4, false, false));
    // One content more than the limit, and one change since, which may have removed it.
    world.shards.settings.group_members_max = 2;
    world.recompute(group, 1, Vec::new());
    assert_eq!(state(&world), (4, false, true));
    world.recompute(group, 0, Vec::new());
    assert_eq!(state(&world), (3, true, false));
    world.recompute(group, 1, Vec::new());
    assert_eq!(state(&world), (4, true, true));
}

#[test]
fn a_quarantine_ends_when_the_group_has_few_enough_contents() {
    let mut world = World::new(1, 1);
    world.shards.settings.group_members_max = 3;
    let pages = world.chain(5, 0);
    let group = world.group(pages[0]);
    assert!(world.in_use(group).quarantined);
    world.recompute(group, 0, Vec::new());
    assert!(world.in_use(group).quarantined);
    let evicted = vec![world.evicted(pages[3]), world.evicted(pages[4])];
    world.recompute(group, 0, evicted);
    assert!(!world.in_use(group).quarantined);
    assert_eq!(world.quarantines, [(group, 5, true), (group, 3, false)]);
    assert_eq!(world.trail(group), [(TrailEvent::Quarantined, 5), (TrailEvent::Released, 3)]);
}

#[test]
fn a_quarantine_ends_when_the_group_is_merged_or_empty() {
    let mut world = World::new(1, 1);
    world.shards.settings.group_members_max = 2;
    let (first, second) = (world.chain(3, 0), world.chain(3, 9));
    let (small, large) = (world.group(first[0]), world.group(second[0]));
    let evidence = Evidence { page: world.linked(first[0]), partner: world.linked(second[0]) };
    world.receive(large.shard(), Message::Merge { group: large, into: small, evidence });
    world.commit(Vec::new(), usize::MAX);
    assert_eq!(world.trail(large), [(TrailEvent::Quarantined, 3), (TrailEvent::Released, 3)]);
    assert_eq!(world.trail_entry(large.shard(), 3).into, Some(small));
    assert_eq!(world.trail(small), [(TrailEvent::Quarantined, 3)]);
    let pages: Vec<PageId> = first.into_iter().chain(second).collect();
    assert_eq!(world.in_use(small).members, 6);
    for page in pages {
        world.commit(vec![Command::Purge { page }], usize::MAX);
    }
    assert_eq!(world.group_record(small), None);
    assert_eq!(world.trail(small), [(TrailEvent::Quarantined, 3), (TrailEvent::Released, 1)]);
}

#[test]
fn a_group_that_stays_because_of_a_redirect_leaves_quarantine_once() {
    let mut world = World::new(1, 1);
    world.shards.settings.group_members_max = 2;
    let pages = world.chain(3, 0);
    let group = world.group(pages[0]);
    let target = world.record(pages[0]).unwrap().rank.url.clone();
    world.push("http://from/", Body::Redirect(target));
    world.settle();
    for page in &pages[1..] {
        world.commit(vec![Command::Purge { page: *page }], usize::MAX);
    }
    assert_eq!(world.in_use(group).members, 1);
    let told = [(TrailEvent::Quarantined, 3), (TrailEvent::Released, 1)];
    assert_eq!(world.trail(group), told[..1]);
    world.recompute(group, 0, Vec::new());
    assert_eq!(world.trail(group), told);
    world.commit(vec![Command::Purge { page: pages[0] }], usize::MAX);
    world.settle();
    assert_eq!(world.trail(group), told);
}

#[test]
fn the_last_member_of_a_dirty_group_is_searched_for_again() {
    let mut world = World::new(1, 1);
    let names = ["http://h/a", "http://h/bb", "http://h/ccc"];
    for (name, k) in names.iter().zip(0..) {
        world.submit_content(name, k);
        world.compare_all();
    }
    world.settle();
    let [a, b, c] = names.map(PageId::of);
    let group = world.group(a);
    // The middle of the chain leaves, then one end, before the worker recomputes the group.
    for (page, name) in [(b, names[1]), (c, names[2])] {
        world.push(name, Body::Dead);
        assert_eq!(world.record(page).unwrap().published.status, Status::Dead);
    }
    assert_eq!(world.group_record(group), None);
    assert_eq!(world.record(a).unwrap().published.status, Status::Pending);
}

#[test]
fn a_revived_group_has_counters_of_its_own() {
    let mut world = World::new(1, 1);
    let pages = world.copies(2, 1);
    let gone = GroupId::new(1_000, ShardId(0));
    let member: Member = read(&world.store, &key::member(world.group(pages[0]), pages[0])).unwrap().unwrap();
    let members = vec![(pages[0], member.clone()), (pages[1], member)];
    let transfer = Transfer { from: GroupId::new(2_000, ShardId(0)), first: true, members, done: None };
    world.receive(ShardId(0), Message::TransferMembers { into: gone, transfer });
    let Group { changes, losses, members, dirty, .. } = world.in_use(gone);
    assert!(changes >= 1 << 32 && losses >= 1 << 32, "{changes} changes, {losses} losses");
    assert_eq!((members, dirty), (2, true));
}

#[test]
fn an_answer_to_another_search_or_content_is_dropped() {
    let mut world = World::new(1, 1);
    world.copies(2, 1);
    let page = world.make_waiting_for_partner("http://h/b", 1);
    let before = world.record(page).unwrap();
    let (content, ticket) = (before.content().unwrap().content, before.ticket);
    let other = world.signatures[30].content();
    for (content, ticket) in [(content, ticket - 1), (other, ticket)] {
        world.receive(ShardId(0), Message::AnswerGroup { page, content, ticket, found: None });
        assert_eq!(world.record(page).unwrap(), before);
    }
    // The partner has gone. The page was never decided, so it is searched for again.
    world.receive(ShardId(0), Message::AnswerGroup { page, content, ticket, found: None });
    let after = world.record(page).unwrap();
    assert_eq!((after.published.status, after.ticket), (Status::Pending, ticket + 1));
}

/// A search with a stale partner continues as a new search. A repeated answer to the old search must not
/// count for it.
#[test]
fn a_search_with_a_stale_partner_among_others_is_owed_under_a_new_ticket() {
    let mut world = World::new(1, 1);
    let copies = world.copies(2, 1);
    let page = world.make_waiting_for_partner("http://h/b", 1);
    let before = world.record(page).unwrap();
    let partner = world.linked(copies[0]);
    let found = [PartnerGroup { group: world.group(copies[0]), partner }];
    let ticket = before.ticket;
    let effects = world.commit_only(|machine| {
        machine.current_shard = ShardId(0);
        machine.decide(page, before, &found, true).unwrap();
    });
    let after = world.record(page).unwrap();
    assert_eq!((after.content().unwrap().search, after.ticket), (SearchState::Deferred, ticket + 1));
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Deferred(owed) if *owed == page)));
}

#[test]
fn a_search_is_resumed_only_if_it_was_lost() {
    let mut world = World::new(1, 1);
    let compared = world.copies(2, 1)[0];
    let asking = world.make_waiting_for_partner("http://h/b", 1);
    for page in [compared, asking] {
        let before = world.record(page).unwrap();
        world.commit(vec![Command::ResumeSearch { page }], 0);
        assert!(world.orders.is_empty());
        assert_eq!(world.record(page).unwrap(), before);
    }
    world.submit_content("http://h/c", 2);
    world.orders.clear();
    let page = PageId::of("http://h/c");
    world.commit(vec![Command::ResumeSearch { page }], 0);
    assert_eq!(world.orders.len(), 1);
}

#[test]
fn an_unrequested_search_result_makes_the_page_owe_a_search() {
    let mut world = World::new(1, 1);
    let page = world.copies(2, 1)[0];
    let content = world.linked(page).content;
    let repeat = |content| {
        let (ticket, pairs) = (Search::UNREQUESTED, Vec::new());
        Command::Searched(SearchResult { page, content, ticket, pairs })
    };
    world.commit(vec![repeat(world.signatures[30].content())], usize::MAX);
    assert!(world.deferred.is_empty());
    world.commit(vec![repeat(content)], usize::MAX);
    assert_eq!(world.deferred, [page]);
    world.settle();
    world.check();
}

#[test]
fn a_page_whose_content_changes_within_its_group_keeps_its_membership() {
    let mut world = World::new(1, 1);
    for (name, k) in [("http://h/a", 1), ("http://h/bb", 1), ("http://h/ccc", 1)] {
        world.submit_content(name, k);
        world.compare_all();
    }
    world.settle();
    let page = PageId::of("http://h/ccc");
    let number = world.linked(page).membership_number;
    world.submit_content("http://h/ccc", 2);
    world.settle();
    assert_eq!(world.linked(page).membership_number, number);
    // The page tells the group's owner the partner on which its membership now rests.
    let asking = world.make_waiting_for_partner("http://h/ccc", 1);
    while !world.shards.queue.iter().any(|(envelope, _)| matches!(envelope.message, Message::Enroll { .. })) {
        world.commit(Vec::new(), 1);
    }
    let via = world.shards.queue.iter().find_map(|(envelope, _)| match &envelope.message {
        Message::Enroll { page, via, .. } if *page == asking => *via,
        _ => None,
    });
    let (_, content) = via.expect("the page enrolls with a partner");
    assert_eq!(content, world.signatures[1].content());
    world.settle();
    // A content of another family belongs to another group.
    world.submit_content("http://h/ccc", 20);
    world.settle();
    assert_ne!(world.record(page).unwrap().membership_number, number);
    world.check();
}

#[test]
fn a_page_without_tokens_is_unique_when_its_redirect_has_gone() {
    let mut world = World::new(1, 1);
    let empty = Arc::new(Builder::new().build(&[]));
    world.numbers.insert(empty.content(), 1_000);
    world.push("http://h/empty", Body::Content(empty));
    world.push("http://h/source", Body::Redirect(PageUrl::parse("http://h/empty").unwrap()));
    world.settle();
    let status = |world: &World| world.record(PageId::of("http://h/empty")).unwrap().published.status;
    assert_eq!(status(&world), Status::Winner);
    world.push("http://h/source", Body::Dead);
    world.settle();
    assert_eq!(status(&world), Status::Unique);
}

#[test]
fn a_new_version_has_its_own_language_and_a_death_has_none() {
    let mut world = World::new(1, 1);
    let page = PageId::of("http://h/a");
    let [first, second] = [1, 2].map(|k| Body::Content(Arc::clone(&world.signatures[k])));
    let mut language = |body, given: Option<&str>| {
        let mut command = world.version("http://h/a", body);
        if let Command::Submit { submission, .. } = &mut command {
            submission.language = given.map(Into::into);
        }
        world.commit(vec![command], usize::MAX);
        world.record(page).unwrap().language
    };
    assert_eq!(language(first, Some("de")).as_deref(), Some("de"));
    assert_eq!(language(second, Some("fr")).as_deref(), Some("fr"));
    // The language on record before depends on the order of arrival, so a death must clear it.
    assert_eq!(language(Body::Dead, None), None);
}

#[test]
fn a_second_death_changes_nothing() {
    let mut world = World::new(1, 1);
    world.outcome("http://h/a", Body::Dead);
    let event = world.record(PageId::of("http://h/a")).unwrap().event;
    assert_eq!(world.outcome("http://h/a", Body::Dead), SubmissionOutcome::Unchanged);
    assert_eq!(world.record(PageId::of("http://h/a")).unwrap().event, event);
}

#[test]
fn the_first_of_two_urls_with_one_hash_stays() {
    let mut world = World::new(1, 1);
    world.outcome("http://h/a", Body::Dead);
    let page = PageId::of("http://h/b");
    let first = world.record(PageId::of("http://h/a")).unwrap();
    let row = crate::rows::record::encode(&first).unwrap();
    world.store.commit(vec![(key::page(ShardId(0), page), Some(row))]).unwrap();
    let content = Body::Content(Arc::clone(&world.signatures[3]));
    assert_eq!(world.outcome("http://h/b", content), SubmissionOutcome::Stale);
    assert_eq!(world.record(page).unwrap(), first);
}

#[test]
fn retention_periods_end_at_the_exact_millisecond() {
    let mut world = World::new(1, 1);
    world.outcome("http://h/a", Body::Dead);
    let mut record = world.record(PageId::of("http://h/a")).unwrap();
    let [dead, purged, merged, audit] = [100, 10, 50, 70].map(Duration::from_millis);
    let retention = Retention { dead, purged, merged, audit };
    let at = Timestamp::from_millis;
    assert!(retention.is_page_due(&record, at(0)), "a sweep must note the end first");
    record.ended = Some(at(1_000));
    for (state, last) in [(State::Dead, 1_100), (State::Purged, 1_010)] {
        record.state = state;
        assert!(!retention.is_page_due(&record, at(last - 1)));
        assert!(retention.is_page_due(&record, at(last)));
    }
    let content = world.signatures[0].content();
    let pair = LinkedPage { page: PageId::of("http://h/a"), membership_number: 1, content };
    let mut forward = Forward {
        into: GroupId::new(1, ShardId(0)),
        dirty: false,
        search_again: false,
        evidence: Evidence { page: pair, partner: pair },
        begun: true,
        done: true,
        forwarding_entries: 0,
        ended: None,
    };
    assert!(retention.is_group_due(&forward, at(0)));
    forward.ended = Some(at(1_000));
    assert!(!retention.is_group_due(&forward, at(1_049)));
    assert!(retention.is_group_due(&forward, at(1_050)));
}

#[test]
fn a_commit_is_large_enough_at_its_row_limit_and_earlier_with_many_messages_under_way() {
    let mut world = World::new(1, 1);
    let shard = ShardId(0);
    let message = |number| {
        let message = Message::Continue { group: GroupId::new(1, shard) };
        (Envelope { from: shard, to: shard, number, message }, true)
    };
    // Row limit, and three eighths of it.
    for (messages, enough) in [(0, 16), (1_000, 16), (1_001, 12)] {
        world.shards.queue = (1..=messages).map(message).collect();
        let mut machine = Machine::new(&world.store, &mut world.shards, 16, Timestamp::from_millis(0));
        for row in 0..20_u8 {
            let rows = usize::from(row);
            assert_eq!(machine.has_enough(), rows >= enough, "{rows} rows, {messages} messages");
            assert_eq!(machine.has_eighths(3), rows >= 6, "{rows} rows");
            machine.txn.put(vec![row], Vec::new());
        }
    }
}
