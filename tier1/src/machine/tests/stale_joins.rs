//! Messages that join groups and arrive after their pair has gone. The groups were recomputed in the
//! meantime, and nothing else makes them owe another recomputation.

use super::*;
use crate::bulk::{Bulk, BulkConfig, BulkOutput, Unit};
use crate::machine::Envelope;
use crate::machine::Message;
use crate::rows::record::Group;

/// A message taken out of the queue, in order to be delivered later.
struct Delayed((Envelope, bool));

impl World {
    /// Creates a world of three shards, in which dissimilar members cause no recomputation.
    fn on_three_shards() -> Self {
        let mut world = Self::new(1, 3);
        world.shards.settings.low_cohesion_percent = 0;
        world
    }

    /// Returns the URL with this number among those whose page belongs to a shard.
    fn url_at(&self, shard: u16, number: usize) -> String {
        let urls = (0..).map(|n| format!("http://h/{n}"));
        let here = |url: &String| self.shards.owner(PageId::of(url)) == ShardId(shard);
        urls.filter(here).nth(number).unwrap()
    }

    /// Creates pages of one shard with contents that form a group of their own, at rest.
    fn group_of(&mut self, shard: u16, contents: &[u64]) -> Vec<String> {
        let names: Vec<String> = (0..contents.len()).map(|number| self.url_at(shard, number)).collect();
        for (name, k) in names.iter().zip(contents) {
            self.submit_content(name, *k);
            self.compare_all();
        }
        self.settle();
        names
    }

    /// Delivers messages one by one until a message of this kind is sent, and takes it out.
    fn delay(&mut self, what: impl Fn(&Message) -> bool) -> Delayed {
        loop {
            let at = self.shards.queue.iter().position(|(envelope, _)| what(&envelope.message));
            if let Some(at) = at {
                return Delayed(self.shards.queue.remove(at).unwrap());
            }
            assert!(self.shards.undelivered() > 0, "no such message was sent");
            self.commit(Vec::new(), 1);
        }
    }

    fn arrive(&mut self, Delayed(message): Delayed) {
        self.shards.queue.push_front(message);
    }

    /// Returns the group of a page, at rest.
    fn active(&self, name: &str) -> (GroupId, Group) {
        let group = self.record(PageId::of(name)).unwrap().published.group.expect("the page has a group");
        match read(&self.store, &key::group(group)).unwrap() {
            Some(GroupRecord::Active(record)) => (group, record),
            other => panic!("{group} is not in use: {other:?}"),
        }
    }

    /// Asserts that the pages are the members of one group, which owes no recomputation.
    fn assert_group_at_rest(&self, names: &[&String]) {
        let (group, record) = self.active(names[0]);
        assert!(names.iter().all(|name| self.active(name).0 == group), "{names:?} are not one group");
        assert_eq!((record.members, record.dirty), (names.len() as u64, false));
    }

    /// Submits and decides a page. The messages of the decision are not delivered.
    fn decide_only(&mut self, name: &str, k: u64) {
        self.submit_content(name, k);
        while !self.orders.is_empty() {
            self.index_step();
        }
        let commands: Vec<Command> = self.commands.drain(..).collect();
        self.commit(commands, 0);
    }

    /// Creates two groups, and a page of a third shard that links them. The message that joins the groups is
    /// delayed.
    fn linked_by_one(&mut self, delayed: impl Fn(&Message) -> bool) -> LinkedGroups {
        let (small, large) = (self.group_of(0, &[0, 1]), self.group_of(1, &[3, 4, 5]));
        let page = self.url_at(2, 0);
        self.decide_only(&page, 2);
        let delayed = self.delay(delayed);
        self.settle();
        LinkedGroups { small, large, page, delayed }
    }
}

struct LinkedGroups {
    small: Vec<String>,
    large: Vec<String>,
    page: String,
    delayed: Delayed,
}

fn is_merge(message: &Message) -> bool {
    matches!(message, Message::Merge { .. })
}

fn is_last_transfer(message: &Message) -> bool {
    matches!(message, Message::TransferMembers { transfer, .. } if transfer.done.is_some())
}

#[test]
fn a_merge_whose_pair_has_gone_causes_a_recomputation() {
    // The page that found the pair leaves before the merge or the members arrive.
    for what in [is_merge, is_last_transfer] {
        let mut world = World::on_three_shards();
        let LinkedGroups { small, page, delayed, .. } = world.linked_by_one(what);
        world.submit_content(&page, 20);
        world.settle();
        world.assert_group_at_rest(&[&small[0], &small[1]]);
        world.arrive(delayed);
        world.settle();
        world.check();
    }
    // The partner leaves instead.
    let mut world = World::on_three_shards();
    let LinkedGroups { small, large, page, delayed } = world.linked_by_one(is_merge);
    world.submit_content(&large[0], 30);
    world.settle();
    world.assert_group_at_rest(&[&small[0], &small[1], &page]);
    world.assert_group_at_rest(&[&large[1], &large[2]]);
    world.arrive(delayed);
    world.settle();
    world.check();
}

