//! `GET /v1/status`, `POST /v1/status` and `POST /v1/probe`: tell whether a page is a duplicate, and of which
//! kept page.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use doppel_crawls::Fetched;
use doppel_model::PageUrl;
use doppel_protocol::answer::{Advice, MarketForm, PageUrlForm, Probed, StatusAnswers};
use doppel_protocol::page::{PAGE_BYTES_MAX, PageBody, PageItem};
use doppel_protocol::{Submission, Tier1Reads};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::again::millis;
use crate::app::App;
use crate::contract::refusals;
use crate::extract::{self, JsonBody, Query, market, page_url};
use crate::limits::{LEFT_OUT_CHARS, PROBE_BYTES, STATUS_URLS, STATUS_URLS_AT_ONCE};
use crate::many::{answers, at_once, look};
use crate::pages;
use crate::problem::Problem;
use doppel_engine::comparison;
use doppel_engine::ingest::{self, Source};

/// Path of status requests for one page.
pub(crate) const PATH: &str = "/v1/status";

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatusQuery {
    /// The page.
    #[param(value_type = PageUrlForm)]
    url: String,
    /// A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer winners of
    /// such hosts.
    #[param(value_type = Option<MarketForm>)]
    market: Option<String>,
}

/// What is this page?
///
/// `duplicate` is verified on the present contents of the page and of the one in `duplicate_of`; every other status means:
/// keep the page.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "get_status", tag = "advice", params(StatusQuery),
    responses(
        (status = 200, description = "What the page is", body = Advice),
        (status = 400, description = "No page URL, or no market"),
        refusals::Reads,
    ),
)]
pub(crate) async fn get(
    State(app): State<App>,
    Query(StatusQuery { url, market: asked }): Query<StatusQuery>,
) -> Result<Json<Advice>, Problem> {
    let page = page_url("url", &url)?;
    let market = market(app.markets(), asked.as_deref())?;
    let advise = move |app: &App| {
        let aged = app.ask(|reads| match market.as_ref() {
            None => match reads.known_advices(std::slice::from_ref(&page))?.pop().flatten() {
                Some(advice) => Ok(advice),
                None => Ok(app.advisor(reads, None).advise(&page)?),
            },
            market => Ok(app.advisor(reads, market).advise(&page)?),
        })?;
        Ok(Advice { age_ms: aged.age.map(millis), ..aged.answer })
    };
    // With a market, finding the winner reads all members of the group, so the call runs on a blocking
    // thread.
    let advice = if asked.is_none() { app.in_place(advise).await? } else { app.blocking(advise).await? };
    Ok(Json(Advice { url, ..advice }))
}

/// Returns true if a request asks for the status of one page.
pub(crate) fn is_asked(method: &Method, uri: &Uri) -> bool {
    method == Method::GET && uri.path() == PATH
}

/// Answers a status request for one page if the answer needs no read of rows. Returns `None` for every other
/// request, including an invalid one, which [`get`] then answers.
pub(crate) fn without_rows(app: &App, uri: &Uri) -> Option<Response> {
    let axum::extract::Query(StatusQuery { url, market: None }) =
        axum::extract::Query::try_from_uri(uri).ok()?
    else {
        return None;
    };
    let advice = app.tier1().known_advice(&PageUrl::parse(&url).ok()?)?;
    Some(Json(Advice { url, ..advice }).into_response())
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"urls": ["https://example.org/a", "https://example.org/b"]})))]
pub(crate) struct StatusRequest {
    /// The pages, at most 1,000. What is no page URL is answered as such.
    #[schema(max_items = 1_000)]
    urls: Vec<String>,
    /// A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer winners of
    /// such hosts.
    #[schema(value_type = Option<MarketForm>)]
    market: Option<String>,
}

