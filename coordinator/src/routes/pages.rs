//! `POST /v1/pages`, `DELETE /v1/pages` and `POST /v1/purge`: how a crawl pipeline records, deletes and
//! purges pages.

mod json_lines;
mod line_answers;
mod raw_page_query;
mod submission;

use axum::Json;
use axum::body::Body as HttpBody;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use doppel_contract::answer::{AcceptedPage, LineAnswer, PageUrlForm, PurgeResult, TimeForm};
use doppel_contract::page::{self, LINE_BYTES_MAX, PAGE_BYTES_MAX};
use doppel_model::PageUrl;
use doppel_protocol::{Body, Submission};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::access::Caller;
use crate::app::App;
use crate::contract::refusals;
use crate::limits::{LONG_CALL_TIME, RETRY_AFTER_S};
use crate::problem::Problem;
use crate::request::body;
use crate::request::extract::{JsonBody, Query, page_url};
use crate::routes::pages::raw_page_query::{MEDIA_TYPES, RawPageQuery};
use crate::routes::pages::submission::submit;
use doppel_engine::ingest::{IngestError, PageSource};

/// Media type of JSON lines.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// A page to record, with exactly one of `html`, `text`, `redirect_to` and `dead: true`.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(
    as = Page,
    examples(
        json!({"url": "https://example.org/a", "text": "A text of some words.", "fetched_at": "2026-01-31T08:00:00Z"}),
        json!({"url": "https://example.org/old", "redirect_to": "https://example.org/a"}),
        json!({"url": "https://example.org/gone", "dead": true}),
    ),
)]
#[expect(dead_code, reason = "describes what PageItem::parse reads")]
pub(crate) struct PageSchema {
    /// Absolute http, https or file URL, or the name of a record without a URL, such as
    /// `record:part-1.jsonl#row=7`. The service removes the fragment of a URL and changes nothing else. A URL
    /// with the host in another case, or with an explicit default port, therefore names another page. Under a
    /// policy that reads the site (`by-site`, `copies`), the URL of html or text must have a host.
    #[schema(value_type = PageUrlForm)]
    url: String,
    /// HTML document of at most 16 MiB.
    #[schema(max_length = 16_777_216)]
    html: Option<String>,
    /// Plain text or Markdown of at most 16 MiB.
    #[schema(max_length = 16_777_216)]
    text: Option<String>,
    /// Target of the redirect. A page cannot redirect to itself.
    #[schema(value_type = Option<PageUrlForm>)]
    redirect_to: Option<String>,
    /// True if the page no longer exists.
    dead: Option<bool>,
    /// Time at which the page was fetched, in RFC 3339, at most 24 hours ahead. Default: now.
    #[schema(value_type = Option<TimeForm>)]
    fetched_at: Option<String>,
    /// Any measure of popularity, not negative. The winner order compares it in powers of two.
    #[schema(minimum = 0)]
    popularity: Option<f64>,
    /// Language tag. Without a tag, the service detects the language of the text if the server was started
    /// with `--detect-language`.
    #[schema(pattern = "^[A-Za-z0-9-]{1,35}$")]
    language: Option<String>,
}

