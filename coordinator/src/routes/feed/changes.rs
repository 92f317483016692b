//! `GET /v1/changes`: the resumable feed of status changes, with long polling.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, header};
use axum::response::{IntoResponse, Response};
use doppel_contract::answer::{ChangeLine, ChangesAnswer};
use doppel_protocol::FeedBatch;
use serde::Deserialize;
use tokio::time::Instant;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::contract::refusals;
use crate::limits::{CHANGES, CHANGES_DEFAULT, CHANGES_WAIT_S, CURSOR_BYTES};
use crate::problem::Problem;
use crate::request::extract::{Query, number};
use crate::routes::pages::NDJSON;

/// Header with the cursor at which a client continues in the feed.
pub(crate) const CURSOR: HeaderName = HeaderName::from_static("doppel-cursor");

/// Header that says whether the answer reached the end of the feed.
const AT_END: HeaderName = HeaderName::from_static("doppel-at-end");

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ChangesQuery {
    /// Cursor from an earlier answer or from an export. Without a cursor, the feed begins at its start.
    #[param(min_length = 1, max_length = 34_833, pattern = "^[0-9A-Fa-f.-]+$")]
    cursor: Option<String>,
    /// Maximum number of seconds to wait for the first event, 0 to 60. Default: 0.
    #[param(minimum = 0, maximum = 60)]
    wait: Option<u64>,
    /// Maximum number of events in the answer, 1 to 10,000. Default: 1,000.
    #[param(minimum = 1, maximum = 10_000)]
    limit: Option<usize>,
}

/// Read the status changes since a cursor.
///
/// The feed keeps the newest event of every page. A replay from the start therefore gives every page once,
/// including dead pages. Events do not depend on markets: each event names the winner without a market. With
/// `Accept: application/x-ndjson`, the answer has one event per line, and the headers `doppel-cursor` and
/// `doppel-at-end` have the values of `cursor` and `at_end`.
#[utoipa::path(
    get, path = "/v1/changes", operation_id = "get_changes", tag = "feed", params(ChangesQuery),
    responses(
        (status = 200, description = "The next events; an empty list if no page changed within `wait` seconds",
            headers(
                ("doppel-cursor" = String, description = "Cursor at which to continue, if the events are JSON lines"),
                ("doppel-at-end" = bool, description = "Whether the answer reached the end of the feed, if the events are JSON lines"),
            ),
            content(
                (ChangesAnswer = "application/json"),
                (ChangeLine = "application/x-ndjson"),
            ),
        ),
        (status = 400, description = "A parameter is invalid"),
        (status = 410, description = "The feed cannot continue at this cursor. Export the collection again"),
        refusals::Reads,
    ),
)]
pub(crate) async fn get(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Query(query): Query<ChangesQuery>,
) -> Result<Response, Problem> {
    let limit = number("limit", query.limit, CHANGES_DEFAULT, 1, CHANGES)?;
    let wait = Duration::from_secs(number("wait", query.wait, 0, 0, CHANGES_WAIT_S)?);
    if let Some(cursor) = &query.cursor {
        check(cursor)?;
    }
    let _place =
        if wait.is_zero() { None } else { Some((caller.enter_long_poll()?, app.enter_long_poll()?)) };
    let changes = poll(&app, query.cursor, limit, wait).await?;

    let answer = ChangesAnswer::from(changes);
    if !wants_lines(&headers) {
        return Ok(Json(answer).into_response());
    }
    let mut body = Vec::new();
    for change in &answer.changes {
        serde_json::to_writer(&mut body, change).map_err(|_| Problem::internal())?;
        body.push(b'\n');
    }
    let headers = [
        (header::CONTENT_TYPE, NDJSON.to_owned()),
        (CURSOR, answer.cursor),
        (AT_END, answer.at_end.to_string()),
    ];
    Ok((headers, body).into_response())
}

/// Refuses a text that cannot be a cursor. Cursors consist of hexadecimal numbers, dots and hyphens. Tier 1
/// decides whether a cursor of this form is still valid.
fn check(cursor: &str) -> Result<(), Problem> {
    if cursor.len() > CURSOR_BYTES {
        return Err(Problem::field("cursor", format!("longer than {CURSOR_BYTES} bytes")));
    }
    if cursor.is_empty() || !cursor.bytes().all(|b| b.is_ascii_hexdigit() || matches!(b, b'.' | b'-')) {
        return Err(Problem::field("cursor", "not a cursor from an earlier answer or an export"));
    }
    Ok(())
}

/// Returns true if the client accepts JSON lines.
fn wants_lines(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut kinds = accepted.flat_map(|value| value.split(',')).filter_map(|kind| kind.split(';').next());
    kinds.any(|kind| kind.trim().eq_ignore_ascii_case(NDJSON))
}

/// Reads the next changes, and waits for them up to `wait`.
///
/// The wait is split into short steps. The thread is therefore free soon after the client disconnects, which
/// drops this future, and soon after the service starts to drain.
async fn poll(
    app: &App,
    mut cursor: Option<String>,
    limit: usize,
    wait: Duration,
) -> Result<FeedBatch, Problem> {
    let end = Instant::now() + wait;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let step = left.min(app.limits().poll_step);
        let changes =
            app.blocking(move |app| Ok(app.tier1().changes(cursor.as_deref(), limit, step)?)).await?;
        if !changes.changes.is_empty() || left <= step || app.is_draining() {
            return Ok(changes);
        }
        cursor = Some(changes.cursor);
    }
}