/// What are these pages?
#[utoipa::path(
    post, path = "/v1/status", operation_id = "get_statuses", tag = "advice", request_body = StatusRequest,
    responses(
        (status = 200, description = "What each page is, in the order of the URLs", body = StatusAnswers),
        (status = 400, description = "Too many URLs, or not of this form"),
        refusals::Reads,
    ),
)]
pub(crate) async fn post(
    State(app): State<App>,
    JsonBody(StatusRequest { urls, market: asked }, share): JsonBody<StatusRequest>,
) -> Result<Json<StatusAnswers>, Problem> {
    if urls.len() > STATUS_URLS {
        let detail = format!("{} URLs, the limit is {STATUS_URLS}; ask in parts", urls.len());
        return Err(Problem::field("urls", detail));
    }
    let market = market(app.markets(), asked.as_deref())?;
    let by_table = asked.is_none();
    let (mut asked, mut left) = (Vec::new(), urls);
    if left.len() <= STATUS_URLS_AT_ONCE {
        asked = look(&app, by_table, std::mem::take(&mut left));
    }
    if left.is_empty() {
        match at_once(asked) {
            Ok(pages) => return Ok(Json(StatusAnswers { pages })),
            Err(some) => asked = some,
        }
    }
    app.blocking(move |app| {
        let _share = share;
        asked.extend(look(app, by_table, left));
        Ok(Json(StatusAnswers { pages: answers(app, asked, market.as_ref())? }))
    })
    .await
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"url": "https://example.org/a", "text": "A text of some words, of which nothing is stored."})))]
pub(crate) struct ProbeRequest {
    /// An HTML document of at most 16 MiB, or
    #[schema(max_length = 16_777_216)]
    html: Option<String>,
    /// plain text or Markdown of at most 16 MiB.
    #[schema(max_length = 16_777_216)]
    text: Option<String>,
    /// Where it was found: relative links of a redirect are resolved against it, and what is stored under
    /// it is not taken for a partner. A policy that reads the site (`by-site`, `copies`) needs it, with a host.
    #[schema(value_type = Option<PageUrlForm>)]
    url: Option<String>,
    /// A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer winners of
    /// such hosts.
    #[schema(value_type = Option<MarketForm>)]
    market: Option<String>,
}

/// What would this text be? Nothing is stored.
///
/// Under the policies `content` and `copies` the answer to HTML says in `main_content` what of it is compared, and shows the beginning of
/// what each rule leaves out.
#[utoipa::path(
    post, path = "/v1/probe", operation_id = "probe_page", tag = "advice", request_body = ProbeRequest,
    responses(
        (status = 200, description = "What the text would be", body = Probed),
        (status = 400, description = "Neither or both of html and text; no URL with a host where the policy reads the site"),
        (status = 413, description = "The text is over the limit"),
        refusals::ReadsAndIndex,
    ),
)]
pub(crate) async fn probe(State(app): State<App>, request: Request) -> Result<Json<Probed>, Problem> {
    let (probe, share): (ProbeRequest, _) = extract::json(&app, request, PROBE_BYTES).await?;
    let body = match (probe.html, probe.text) {
        (Some(html), None) => PageBody::Html(html),
        (None, Some(text)) => PageBody::Text(text),
        _ => return Err(Problem::bad_request("a probe has exactly one of html and text")),
    };
    if let PageBody::Html(content) | PageBody::Text(content) = &body
        && content.len() > PAGE_BYTES_MAX
    {
        let detail = format!("{} bytes of text, the limit is {PAGE_BYTES_MAX}", content.len());
        return Err(Problem::too_large(detail));
    }
    let own = probe.url.as_deref().map(|url| page_url("url", url)).transpose()?;
    let policy = app.policy();
    if own.is_none() && policy.reads_site() {
        let detail = format!("missing; the policy {} compares pages by their sites", policy.name());
        return Err(Problem::field("url", detail));
    }
    let market = market(app.markets(), probe.market.as_deref())?;
    let answer = app
        .blocking(move |app| {
            // The text counts against the memory budget while it waits for an extractor.
            let _share = share;
            // If the text has no URL, it gets one with a host name that never resolves (RFC 6761).
            let url = own.clone().map_or_else(|| page_url("url", "http://probe.invalid/"), Ok)?;
            let item = PageItem { url, body, fetched_at: None, popularity: None, language: None };
            let mut page = Fetched::from(item);
            if let Some(content) = page.body.raw_content() {
                ingest::check(content, true)?;
            }
            let mut main_content = None;
            if app.policy().reads_main() {
                let (read, taken) = app.ingest().main_content(page, LEFT_OUT_CHARS)?;
                (page, main_content) = (read, taken.map(comparison::main_content));
            }
            let submission: Submission = pages::extract(app, Source::Fetched(page))?;
            let advise = |reads: &dyn Tier1Reads| {
                let mut advisor = app.advisor(reads, market.as_ref());
                Ok(advisor.probe(app.tier2(), &submission, own.as_ref())?)
            };
            Ok((app.ask(advise)?, main_content))
        })
        .await?;
    let (aged, main_content) = answer;
    let (url, age_ms) = (probe.url.unwrap_or_default(), aged.age.map(millis));
    Ok(Json(Probed { advice: Advice { url, age_ms, ..aged.answer }, main_content }))
}
