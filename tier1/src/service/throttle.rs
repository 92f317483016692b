//! Searches that are ordered for one page again and again, with a pause between them.
//!
//! A page may be refused by a group that has dissolved, search, find the same partner, which has not heard of that yet,
//! and be refused again, for as long as the message to the partner is held up. Without a pause it would keep tier 2 and
//! the writer busy all that time.
//!
//! Nothing in here has to be durable: the page owes the search until it is answered, and a start finds it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use doppel_model::PageId;
use doppel_protocol::IndexCommand;

/// Searches of a page that go at once; each further one waits.
const FREE: u32 = 2;

/// The pause of the first that waits; it doubles with each that follows.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// A page whose last search went so long ago begins anew.
const FORGOTTEN: Duration = Duration::from_secs(5);

/// Pages that are remembered. Past them all begin anew.
const PAGES_MAX: usize = 50_000;

/// The last searches of a page.
#[derive(Debug, Clone, Copy)]
struct Asked {
    times: u32,
    /// When the last one went, or goes.
    last: Instant,
}

/// What was ordered lately, and what waits.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    asked: HashMap<PageId, Asked>,
    /// Searches and when they go. Of two of one page the later counts: the ticket of the other is void.
    waiting: HashMap<PageId, (Instant, IndexCommand)>,
}

impl Throttle {
    /// Takes an order; gives it back when it is to go now.
    pub(super) fn take(&mut self, order: IndexCommand, now: Instant) -> Option<IndexCommand> {
        let page = match &order {
            IndexCommand::Search { page, .. } => *page,
            IndexCommand::Put { page, search: Some(_), .. } => {
                // The search that waits has an earlier ticket.
                self.waiting.remove(page);
                return Some(order);
            }
            IndexCommand::Put { .. } | IndexCommand::Remove { .. } => return Some(order),
        };
        if self.asked.len() >= PAGES_MAX {
            self.asked.clear();
        }
        let asked = self.asked.entry(page).or_insert(Asked { times: 0, last: now });
        if now.saturating_duration_since(asked.last) >= FORGOTTEN {
            asked.times = 0;
        }
        asked.times = asked.times.saturating_add(1);
        let Some(waits) = asked.times.checked_sub(FREE + 1) else {
            asked.last = now;
            self.waiting.remove(&page);
            return Some(order);
        };
        let pause = PAUSE.saturating_mul(1_u32.checked_shl(waits).unwrap_or(u32::MAX)).min(PAUSE_MAX);
        asked.last = now + pause;
        self.waiting.insert(page, (asked.last, order));
        None
    }

    /// The searches whose pause is over; all of them when a caller waits for a flush.
    pub(super) fn due(&mut self, now: Instant, flushing: bool) -> impl Iterator<Item = IndexCommand> {
        let due = self.waiting.extract_if(move |_, (at, _)| flushing || *at <= now);
        due.map(|(_, (_, order))| order)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use doppel_model::signature::Builder;
    use doppel_model::{ClientId, ContentHash};
    use doppel_protocol::Search;

    use super::*;

    fn search(page: u8, ticket: u32) -> IndexCommand {
        let content = ContentHash([7; 16]);
        IndexCommand::Search {
            page: PageId::from_bytes([page; 16]),
            content,
            search: Search { ticket, client: ClientId::NONE },
        }
    }

    fn tickets(orders: impl IntoIterator<Item = IndexCommand>) -> Vec<u32> {
        let ticket = |order| match order {
            IndexCommand::Search { search, .. } => search.ticket,
            other => panic!("{other:?}"),
        };
        let mut tickets: Vec<u32> = orders.into_iter().map(ticket).collect();
        tickets.sort_unstable();
        tickets
    }

    #[test]
    fn a_page_that_searches_again_and_again_waits_longer_and_longer() {
        let mut throttle = Throttle::default();
        let mut now = Instant::now();
        let mut pauses = Vec::new();
        for ticket in 1..=12 {
            let went = throttle.take(search(1, ticket), now);
            let began = now;
            while went.is_none() && !throttle.is_empty() {
                now += Duration::from_millis(1);
                let due = tickets(throttle.due(now, false));
                assert!(due.is_empty() || due == [ticket]);
            }
            pauses.push((now - began).as_millis());
        }
        assert_eq!(pauses, [0, 0, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000, 1_000]);
        // Another page does not wait with it, and after a while it begins anew.
        assert_eq!(tickets(throttle.take(search(2, 1), now)), [1]);
        assert_eq!(tickets(throttle.take(search(1, 13), now + FORGOTTEN)), [13]);
    }

    #[test]
    fn the_last_search_of_a_page_is_the_one_that_waits_and_a_flush_lets_it_go() {
        let mut throttle = Throttle::default();
        let now = Instant::now();
        for ticket in 1..=5 {
            drop(throttle.take(search(1, ticket), now));
            drop(throttle.take(search(2, ticket + 10), now));
        }
        assert!(tickets(throttle.due(now, false)).is_empty());
        assert_eq!(tickets(throttle.due(now, true)), [5, 15]);
        assert!(throttle.is_empty());
    }

    #[test]
    fn a_search_that_goes_with_a_new_content_leaves_none_waiting() {
        let mut throttle = Throttle::default();
        let now = Instant::now();
        for ticket in 1..=3 {
            drop(throttle.take(search(1, ticket), now));
        }
        assert!(!throttle.is_empty());
        let signature = Arc::new(Builder::new().build(&(0..40).collect::<Vec<u64>>()));
        let next = Some(Search { ticket: 4, client: ClientId::NONE });
        let put = IndexCommand::Put { page: PageId::from_bytes([1; 16]), signature, search: next };
        assert!(throttle.take(put, now).is_some() && throttle.is_empty());
    }
}
