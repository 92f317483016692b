//! Requests to change the plan, from their acceptance to their end. A request is stored together with the
//! plan that the operator was shown, and exactly that plan is carried out.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use doppel_contract::RebalanceOutcome;
use doppel_protocol::{IndexError, IndexStateError, IndexStateItem, RebalanceError};

use super::persistence::stored_plan;
use super::persistence::stored_requests::{self, StoredRequest};
use super::{Router, RouterError, lock};

/// Waiting requests in order: at most one of an operator, and one that a start with another number of nodes
/// makes.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    queue: VecDeque<StoredRequest>,
    /// Whether the stored requests may differ from `queue`.
    stored_is_unsure: bool,
    /// How the last request ended.
    outcome: Option<RebalanceOutcome>,
}

impl Requests {
    pub(crate) fn new(queue: VecDeque<StoredRequest>) -> Self {
        Self { queue, stored_is_unsure: false, outcome: None }
    }
}

/// Converts a storage error into the answer to the operator.
pub(super) fn to_rebalance_error(error: IndexStateError) -> RebalanceError {
    match error {
        IndexStateError::Unavailable(why) => RebalanceError::Unavailable(IndexError::Unavailable(why)),
        other => RebalanceError::Store(other.to_string()),
    }
}

impl Router {
    /// The request that is next or under way.
    pub(crate) fn requested(&self) -> Option<StoredRequest> {
        self.requests().queue.front().cloned()
    }

    /// How the last request ended.
    pub(crate) fn outcome(&self) -> Option<RebalanceOutcome> {
        self.requests().outcome.clone()
    }

    /// Stores a request. It is carried out as soon as no other change is under way. Returns `false` if
    /// another request waits.
    pub(crate) fn request(&self, requested: StoredRequest) -> Result<bool, IndexStateError> {
        let mut requests = self.requests();
        if !requests.queue.is_empty() {
            return Ok(false);
        }
        let one = VecDeque::from([requested]);
        if let Err(error) = stored_requests::store(&*self.state, &one) {
            // The request may be stored although its sender was told that it failed.
            requests.stored_is_unsure |= matches!(error, IndexStateError::Unavailable(_));
            return Err(error);
        }
        (requests.queue, requests.stored_is_unsure) = (one, false);
        Ok(true)
    }

    /// Ends the first request, which is done or not possible. If `again`, it stays stored, and the next start
    /// tries it again.
    pub(crate) fn end_request(&self, outcome: RebalanceOutcome, again: bool) {
        let mut requests = self.requests();
        requests.outcome = Some(outcome);
        requests.queue.pop_front();
        if again {
            return;
        }
        if let Err(error) = stored_requests::store(&*self.state, &requests.queue) {
            requests.stored_is_unsure = matches!(error, IndexStateError::Unavailable(_));
            tracing::error!(
                %error,
                "cannot delete a request that is done; the next start carries it out again"
            );
        }
    }

    /// Stores the served plan and the waiting requests, if other ones may be stored.
    pub(super) fn store_unsure_state(&self) -> Result<(), RouterError> {
        if self.plan_is_unsure.load(Ordering::Relaxed) {
            match lock(&self.map_history).learned {
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

    /// Cancels the present request. The served plan stays.
    pub(crate) fn cancel(&self) -> Result<RebalanceOutcome, RebalanceError> {
        // No step is made while this is locked, and the switch is a step.
        let mut migration = self.migration();
        let mut requests = self.requests();
        let Some(first) = requests.queue.front().cloned() else {
            return Err(RebalanceError::NothingToCancel);
        };
        let rest: VecDeque<StoredRequest> = requests.queue.iter().skip(1).cloned().collect();
        if let Err(error) = stored_requests::store(&*self.state, &rest) {
            // The stored request may be gone although it is still to be carried out.
            requests.stored_is_unsure |= matches!(error, IndexStateError::Unavailable(_));
            return Err(to_rebalance_error(error));
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
        tracing::info!(
            request = ?first.request,
            copied = outcome.copied,
            "cancelled a request to change the plan"
        );
        Ok(outcome)
    }
}
