//! The state that all routes share: handles to the two tiers, the extractor pool, the limits, and the
//! metrics.

pub(crate) mod arrival_dates;
pub(crate) mod blocking_calls;
mod permits;
pub(crate) mod services;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::HeaderMap;
use doppel_contract::{Market, Markets};
use doppel_model::pairwise::Policy;
use doppel_protocol::{
    ClusterApi, DatedAnswer, MappingApi, Question, Tier1Api, Tier1Reads, Tier2Api, WinnerOrder,
};
use prometheus_client::registry::Registry;
use tokio::sync::{Semaphore, watch};
use tokio::time::{MissedTickBehavior, timeout};

use crate::access::{Caller, Clients};
use crate::app::blocking_calls::BlockingCalls;
use crate::limits::{
    BACKUPS, FLUSHES, HEAVY_CALLS, HISTORY_STEP, Limits, PLANNERS, REPAIRS, SAMPLES, SCRAPES,
};
use crate::metrics::{self, Metrics};
use crate::problem::Problem;
use crate::reports::balance_history::BalanceHistory;
use crate::reports::cache::ReportCaches;
use crate::reports::load_history::LoadRecorder;
use crate::request::body;
use crate::request::buffer::BodyBuffer;
use crate::request::id::RequestIds;
use crate::request::memory::BodyMemory;
use crate::response::answer_age::AnswerAttempts;
use doppel_engine::advise::Advisor;
use doppel_engine::ingest::Ingest;
use doppel_engine::shard_owners::ShardOwners;

use arrival_dates::ArrivalClock;
pub use services::{Clock, MonitoredDirectory, Services, system_clock};

/// Shared state of the coordinator. Cheap to clone.
#[derive(Clone)]
pub struct App(Arc<AppState>);

struct AppState {
    tier1: Arc<dyn Tier1Api>,
    tier2: Arc<dyn Tier2Api>,
    mapping: Option<Arc<dyn MappingApi>>,
    cluster: Option<Arc<dyn ClusterApi>>,
    policy: Policy,
    winners: WinnerOrder,
    markets: Markets,
    shard_owners: ShardOwners,
    ingest: Arc<Ingest>,
    registry: Registry,
    metrics: Metrics,
    arrival_clock: ArrivalClock,
    temp_dir: PathBuf,
    limits: Limits,
    clients: Arc<Clients>,
    requests: Arc<Semaphore>,
    calls: BlockingCalls,
    long_polls: Arc<Semaphore>,
    exports: Arc<Semaphore>,
    scrapes: Arc<Semaphore>,
    backups: Arc<Semaphore>,
    flushes: Arc<Semaphore>,
    repairs: Arc<Semaphore>,
    planners: Arc<Semaphore>,
    samples: Arc<Semaphore>,
    balance_history: BalanceHistory,
    load_recorder: LoadRecorder,
    reports: ReportCaches,
    request_ids: RequestIds,
    draining: watch::Sender<bool>,
}

impl App {
    /// Assembles the coordinator from its services.
    #[must_use]
    pub fn new(mut services: Services) -> Self {
        let memory = BodyMemory::new(services.limits.body_memory_bytes);
        let reports = ReportCaches::default();
        let mut registry = std::mem::take(&mut services.registry);
        let metrics = metrics::register(&mut registry, &services, &memory, &reports.groups);
        let Services {
            tier1,
            tier2,
            mapping,
            cluster,
            policy,
            winners,
            markets,
            shard_owners,
            ingest,
            clock,
            temp_dir,
            limits,
            ..
        } = services;
        Self(Arc::new(AppState {
            tier1,
            tier2,
            mapping,
            cluster,
            policy,
            winners,
            markets,
            shard_owners,
            ingest,
            registry,
            metrics,
            arrival_clock: ArrivalClock::new(clock),
            temp_dir,
            clients: Arc::new(Clients::new(limits.client, memory)),
            requests: Arc::new(Semaphore::new(limits.requests)),
            calls: BlockingCalls::new(limits.requests, limits.unpacking),
            long_polls: Arc::new(Semaphore::new(limits.long_polls)),
            exports: Arc::new(Semaphore::new(HEAVY_CALLS)),
            scrapes: Arc::new(Semaphore::new(SCRAPES)),
            backups: Arc::new(Semaphore::new(BACKUPS)),
            flushes: Arc::new(Semaphore::new(FLUSHES)),
            repairs: Arc::new(Semaphore::new(REPAIRS)),
            planners: Arc::new(Semaphore::new(PLANNERS)),
            samples: Arc::new(Semaphore::new(SAMPLES)),
            balance_history: BalanceHistory::default(),
            load_recorder: LoadRecorder::default(),
            reports,
            request_ids: RequestIds::default(),
            draining: watch::Sender::new(false),
            limits,
        }))
    }

