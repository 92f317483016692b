//! Metrics of the coordinator, and the figures of both tiers, which every scrape reads.
//!
//! The caller passes in the registry, so that one process can contain many services. A metric is named
//! `doppel_<role>_<noun>_<unit>`, and the name of a counter ends in `_total`.

mod background_query;
mod cluster;
mod disk;
mod index_load;
mod process;
pub(crate) mod text;
mod tier1;
mod tokens;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use doppel_contract::answer::{ClusterStatus, GroupSizes, LineCode};
use doppel_contract::{Backlog, Counters, LoadReport, RebalanceProgress, SubmissionOutcome};
use doppel_protocol::{NodeTraffic, Totals};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

use crate::access::ClientTokens;
use crate::app::services::{Clock, Services};
use crate::limits::SCRAPE_TIME;
use crate::reports::cache::ReportCache;
use crate::request::memory::BodyMemory;
use background_query::BackgroundQuery;

/// Counters that the coordinator itself maintains.
#[derive(Debug)]
pub(crate) struct Metrics {
    requests: Family<RequestLabels, Counter>,
    latency: Family<RouteLabels, Histogram, fn() -> Histogram>,
    body_bytes: Counter,
    pages: Family<OutcomeLabels, Counter>,
    replica_answers: Counter,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    method: String,
    route: String,
    status: u16,
}

/// Labels of the latency histogram. A histogram has many samples, so it distinguishes statuses only by their
/// first digit.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: String,
    route: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// Labels that never change while a process runs.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BuildLabels {
    version: &'static str,
    policy: String,
}

/// Adds the coordinator's metrics to `registry`.
pub(crate) fn register(
    registry: &mut Registry,
    services: &Services,
    memory: &BodyMemory,
    group_report: &Arc<ReportCache<GroupSizes>>,
) -> Metrics {
    let Services { tier1, tier2, mapping, cluster, policy, directories, tokens, clock, .. } = services;
    let latency: fn() -> Histogram = || Histogram::new(exponential_buckets(0.000_25, 4.0, 10));
    let metrics = Metrics {
        requests: Family::default(),
        latency: Family::new_with_constructor(latency),
        body_bytes: Counter::default(),
        pages: Family::default(),
        replica_answers: Counter::default(),
    };
    registry.register("doppel_coordinator_http_requests", "HTTP requests answered", metrics.requests.clone());
    registry.register(
        "doppel_coordinator_http_request_seconds",
        "Time from a request to the head of its answer",
        metrics.latency.clone(),
    );
    registry.register(
        "doppel_coordinator_ingest_bytes",
        "Bytes of page bodies received, after decompression",
        metrics.body_bytes.clone(),
    );
    registry.register(
        "doppel_coordinator_ingest_pages",
        "Pages recorded and lines refused, by outcome",
        metrics.pages.clone(),
    );
    registry.register(
        "doppel_coordinator_replica_answers",
        "Answers about pages and groups that were read from replicas because an owner did not answer",
        metrics.replica_answers.clone(),
    );
    let build = BuildLabels { version: env!("CARGO_PKG_VERSION"), policy: policy.to_string() };
    registry.register(
        "doppel_build",
        "Version of the program, and policy of the collection",
        Info::new(build),
    );
    registry.register_collector(Box::new(process::ProcessCollector::new()));
    let groups = {
        let (tier1, report) = (Arc::clone(tier1), Arc::clone(group_report));
        BackgroundQuery::new(move || tier1::groups(&*tier1, &report))
    };
    let (tier1, tier2, mapping) = (Arc::clone(tier1), Arc::clone(tier2), mapping.clone());
    let load = move || {
        let load = tier2.load().ok()?;
        Some((load, mapping.as_ref().and_then(|mapping| mapping.progress().ok().flatten())))
    };
    let cluster = cluster.clone().map(|cluster| {
        let ask = move || (cluster.status(), cluster.traffic());
        BackgroundQuery::new(ask)
    });
    registry.register_collector(Box::new(TierCollector {
        totals: BackgroundQuery::new(move || tier1.totals().ok()),
        load: BackgroundQuery::new(load),
        groups,
        disk: disk::query(directories.clone()),
        cluster,
        memory: memory.clone(),
        tokens: tokens.clone(),
        clock: Arc::clone(clock),
    }));
    metrics
}

impl Metrics {
    pub(crate) fn body_bytes(&self, bytes: usize) {
        self.body_bytes.inc_by(bytes as u64);
    }

    /// Counts answers that were read from replicas.
    pub(crate) fn answered_by_replicas(&self, answers: u64) {
        self.replica_answers.inc_by(answers);
    }

