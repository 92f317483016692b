//! A page that comes back after a purge, or after its record was dropped, is independent of its earlier life.

use doppel_model::ClientId;

use super::*;

const NAME: &str = "http://h/a";

impl World {
    /// Ends a page: purges it if `forgotten`, and submits its death otherwise.
    fn end_page(&mut self, name: &str, forgotten: bool) {
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

    /// Runs sweeps until the record of a page is dropped.
    fn drop_record(&mut self, name: &str) {
        for _ in 0..100 {
            if self.record(PageId::of(name)).is_none() {
                return;
            }
            self.wall += KEEP_MS as i64;
            self.expire_page(name);
        }
        panic!("the record of {name} was not dropped after 100 sweeps");
    }
}

/// A life with many tickets: the page has several contents without partners.
fn asks_often(world: &mut World) {
    for k in [0, 8, 16, 24] {
        world.submit_content(NAME, k);
        world.compare_all();
    }
}

/// A life with many memberships: a partner of the page comes and goes.
fn is_often_member(world: &mut World) {
    world.submit_content(NAME, 0);
    world.compare_all();
    for _ in 0..4 {
        for k in [1, 30] {
            world.submit_content("http://h/b", k);
            world.compare_all();
        }
    }
}

fn counters(world: &World) -> (u32, u32) {
    let record = world.record(PageId::of(NAME)).unwrap();
    (record.ticket, record.membership_number)
}

#[test]
fn a_page_that_comes_back_gets_higher_tickets_and_membership_numbers() {
    let mut more = [0, 0];
    for life in [asks_often, is_often_member] {
        // The page is dead or purged. A purged page comes back before or after its record is dropped.
        for (forgotten, dropped) in [(false, true), (true, true), (true, false)] {
            let mut world = World::new(1, 1);
            life(&mut world);
            let (ticket, number) = counters(&world);
            more[usize::from(ticket < number)] += 1;
            world.end_page(NAME, forgotten);
            if dropped {
                world.settle();
                world.drop_record(NAME);
            }
            world.submit_content(NAME, 0);
            let (new_ticket, new_number) = counters(&world);
            // A membership begins with the next number.
            assert!(new_ticket > ticket && new_number >= number, "{:?}", counters(&world));
            // Late results of searches from its earlier life, without partners.
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
    assert_eq!(more, [3, 3], "half of the lives must use more tickets, the others more memberships");
}
