//! Metrics: what the front door counts itself, and the figures of both tiers, read at each scrape.
//!
//! Everything lies in a registry that is passed in, so that many services fit in one process. Names are
//! `doppel_<role>_<noun>_<unit>`, counters end in `_total`.

mod cluster;
mod question;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use doppel_protocol::answer::{ClusterStatus, LineCode};
use doppel_protocol::{
    Backlog, ClusterApi, Counters, LoadReport, MappingApi, NodeTraffic, Outcome, PartitionLoad,
    RebalanceProgress, Tier1Api, Tier2Api, Totals,
};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeLabelSet, EncodeMetric, text};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::limits::SCRAPE_TIME;
use crate::memory::BodyMemory;
use crate::problem::Problem;
use question::Question;

/// The media type of a scrape.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the front door counts.
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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    method: String,
    route: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabels {
    outcome: &'static str,
}

/// Adds the front door's metrics to `registry`.
pub(crate) fn register(
    registry: &mut Registry,
    tier1: &Arc<dyn Tier1Api>,
    tier2: &Arc<dyn Tier2Api>,
    mapping: Option<&Arc<dyn MappingApi>>,
    cluster: Option<&Arc<dyn ClusterApi>>,
    memory: &BodyMemory,
) -> Metrics {
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
        "Time until the head of an answer",
        metrics.latency.clone(),
    );
    registry.register(
        "doppel_coordinator_ingest_bytes",
        "Bytes of page bodies received, after decompression",
        metrics.body_bytes.clone(),
    );
    registry.register(
        "doppel_coordinator_ingest_pages",
        "Pages recorded, and lines not taken, by outcome",
        metrics.pages.clone(),
    );
    registry.register(
        "doppel_coordinator_replica_answers",
        "Answers about pages and groups for which replicas were read, because an owner did not answer",
        metrics.replica_answers.clone(),
    );
    let (tier1, tier2, mapping) = (Arc::clone(tier1), Arc::clone(tier2), mapping.cloned());
    let load = move || {
        let load = tier2.load().ok()?;
        Some((load, mapping.as_ref().and_then(|mapping| mapping.progress().ok().flatten())))
    };
    let cluster = cluster.map(Arc::clone).map(|cluster| {
        let ask = move || (cluster.status(), cluster.traffic());
        Question::new(ask)
    });
    registry.register_collector(Box::new(Tiers {
        totals: Question::new(move || tier1.totals().ok()),
        load: Question::new(load),
        cluster,
        memory: memory.clone(),
    }));
    metrics
}

impl Metrics {
    pub(crate) fn body_bytes(&self, bytes: usize) {
        self.body_bytes.inc_by(bytes as u64);
    }

    /// Counts answers for which replicas were read.
    pub(crate) fn answered_by_replicas(&self, answers: u64) {
        self.replica_answers.inc_by(answers);
    }

    /// Counts pages that tier 1 took.
    pub(crate) fn recorded(&self, outcomes: &[Outcome]) {
        for (outcome, name) in [
            (Outcome::Unchanged, "unchanged"),
            (Outcome::Confirmed, "confirmed"),
            (Outcome::Pending, "pending"),
            (Outcome::Stale, "stale"),
        ] {
            let count = outcomes.iter().filter(|&&one| one == outcome).count();
            self.pages.get_or_create(&OutcomeLabels { outcome: name }).inc_by(count as u64);
        }
    }

    /// Counts a request that was answered.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, took: Duration) {
        let (method, route) = (method.to_owned(), route.to_owned());
        self.latency
            .get_or_create(&RouteLabels { method: method.clone(), route: route.clone() })
            .observe(took.as_secs_f64());
        self.requests.get_or_create(&RequestLabels { method, route, status }).inc();
    }

    /// Counts a line that was not taken.
    pub(crate) fn not_taken(&self, code: LineCode) {
        let outcome = match code {
            LineCode::Invalid => "invalid",
            LineCode::Retry => "retry",
            LineCode::Internal => "internal",
        };
        self.pages.get_or_create(&OutcomeLabels { outcome }).inc();
    }
}

/// The registry in text form.
pub(crate) fn encode(registry: &Registry) -> Result<String, Problem> {
    let mut out = String::new();
    text::encode(&mut out, registry).map_err(|error| {
        tracing::error!(%error, "the metrics were not written");
        Problem::internal()
    })?;
    Ok(out)
}