    /// Counts pages that tier 1 recorded.
    pub(crate) fn recorded(&self, outcomes: &[SubmissionOutcome]) {
        for (outcome, name) in [
            (SubmissionOutcome::Unchanged, "unchanged"),
            (SubmissionOutcome::Confirmed, "confirmed"),
            (SubmissionOutcome::Pending, "pending"),
            (SubmissionOutcome::Stale, "stale"),
        ] {
            let count = outcomes.iter().filter(|&&one| one == outcome).count();
            self.pages.get_or_create(&OutcomeLabels { outcome: name }).inc_by(count as u64);
        }
    }

    /// Counts an answered request and its latency.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let (method, route, class) = (method.to_owned(), route.to_owned(), class(status));
        self.latency
            .get_or_create(&RouteLabels { method: method.clone(), route: route.clone(), status: class })
            .observe(took.as_secs_f64());
        self.requests.get_or_create(&RequestLabels { method, route, status }).inc();
    }

    /// Counts a line that was not accepted.
    pub(crate) fn not_taken(&self, code: LineCode) {
        let outcome = match code {
            LineCode::Invalid => "invalid",
            LineCode::Retry => "retry",
            LineCode::Internal => "internal",
        };
        self.pages.get_or_create(&OutcomeLabels { outcome }).inc();
    }
}

/// Returns the class of an HTTP status, such as `2xx`.
fn class(status: u16) -> &'static str {
    match status {
        200..300 => "2xx",
        300..400 => "3xx",
        400..500 => "4xx",
        500..600 => "5xx",
        _ => "1xx",
    }
}

/// Returns the number of pages with status unique, which are the live pages with no other status.
pub(crate) fn unique(counters: &Counters, backlog: &Backlog) -> u64 {
    let Counters { winners, duplicates, secondaries, unresolved, .. } = counters;
    let others = winners + duplicates + secondaries + unresolved + backlog.pending;
    counters.live.saturating_sub(others)
}

/// Collector that reads both tiers at each scrape.
struct TierCollector {
    totals: BackgroundQuery<Option<Totals>>,
    load: BackgroundQuery<Option<(LoadReport, Option<RebalanceProgress>)>>,
    groups: BackgroundQuery<Option<tier1::GroupFigures>>,
    disk: BackgroundQuery<Vec<disk::DiskUsage>>,
    cluster: Option<BackgroundQuery<(ClusterStatus, Vec<NodeTraffic>)>>,
    memory: BodyMemory,
    tokens: Option<ClientTokens>,
    clock: Clock,
}

impl fmt::Debug for TierCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tiers")
    }
}

impl Collector for TierCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut encoder;
        gauge(
            out,
            "doppel_coordinator_body_memory_free_bytes",
            "Unused memory for request bodies and for the answers to their lines",
            self.memory.free() as u64,
        )?;
        if let Some(tokens) = &self.tokens {
            tokens::encode(out, tokens, (self.clock)())?;
        }
        // A scrape contains the figures of every tier that answers in time. A tier that does not answer is
        // not `up`.
        let until = Instant::now() + SCRAPE_TIME;
        let (totals, load, groups) = (self.totals.begin(), self.load.begin(), self.groups.begin());
        let disk = self.disk.begin();
        let cluster = self.cluster.as_ref().map(BackgroundQuery::begin);
        let (totals, load) = (totals.wait(until).flatten(), load.wait(until).flatten());
        if let Some((status, traffic)) = cluster.and_then(|cluster| cluster.wait(until)) {
            cluster::encode(out, &status, &traffic)?;
        }
        gauge(out, "doppel_tier1_up", "Whether tier 1 answers", totals.is_some().into())?;
        gauge(out, "doppel_tier2_up", "Whether tier 2 answers", load.is_some().into())?;
        disk::encode(out, &disk.wait(until).unwrap_or_default())?;
        totals.map_or(Ok(()), |totals| tier1::encode(out, &totals))?;
        load.map_or(Ok(()), |(load, progress)| index_load::encode(out, &load, progress.as_ref()))?;
        // Counting groups may take long, so the other figures do not wait for it.
        groups.wait(until).flatten().map_or(Ok(()), |groups| tier1::encode_groups(out, groups))
    }
}

fn gauge(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstGauge::new(value).encode(out.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn counter(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(out.encode_descriptor(name, help, None, MetricType::Counter)?)
}

fn float(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: f64) -> fmt::Result {
    ConstGauge::new(value).encode(out.encode_descriptor(name, help, None, MetricType::Gauge)?)
}
