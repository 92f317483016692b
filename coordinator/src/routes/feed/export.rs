//! `GET /v1/export`: streams every live page, sorted by URL.

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use doppel_contract::answer::{ExportLine, MarketForm};
use serde::Deserialize;
use utoipa::IntoParams;

use super::changes::CURSOR;
use crate::access::Caller;
use crate::app::App;
use crate::contract::refusals;
use crate::limits::LONG_CALL_TIME;
use crate::problem::Problem;
use crate::request::extract::{Query, market};
use crate::response::stream::stream;
use crate::routes::pages::NDJSON;
use doppel_engine::export::PendingExport;

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExportQuery {
    /// Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer then
    /// prefers winners on hosts of this market.
    #[param(value_type = Option<MarketForm>)]
    market: Option<String>,
}

/// Export every live page, sorted by URL.
///
/// The header `doppel-cursor` gives the cursor at which the change feed continues after the export. An answer
/// that breaks off is incomplete.
#[utoipa::path(
    get, path = "/v1/export", operation_id = "export_pages", tag = "feed", params(ExportQuery),
    responses(
        (status = 400, description = "The market is invalid"),
        (status = 200, description = "Every live page, one line each", body = ExportLine, content_type = "application/x-ndjson",
            headers(("doppel-cursor" = String, description = "Cursor at which the change feed continues after the export")),
        ),
        refusals::Sorts,
    ),
)]
pub(crate) async fn export(
    State(app): State<App>,
    caller: Caller,
    Query(ExportQuery { market: asked }): Query<ExportQuery>,
) -> Result<Response, Problem> {
    let market = market(app.markets(), asked.as_deref())?;
    let permit = (caller.enter_export()?, app.enter_export()?);
    // The scan continues if the client disconnects, so it keeps the permit.
    let collect = move |app: &App| {
        let mut advisor = app.advisor(app.tier1(), market.as_ref()).unlimited();
        Ok((permit, PendingExport::of_changing_collection(app.tier1(), &mut advisor, app.temp_dir())?))
    };
    let (permit, collected) = app.blocking_within(LONG_CALL_TIME, collect).await?;
    let headers = [(header::CONTENT_TYPE, NDJSON.to_owned()), (CURSOR, collected.cursor().to_owned())];
    let body = stream(permit, ("export", None), move |out| collected.write(out).map(drop));
    Ok((headers, body).into_response())
}
