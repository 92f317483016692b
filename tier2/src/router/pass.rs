//! Passes: the router stores orders, makes their searches, and delivers the answers.
//!
//! A pass first carries out all puts and removals that have arrived, in order, and makes the searches
//! afterwards (G4). If two similar pages arrive together, the later search therefore finds both stored,
//! whatever their nodes. The searches wait in a queue that serves clients in turn. They are made in rounds of
//! limited cost, and between two rounds the router stores further orders. A page therefore waits for one
//! round and for the other pages of its own client, but not for the pages of other clients.
//!
//! If a node or tier 1 fails, the pass keeps its results, and continues when it is run again. So no order is
//! lost, and each search gets one answer. Only void searches get none: their page has another content by now,
//! or was searched for again.

mod round;
mod search_queue;
mod storing;

use std::sync::atomic::Ordering;

use doppel_protocol::Orders;

use super::{Router, RouterError};
use round::Round;
use search_queue::SearchQueue;
use storing::StoreStage;

/// Smallest limit of the number of searches in a round. The limit applies after a round that reached its cost
/// limit before all its searches began.
const SEARCHES_MIN: usize = 64;

/// Orders that are under way.
#[derive(Default)]
pub(crate) struct Pass {
    storing: Option<StoreStage>,
    queue: SearchQueue,
    round: Option<Round>,
    /// Largest number of searches in the next round. `None` means `batch_max`: no search of the last round
    /// was left unbegun.
    round_max: Option<usize>,
}

impl Pass {
    /// Whether searches are waiting or under way.
    pub(crate) fn has_searches(&self) -> bool {
        self.round.is_some() || self.queue.len() > 0
    }

    /// Whether a node or tier 1 has failed, so that a step has to be repeated before any other.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn has_failed(&self) -> bool {
        self.storing.is_some() || self.round.is_some()
    }

    /// Accepts orders that [`store`](Self::store) then carries out.
    pub(crate) fn take(&mut self, router: &Router, orders: Orders) {
        debug_assert!(self.storing.is_none());
        self.storing = Some(StoreStage::new(router, orders));
    }

    /// Stores the accepted orders.
    ///
    /// # Errors
    /// Fails if a node does not do its part now. The caller repeats the call.
    pub(crate) fn store(&mut self, router: &Router) -> Result<(), RouterError> {
        let Some(storing) = &mut self.storing else { return Ok(()) };
        let searches = storing.run(router, &mut self.queue)?;
        router.carried_out(storing.orders() - searches);
        self.storing = None;
        Ok(())
    }

    /// Makes one round of searches, if any wait.
    ///
    /// # Errors
    /// Fails if a node or tier 1 does not do its part now. The caller repeats the call.
    pub(crate) fn search(&mut self, router: &Router) -> Result<(), RouterError> {
        let batch_max = router.config.batch_max;
        let round = match &mut self.round {
            Some(round) => round,
            None => {
                let (taken, dropped) = self.queue.take(self.round_max.unwrap_or(batch_max));
                router.carried_out(dropped);
                if taken.is_empty() {
                    return Ok(());
                }
                self.round.insert(Round::new(router, taken))
            }
        };
        let searches = round.run(router)?;
        self.round = None;
        let (mut done, mut not_begun) = (0, 0);
        // From the last to the first, since `give_back` puts each search in front of the others.
        for mut pending in searches.into_iter().rev() {
            let Some(begun) = pending.unfinished() else {
                self.queue.note_answered(&pending);
                done += 1;
                continue;
            };
            pending.forget_signature();
            if begun {
                self.queue.postpone(pending);
            } else {
                self.queue.give_back(pending);
                not_begun += 1;
            }
        }
        router.carried_out(done);
        // Searches beyond the cost limit would be planned and sent to nodes in vain, so the next round is
        // smaller.
        let next = (2 * done).clamp(SEARCHES_MIN, batch_max.max(SEARCHES_MIN));
        self.round_max = (not_begun > 0).then_some(next);
        Ok(())
    }
}

impl Router {
    /// Counts orders as carried out.
    fn carried_out(&self, orders: usize) {
        self.done.fetch_add(orders as u64, Ordering::Relaxed);
        self.waiting.fetch_sub(orders, Ordering::Relaxed);
    }
}
