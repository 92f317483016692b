//! `GET /v1/status`, `POST /v1/status`, `POST /v1/probe`: is this page a duplicate, and of which winner?

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use doppel_model::PageUrl;
use doppel_protocol::answer::{Advice, StatusAnswer, StatusAnswers};
use doppel_protocol::page::{PAGE_BYTES_MAX, PageBody, PageItem};
use doppel_protocol::{Question, Submission, Tier1Reads, age_of};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::extract::{self, JsonBody, Query, market, page_url};
use crate::ingest::{Source, fetched};
use crate::limits::{PROBE_BYTES, STATUS_URLS, STATUS_URLS_AT_ONCE};
use crate::pages;
use crate::problem::Problem;

/// The path of a question about a page.
pub(crate) const PATH: &str = "/v1/status";

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatusQuery {
    /// The page.
    url: String,
    /// A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer winners of
    /// such hosts.
    market: Option<String>,
}

/// What is this page?
///
/// `duplicate` is verified on the present contents of the page and of the one in `duplicate_of`; every other status means:
/// keep the page.
#[utoipa::path(
    get, path = "/v1/status", tag = "advice", params(StatusQuery),
    responses(
        (status = 200, body = Advice),
        (status = 400, description = "No page URL, or no market", body = Problem, content_type = "application/problem+json"),
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
    // The winner of a market is looked for among all members.
    let advice = if asked.is_none() { app.in_place(advise).await? } else { app.blocking(advise).await? };
    Ok(Json(Advice { url, ..advice }))
}