/// The page gets another content. Its group contains a partner for this content, and the other group does
/// not.
#[test]
fn a_merge_whose_page_has_another_content_causes_a_recomputation() {
    for what in [is_merge, is_last_transfer] {
        let mut world = World::on_three_shards();
        let LinkedGroups { small, page, delayed, .. } = world.linked_by_one(what);
        world.submit_content(&page, 0);
        world.settle();
        world.assert_group_at_rest(&[&small[0], &small[1], &page]);
        world.arrive(delayed);
        world.settle();
        world.check();
    }
}

/// Both pages of the pair are members of one group: first of the survivor, then of the merged group.
#[test]
fn a_merge_whose_pair_is_in_one_group_causes_a_recomputation() {
    let mut world = World::on_three_shards();
    let (small, large) = (world.group_of(0, &[0, 1]), world.group_of(1, &[6, 5, 4]));
    let (page, partner) = (world.url_at(2, 0), world.url_at(0, 3));
    world.submit_content(&partner, 3);
    world.compare_all();
    world.settle();
    world.decide_only(&page, 2);
    let delayed = world.delay(is_merge);
    world.settle();
    // The partner is evicted from its group, and finds the page's group.
    world.submit_content(&large[2], 20);
    world.settle();
    world.assert_group_at_rest(&[&small[0], &small[1], &page, &partner]);
    world.assert_group_at_rest(&[&large[0], &large[1]]);
    world.arrive(delayed);
    world.settle();
    world.check();

    let mut world = World::on_three_shards();
    let Crossed { small, large, page, partner, delayed } = crossed(&mut world);
    world.settle();
    // The partner is evicted from its group, and finds the page's group.
    world.submit_content(&small[2], 20);
    world.settle();
    world.assert_group_at_rest(&[&small[0], &small[1]]);
    world.assert_group_at_rest(&[&page, &partner, &large[0], &large[1]]);
    world.arrive(delayed);
    world.settle();
    world.check();
}

/// Two groups, and a page of the larger one with a partner in the smaller one. The merge is delayed.
struct Crossed {
    small: Vec<String>,
    large: Vec<String>,
    page: String,
    partner: String,
    delayed: Delayed,
}

fn crossed(world: &mut World) -> Crossed {
    // The page is in the first shard, so it is transferred first.
    let (small, large) = (world.group_of(1, &[0, 1, 2]), world.group_of(2, &[5, 5]));
    let (page, partner) = (world.url_at(0, 0), world.url_at(1, 3));
    world.submit_content(&page, 5);
    world.compare_all();
    world.submit_content(&partner, 3);
    world.compare_all();
    world.settle();
    // The page is confirmed. So its search finds the other group while it is a member of its own group.
    let hint = world.hint(PageId::of(&page), &ModelBody::Content(4));
    world.submit_with_hint(&page, 4, hint);
    world.compare_all();
    let search = Command::SearchNow { page: world.deferred.pop().unwrap() };
    world.commit(vec![search], usize::MAX);
    while !world.orders.is_empty() {
        world.index_step();
    }
    let found: Vec<Command> = world.commands.drain(..).collect();
    world.commit(found, 0);
    let delayed = world.delay(is_merge);
    Crossed { small, large, page, partner, delayed }
}

/// The partner reaches the survivor through the merged group, while that group is being transferred.
#[test]
fn a_merge_whose_partner_comes_through_the_merged_group_causes_a_recomputation() {
    let mut world = World::on_three_shards();
    world.shards.settings.step_rows = 1;
    let Crossed { small, partner, delayed, .. } = crossed(&mut world);
    world.settle();
    world.submit_content(&small[2], 20);
    let id = PageId::of(&partner);
    let is_its = |message: &Message| matches!(message, Message::Enroll { page, .. } if *page == id);
    while !world.shards.queue.iter().any(|(envelope, _)| is_its(&envelope.message)) {
        match world.commands.pop_front() {
            Some(command) => world.commit(vec![command], 0),
            None if world.shards.undelivered() > 0 => world.commit(Vec::new(), 1),
            None if !world.orders.is_empty() => world.index_step(),
            None => world.regroup_step(),
        }
    }
    let newcomer = world.delay(is_its);
    world.settle();
    world.assert_group_at_rest(&[&small[0], &small[1]]);
    // Deliver the merge and the transfer of the first of three members.
    world.arrive(delayed);
    world.commit(Vec::new(), 1);
    world.commit(Vec::new(), 1);
    world.arrive(newcomer);
    world.settle();
    world.check();
}

