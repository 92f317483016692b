//! `GET /v1/reports/quality` and `/groups`: quality and sizes of the groups.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use doppel_protocol::Totals;
use doppel_protocol::answer::{GroupSizes, Quality};

use crate::app::App;
use crate::limits::LONG_CALL_TIME;
use crate::metrics::unique;
use crate::problem::Problem;

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
    app.blocking_within(LONG_CALL_TIME, move |app| Ok(Json(report.renew(app.tier1())?))).await
}
