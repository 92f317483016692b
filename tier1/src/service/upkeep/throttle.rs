//! Delays searches that one page orders again and again.
//!
//! A page may be refused by a group that was dissolved. It searches, finds the same partner, which has not
//! heard of that yet, and is refused again. This repeats as long as the message to the partner is held up,
//! and would keep tier 2 and the writer busy all that time.
//!
//! The throttle keeps no durable state. The page owes the search until it is answered, and a start finds it.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use doppel_model::PageId;
use doppel_protocol::IndexCommand;

/// Searches of a page that are ordered at once. Each further one is delayed.
const FREE: u32 = 2;

/// First and longest delay. Each delay is twice as long as the one before.
const PAUSE: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// After this long without a search, a page starts without a delay again.
const FORGOTTEN: Duration = Duration::from_secs(5);

/// Most pages that are remembered. If there are more, all are forgotten.
const PAGES_MAX: usize = 50_000;

/// The last searches of a page.
#[derive(Debug, Clone, Copy)]
struct RecentSearches {
    times: u32,
    /// When the last search was ordered, or will be.
    last: Instant,
}

/// Searches that were ordered lately, and searches that are delayed.
#[derive(Debug, Default)]
pub(in crate::service) struct SearchThrottle {
    recent: HashMap<PageId, RecentSearches>,
    /// Delayed searches and when they are due. If a page has two, the later one counts, because the ticket of
    /// the earlier one is void.
    waiting: HashMap<PageId, (Instant, IndexCommand)>,
}

impl SearchThrottle {
    /// Takes an order. Returns it if it is not delayed.
    pub(in crate::service) fn take(&mut self, order: IndexCommand, now: Instant) -> Option<IndexCommand> {
        let page = match &order {
            IndexCommand::Search { page, .. } => *page,
            IndexCommand::Put { page, search: Some(_), .. } => {
                // The delayed search has an earlier ticket.
                self.waiting.remove(page);
                return Some(order);
            }
            IndexCommand::Put { .. } | IndexCommand::Remove { .. } => return Some(order),
        };
        if self.recent.len() >= PAGES_MAX {
            self.recent.clear();
        }
        let searches = self.recent.entry(page).or_insert(RecentSearches { times: 0, last: now });
        if now.saturating_duration_since(searches.last) >= FORGOTTEN {
            searches.times = 0;
        }
        searches.times = searches.times.saturating_add(1);
        let Some(waits) = searches.times.checked_sub(FREE + 1) else {
            searches.last = now;
            self.waiting.remove(&page);
            return Some(order);
        };
        let pause = PAUSE.saturating_mul(1_u32.checked_shl(waits).unwrap_or(u32::MAX)).min(PAUSE_MAX);
        searches.last = now + pause;
        self.waiting.insert(page, (searches.last, order));
        None
    }

    /// Takes the searches whose delay is over, or all of them if a caller waits for a flush.
    pub(in crate::service) fn due(
        &mut self,
        now: Instant,
        flushing: bool,
    ) -> impl Iterator<Item = IndexCommand> {
        let due = self.waiting.extract_if(move |_, (at, _)| flushing || *at <= now);
        due.map(|(_, (_, order))| order)
    }

    pub(in crate::service) fn is_empty(&self) -> bool {
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
        let mut throttle = SearchThrottle::default();
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
        // Another page is not delayed, and after a while the first one starts again.
        assert_eq!(tickets(throttle.take(search(2, 1), now)), [1]);
        assert_eq!(tickets(throttle.take(search(1, 13), now + FORGOTTEN)), [13]);
    }

    #[test]
    fn only_the_last_search_of_a_page_is_delayed_and_a_flush_releases_it() {
        let mut throttle = SearchThrottle::default();
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
    fn a_search_for_a_new_content_replaces_the_delayed_one() {
        let mut throttle = SearchThrottle::default();
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