/// Pages with status unique: live pages with no other status.
pub(crate) fn unique(counters: &Counters, backlog: &Backlog) -> u64 {
    let Counters { winners, duplicates, secondaries, unresolved, .. } = counters;
    let others = winners + duplicates + secondaries + unresolved + backlog.pending;
    counters.live.saturating_sub(others)
}

/// One of a partition's figures.
type Figure = fn(&PartitionLoad) -> u64;

/// Reads the tiers at each scrape.
struct Tiers {
    totals: Question<Option<Totals>>,
    load: Question<Option<(LoadReport, Option<RebalanceProgress>)>>,
    cluster: Option<Question<(ClusterStatus, Vec<NodeTraffic>)>>,
    memory: BodyMemory,
}

impl fmt::Debug for Tiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tiers")
    }
}

impl Collector for Tiers {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let out = &mut encoder;
        gauge(
            out,
            "doppel_coordinator_body_memory_free_bytes",
            "Room for request bodies and the answers to their lines",
            self.memory.free() as u64,
        )?;
        // A scrape has the figures of every tier that answers, and names the others.
        let until = Instant::now() + SCRAPE_TIME;
        let (totals, load) = (self.totals.begin(), self.load.begin());
        let cluster = self.cluster.as_ref().map(Question::begin);
        let (totals, load) = (totals.wait(until).flatten(), load.wait(until).flatten());
        if let Some((status, traffic)) = cluster.and_then(|cluster| cluster.wait(until)) {
            cluster::encode(out, &status, &traffic)?;
        }
        gauge(out, "doppel_tier1_up", "Whether tier 1 answers", totals.is_some().into())?;
        gauge(out, "doppel_tier2_up", "Whether tier 2 answers", load.is_some().into())?;
        totals.map_or(Ok(()), |totals| encode_tier1(out, &totals))?;
        load.map_or(Ok(()), |(load, progress)| encode_tier2(out, &load, progress.as_ref()))
    }
}

fn encode_tier1(out: &mut DescriptorEncoder<'_>, totals: &Totals) -> fmt::Result {
    let Totals { counters, backlog, pending_limit, status_table_bytes, full_disks, disk_recoveries } = totals;
    for (name, help, value) in [
        ("doppel_tier1_live_pages", "Live pages, redirects among them", counters.live),
        ("doppel_tier1_redirect_pages", "Live pages that redirect", counters.redirects),
        ("doppel_tier1_unresolved_pages", "Redirects that do not end at a content", counters.unresolved),
        ("doppel_tier1_dead_pages", "Dead pages on record", counters.dead),
        ("doppel_tier1_groups", "Groups in use", counters.groups),
        ("doppel_tier1_unique_pages", "Pages with status unique", unique(counters, backlog)),
        ("doppel_tier1_winner_pages", "Pages with status winner", counters.winners),
        ("doppel_tier1_duplicate_pages", "Pages with status duplicate", counters.duplicates),
        ("doppel_tier1_secondary_pages", "Pages with status secondary", counters.secondaries),
        ("doppel_tier1_pending_pages", "Pages waiting for a decision", backlog.pending),
        ("doppel_tier1_pending_limit_pages", "The most pages that may wait", *pending_limit),
        (
            "doppel_tier1_deferred_search_pages",
            "Confirmed pages still to be compared",
            backlog.deferred_searches,
        ),
        ("doppel_tier1_dirty_groups", "Groups that owe a recomputation", backlog.dirty_groups),
        ("doppel_tier1_uncovered_groups", "Groups that owe a new cover", backlog.uncovered_groups),
        ("doppel_tier1_unverified_pages", "Members still to be verified", backlog.unverified),
        ("doppel_tier1_outbox_messages", "Messages between shards", backlog.messages),
        ("doppel_tier1_status_table_bytes", "Status table in memory", *status_table_bytes),
        (
            "doppel_tier1_full_disk_ranges",
            "Ranges that take no writes because their disk is full",
            *full_disks,
        ),
    ] {
        gauge(out, name, help, value)?;
    }
    for (name, help, value) in [
        ("doppel_tier1_submissions", "Submissions taken", counters.submissions),
        ("doppel_tier1_unchanged_submissions", "Submissions that changed nothing", counters.unchanged),
        ("doppel_tier1_stale_submissions", "Submissions older than the record", counters.stale),
        ("doppel_tier1_confirmed_updates", "Updates confirmed by the representative", counters.confirmed),
        ("doppel_tier1_compared_updates", "Updates that waited for tier 2", counters.compared_updates),
        ("doppel_tier1_verifications", "Comparisons with the winner", counters.verified),
        (
            "doppel_tier1_rejected_verifications",
            "Comparisons with the winner that found no near-duplicate",
            counters.rejected,
        ),
        ("doppel_tier1_merges", "Groups merged into another", counters.merges),
        (
            "doppel_tier1_rechecks",
            "Groups recomputed because many members differed from the winner",
            counters.rechecks,
        ),
        ("doppel_tier1_evictions", "Members put out of a group by a recomputation", counters.evictions),
        ("doppel_tier1_searches", "Searches of tier 2 that were answered", counters.searches),
        ("doppel_tier1_stale_results", "Answers about contents no longer current", counters.stale_results),
        (
            "doppel_tier1_disk_recoveries",
            "How often a range went on after its disk was full",
            *disk_recoveries,
        ),
    ] {
        counter(out, name, help, value)?;
    }
    Ok(())
}