/// Record a page, or many pages as JSON lines.
///
/// The body is one JSON object as `application/json`, or one object per line as `application/x-ndjson`. Blank
/// lines are skipped. The answer to JSON lines has one line for each line of the body, in order: the outcome
/// of the page, or an error that concerns this line alone. The error code `retry` means that the service did
/// not process the line, because it accepts no more pages at the moment. The header `Retry-After` then gives
/// the number of seconds after which to send these lines again.
///
/// The body can also be one raw page of at most 16 MiB, as `text/html`, `application/xhtml+xml` or
/// `text/plain`. The query then has the URL and the other fields of the page. The content type may name the
/// charset. Without a charset in the content type, the service determines it from the page.
///
/// Bodies may be compressed with gzip or zstd. The service refuses binary data: pages in which more than 2 %
/// of the characters are control characters.
#[utoipa::path(
    post, path = "/v1/pages", operation_id = "record_pages", tag = "pages", params(RawPageQuery),
    request_body(content(
        (PageSchema = "application/json"),
        (PageSchema = "application/x-ndjson"),
        (String = "text/html"),
        (String = "application/xhtml+xml"),
        (String = "text/plain"),
    )),
    responses(
        (status = 200, description = "The durable outcome of every page, or the error of its line; with `Retry-After` if some lines must be sent again",
            headers(("retry-after" = u32, description = "Seconds after which to send lines with the error code `retry` again")),
            content(
                (AcceptedPage = "application/json"),
                (LineAnswer = "application/x-ndjson"),
            ),
        ),
        (status = 400, description = "The body is not a page, is an array or is empty, or a raw page has no URL"),
        (status = 413, description = "The body or the number of lines exceeds a limit"),
        (status = 415, description = "The content type or encoding is not supported"),
        (status = 429, description = "Too many pages of all clients, or of this client, are pending; no page was recorded"),
        refusals::Writes,
    ),
)]
pub(crate) async fn post(
    State(app): State<App>,
    caller: Caller,
    Query(query): Query<RawPageQuery>,
    headers: HeaderMap,
    body: HttpBody,
) -> Result<Response, Problem> {
    let media_type = body::media_type(&headers);
    if MEDIA_TYPES.contains(&media_type.as_str()) {
        return record_raw_page(app, caller, query, headers, body).await.map(IntoResponse::into_response);
    }
    let (many, max) = match media_type.as_str() {
        "application/json" => (false, LINE_BYTES_MAX.min(app.limits().body_bytes)),
        NDJSON => (true, app.limits().body_bytes),
        _ => {
            let types = MEDIA_TYPES.join(", ");
            let detail = format!(
                "send one page as application/json, many pages as {NDJSON}, or one raw page as one of {types}"
            );
            return Err(Problem::media_type(&detail));
        }
    };
    query.refuse_beside_json()?;
    let held = app.read(&caller, &headers, body, max).await?;
    app.metrics().body_bytes(held.bytes().len());
    if held.bytes().trim_ascii().is_empty() {
        return Err(Problem::bad_request("the body is empty"));
    }
    if many {
        let lines = held.into_bytes();
        let answers = app
            .blocking_within(LONG_CALL_TIME, move |app| json_lines::record_lines(app, &caller, &lines))
            .await?;
        let mut response = ([(header::CONTENT_TYPE, NDJSON)], answers.bytes).into_response();
        if answers.needs_retry {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_S.into());
        }
        return Ok(response);
    }
    if held.bytes().trim_ascii_start().starts_with(b"[") {
        return Err(Problem::bad_request(
            "a page must be one JSON object; send many pages as application/x-ndjson",
        ));
    }
    let json = held.into_bytes();
    let taken = app
        .blocking(move |app| record_page(app, &caller, extract(app, PageSource::Json(json.clone()))?))
        .await?;
    Ok(Json(taken).into_response())
}

/// Records one page that is the raw body of the request.
async fn record_raw_page(
    app: App,
    caller: Caller,
    query: RawPageQuery,
    headers: HeaderMap,
    body: HttpBody,
) -> Result<Json<AcceptedPage>, Problem> {
    let head = query.head(&headers, app.arrival_clock().next())?;
    let max = PAGE_BYTES_MAX.min(app.limits().body_bytes);
    let held = app.read(&caller, &headers, body, max).await?;
    app.metrics().body_bytes(held.bytes().len());
    if held.bytes().is_empty() {
        return Err(Problem::bad_request("the body is empty"));
    }
    let page = head.with_body(held.into_bytes());
    app.blocking(move |app| record_page(app, &caller, extract(app, PageSource::Raw(page.clone()))?))
        .await
        .map(Json)
}

/// Records one page and returns its outcome.
fn record_page(app: &App, caller: &Caller, submission: Submission) -> Result<AcceptedPage, Problem> {
    let url = submission.url.to_string();
    let taken = submit(app, caller, vec![(url, submission)])?.pop();
    // Tier 1 returns one outcome for each submission.
    let (url, outcome) = taken.ok_or_else(Problem::internal)?;
    Ok(AcceptedPage { url, outcome: outcome? })
}

/// Extracts the text of one page and returns the submission for tier 1.
pub(crate) fn extract(app: &App, source: PageSource) -> Result<Submission, Problem> {
    let extracted = app.ingest().run(vec![source], app.arrival_clock().next()).pop();
    extracted.unwrap_or(Err(IngestError::Panicked)).map_err(Problem::from)
}

