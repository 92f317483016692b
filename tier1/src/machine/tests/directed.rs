//! Histories that random runs reach too rarely, each in a test of its own, and helpers for such tests.

use doppel_model::ClientId;

use super::*;

impl World {
    /// Submits a new content of a page, without deciding it.
    pub(super) fn submit_content(&mut self, name: &str, k: u64) {
        self.submit_with_hint(name, k, None);
    }

    /// Like [`World::submit_content`], but with a hint.
    pub(super) fn submit_with_hint(&mut self, name: &str, k: u64, hint: Option<Hint>) {
        self.clock += 1;
        self.model_submit(name, self.clock, None, &ModelBody::Content(k));
        let submission = Submission {
            url: PageUrl::parse(name).unwrap(),
            fetched_at: Timestamp::from_millis(self.clock),
            popularity: None,
            language: None,
            canonical: None,
            body: Body::Content(Arc::clone(&self.signatures[k as usize])),
        };
        self.commit(
            vec![Command::Submit { submission: Box::new(submission), hint, client: ClientId::NONE }],
            usize::MAX,
        );
    }

    /// Lets tier 2 answer all its orders.
    pub(super) fn compare_all(&mut self) {
        while !self.orders.is_empty() {
            self.index_step();
        }
        while let Some(command) = self.commands.pop_front() {
            self.commit(vec![command], usize::MAX);
        }
    }
}

#[test]
fn a_winner_that_changes_and_changes_back_leaves_no_member_unverified() {
    let mut world = World::new(1, 2);
    for (name, k) in [("http://h/a", 0), ("http://h/bb", 1), ("http://h/ccc", 2)] {
        world.submit_content(name, k);
        world.compare_all();
    }
    assert!(!world.verify.is_empty());
    world.submit_content("http://h/a", 20);
    // The winner has another content now, so the worker makes no comparison.
    while !world.verify.is_empty() {
        world.verify_step();
    }
    world.submit_content("http://h/a", 0);
    world.settle();
    world.check();
}

#[test]
fn a_group_marked_dirty_while_it_is_recomputed_stays_dirty() {
    let mut world = World::new(1, 1);
    for (name, k) in
        [("http://h/a", 1), ("http://h/b", 2), ("http://h/d", 4), ("http://h/e", 5), ("http://h/f", 6)]
    {
        world.submit_content(name, k);
        world.compare_all();
    }
    world.submit_content("http://h/f", 20);
    world.compare_all();
    while world.commands.is_empty() {
        world.regroup_step();
    }
    let old = world.commands.pop_back().unwrap();
    // Links both groups, and removes one page from its group.
    world.submit_content("http://h/e", 3);
    world.compare_all();
    world.commit(vec![old], usize::MAX);
    world.crash();
    world.settle();
    world.check();
}

#[test]
fn a_giant_group_is_quarantined_until_it_is_repaired_and_again_when_its_contents_have_doubled() {
    let mut world = World::new(1, 2);
    world.repairs = false;
    world.shards.settings.group_members_max = 2;
    let page = |number: usize| format!("http://h/{}", "x".repeat(number + 1));
    let grow = |world: &mut World, from: usize, to: usize| {
        for number in from..to {
            // Each page has its own content, and the contents form a chain.
            world.submit_content(&page(number), number as u64);
            world.compare_all();
        }
        world.settle();
    };
    let loser = |world: &World| world.record(PageId::of(&page(1))).unwrap().published;
    grow(&mut world, 0, 2);
    assert_eq!(loser(&world).status, Status::Duplicate);
    grow(&mut world, 2, 3);
    assert_eq!(loser(&world).status, Status::Secondary);

    let group = loser(&world).group.unwrap();
    let Some(GroupRecord::Active(record)) = read(&world.store, &key::group(group)).unwrap() else {
        panic!("the group is not in use")
    };
    let (changes, losses) = (record.changes, record.losses);
    let evicted = Vec::new();
    let repair = RecomputationStep {
        group,
        changes,
        losses,
        evicted,
        contents: 3,
        last: true,
        repair: true,
        audit: None,
    };
    world.commit(vec![Command::Recomputed(repair)], usize::MAX);
    world.settle();
    assert_eq!(loser(&world).status, Status::Duplicate);
    grow(&mut world, 3, 6);
    assert_eq!(loser(&world).status, Status::Duplicate);
    grow(&mut world, 6, 7);
    assert_eq!(loser(&world).status, Status::Secondary);
    let told = [(TrailEvent::Quarantined, 3), (TrailEvent::Released, 3), (TrailEvent::Quarantined, 7)];
    assert_eq!(world.trail(group), told);
}
