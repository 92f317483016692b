//! The figures of a range: totals, totals of its shards, and how long its pages wait for their decision.
//!
//! Invariant: the figures remember at most as many waiting pages as are pending, in a queue of at most about
//! twice as many entries. After a flood of pages its memory is given back.

use std::collections::VecDeque;
use std::time::Instant;

use doppel_contract::{Backlog, Counters};
use doppel_model::{ClientId, PageId};
use doppel_protocol::{DecisionTimes, ShardTotals};
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::machine::Wait;
use crate::range::Range;
use crate::rows::totals;

/// Entries that the queue may have besides those of waiting pages.
const QUEUE_SLACK: usize = 1_024;

/// A collection shrinks when its capacity exceeds this multiple of its entries and the slack.
const SPARSE: usize = 4;

/// The figures of a range after its last commit.
pub(in crate::service) struct Figures {
    totals: (Counters, Backlog),
    shards: Vec<ShardTotals>,
    waits: DecisionWaits,
}

impl Figures {
    /// Figures of a range that this process begins to own.
    pub(in crate::service) fn new(range: &Range, now: Instant) -> Self {
        Self { totals: totals_of(range), shards: shards_of(range), waits: DecisionWaits::new(now) }
    }

    /// Takes over the figures after a commit. `waits` lists the pages that became pending or stopped being
    /// pending with it.
    pub(in crate::service) fn update(&mut self, range: &Range, waits: &[(PageId, Wait)], now: Instant) {
        self.totals = totals_of(range);
        self.shards = shards_of(range);
        for (page, wait) in waits {
            self.waits.record(*page, *wait, now);
        }
    }

    /// Starts again with a range that was opened anew, and keeps the decision times. Pages that were reported
    /// since the last commit may not have been recorded.
    pub(in crate::service) fn restart(&mut self, range: &Range, now: Instant) {
        let times = self.waits.times;
        *self = Self::new(range, now);
        self.waits.times = times;
    }

    pub(in crate::service) fn totals(&self) -> (Counters, Backlog) {
        self.totals
    }

    /// Number of pages that are pending for a client, as far as they are known.
    pub(in crate::service) fn pending_of(&self, client: ClientId) -> u64 {
        self.waits.clients.get(&client).copied().unwrap_or(0)
    }

    pub(in crate::service) fn shards(&self) -> &[ShardTotals] {
        &self.shards
    }

    pub(in crate::service) fn decision_times(&self, now: Instant) -> DecisionTimes {
        DecisionTimes { oldest_ms: self.waits.oldest_ms(self.totals.1.pending, now), ..self.waits.times }
    }
}

fn totals_of(range: &Range) -> (Counters, Backlog) {
    totals::sum(&range.shards().metas, range.backlog().messages)
}

fn shards_of(range: &Range) -> Vec<ShardTotals> {
    let of = |shard: doppel_model::ShardId| {
        let meta = &range.shards().metas[usize::from(shard.0)];
        ShardTotals { shard, live: meta.counters.live, groups: meta.counters.groups, pending: meta.pending }
    };
    range.shards().run().map(of).collect()
}

/// Pages that wait for their decision, and how long the decided pages have waited.
struct DecisionWaits {
    /// When this process began to own the range.
    begin: Instant,
    /// When each page began to wait, and for which client. The time is `None` if the page waited before the
    /// range was opened.
    since: HashMap<PageId, (Option<Instant>, ClientId)>,
    /// Number of waiting pages whose time is known.
    timed: u64,
    /// Number of waiting pages of each client.
    clients: HashMap<ClientId, u64>,
    /// Waiting pages in order of time. Entries of decided pages may be among them.
    queue: VecDeque<(Instant, PageId)>,
    times: DecisionTimes,
}

impl DecisionWaits {
    fn new(now: Instant) -> Self {
        Self {
            begin: now,
            since: HashMap::new(),
            timed: 0,
            clients: HashMap::new(),
            queue: VecDeque::new(),
            times: DecisionTimes::default(),
        }
    }