fn encode_tier2(
    out: &mut DescriptorEncoder<'_>,
    load: &LoadReport,
    progress: Option<&RebalanceProgress>,
) -> fmt::Result {
    gauge(out, "doppel_tier2_plan_version", "Number of the plan of the partitions", load.plan_version)?;
    gauge(out, "doppel_tier2_searches", "Searches made under the present plan", load.searches)?;
    gauge(out, "doppel_tier2_fan_out", "Partitions those searches were sent to", load.fan_out)?;
    gauge(out, "doppel_tier2_file_bytes", "Signature file on disk", load.file_bytes)?;
    gauge(out, "doppel_tier2_serving_nodes", "Nodes that may have partitions", load.serving_nodes.into())?;
    gauge(out, "doppel_tier2_node_fan_out", "Nodes those searches were sent to", load.node_fan_out)?;
    let (copied, wanted) = progress.map_or((0, 0), |progress| (progress.copied, progress.contents));
    gauge(out, "doppel_tier2_migration_contents", "Contents to copy for a change of the plan", wanted)?;
    gauge(out, "doppel_tier2_migration_copied_contents", "Contents of them that are copied", copied)?;
    for (name, help, value) in [
        ("doppel_tier2_imbalance_ratio", "Largest over mean of contents per partition", Some(load.imbalance)),
        ("doppel_tier2_imbalance_floor_ratio", "The same dealt at random", Some(load.imbalance_floor)),
        (
            "doppel_tier2_fan_out_saved_ratio",
            "Share of fan-out saved against a broadcast",
            load.fan_out_saved,
        ),
        (
            "doppel_tier2_node_imbalance_ratio",
            "Largest over mean of contents per node",
            Some(load.node_imbalance),
        ),
        (
            "doppel_tier2_node_imbalance_floor_ratio",
            "The same dealt to nodes at random",
            Some(load.node_imbalance_floor),
        ),
        (
            "doppel_tier2_node_fan_out_saved_ratio",
            "Share of fan-out to nodes saved against a broadcast",
            load.node_fan_out_saved,
        ),
    ] {
        let Some(value) = value else { continue };
        ConstGauge::new(value).encode(out.encode_descriptor(name, help, None, MetricType::Gauge)?)?;
    }
    let figures: [(&str, &str, Figure); 5] = [
        ("doppel_tier2_partition_contents", "Contents stored", |p| p.contents),
        ("doppel_tier2_partition_pages", "Pages stored", |p| p.pages),
        ("doppel_tier2_partition_received_pages", "Pages received for comparison", |p| p.received),
        ("doppel_tier2_partition_comparisons", "Exact comparisons", |p| p.comparisons),
        ("doppel_tier2_partition_memory_bytes", "Columns and tables", |p| p.bytes),
    ];
    for (name, help, value) in figures {
        let mut family = out.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for partition in &load.partitions {
            let labels =
                [("partition", partition.partition.to_string()), ("node", partition.node.to_string())];
            ConstGauge::new(value(partition)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

fn gauge(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstGauge::new(value).encode(out.encode_descriptor(name, help, None, MetricType::Gauge)?)
}

fn counter(out: &mut DescriptorEncoder<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    ConstCounter::new(value).encode(out.encode_descriptor(name, help, None, MetricType::Counter)?)
}