    /// Runs a blocking call within the usual time limit for calls.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        self.blocking_within(self.0.limits.call_time, call).await
    }

    /// Like [`blocking`](Self::blocking), but with the time limit `time`.
    pub(crate) async fn blocking_within<T: Send + 'static>(
        &self,
        time: Duration,
        call: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = self.clone();
        self.0.calls.run(time, move || call(&app)).await
    }

    /// Like [`blocking`](Self::blocking), but for health checks and metrics. See
    /// [`BlockingCalls::run_for_health`].
    pub(crate) async fn blocking_for_health<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = self.clone();
        self.0.calls.run_for_health(self.0.limits.health_time, move || call(&app)).await
    }

    /// Like [`blocking`](Self::blocking), but for a question about one page. See
    /// [`BlockingCalls::run_in_place`].
    pub(crate) async fn in_place<T: Send + 'static>(
        &self,
        call: impl FnOnce(&Self) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let app = self.clone();
        self.0.calls.run_in_place(self.0.limits.call_time, move || call(&app)).await
    }

    /// Reads and decompresses a request body of up to `max` bytes, within the caller's limits.
    pub(crate) async fn read(
        &self,
        caller: &Caller,
        headers: &HeaderMap,
        body: Body,
        max: usize,
    ) -> Result<BodyBuffer, Problem> {
        let received = body::read(caller.memory(), &self.0.limits, headers, body, max).await?;
        received.decompressed(caller, &self.0.calls, self.0.limits.call_time).await
    }

    /// Creates an advisor on the records that `reads` returns. With a `market`, the advisor names the winners
    /// for that market.
    pub(crate) fn advisor<'a>(
        &'a self,
        reads: &'a dyn Tier1Reads,
        market: Option<&'a Market>,
    ) -> Advisor<'a> {
        Advisor::new(reads, self.0.policy, self.0.winners, market)
    }

    /// Answers a question from the records of tier 1. A replica may answer if the owner of a range does not.
    ///
    /// If the reads took so long that the answer is too old, `answer` runs again, up to the limits of
    /// [`AnswerAttempts`].
    pub(crate) fn ask<T>(
        &self,
        answer: impl Fn(&dyn Tier1Reads) -> Result<T, Problem>,
    ) -> Result<DatedAnswer<T>, Problem> {
        let mut attempts = AnswerAttempts::new(self.0.limits.call_time);
        loop {
            let question = Question::default();
            let answer = question.ask(self.tier1(), &answer)?;
            match question.moments().age() {
                Ok(age) => {
                    self.metrics().answered_by_replicas(u64::from(age.is_some()));
                    return Ok(DatedAnswer { answer, age });
                }
                Err(too_old) => attempts.record_too_old(too_old, false)?,
            }
        }
    }

    /// Returns the table of clients that have requests in progress.
    pub(crate) fn clients(&self) -> Arc<Clients> {
        Arc::clone(&self.0.clients)
    }

    pub(crate) fn tier1(&self) -> &dyn Tier1Api {
        &*self.0.tier1
    }

    pub(crate) fn tier2(&self) -> &dyn Tier2Api {
        &*self.0.tier2
    }

    /// Returns the interface to the partition map, if the map can be changed.
    pub(crate) fn mapping(&self) -> Option<&dyn MappingApi> {
        self.0.mapping.as_deref()
    }

    pub(crate) fn policy(&self) -> Policy {
        self.0.policy
    }

    pub(crate) fn winners(&self) -> WinnerOrder {
        self.0.winners
    }

    pub(crate) fn markets(&self) -> &Markets {
        &self.0.markets
    }

    pub(crate) fn cluster(&self) -> Option<&dyn ClusterApi> {
        self.0.cluster.as_deref()
    }

    pub(crate) fn shard_owners(&self) -> &ShardOwners {
        &self.0.shard_owners
    }

    pub(crate) fn ingest(&self) -> &Ingest {
        &self.0.ingest
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.0.limits
    }

    pub(crate) fn temp_dir(&self) -> &Path {
        &self.0.temp_dir
    }

    /// Returns the cache of reports.
    pub(crate) fn reports(&self) -> &ReportCaches {
        &self.0.reports
    }

    pub(crate) fn request_ids(&self) -> &RequestIds {
        &self.0.request_ids
    }

    pub(crate) fn balance_history(&self) -> &BalanceHistory {
        &self.0.balance_history
    }

    pub(crate) fn load_recorder(&self) -> &LoadRecorder {
        &self.0.load_recorder
    }

    /// Records the points of `GET /v1/load/history` until the service drains.
    pub(crate) async fn record_load_history(self) {
        let mut draining = self.0.draining.subscribe();
        loop {
            let recorded = self.blocking_for_health(|app| {
                app.load_recorder().record(
                    app.arrival_clock().now(),
                    &app.tier1().totals()?,
                    &app.tier2().load()?,
                );
                Ok(())
            });
            if let Err(problem) = recorded.await {
                tracing::debug!(
                    detail = problem.detail(),
                    "cannot read the load; GET /v1/load/history lacks a point"
                );
            }
            let pause = self.load_recorder().pause();
            if timeout(pause, draining.wait_for(|draining| *draining)).await.is_ok() {
                return;
            }
        }
    }

    /// Records the load once a minute until the service drains.
    pub(crate) async fn record_balance_history(self) {
        let mut draining = self.0.draining.subscribe();
        let mut ticks = tokio::time::interval(HISTORY_STEP);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = draining.wait_for(|draining| *draining) => return,
                _ = ticks.tick() => {}
            }
            // If the index does not answer, the history has no point for that minute.
            let recorded = self.blocking_for_health(|app| {
                app.balance_history().record(app.arrival_clock().now(), &app.tier2().load()?);
                Ok(())
            });
            if let Err(problem) = recorded.await {
                tracing::debug!(
                    detail = problem.detail(),
                    "cannot read the load; the history lacks this minute"
                );
            }
        }
    }

    pub(crate) fn arrival_clock(&self) -> &ArrivalClock {
        &self.0.arrival_clock
    }

    /// Starts draining: ends long polls early and makes `/readyz` report that the service is not ready.
    pub fn drain(&self) {
        self.0.draining.send_replace(true);
    }

    pub(crate) fn is_draining(&self) -> bool {
        *self.0.draining.borrow()
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("policy", &self.0.policy)
            .field("limits", &self.0.limits)
            .finish_non_exhaustive()
    }
}
