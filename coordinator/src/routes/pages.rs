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
use doppel_contract::answer::{LineAnswer, PageUrlForm, Purged, Taken, TimeForm};
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
use doppel_engine::ingest::{IngestError, Source};

/// Media type of JSON lines.
pub(crate) const NDJSON: &str = "application/x-ndjson";

/// A page to record: exactly one of `html`, `text`, `redirect_to` and `dead: true`.
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
    /// Absolute http, https or file URL, or the name of a record without one, such as `record:part-1.jsonl#row=7`. The fragment of a URL is removed, and nothing else is changed: another
    /// case of the host, or a default port that is named, make another page. Under a policy that reads the site
    /// (`by-site`, `copies`) the URL of html or text has a host.
    #[schema(value_type = PageUrlForm)]
    url: String,
    /// An HTML document of at most 16 MiB.
    #[schema(max_length = 16_777_216)]
    html: Option<String>,
    /// Plain text or Markdown of at most 16 MiB.
    #[schema(max_length = 16_777_216)]
    text: Option<String>,
    /// Where the page redirects to, never to itself.
    #[schema(value_type = Option<PageUrlForm>)]
    redirect_to: Option<String>,
    /// The page is gone.
    dead: Option<bool>,
    /// RFC 3339; now where none is given, at most 24 hours ahead.
    #[schema(value_type = Option<TimeForm>)]
    fetched_at: Option<String>,
    /// Any measure of it, not negative; its order of magnitude counts in the winner order.
    #[schema(minimum = 0)]
    popularity: Option<f64>,
    /// Language tag. Where none is given it is detected in the text if the server was started with `--detect-language`.
    #[schema(pattern = "^[A-Za-z0-9-]{1,35}$")]
    language: Option<String>,
}

/// Record a page, or many as JSON lines.
///
/// One JSON object as `application/json`, or one per line as `application/x-ndjson` (blank lines are
/// skipped). Lines are answered in order, each by a line: the page's outcome, or an error that concerns
/// this line alone. Error code `retry` means that the line was not looked at because the service takes no
/// more at the moment; then the answer has the header `Retry-After`, the seconds after which to send those lines again.
///
/// Or one page as it is, as `text/html`, `application/xhtml+xml` or `text/plain` of at most 16 MiB: the body is the page, and
/// the query has its URL and its other fields. A charset in the content type is that of the page; without one it is
/// found in the page.
///
/// Bodies may be packed with gzip or zstd. Binary data, in which more than 2 % of the characters are control characters, are
/// refused.
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
        (status = 200, description = "Durable, but for lines with an error; with `Retry-After` where some are to be sent again",
            headers(("retry-after" = u32, description = "Seconds after which to send lines with the error code `retry` again")),
            content(
                (Taken = "application/json"),
                (LineAnswer = "application/x-ndjson"),
            ),
        ),
        (status = 400, description = "Not a page; an array; an empty body; a page as it is without a URL"),
        (status = 413, description = "The body or the number of lines is over the limit"),
        (status = 415, description = "Another content type or encoding"),
        (status = 429, description = "Too many pages are pending, of all clients or of this one; nothing was taken"),
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
        return raw(app, caller, query, headers, body).await.map(IntoResponse::into_response);
    }
    let (many, max) = match media_type.as_str() {
        "application/json" => (false, LINE_BYTES_MAX.min(app.limits().body_bytes)),
        NDJSON => (true, app.limits().body_bytes),
        _ => {
            let types = MEDIA_TYPES.join(", ");
            let detail = format!("pages come as application/json (one), {NDJSON}, or as they are: {types}");
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
        let answers =
            app.blocking_within(LONG_CALL_TIME, move |app| json_lines::take(app, &caller, &lines)).await?;
        let mut response = ([(header::CONTENT_TYPE, NDJSON)], answers.bytes).into_response();
        if answers.any_retry {
            response.headers_mut().insert(header::RETRY_AFTER, RETRY_AFTER_S.into());
        }
        return Ok(response);
    }
    if held.bytes().trim_ascii_start().starts_with(b"[") {
        return Err(Problem::bad_request("one page is an object; send many as application/x-ndjson"));
    }
    let json = held.into_bytes();
    let taken = app.blocking(move |app| one(app, &caller, extract(app, Source::Json(json.clone()))?)).await?;
    Ok(Json(taken).into_response())
}

/// Records one page that is the raw body of the request.
async fn raw(
    app: App,
    caller: Caller,
    query: RawPageQuery,
    headers: HeaderMap,
    body: HttpBody,
) -> Result<Json<Taken>, Problem> {
    let head = query.head(&headers, app.arrivals().next())?;
    let max = PAGE_BYTES_MAX.min(app.limits().body_bytes);
    let held = app.read(&caller, &headers, body, max).await?;
    app.metrics().body_bytes(held.bytes().len());
    if held.bytes().is_empty() {
        return Err(Problem::bad_request("the body is empty"));
    }
    let page = head.with_body(held.into_bytes());
    app.blocking(move |app| one(app, &caller, extract(app, Source::Raw(page.clone()))?)).await.map(Json)
}

