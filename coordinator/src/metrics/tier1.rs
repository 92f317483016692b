//! Metrics of tier 1: pages, groups, owed work, and decision times.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doppel_contract::answer::GroupSizes;
use doppel_protocol::{CLASS_BOUNDS_MS, DecisionTimes, ShardTotals, Tier1Api, Totals};
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;

use super::{counter, float, gauge, unique};
use crate::limits::{GROUPS_AGE, SHARDS_SHOWN};
use crate::reports::cache::{CacheAnswer, ReportCache};
use crate::reports::group_sizes;

/// Selects a figure of a shard.
type ShardFigure = fn(&ShardTotals) -> u64;

pub(super) fn encode(out: &mut DescriptorEncoder<'_>, totals: &Totals) -> fmt::Result {
    let Totals {
        counters,
        backlog,
        pending_limit,
        status_table_bytes,
        decision_times,
        shards,
        full_disks,
        disk_recoveries,
    } = totals;
    for (name, help, value) in [
        ("doppel_tier1_live_pages", "Live pages, including redirects", counters.live),
        ("doppel_tier1_redirect_pages", "Live pages that redirect", counters.redirects),
        (
            "doppel_tier1_unresolved_pages",
            "Redirects that do not lead to a page with content",
            counters.unresolved,
        ),
        ("doppel_tier1_dead_pages", "Dead pages on record", counters.dead),
        ("doppel_tier1_crowded_pages", "Pages to which more than 10,000 redirects lead", counters.crowded),
        ("doppel_tier1_groups", "Groups in use", counters.groups),
        ("doppel_tier1_unique_pages", "Pages with status unique", unique(counters, backlog)),
        ("doppel_tier1_winner_pages", "Pages with status winner", counters.winners),
        ("doppel_tier1_duplicate_pages", "Pages with status duplicate", counters.duplicates),
        ("doppel_tier1_secondary_pages", "Pages with status secondary", counters.secondaries),
        ("doppel_tier1_pending_pages", "Pages that wait for a decision", backlog.pending),
        (
            "doppel_tier1_pending_limit_pages",
            "Maximum number of pages that may wait for a decision",
            *pending_limit,
        ),
        (
            "doppel_tier1_deferred_search_pages",
            "Confirmed pages whose comparison is still owed",
            backlog.deferred_searches,
        ),
        ("doppel_tier1_dirty_groups", "Groups that must be recomputed", backlog.dirty_groups),
        (
            "doppel_tier1_uncovered_groups",
            "Groups whose kept pages must be determined again",
            backlog.uncovered_groups,
        ),
        (
            "doppel_tier1_unverified_pages",
            "Group members that must be verified against the winner",
            backlog.unverified,
        ),
        ("doppel_tier1_outbox_messages", "Messages between shards that are not confirmed", backlog.messages),
        ("doppel_tier1_status_table_bytes", "Size of the status table in memory", *status_table_bytes),
        (
            "doppel_tier1_full_disk_ranges",
            "Ranges that accept no writes because their disk is full",
            *full_disks,
        ),
    ] {
        gauge(out, name, help, value)?;
    }
    for (name, help, value) in [
        ("doppel_tier1_submissions", "Submissions accepted", counters.submissions),
        ("doppel_tier1_unchanged_submissions", "Submissions that changed nothing", counters.unchanged),
        ("doppel_tier1_stale_submissions", "Submissions older than the record", counters.stale),
        ("doppel_tier1_confirmed_updates", "Updates confirmed by the representative", counters.confirmed),
        (
            "doppel_tier1_compared_updates",
            "Updates that waited for a comparison in tier 2",
            counters.compared_updates,
        ),
        (
            "doppel_tier1_verifications",
            "Comparisons of a page with a winner that has another content and that the search for the page did not find",
            counters.verified,
        ),
        (
            "doppel_tier1_rejected_verifications",
            "Verifications that found no near-duplicate",
            counters.rejected,
        ),
        ("doppel_tier1_merges", "Groups merged into another", counters.merges),
        (
            "doppel_tier1_rechecks",
            "Groups recomputed because many members differed from the winner",
            counters.rechecks,
        ),
        ("doppel_tier1_evictions", "Members removed from a group by a recomputation", counters.evictions),
        ("doppel_tier1_searches", "Searches that tier 2 answered", counters.searches),
        (
            "doppel_tier1_stale_results",
            "Search results about contents that are no longer current",
            counters.stale_results,
        ),
        (
            "doppel_tier1_disk_recoveries",
            "Number of times that a range resumed after its disk was full",
            *disk_recoveries,
        ),
    ] {
        counter(out, name, help, value)?;
    }
    decisions(out, decision_times)?;
    shard_figures(out, shards)
}

