//! Permits on the shared resources of the coordinator. A permit is free again when it is dropped.
//!
//! Invariant: no request waits for a permit, except a repair for a bounded time. A request without a permit
//! gets 503 (guarantee G6).

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::timeout;

use super::App;
use super::blocking_calls::permit;
use crate::problem::Problem;

impl App {
    /// Acquires a permit for a request. 503 if no permit is free.
    pub(crate) fn enter(&self) -> Result<OwnedSemaphorePermit, Problem> {
        permit(&self.0.requests, "too many requests are in progress; try again later")
    }

    /// Acquires a permit for a long poll. 503 if no permit is free.
    pub(crate) fn enter_long_poll(&self) -> Result<OwnedSemaphorePermit, Problem> {
        permit(
            &self.0.long_polls,
            "too many long polls are in progress; ask without wait, or try again later",
        )
    }

    /// Acquires a permit for an export. 503 if no permit is free.
    pub(crate) fn enter_export(&self) -> Result<OwnedSemaphorePermit, Problem> {
        permit(&self.0.exports, "too many exports are in progress; try again later")
    }

    /// Acquires a permit for a scrape of the metrics. 503 if no permit is free.
    pub(crate) fn enter_scrape(&self) -> Result<OwnedSemaphorePermit, Problem> {
        permit(&self.0.scrapes, "too many scrapes are in progress; try again later")
    }

    /// Acquires the permit for a backup. 503 if the permit is not free.
    pub(crate) fn enter_backup(&self) -> Result<OwnedSemaphorePermit, Problem> {
        permit(&self.0.backups, "another backup is in progress; try again later")
    }

    /// Acquires the permit for making a plan. 503 if the permit is not free.
    pub(crate) fn enter_planning(&self) -> Result<OwnedSemaphorePermit, Problem> {
        permit(&self.0.planners, "another plan is being made; try again later")
    }

    /// Acquires the permit for a sample. The caller keeps the permit until the sample is sent. 503 if the
    /// permit is not free.
    pub(crate) fn enter_sample(&self) -> Result<OwnedSemaphorePermit, Problem> {
        permit(&self.0.samples, "another sample is being sent; try again later")
    }

    /// Acquires a permit for a flush that waits for completion. 503 if no permit is free.
    pub(crate) fn enter_flush(&self) -> Result<OwnedSemaphorePermit, Problem> {
        permit(&self.0.flushes, "too many flushes are waiting; ask without wait, or try again later")
    }

    /// Acquires a permit for a repair, and waits up to the limit `repair_wait` for it.
    pub(crate) async fn enter_repair(&self) -> Result<OwnedSemaphorePermit, Problem> {
        let permit = timeout(self.0.limits.repair_wait, self.0.repairs.clone().acquire_owned()).await;
        let permit = permit.ok().and_then(Result::ok);
        permit.ok_or_else(|| Problem::busy("another repair is in progress; try again later"))
    }
}
