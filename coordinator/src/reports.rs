//! `GET /v1/reports/quality`, `/groups` and `/savings`: quality and sizes of the groups, and what they save.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use doppel_protocol::Totals;
use doppel_protocol::answer::{GroupSizes, Quality, Savings};

use crate::app::App;
use crate::limits::{LONG_CALL_TIME, SAVINGS_PAGES};
use crate::metrics::unique;
use crate::problem::Problem;
use crate::{group_report, savings_report};

/// How good are the groups, and what is still to be done?
#[utoipa::path(get, path = "/v1/reports/quality", tag = "reports", responses((status = 200, body = Quality)))]
pub(crate) async fn quality(State(app): State<App>) -> Result<Json<Quality>, Problem> {
    app.blocking(|app| {
        let Totals { counters, backlog, pending_limit, .. } = app.tier1().totals()?;
        Ok(Json(Quality {
            counters,
            unique: unique(&counters, &backlog),
            backlog,
            pending_limit,
            quiescent: backlog.is_quiescent(),
            confirm_share: share(counters.confirmed, counters.confirmed + counters.compared_updates),
            reject_share: share(counters.rejected, counters.verified),
        }))
    })
    .await
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// How large are the groups?
///
/// The answer may be 10 seconds old, and older where there are very many groups.
#[utoipa::path(get, path = "/v1/reports/groups", tag = "reports", responses((status = 200, body = GroupSizes)))]
pub(crate) async fn groups(State(app): State<App>) -> Result<Json<Arc<GroupSizes>>, Problem> {
    // A caller who comes while the report is being made waits here for it.
    let mut report = app.group_report().clone().lock_owned().await;
    if let Some(fresh) = report.fresh() {
        return Ok(Json(fresh));
    }
    // The call keeps the lock, because its caller may be gone before the report is made.
    let renew = move |app: &App| Ok(Json(report.renew(|| group_report::sizes(app.tier1()))?));
    app.blocking_within(LONG_CALL_TIME, renew).await
}

/// What does dropping duplicates save, and which hosts mirror which?
///
/// The answer may be 10 seconds old, and older where there are very many pages.
#[utoipa::path(
    get, path = "/v1/reports/savings", tag = "reports",
    responses(
        (status = 200, body = Savings),
        (status = 507, description = "No room to sort", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn savings(State(app): State<App>) -> Result<Json<Arc<Savings>>, Problem> {
    let mut report = app.savings_report().clone().lock_owned().await;
    if let Some(fresh) = report.fresh() {
        return Ok(Json(fresh));
    }
    let renew = move |app: &App| {
        let read = || savings_report::read(app.tier1(), app.policy(), app.temp_dir(), SAVINGS_PAGES);
        Ok(Json(report.renew(read)?))
    };
    app.blocking_within(LONG_CALL_TIME, renew).await
}
