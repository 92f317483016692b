//! A page that comes back, after it was forgotten or its record dropped, is none of its earlier life.

use super::*;
use doppel_model::ClientId;

const NAME: &str = "http://h/a";

impl World {
    fn end_of(&mut self, name: &str, forgotten: bool) {
        let page = PageId::of(name);
        let command = if forgotten {
            self.model.remove(name);
            Command::Purge { page }
        } else {
            self.clock += 1;
            self.model_submit(name, self.clock, None, &ModelBody::Dead);
            let submission = Submission {
                url: PageUrl::parse(name).unwrap(),
                fetched_at: Timestamp::from_millis(self.clock),
                popularity: None,
                language: None,
                canonical: None,
                body: Body::Dead,
            };
            Command::Submit { submission: Box::new(submission), hint: None, client: ClientId::NONE }
        };
        self.commit(vec![command], usize::MAX);
    }

    /// Retention passes until nothing is left of a page.
    fn drop_record(&mut self, name: &str) {
        for _ in 0..100 {
            if self.record(PageId::of(name)).is_none() {
                return;
            }
            self.wall += KEEP_MS as i64;
            self.expire_page(name);
        }
        panic!("{name} is kept");
    }
}

/// A life in which a page asks often: other contents that nobody else has.
fn asks_often(world: &mut World) {
    for k in [0, 8, 16, 24] {
        world.give(NAME, k);
        world.compare_all();
    }
}

/// A life in which a page is in many groups: a partner comes and goes.
fn is_often_member(world: &mut World) {
    world.give(NAME, 0);
    world.compare_all();
    for _ in 0..4 {
        for k in [1, 30] {
            world.give("http://h/b", k);
            world.compare_all();
        }
    }
}

fn counters(world: &World) -> (u32, u32) {
    let record = world.record(PageId::of(NAME)).unwrap();
    (record.ticket, record.membership_number)
}

#[test]
fn a_page_that_comes_back_begins_past_its_tickets() {
    let mut more = [0, 0];
    for life in [asks_often, is_often_member] {
        // Dead or forgotten; and what was forgotten comes back before or after its record is dropped.
        for (forgotten, dropped) in [(false, true), (true, true), (true, false)] {
            let mut world = World::new(1, 1);
            life(&mut world);
            let (ticket, number) = counters(&world);
            more[usize::from(ticket < number)] += 1;
            world.end_of(NAME, forgotten);
            if dropped {
                world.settle();
                world.drop_record(NAME);
            }
            world.give(NAME, 0);
            let (new_ticket, new_number) = counters(&world);
            // A membership begins with the next number.
            assert!(new_ticket > ticket && new_number >= number, "{:?}", counters(&world));
            // Searches of its earlier life are answered at last: they found nobody.
            for ticket in 0..=ticket {
                let content = world.signatures[0].content();
                let answer = SearchResult { page: PageId::of(NAME), content, ticket, pairs: Vec::new() };
                world.commit(vec![Command::Searched(answer)], usize::MAX);
                assert_eq!(world.record(PageId::of(NAME)).unwrap().published.status, Status::Pending);
            }
            world.settle();
            world.check();
        }
    }
    assert_eq!(more, [3, 3], "lives with more tickets, and with more memberships");
}