impl From<IngestError> for Problem {
    fn from(error: IngestError) -> Self {
        match error {
            IngestError::Item(item) => match &item.field {
                Some(field) => Self::field(field.clone(), item.reason.to_string()),
                None => Self::bad_request(item.reason.to_string()),
            },
            IngestError::TooLong(_) => Self::too_large(error.to_string()),
            IngestError::NoText { field: Some(field), .. } => Self::field(field, error.to_string()),
            IngestError::NoText { field: None, .. } => Self::bad_request(error.to_string()),
            IngestError::NoSite(_) => Self::field("url", error.to_string()),
            IngestError::Panicked => Self::internal(),
        }
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct DeleteQuery {
    /// URL of the page.
    #[param(value_type = PageUrlForm)]
    url: String,
    /// Time at which the page was found to be gone, in RFC 3339, at most 24 hours ahead. Default: now.
    #[param(value_type = Option<TimeForm>)]
    fetched_at: Option<String>,
}

/// Record that a page is gone.
///
/// A page that is not on record is also recorded as gone, with the outcome `confirmed`.
#[utoipa::path(
    delete, path = "/v1/pages", operation_id = "delete_page", tag = "pages", params(DeleteQuery),
    responses(
        (status = 200, description = "The deletion is recorded durably", body = AcceptedPage),
        (status = 400, description = "The page URL or the date is invalid"),
        refusals::Writes,
    ),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Query(DeleteQuery { url, fetched_at }): Query<DeleteQuery>,
) -> Result<Json<AcceptedPage>, Problem> {
    let (url, now) = (page_url("url", &url)?, app.arrival_clock().next());
    let fetched_at = fetched_at.map(|date| page::fetched_at(&date, now)).transpose();
    let fetched_at = fetched_at.map_err(IngestError::from)?.unwrap_or(now);
    let gone =
        Submission { url, fetched_at, popularity: None, language: None, canonical: None, body: Body::Dead };
    app.blocking(move |app| record_page(app, &caller, gone)).await.map(Json)
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"url": "https://example.org/forgotten"}), json!({"host": "forgotten.example.org"})))]
pub(crate) struct PurgeRequest {
    /// URL of the page to purge. A purge has either this field or `host`.
    #[schema(value_type = Option<PageUrlForm>)]
    url: Option<String>,
    /// Host whose pages to purge, in lower case and without a port. Pages of its subdomains are not purged.
    #[schema(min_length = 1, max_length = 8_192, pattern = "^[^.A-Z/?#@:\\\\][^A-Z/?#@\\\\]*$")]
    host: Option<String>,
}

/// Purge a page, or every page of a host, without leaving a record.
///
/// A purge differs from a deletion: because no record is left, the service would accept an older version of
/// the page again.
#[utoipa::path(
    post, path = "/v1/purge", operation_id = "purge", tag = "pages", request_body = PurgeRequest,
    responses(
        (status = 200, description = "The number of pages that were purged durably", body = PurgeResult),
        (status = 400, description = "The request has neither or both of url and host"),
        refusals::Writes,
    ),
)]
pub(crate) async fn purge(
    State(app): State<App>,
    JsonBody(request, _share): JsonBody<PurgeRequest>,
) -> Result<Json<PurgeResult>, Problem> {
    let purged = match &request {
        PurgeRequest { url: Some(url), host: None } => {
            let page = page_url("url", url)?.id();
            app.blocking(move |app| log_purge("page", app.tier1().purge(&[page])?)).await?
        }
        PurgeRequest { url: None, host: Some(host) } => {
            // A host in another spelling would match no page, and the answer would look like success.
            let in_a_url = PageUrl::parse(&format!("http://{host}/")).map(|url| url.host());
            if host.starts_with('.') || in_a_url.as_deref() != Ok(host) {
                let detail = "must be a host name as in a URL: lower case, without scheme and port, other scripts in xn-- form";
                return Err(Problem::field("host", detail));
            }
            let host = host.clone();
            let purge = move |app: &App| log_purge("host", app.tier1().purge_host(&host)?);
            app.blocking_within(LONG_CALL_TIME, purge).await?
        }
        _ => return Err(Problem::bad_request("a purge must name exactly one of url and host")),
    };
    Ok(Json(PurgeResult { purged }))
}

/// Logs a purge.
///
/// The log line names no page or host, because purged data must not stay in the log. An operator finds the
/// line by the request id. The line is written even if the client has disconnected.
fn log_purge(of: &str, purged: u64) -> Result<u64, Problem> {
    tracing::info!(of, purged, "purge");
    Ok(purged)
}