/// Records one page and returns its outcome.
fn one(app: &App, caller: &Caller, submission: Submission) -> Result<Taken, Problem> {
    let url = submission.url.to_string();
    let taken = submit(app, caller, vec![(url, submission)])?.pop();
    // Tier 1 returns one outcome for each submission.
    let (url, outcome) = taken.ok_or_else(Problem::internal)?;
    Ok(Taken { url, outcome: outcome? })
}

/// Extracts one source to a submission.
pub(crate) fn extract(app: &App, source: Source) -> Result<Submission, Problem> {
    let extracted = app.ingest().run(vec![source], app.arrivals().next()).pop();
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
    /// The page.
    #[param(value_type = PageUrlForm)]
    url: String,
    /// When it was found to be gone; RFC 3339, now where none is given, at most 24 hours ahead.
    #[param(value_type = Option<TimeForm>)]
    fetched_at: Option<String>,
}

/// Record that a page is gone.
///
/// One that is not on record is recorded as gone, too, with the outcome `confirmed`.
#[utoipa::path(
    delete, path = "/v1/pages", operation_id = "delete_page", tag = "pages", params(DeleteQuery),
    responses(
        (status = 200, description = "Durable", body = Taken),
        (status = 400, description = "No page URL or no date"),
        refusals::Writes,
    ),
)]
pub(crate) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Query(DeleteQuery { url, fetched_at }): Query<DeleteQuery>,
) -> Result<Json<Taken>, Problem> {
    let (url, now) = (page_url("url", &url)?, app.arrivals().next());
    let fetched_at = fetched_at.map(|date| page::fetched_at(&date, now)).transpose();
    let fetched_at = fetched_at.map_err(IngestError::from)?.unwrap_or(now);
    let gone =
        Submission { url, fetched_at, popularity: None, language: None, canonical: None, body: Body::Dead };
    app.blocking(move |app| one(app, &caller, gone)).await.map(Json)
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"url": "https://example.org/forgotten"}), json!({"host": "forgotten.example.org"})))]
pub(crate) struct PurgeRequest {
    /// The page to forget; this or a host.
    #[schema(value_type = Option<PageUrlForm>)]
    url: Option<String>,
    /// The host whose pages to forget, lower case, without a port; not its subdomains.
    #[schema(min_length = 1, max_length = 8_192, pattern = "^[^.A-Z/?#@:\\\\][^A-Z/?#@\\\\]*$")]
    host: Option<String>,
}

/// Forget a page, or every page of a host, altogether.
///
/// Unlike a deletion it leaves no record, so an older version of the page would be taken again.
#[utoipa::path(
    post, path = "/v1/purge", operation_id = "purge", tag = "pages", request_body = PurgeRequest,
    responses(
        (status = 200, description = "How many pages were forgotten, durably", body = Purged),
        (status = 400, description = "Neither or both of url and host"),
        refusals::Writes,
    ),
)]
pub(crate) async fn purge(
    State(app): State<App>,
    JsonBody(request, _share): JsonBody<PurgeRequest>,
) -> Result<Json<Purged>, Problem> {
    let purged = match &request {
        PurgeRequest { url: Some(url), host: None } => {
            let page = page_url("url", url)?.id();
            app.blocking(move |app| forgotten("page", app.tier1().purge(&[page])?)).await?
        }
        PurgeRequest { url: None, host: Some(host) } => {
            // A host in another spelling would match no page, and the answer would look like success.
            let in_a_url = PageUrl::parse(&format!("http://{host}/")).map(|url| url.host());
            if host.starts_with('.') || in_a_url.as_deref() != Ok(host) {
                let detail = "a host as URLs have it: lower case, no scheme, no port, xn-- for other scripts";
                return Err(Problem::field("host", detail));
            }
            let host = host.clone();
            let purge = move |app: &App| forgotten("host", app.tier1().purge_host(&host)?);
            app.blocking_within(LONG_CALL_TIME, purge).await?
        }
        _ => return Err(Problem::bad_request("a purge names exactly one of url and host")),
    };
    Ok(Json(Purged { purged }))
}

/// Logs a purge.
///
/// The log line names no page or host, because purged data must not stay in the log. An operator finds the
/// line by the request id. The line is written even if the client has disconnected.
fn forgotten(of: &str, purged: u64) -> Result<u64, Problem> {
    tracing::info!(of, purged, "purge");
    Ok(purged)
}