    fn begin_wait(&mut self, page: PageId, client: ClientId, now: Option<Instant>) {
        // A page that now waits for another client keeps its time.
        let before = self.since.get(&page).copied();
        let since = before.map_or(now, |(since, _)| since);
        self.since.insert(page, (since, client));
        match (before, since) {
            (Some((_, client)), _) => self.uncount(client),
            (None, Some(since)) => {
                self.timed += 1;
                self.queue.push_back((since, page));
            }
            (None, None) => {}
        }
        *self.clients.entry(client).or_default() += 1;
        if self.queue.len() > 2 * self.since.len() + QUEUE_SLACK {
            let since = &self.since;
            self.queue.retain(|(at, page)| waits_since(since, *page, *at));
        }
    }

    /// Notes that one page fewer waits for a client.
    fn uncount(&mut self, client: ClientId) {
        if let Entry::Occupied(mut pages) = self.clients.entry(client) {
            *pages.get_mut() -= 1;
            if *pages.get() == 0 {
                pages.remove();
            }
        }
    }

    fn record(&mut self, page: PageId, wait: Wait, now: Instant) {
        match wait {
            Wait::Begins(client) => self.begin_wait(page, client, Some(now)),
            Wait::Continues(client) if !self.since.contains_key(&page) => self.begin_wait(page, client, None),
            Wait::Continues(_) => {}
            Wait::Decided => {
                // If the page waited before the range was opened, its waiting time is not known.
                if let Some(since) = self.end_wait(page) {
                    self.times.observe(ms(since, now));
                }
            }
            Wait::Dropped => drop(self.end_wait(page)),
        }
    }

    /// Notes that a page no longer waits. Returns the time at which it began to wait, if that is known.
    fn end_wait(&mut self, page: PageId) -> Option<Instant> {
        let ended = self.since.remove(&page);
        if let Some((since, client)) = ended {
            self.uncount(client);
            self.timed -= u64::from(since.is_some());
        }
        while let Some((at, page)) = self.queue.front()
            && !waits_since(&self.since, *page, *at)
        {
            self.queue.pop_front();
        }
        // Shrinking by at least half costs constant time for each page that ends.
        let sparse = |capacity: usize, left: usize| capacity > SPARSE * (left + QUEUE_SLACK);
        if sparse(self.since.capacity(), self.since.len()) {
            self.since.shrink_to(SPARSE / 2 * self.since.len());
        }
        if sparse(self.queue.capacity(), self.queue.len()) {
            self.queue.shrink_to(SPARSE / 2 * self.queue.len());
        }
        ended.and_then(|(since, _)| since)
    }

    fn oldest_ms(&self, pending: u64, now: Instant) -> Option<u64> {
        let from_before = pending > self.timed;
        let oldest = if from_before { Some(self.begin) } else { self.queue.front().map(|(at, _)| *at) };
        oldest.map(|since| ms(since, now))
    }
}

fn waits_since(all: &HashMap<PageId, (Option<Instant>, ClientId)>, page: PageId, at: Instant) -> bool {
    all.get(&page).is_some_and(|(since, _)| *since == Some(at))
}

