//! Passes: orders are stored, then searched for, then answered.
//!
//! All puts and removals that have arrived come first, in order, then the searches (G4): whatever two pages arrive together, the later
//! search finds both stored, on whatever nodes. The searches wait in a queue, in which clients are served in turn, and are made in rounds of
//! limited cost. Between two rounds further orders are stored. So a page waits for one round and for its client's own pages, however much
//! the pages of other clients cost.
//!
//! A pass keeps what it has. When a node or tier 1 fails, it is run again and goes on where it was. So no order is lost, and of each search
//! there is one answer. Only searches that are void have none: their page has another content, or was asked for again.

use std::sync::atomic::Ordering;

use doppel_protocol::Orders;

use super::round::Round;
use super::search_queue::SearchQueue;
use super::storing::Storing;
use super::{Router, RouterError};

/// The fewest searches of a round.
const SEARCHES_MIN: usize = 64;

/// Orders that are under way.
#[derive(Default)]
pub(crate) struct Pass {
    storing: Option<Storing>,
    queue: SearchQueue,
    round: Option<Round>,
    /// Searches of the next round. None for as many as a pass may have.
    searches: Option<usize>,
}

impl Pass {
    /// Whether searches wait or are made.
    pub(crate) fn has_searches(&self) -> bool {
        self.round.is_some() || self.queue.len() > 0
    }

    /// Whether a node or tier 1 has failed, and a step has to be tried again before others.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn has_failed(&self) -> bool {
        self.storing.is_some() || self.round.is_some()
    }

    /// Takes orders that are to be carried out now.
    pub(crate) fn take(&mut self, router: &Router, orders: Orders) {
        debug_assert!(self.storing.is_none());
        self.storing = Some(Storing::new(router, orders));
    }

    /// Stores what was taken.
    ///
    /// # Errors
    /// When a node does not do its part now. It is called again then.
    pub(crate) fn store(&mut self, router: &Router) -> Result<(), RouterError> {
        let Some(storing) = &mut self.storing else { return Ok(()) };
        let searches = storing.run(router, &mut self.queue)?;
        router.carried_out(storing.orders() - searches);
        self.storing = None;
        Ok(())
    }

    /// Makes one round of searches, if there are any.
    ///
    /// # Errors
    /// When a node or tier 1 does not do its part now. It is called again then.
    pub(crate) fn search(&mut self, router: &Router) -> Result<(), RouterError> {
        let batch_max = router.config.batch_max;
        let round = match &mut self.round {
            Some(round) => round,
            None => {
                let (taken, dropped) = self.queue.take(self.searches.unwrap_or(batch_max));
                router.carried_out(dropped);
                if taken.is_empty() {
                    return Ok(());
                }
                self.round.insert(Round::new(router, taken))
            }
        };
        let made = round.run(router)?;
        self.round = None;
        let (mut done, mut not_begun) = (0, 0);
        // From the last to the first, since each goes in front of those that follow.
        for mut asked in made.into_iter().rev() {
            let Some(begun) = asked.unfinished() else {
                self.queue.answered(&asked);
                done += 1;
                continue;
            };
            asked.forget_signature();
            if begun {
                self.queue.postpone(asked);
            } else {
                self.queue.give_back(asked);
                not_begun += 1;
            }
        }
        router.carried_out(done);
        // A round that is too long for its limit is planned, and sent to nodes, for nothing.
        let next = (2 * done).clamp(SEARCHES_MIN, batch_max.max(SEARCHES_MIN));
        self.searches = (not_begun > 0).then_some(next);
        Ok(())
    }
}

impl Router {
    /// Counts orders that are done.
    fn carried_out(&self, orders: usize) {
        self.done.fetch_add(orders as u64, Ordering::Relaxed);
        self.waiting.fetch_sub(orders, Ordering::Relaxed);
    }
}
