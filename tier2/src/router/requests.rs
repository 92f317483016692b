//! What is requested of the mapping, until it is done. A request is stored with the plan that was answered, and that
//! plan is carried out.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use doppel_protocol::{IndexError, IndexStateError, IndexStateItem, RebalanceError, RebalanceOutcome};

use super::stored_plan;
use super::stored_requests::{self, Requested};
use super::{Router, RouterError, lock};

/// Requests in their order: at most one of an operator, and one that a start with another number of nodes makes.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    queue: VecDeque<Requested>,
    /// What is stored may be other requests than these.
    stored_is_unsure: bool,
    /// How the last of them ended.
    outcome: Option<RebalanceOutcome>,
}

impl Requests {
    pub(crate) fn new(queue: VecDeque<Requested>) -> Self {
        Self { queue, stored_is_unsure: false, outcome: None }
    }
}

/// Why a request is not taken.
pub(super) fn refused(error: IndexStateError) -> RebalanceError {
    match error {
        IndexStateError::Unavailable(why) => RebalanceError::Unavailable(IndexError::Unavailable(why)),
        other => RebalanceError::Store(other.to_string()),
    }
}

impl Router {
    /// What is requested and not done.
    pub(crate) fn requested(&self) -> Option<Requested> {
        self.requests().queue.front().cloned()
    }

    /// How the last request ended.
    pub(crate) fn outcome(&self) -> Option<RebalanceOutcome> {
        self.requests().outcome.clone()
    }

    /// Stores a request, to be carried out as soon as no other change is under way. False if there is another request.
    pub(crate) fn request(&self, requested: Requested) -> Result<bool, IndexStateError> {
        let mut requests = self.requests();
        if !requests.queue.is_empty() {
            return Ok(false);
        }
        let one = VecDeque::from([requested]);
        if let Err(error) = stored_requests::store(&*self.state, &one) {
            // It may be kept all the same, and nobody was told that it will be carried out.
            requests.stored_is_unsure |= matches!(error, IndexStateError::Unavailable(_));
            return Err(error);
        }
        (requests.queue, requests.stored_is_unsure) = (one, false);
        Ok(true)
    }

    /// The first request is done, or not possible. One that is to be tried `again` stays stored for the next start.
    pub(crate) fn end_request(&self, outcome: RebalanceOutcome, again: bool) {
        let mut requests = self.requests();
        requests.outcome = Some(outcome);
        requests.queue.pop_front();
        if again {
            return;
        }
        if let Err(error) = stored_requests::store(&*self.state, &requests.queue) {
            requests.stored_is_unsure = matches!(error, IndexStateError::Unavailable(_));
            tracing::error!(%error, "a request that is done stays stored; the next start carries it out again");
        }
    }

    /// Stores the plan that is served, and the requests that are left, where something else may be stored.
    pub(super) fn store_again(&self) -> Result<(), RouterError> {
        if self.plan_is_unsure.load(Ordering::Relaxed) {
            match lock(&self.mapped).learned {
                Some(learned) => stored_plan::store(&*self.state, &self.plan(), learned)?,
                None => self.state.remove(IndexStateItem::Plan)?,
            }
            self.plan_is_unsure.store(false, Ordering::Relaxed);
        }
        let mut requests = self.requests();
        if requests.stored_is_unsure {
            stored_requests::store(&*self.state, &requests.queue)?;
            requests.stored_is_unsure = false;
        }
        Ok(())
    }

    /// Ends the present request before it is done: the plan that is served stays.
    pub(crate) fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError> {
        // No step is made meanwhile, and the switch is one.
        let mut migration = self.migration();
        let mut requests = self.requests();
        let Some(first) = requests.queue.front().cloned() else {
            return Err(RebalanceError::NothingToCancel);
        };
        let rest: VecDeque<Requested> = requests.queue.iter().skip(1).cloned().collect();
        if let Err(error) = stored_requests::store(&*self.state, &rest) {
            // It may be forgotten all the same, and is still to be carried out.
            requests.stored_is_unsure |= matches!(error, IndexStateError::Unavailable(_));
            return Err(refused(error));
        }
        (requests.queue, requests.stored_is_unsure) = (rest, false);
        drop(requests);
        let present = self.plan();
        let failed = Some("it was cancelled".to_owned());
        let begun = migration.take_if(|migration| migration.request().is_some());
        if let Some(migration) = &begun {
            migration.give_up(self);
        }
        let outcome = begun.and_then(|migration| migration.outcome(&present, failed.clone(), true));
        let outcome = outcome.unwrap_or_else(|| RebalanceOutcome {
            request: first.request,
            failed,
            cancelled: true,
            plan_version: present.map().version(),
            copied: 0,
            seconds: 0.0,
        });
        self.requests().outcome = Some(outcome.clone());
        tracing::info!(request = ?first.request, copied = outcome.copied, "a request is cancelled");
        Ok(outcome)
    }
}