fn ms(since: Instant, now: Instant) -> u64 {
    u64::try_from(now.saturating_duration_since(since).as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn page(number: u32) -> PageId {
        let url = format!("http://a.example/{number}");
        doppel_model::PageUrl::parse(&url).unwrap().id()
    }

    #[test]
    fn the_oldest_page_is_the_one_that_waits_longest() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut waits = DecisionWaits::new(begin);
        assert_eq!(waits.oldest_ms(0, at(5)), None);
        // Two pages are pending from before the range was opened.
        assert_eq!(waits.oldest_ms(2, at(5)), Some(5));
        waits.record(page(1), Wait::Begins(ClientId(1)), at(10));
        waits.record(page(2), Wait::Begins(ClientId(1)), at(20));
        assert_eq!((waits.oldest_ms(4, at(100)), waits.oldest_ms(2, at(100))), (Some(100), Some(90)));
        waits.record(page(2), Wait::Decided, at(50));
        assert_eq!(waits.oldest_ms(1, at(100)), Some(90));
        waits.record(page(1), Wait::Decided, at(60));
        assert_eq!(waits.oldest_ms(0, at(100)), None);
        // The page waited before the range was opened, so its time is not counted.
        waits.record(page(3), Wait::Decided, at(70));
        assert_eq!((waits.times.decided(), waits.times.total_ms), (2, 30 + 50));
    }

    #[test]
    fn the_queue_is_bounded_while_one_page_waits() {
        let now = Instant::now();
        let mut waits = DecisionWaits::new(now);
        waits.record(page(0), Wait::Begins(ClientId(1)), now);
        for number in 1..10_000 {
            waits.record(page(number), Wait::Begins(ClientId(1)), now);
            waits.record(page(number), Wait::Decided, now);
        }
        assert!(waits.queue.len() <= QUEUE_SLACK + 4, "{}", waits.queue.len());
        assert_eq!(waits.since.len(), 1);
        // A page that waits a second time counts from then.
        waits.record(page(7), Wait::Begins(ClientId(1)), now + Duration::from_secs(1));
        waits.record(page(0), Wait::Decided, now + Duration::from_secs(1));
        assert_eq!(waits.oldest_ms(1, now + Duration::from_secs(3)), Some(2_000));
    }
    #[test]
    fn a_dropped_page_is_neither_decided_nor_waiting() {
        let begin = Instant::now();
        let mut waits = DecisionWaits::new(begin);
        waits.record(page(1), Wait::Begins(ClientId(1)), begin);
        waits.record(page(1), Wait::Dropped, begin + Duration::from_secs(1));
        assert_eq!((waits.times.decided(), waits.oldest_ms(0, begin)), (0, None));
    }

    #[test]
    fn the_pages_of_each_client_are_counted_until_they_end() {
        let now = Instant::now();
        let mut waits = DecisionWaits::new(now);
        let counts =
            |waits: &DecisionWaits| [1, 2].map(|client| waits.clients.get(&ClientId(client)).copied());
        let begins = |client| Wait::Begins(ClientId(client));
        (0..3).for_each(|number| waits.record(page(number), begins(1), now));
        waits.record(page(3), Wait::Continues(ClientId(2)), now);
        // The page waits already.
        waits.record(page(0), Wait::Continues(ClientId(1)), now);
        assert_eq!(counts(&waits), [Some(3), Some(1)]);
        // Another client has sent a content of the page.
        waits.record(page(0), begins(2), now + Duration::from_secs(1));
        assert_eq!((counts(&waits), waits.oldest_ms(4, now)), ([Some(2), Some(2)], Some(0)));
        waits.record(page(3), Wait::Decided, now);
        // The waiting time of the page is not known.
        assert_eq!(waits.times.decided(), 0);
        waits.record(page(1), Wait::Dropped, now);
        waits.record(page(2), Wait::Decided, now);
        assert_eq!((counts(&waits), waits.timed), ([None, Some(1)], 1));
    }

    #[test]
    fn memory_is_given_back_after_a_flood_of_pages() {
        let now = Instant::now();
        let mut waits = DecisionWaits::new(now);
        let all = || (0..100_000).map(page);
        all().for_each(|page| waits.record(page, Wait::Begins(ClientId(1)), now));
        assert!(waits.since.capacity() >= 100_000);
        all().for_each(|page| waits.record(page, Wait::Decided, now));
        let most = SPARSE * QUEUE_SLACK;
        assert!(waits.since.capacity() <= most && waits.queue.capacity() <= most);
        assert_eq!(waits.times.decided(), 100_000);
    }
}