#[test]
fn a_newcomer_whose_partner_has_gone_causes_a_recomputation() {
    let mut world = World::on_three_shards();
    let names = world.group_of(0, &[1, 0, 0]);
    let page = world.url_at(2, 0);
    world.decide_only(&page, 2);
    let delayed = world.delay(|message| matches!(message, Message::Enroll { via: Some(_), .. }));
    world.submit_content(&names[0], 20);
    // The newcomer's own messages wait behind the delayed one, so the world does not come to rest.
    for _ in 0..1_000 {
        world.commit(Vec::new(), 1);
        world.compare_all();
        world.regroup_step();
    }
    world.assert_group_at_rest(&[&names[1], &names[2]]);
    world.arrive(delayed);
    world.settle();
    world.check();
}

#[test]
fn a_merged_group_passes_its_owed_recomputation_to_the_survivor() {
    let mut world = World::on_three_shards();
    let (small, large) = (world.group_of(0, &[0, 1]), world.group_of(1, &[4, 3, 5]));
    // Only the first page links the others.
    world.submit_content(&large[0], 20);
    world.compare_all();
    let (_, owes) = world.active(&large[1]);
    assert!(owes.dirty);
    let page = world.url_at(2, 0);
    world.submit_content(&page, 2);
    world.compare_all();
    world.settle();
    world.assert_group_at_rest(&[&small[0], &small[1], &page, &large[1]]);
    world.check();
}

#[test]
fn a_page_evicted_before_its_decision_is_searched_for_again() {
    let mut world = World::on_three_shards();
    let small = world.group_of(0, &[0, 1]);
    // Tier 2 answers before it knows a partner of the page, and the answer is slow.
    let undecided = world.url_at(1, 0);
    world.submit_content(&undecided, 3);
    while !world.orders.is_empty() {
        world.index_step();
    }
    let slow: Vec<Command> = world.commands.drain(..).collect();
    // A page that links the undecided page to the group is on its way to the group. The two groups merge in
    // the meantime.
    let page = world.url_at(2, 0);
    world.decide_only(&page, 2);
    let enroll = world.delay(|message| matches!(message, Message::Enroll { via: Some(_), .. }));
    while world.shards.undelivered() > 0 {
        world.commit(Vec::new(), usize::MAX);
    }
    // Without that page, nothing links the undecided page to the group, which is recomputed.
    world.regroup_step();
    let recomputed: Vec<Command> = world.commands.drain(..).collect();
    world.commit(recomputed, usize::MAX);
    let record = world.record(PageId::of(&undecided)).unwrap();
    assert_eq!(record.content().unwrap().membership, None);
    world.commit(slow, usize::MAX);
    world.arrive(enroll);
    world.settle();
    world.check();
    world.assert_group_at_rest(&[&small[0], &small[1], &page, &undecided]);
}

/// Creates a redirect to a dead page, by versions that come one by one or by bulk grouping.
fn dead_target(at_once: bool) -> World {
    let mut world = World::new(1, 1);
    let target = PageUrl::parse("http://h/gone").unwrap();
    if !at_once {
        world.push("http://h/gone", Body::Dead);
        world.push("http://h/source", Body::Redirect(target));
        world.settle();
        return world;
    }
    let config = BulkConfig {
        policy: Policy::default(),
        winners: WinnerOrder::DEFAULT,
        market: None,
        group_members_max: 100,
        unit: Unit::Page,
        keep: BulkOutput::Answer { memory_max: usize::MAX, temp_dir: &std::env::temp_dir() },
    };
    let version = |url: &str, body| Submission {
        url: PageUrl::parse(url).unwrap(),
        fetched_at: Timestamp::from_millis(1),
        popularity: None,
        language: None,
        canonical: None,
        body,
    };
    let versions = [version("http://h/gone", Body::Dead), version("http://h/source", Body::Redirect(target))];
    let (_, rows) = Bulk::rows(&config, RangeMap::new(1, 1).unwrap(), versions).unwrap();
    world.store.commit(rows.into_iter().flatten().collect()).unwrap();
    world.crash();
    world
}

#[test]
fn a_dead_target_becomes_unknown_when_retention_drops_it() {
    for at_once in [false, true] {
        let mut world = dead_target(at_once);
        let (gone, source) = (PageId::of("http://h/gone"), PageId::of("http://h/source"));
        let seen = |world: &World| {
            let record = world.record(source).unwrap();
            (record.published.reason, record.event)
        };
        let (reason, event) = seen(&world);
        assert_eq!(reason, Some(UnresolvedReason::DeadTarget), "at once: {at_once}");
        for _ in 0..2 {
            world.wall += 2 * KEEP_MS as i64;
            let now = Timestamp::from_millis(world.wall);
            world.commit(vec![Command::ExpirePage { page: gone, now }], usize::MAX);
        }
        assert_eq!(world.record(gone), None);
        world.settle();
        let (reason, later) = seen(&world);
        assert_eq!(reason, Some(UnresolvedReason::UnknownTarget), "at once: {at_once}");
        assert!(later > event, "the feed must report the new reason");
    }
}
