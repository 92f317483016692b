//! `GET /v1/reports/quality`, `/groups` and `/savings`: reports on the quality and sizes of groups, and on
//! what dropping duplicates saves.

pub(crate) mod load_balance;
pub(crate) mod sample;

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use doppel_contract::answer::{GroupSizes, Quality, Savings};
use doppel_protocol::Totals;

use crate::app::App;
use crate::contract::refusals;
use crate::limits::{LONG_CALL_TIME, SAVINGS_PAGES};
use crate::metrics::unique;
use crate::problem::Problem;
use crate::reports::cache::{CacheAnswer, ReportCache};
use crate::reports::{group_sizes, savings};
use crate::response::answer_age::millis;
use crate::routes::operations::readiness::not_ready;

/// Report counters of pages, groups and comparisons, and the backlog.
#[utoipa::path(get, path = "/v1/reports/quality", operation_id = "get_quality", tag = "reports", responses(
        (status = 200, description = "The counters and the backlog", body = Quality),
        refusals::Reads,
    ))]
pub(crate) async fn quality(State(app): State<App>) -> Result<Json<Quality>, Problem> {
    app.blocking(|app| {
        let Totals { counters, backlog, pending_limit, decision_times, full_disks, .. } =
            app.tier1().totals()?;
        Ok(Json(Quality {
            counters,
            unique: unique(&counters, &backlog),
            backlog,
            pending_limit,
            quiescent: backlog.is_quiescent(),
            confirm_share: share(counters.confirmed, counters.confirmed + counters.compared_updates),
            reject_share: share(counters.rejected, counters.verified),
            decisions: decision_times.into(),
            full_disks,
            not_ready: not_ready(app).map(|why| why.detail().to_owned()),
        }))
    })
    .await
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Report the sizes of the groups.
///
/// The answer may be 10 seconds old. It may be older if the collection has very many groups, or while the
/// next report is being made. `age_ms` gives the age.
#[utoipa::path(
    get, path = "/v1/reports/groups", operation_id = "get_group_sizes", tag = "reports",
    responses(
        (status = 200, description = "The sizes of the groups, and the largest groups", body = GroupSizes),
        refusals::Reads,
    ),
)]
pub(crate) async fn groups(State(app): State<App>) -> Result<Json<GroupSizes>, Problem> {
    let read = |app: &App| Ok(group_sizes::compute(app.tier1(), || app.is_draining())?);
    let (report, age_ms) = cached_report(&app, &app.reports().groups, read).await?;
    Ok(Json(GroupSizes { age_ms, ..GroupSizes::clone(&report) }))
}

/// Report what dropping duplicates saves, and which hosts mirror each other.
///
/// The answer may be 10 seconds old. It may be older if the collection has very many pages, or while the next
/// report is being made. `age_ms` gives the age.
#[utoipa::path(
    get, path = "/v1/reports/savings", operation_id = "get_savings", tag = "reports",
    responses(
        (status = 200, description = "The pages that can be dropped, and the mirrors", body = Savings),
        refusals::Sorts,
    ),
)]
pub(crate) async fn savings(State(app): State<App>) -> Result<Json<Savings>, Problem> {
    let read = |app: &App| {
        let stops = || app.is_draining();
        Ok(savings::compute(app.tier1(), app.policy(), app.temp_dir(), SAVINGS_PAGES, stops)?)
    };
    let (report, age_ms) = cached_report(&app, &app.reports().savings, read).await?;
    Ok(Json(Savings { age_ms, ..Savings::clone(&report) }))
}

/// Returns a report, with its age in milliseconds if it comes from the cache. No caller waits for a report
/// that another caller is making.
pub(crate) async fn cached_report<T: Send + Sync + 'static>(
    app: &App,
    report: &Arc<ReportCache<T>>,
    make: impl FnOnce(&App) -> Result<T, Problem> + Send + 'static,
) -> Result<(Arc<T>, Option<u64>), Problem> {
    match report.ask() {
        CacheAnswer::Cached(report, age) => Ok((report, Some(millis(age)))),
        CacheAnswer::Turn(turn) => {
            // The call holds the permission to make the report, because its client may disconnect meanwhile.
            let made = app.blocking_within(LONG_CALL_TIME, move |app| turn.make(|| make(app))).await?;
            Ok((made, None))
        }
        CacheAnswer::InProgress => Err(Problem::busy("the first report is being made; try again later")),
    }
}