/// Writes the waiting time of the oldest pending page, and the waiting times of the decided pages.
fn decisions(out: &mut DescriptorEncoder<'_>, times: &DecisionTimes) -> fmt::Result {
    let help = "Waiting time of the page that has waited longest for a decision; 0 if no page waits";
    float(out, "doppel_tier1_oldest_pending_seconds", help, seconds(times.oldest_ms.unwrap_or(0)))?;
    let bounds = CLASS_BOUNDS_MS.iter().map(|ms| seconds(*ms)).chain([f64::INFINITY]);
    let classes: Vec<(f64, u64)> = bounds.zip(times.classes).collect();
    let (name, help) = (
        "doppel_tier1_decision_seconds",
        "Time from the recording of a page to the decision by its comparison",
    );
    out.encode_descriptor(name, help, None, MetricType::Histogram)?.encode_histogram::<NoLabelSet>(
        seconds(times.total_ms),
        times.decided(),
        &classes,
        None,
    )
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

/// Writes figures of each shard. A collection with more than [`SHARDS_SHOWN`] shards has none, because the
/// samples would be too many to be useful.
fn shard_figures(out: &mut DescriptorEncoder<'_>, shards: &[ShardTotals]) -> fmt::Result {
    if shards.len() > SHARDS_SHOWN {
        return Ok(());
    }
    let figures: [(&str, &str, ShardFigure); 3] = [
        ("doppel_tier1_shard_live_pages", "Live pages of a shard", |shard| shard.live),
        ("doppel_tier1_shard_groups", "Groups in use of a shard", |shard| shard.groups),
        ("doppel_tier1_shard_pending_pages", "Pages of a shard that wait for a decision", |shard| {
            shard.pending
        }),
    ];
    for (name, help, figure) in figures {
        let mut family = out.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for shard in shards {
            let labels = [("shard", shard.shard.0.to_string())];
            ConstGauge::new(figure(shard)).encode(family.encode_family(&labels)?)?;
        }
    }
    Ok(())
}

/// Figures that need a count of all groups.
#[derive(Debug, Clone, Copy)]
pub(super) struct GroupFigures {
    quarantined: u64,
    age: Duration,
}

/// Returns the figures of the last report on groups. If the report is older than [`GROUPS_AGE`], this
/// function makes a new one and blocks meanwhile. Returns `None` if no report can be made, or another caller
/// is making the first one.
pub(super) fn groups(tier1: &dyn Tier1Api, report: &Arc<ReportCache<GroupSizes>>) -> Option<GroupFigures> {
    let (report, age) = match report.ask_within(GROUPS_AGE) {
        CacheAnswer::Cached(report, age) => (report, age),
        CacheAnswer::Turn(turn) => {
            (turn.make(|| group_sizes::compute(tier1, || false)).ok()?, Duration::ZERO)
        }
        CacheAnswer::InProgress => return None,
    };
    Some(GroupFigures { quarantined: report.quarantined, age })
}

pub(super) fn encode_groups(out: &mut DescriptorEncoder<'_>, groups: GroupFigures) -> fmt::Result {
    gauge(
        out,
        "doppel_tier1_quarantined_groups",
        "Groups in quarantine, as of the last count of groups",
        groups.quarantined,
    )?;
    let help = "Age of the last count of groups";
    float(out, "doppel_tier1_group_count_age_seconds", help, groups.age.as_secs_f64())
}
