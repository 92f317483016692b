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
use crate::routes::operations::rebalance::mapping;

const CONTENT_TYPE: &str = "application/octet-stream";

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct SampleQuery {
    /// How many, 1 to 100,000; those with the least hashes, which are a random sample and always the same.
    #[param(minimum = 1, maximum = 100_000)]
    contents: Option<usize>,
}

/// Signatures of some of the contents that are stored.
///
/// There is one at a time. A client that has had one leaves the place to others for 10 seconds, or for as long as its sample took.
///
/// They follow each other without anything between, in the order of their contents' hashes, each in the layout of
/// doppel-model's `signature`. Without `contents` 100,000, or about 256 MB of them if that is less.
#[utoipa::path(
    get, path = "/v1/sample", operation_id = "get_sample", tag = "reports", params(SampleQuery),
    responses(
        (status = 200, description = "The signatures", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 400, description = "Out of range"),
        (status = 404, description = "The index has no mapping"),
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
        return Err(Problem::field("contents", format!("1 to {SAMPLE_CONTENTS}, not {contents}")));
    }
    let (permit, planning) = (app.enter_sample()?, app.enter_planning()?);
    // The turn is dropped before the permit. The client's pause has then begun when the permit becomes free,
    // so other clients come first.
    let permit = (caller.sample_turn(app.limits().sample_pause)?, permit);
    // The call continues if the client disconnects, so it keeps the permits.
    let sample = move |app: &App| {
        let _planning = planning;
        Ok((mapping(app)?.sample(contents)?, permit))
    };
    let (signatures, permit) = app.blocking_within(LONG_CALL_TIME, sample).await?;
    let body = stream(permit, ("sample", Some(SAMPLE_TIME)), move |out| {
        signatures.iter().try_for_each(|one| out.write_all(one.as_bytes())).map_err(|error: io::Error| error)
    });
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], body).into_response())
}
