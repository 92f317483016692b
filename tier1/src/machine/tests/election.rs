//! Elections that take several steps.

use doppel_model::ClientId;

use super::*;
use crate::machine::Message;
use crate::rows::record::Group;

/// A group of ten copies, in the winner order. Its elections take four steps.
struct GroupOfTen {
    world: World,
    names: Vec<String>,
    group: GroupId,
}

impl GroupOfTen {
    fn new() -> Self {
        let mut world = World::new(4, 1);
        assert_eq!(world.shards.settings.step_rows, 3);
        world.repairs = false;
        let pages = world.copies(10, 1);
        let group = world.group(pages[0]);
        let names = (1..=10).map(|n| format!("http://h1/{}", "x".repeat(n))).collect();
        Self { world, names, group }
    }

    /// Submits a new version of a page: a copy with this popularity, or its death. Delivers no message.
    fn fetch(&mut self, name: &str, popularity: Option<f64>) {
        self.world.clock += 1;
        let at = self.world.clock;
        let (model, body) = match popularity {
            Some(_) => (ModelBody::Content(1), Body::Content(Arc::clone(&self.world.signatures[1]))),
            None => (ModelBody::Dead, Body::Dead),
        };
        self.world.model_submit(name, at, popularity, &model);
        let submission = Submission {
            url: PageUrl::parse(name).unwrap(),
            fetched_at: Timestamp::from_millis(at),
            popularity,
            language: None,
            canonical: None,
            body,
        };
        let command =
            Command::Submit { submission: Box::new(submission), hint: None, client: ClientId::NONE };
        self.world.commit(vec![command], 0);
    }

    fn record(&self) -> Group {
        self.world.in_use(self.group)
    }

    /// Delivers messages one by one until an election is under way.
    fn begin(&mut self) {
        while self.record().election.is_none() {
            assert!(self.world.shards.undelivered() > 0, "no election began");
            self.world.commit(Vec::new(), 1);
        }
    }

    /// Submits the winner's death, and delivers messages until the first step of the election is made.
    fn begin_by_death(&mut self) {
        let winner = self.names[0].clone();
        self.fetch(&winner, None);
        self.begin();
    }

    /// Returns the winner that each page except the first knows.
    fn told(&self) -> Vec<PageId> {
        let told = |name: &String| {
            let record = self.world.record(PageId::of(name)).unwrap();
            record.content().unwrap().membership.as_ref().unwrap().winner.as_ref().unwrap().page
        };
        self.names[1..].iter().map(told).collect()
    }

    fn comes_to_rest_with(mut self, winner: &str) {
        self.world.settle();
        self.world.check();
        assert_eq!(self.record().winner.unwrap().0, PageId::of(winner));
        assert_eq!(self.told(), [PageId::of(winner); 9]);
    }
}

#[test]
fn an_election_reads_few_members_per_step_and_announces_after_the_last_step() {
    let mut ten = GroupOfTen::new();
    ten.begin_by_death();
    let mut steps = 1;
    while ten.record().election.is_some() {
        assert_eq!(ten.told(), [PageId::of(&ten.names[0]); 9]);
        ten.world.commit(Vec::new(), 1);
        steps += 1;
    }
    // Three steps find nine members, and one more step finds none.
    assert_eq!(steps, 4);
    let second = ten.names[1].clone();
    ten.comes_to_rest_with(&second);
}

#[test]
fn rows_that_elections_read_count_towards_the_size_of_a_commit() {
    let mut ten = GroupOfTen::new();
    ten.begin_by_death();
    let before = ten.record().election;
    let world = &mut ten.world;
    // A step writes two rows. Reading three rows of members counts as no row, and reading six counts as one.
    let mut machine = Machine::new(&world.store, &mut world.shards, 3, Timestamp::from_millis(0));
    machine.deliver(usize::MAX).unwrap();
    assert_eq!(machine.rows_read, 6);
    let writes = machine.finish().unwrap().writes;
    world.store.commit(writes).unwrap();
    let after = ten.record().election;
    assert!(after.is_some() && after != before, "{after:?}");
    let second = ten.names[1].clone();
    ten.comes_to_rest_with(&second);
}

#[test]
fn a_better_page_that_comes_during_an_election_wins_it() {
    let mut ten = GroupOfTen::new();
    ten.begin_by_death();
    let last = ten.names[9].clone();
    ten.fetch(&last, Some(5.0));
    ten.comes_to_rest_with(&last);
}

#[test]
fn an_election_begins_again_when_the_best_so_far_leaves() {
    let mut ten = GroupOfTen::new();
    ten.begin_by_death();
    let best = ten.record().winner.unwrap().0;
    let at = ten.names.iter().position(|name| PageId::of(name) == best).unwrap();
    let name = ten.names.remove(at);
    ten.fetch(&name, None);
    while ten.world.shards.undelivered() > 0 {
        ten.world.commit(Vec::new(), 1);
    }
    ten.world.settle();
    ten.world.check();
    assert_eq!(ten.told(), [PageId::of(&ten.names[1]); 8]);
}

#[test]
fn an_election_that_the_old_winner_wins_announces_nothing() {
    let mut ten = GroupOfTen::new();
    let winner = ten.names[0].clone();
    ten.fetch(&winner, Some(900.0));
    ten.world.settle();
    ten.fetch(&winner, Some(5.0));
    ten.begin();
    let mut assigned = 0;
    while let Some((envelope, _)) = ten.world.shards.queue.front() {
        assigned += usize::from(matches!(envelope.message, Message::Assign { .. }));
        ten.world.commit(Vec::new(), 1);
    }
    // Only the member that changed gets an answer.
    assert_eq!(assigned, 1);
    ten.comes_to_rest_with(&winner);
}