/// The answer to a question about a page, if it takes no read of rows. Everything else, also what is wrong with a question,
/// is left to [`get`].
pub(crate) fn at_once(app: &App, method: &Method, uri: &Uri) -> Option<Response> {
    if method != Method::GET || uri.path() != PATH {
        return None;
    }
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
pub(crate) struct StatusRequest {
    /// The pages, at most 1,000.
    urls: Vec<String>,
    /// A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer winners of
    /// such hosts.
    market: Option<String>,
}

/// What are these pages?
#[utoipa::path(
    post, path = "/v1/status", tag = "advice", request_body = StatusRequest,
    responses(
        (status = 200, body = StatusAnswers),
        (status = 400, description = "Too many URLs, or not of this form", body = Problem, content_type = "application/problem+json"),
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
    let look = move |app: &App, urls: Vec<String>| -> Vec<Known> {
        urls.into_iter().map(|url| known(app, by_table, url)).collect()
    };
    let (mut pages, mut left) = (Vec::new(), urls);
    if left.len() <= STATUS_URLS_AT_ONCE {
        pages = look(&app, std::mem::take(&mut left));
    }
    if left.is_empty() && pages.iter().all(Result::is_ok) {
        return Ok(Json(StatusAnswers { pages: pages.into_iter().flatten().collect() }));
    }
    app.blocking(move |app| {
        let _share = share;
        pages.extend(look(app, left));
        let question = Question::default();
        let answered = question.ask(app.tier1(), |reads| {
            if by_table {
                ask_together(reads, &mut pages)?;
            }
            let mut advisor = app.advisor(reads, market.as_ref());
            let mut of_market = None;
            let mut advise = |(url, page)| -> Result<_, Problem> {
                let answer = answer(url, advisor.advise(&page)?);
                let mut from = question.next_part();
                if !by_table {
                    // What was read of a group is used again for the pages after.
                    from = from.into_iter().chain(of_market).min();
                    of_market = from;
                }
                Ok((answer, from))
            };
            let pages = pages.into_iter().map(|page| page.map(|page| (page, None)).or_else(&mut advise));
            pages.collect::<Result<Vec<_>, Problem>>()
        })?;
        let pages = answered.into_iter().map(|(answer, from)| Ok(with_age(answer, age_of(from)?)));
        let pages = pages.collect::<Result<Vec<StatusAnswer>, Problem>>()?;
        let is_old = |page: &&StatusAnswer| matches!(page, StatusAnswer::Advice(of) if of.age_ms.is_some());
        app.metrics().answered_by_replicas(pages.iter().filter(is_old).count() as u64);
        Ok(Json(StatusAnswers { pages }))
    })
    .await
}

/// An answer that takes no rows, or what is to be asked of them.
type Known = Result<StatusAnswer, (String, PageUrl)>;

fn known(app: &App, by_table: bool, url: String) -> Known {
    match PageUrl::parse(&url) {
        Ok(page) => match Some(&page).filter(|_| by_table).and_then(|page| app.tier1().known_advice(page)) {
            Some(advice) => Ok(answer(url, advice)),
            None => Err((url, page)),
        },
        Err(error) => Ok(StatusAnswer::Bad { url, error: error.to_string() }),
    }
}

/// Says how old an answer is that replicas were read for.
fn with_age(answer: StatusAnswer, age: Option<Duration>) -> StatusAnswer {
    match answer {
        StatusAnswer::Advice(advice) => {
            StatusAnswer::Advice(Box::new(Advice { age_ms: age.map(millis), ..*advice }))
        }
        bad @ StatusAnswer::Bad { .. } => bad,
    }
}

/// The age of an answer as it is told.
pub(crate) fn millis(age: Duration) -> u64 {
    u64::try_from(age.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

/// Answers as many as possible with one call.
fn ask_together(reads: &dyn Tier1Reads, pages: &mut [Known]) -> Result<(), Problem> {
    let left: Vec<PageUrl> = pages.iter().filter_map(|page| Some(page.as_ref().err()?.1.clone())).collect();
    let known = reads.known_advices(&left)?;
    for (page, advice) in pages.iter_mut().filter(|page| page.is_err()).zip(known) {
        if let (Err((url, _)), Some(advice)) = (&page, advice) {
            *page = Ok(answer(url.clone(), advice));
        }
    }
    Ok(())
}

fn answer(url: String, advice: Advice) -> StatusAnswer {
    StatusAnswer::Advice(Box::new(Advice { url, ..advice }))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProbeRequest {
    /// An HTML document of at most 16 MiB, or
    html: Option<String>,
    /// plain text or Markdown of at most 16 MiB.
    text: Option<String>,
    /// Where it was found: relative links of a redirect are resolved against it, and what is stored under
    /// it is not taken for a partner.
    url: Option<String>,
    /// A market by its name, which `GET /v1/winners` lists, or a host suffix such as `de`: prefer winners of
    /// such hosts.
    market: Option<String>,
}

/// What would this text be? Nothing is stored.
#[utoipa::path(
    post, path = "/v1/probe", tag = "advice", request_body = ProbeRequest,
    responses(
        (status = 200, body = Advice),
        (status = 400, description = "Neither or both of html and text", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The text is over the limit", body = Problem, content_type = "application/problem+json"),
    ),
)]
pub(crate) async fn probe(State(app): State<App>, request: Request) -> Result<Json<Advice>, Problem> {
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
    let market = market(app.markets(), probe.market.as_deref())?;
    let aged = app
        .blocking(move |app| {
            // The text waits for an extractor, and for as long it counts.
            let _share = share;
            // A name that resolves nowhere (RFC 6761) where the text has none.
            let url = own.clone().map_or_else(|| page_url("url", "http://probe.invalid/"), Ok)?;
            let item = PageItem { url, body, fetched_at: None, popularity: None, language: None };
            let submission: Submission = pages::extract(app, Source::Fetched(fetched(item)))?;
            app.ask(|reads| app.advisor(reads, market.as_ref()).probe(app.tier2(), &submission, own.as_ref()))
        })
        .await?;
    let (url, age_ms) = (probe.url.unwrap_or_default(), aged.age.map(millis));
    Ok(Json(Advice { url, age_ms, ..aged.answer }))
}
