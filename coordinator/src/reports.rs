//! `GET /v1/reports/quality` and `/groups`: quality and sizes of the groups.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Json;
use axum::extract::State;
use doppel_protocol::answer::{Group, GroupSizes, Quality, SizeClass};
use doppel_protocol::{Backlog, Counters, GroupFilter, GroupSummary, Tier1Api, Tier1Error};

use crate::app::App;
use crate::limits::{LARGEST_GROUPS, LIST, REPORT_AGE, REPORT_AGE_TIMES, REPORT_GROUPS};
use crate::problem::Problem;

/// How good are the groups, and what is still to be done?
#[utoipa::path(get, path = "/v1/reports/quality", tag = "reports", responses((status = 200, body = Quality)))]
pub(crate) async fn quality(State(app): State<App>) -> Result<Json<Quality>, Problem> {
    app.blocking(|app| {
        let (counters, backlog) = (app.tier1().counters(), app.tier1().backlog());
        Ok(Json(Quality {
            counters,
            unique: unique(&counters, &backlog),
            backlog,
            pending_limit: app.tier1().pending_limit(),
            quiescent: backlog.is_quiescent(),
            confirm_share: share(counters.confirmed, counters.confirmed + counters.compared_updates),
            reject_share: share(counters.rejected, counters.verified),
        }))
    })
    .await
}

/// Live pages that are nothing else.
pub(crate) fn unique(counters: &Counters, backlog: &Backlog) -> u64 {
    let Counters { winners, duplicates, members, unresolved, .. } = counters;
    let others = winners + duplicates + members + unresolved + backlog.pending;
    counters.live.saturating_sub(others)
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The last group report, kept for a while because making it reads every group.
#[derive(Debug, Default)]
pub(crate) struct CachedGroups(Option<Made>);

#[derive(Debug)]
struct Made {
    at: Instant,
    took: Duration,
    report: Arc<GroupSizes>,
}

/// How large are the groups?
///
/// The answer may be 10 seconds old, and older where there are very many groups.
#[utoipa::path(get, path = "/v1/reports/groups", tag = "reports", responses((status = 200, body = GroupSizes)))]
pub(crate) async fn groups(State(app): State<App>) -> Result<Json<Arc<GroupSizes>>, Problem> {
    // Whoever comes while it is being made waits for it and has it, too.
    let mut cached = app.group_report().clone().lock_owned().await;
    let is_fresh = |made: &&Made| made.at.elapsed() < REPORT_AGE.max(REPORT_AGE_TIMES * made.took);
    if let Some(made) = cached.0.as_ref().filter(is_fresh) {
        return Ok(Json(Arc::clone(&made.report)));
    }
    // The call keeps it itself: the caller may be gone before the report is made.
    let make = move |app: &App| {
        let begin = Instant::now();
        let report = Arc::new(sizes(app.tier1())?);
        cached.0 = Some(Made { at: Instant::now(), took: begin.elapsed(), report: Arc::clone(&report) });
        Ok(Json(report))
    };
    app.blocking(make).await
}

fn sizes(tier1: &dyn Tier1Api) -> Result<GroupSizes, Tier1Error> {
    let mut classes: BTreeMap<u32, u64> = BTreeMap::new();
    let mut largest: Vec<GroupSummary> = Vec::with_capacity(LARGEST_GROUPS + LIST);
    let (mut groups, mut quarantined, mut after, mut at_end) = (0, 0, None, false);
    while !at_end && groups < REPORT_GROUPS {
        let piece = tier1.groups(GroupFilter::All, after, LIST)?;
        at_end = piece.len() < LIST;
        after = piece.last().map(|last| last.group).or(after);
        groups += piece.len() as u64;
        for summary in &piece {
            quarantined += u64::from(summary.quarantined);
            *classes.entry(summary.members.max(1).ilog2()).or_default() += 1;
        }
        largest.extend(piece);
        largest.sort_by(|a, b| b.members.cmp(&a.members).then(a.group.cmp(&b.group)));
        largest.truncate(LARGEST_GROUPS);
    }
    let class = |(power, groups)| {
        let from = 1_u64 << power;
        SizeClass { from, to: from + (from - 1), groups }
    };
    Ok(GroupSizes {
        groups,
        cut: !at_end,
        quarantined,
        histogram: classes.into_iter().map(class).collect(),
        largest: largest.into_iter().map(Group::from).collect(),
    })
}
