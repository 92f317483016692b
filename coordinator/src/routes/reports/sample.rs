//! `GET /v1/sample`: signatures of some of the contents, from which another program can plan a partition map.

use std::io;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::access::Caller;
use crate::app::App;
use crate::contract::refusals;
use crate::limits::{LONG_CALL_TIME, SAMPLE_CONTENTS, SAMPLE_TIME};
use crate::problem::Problem;
use crate::request::extract::Query;
use crate::response::stream::stream;
use crate::routes::operations::rebalance::partition_map;

const CONTENT_TYPE: &str = "application/octet-stream";

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SampleQuery {
    /// Number of contents, 1 to 100,000. The service selects the contents with the smallest hashes, which are
    /// a random sample that stays the same.
    #[param(minimum = 1, maximum = 100_000)]
    contents: Option<usize>,
}

/// Download the signatures of a sample of the stored contents.
///
/// The service sends one sample at a time. After a sample, a client must pause for 10 seconds, or for as long
/// as the sample took if that was longer, so that other clients get their turn.
///
/// The signatures are concatenated in the order of the content hashes, each in the layout of doppel-model's
/// `signature`. Without `contents`, the sample has 100,000 contents, or as many as fit in about 256 MB.
#[utoipa::path(
    get, path = "/v1/sample", operation_id = "get_sample", tag = "reports", params(SampleQuery),
    responses(
        (status = 200, description = "The concatenated signatures", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "The number of contents is out of range"),
        (status = 404, description = "The index has no partition map"),
        refusals::Index,
    ),
)]
pub(crate) async fn sample(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<SampleQuery>,
) -> Result<Response, Problem> {
    let contents = query.contents.unwrap_or(SAMPLE_CONTENTS);
    if !(1..=SAMPLE_CONTENTS).contains(&contents) {
        return Err(Problem::field("contents", format!("{contents} is not from 1 to {SAMPLE_CONTENTS}")));
    }
    let (permit, planning) = (app.enter_sample()?, app.enter_planning()?);
    // The turn is dropped before the permit. The client's pause has then begun when the permit becomes free,
    // so other clients come first.
    let permit = (caller.sample_turn(app.limits().sample_pause)?, permit);
    // The call continues if the client disconnects, so it keeps the permits.
    let sample = move |app: &App| {
        let _planning = planning;
        Ok((partition_map(app)?.sample(contents)?, permit))
    };
    let (signatures, permit) = app.blocking_within(LONG_CALL_TIME, sample).await?;
    let body = stream(permit, ("sample", Some(SAMPLE_TIME)), move |out| {
        signatures.iter().try_for_each(|one| out.write_all(one.as_bytes())).map_err(|error: io::Error| error)
    });
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response())
}
