//! `POST /v1/probe`: tells what a page would be if it were recorded, without recording it.

use axum::Json;
use axum::extract::{Request, State};
use doppel_contract::answer::{Advice, MarketForm, PageUrlForm, ProbeAnswer};
use doppel_contract::page::{PAGE_BYTES_MAX, PageBody, PageItem};
use doppel_crawls::FetchedPage;
use doppel_engine::comparison;
use doppel_engine::ingest::{self, PageSource};
use doppel_protocol::{Submission, Tier1Reads};
use serde::Deserialize;
use utoipa::ToSchema;

use crate::app::App;
use crate::contract::refusals;
use crate::limits::{LEFT_OUT_CHARS, PROBE_BYTES};
use crate::problem::Problem;
use crate::request::extract::{self, market, page_url};
use crate::response::answer_age::millis;
use crate::routes::pages;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({"url": "https://example.org/a", "text": "A text of some words, of which nothing is stored."})))]
pub(crate) struct ProbeRequest {
    /// HTML document of at most 16 MiB. A probe has either this field or `text`.
    #[schema(max_length = 16_777_216)]
    html: Option<String>,
    /// Plain text or Markdown of at most 16 MiB. A probe has either this field or `html`.
    #[schema(max_length = 16_777_216)]
    text: Option<String>,
    /// URL at which the page was found. Relative links of a redirect are resolved against it, and the stored
    /// page with this URL does not count as a partner. A policy that reads the site (`by-site`, `copies`)
    /// needs a URL with a host.
    #[schema(value_type = Option<PageUrlForm>)]
    url: Option<String>,
    /// Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer then
    /// prefers winners on hosts of this market.
    #[schema(value_type = Option<MarketForm>)]
    market: Option<String>,
}

/// Show what a page would be, without storing it.
///
/// Under the policies `content` and `copies`, the answer for HTML describes in `main_content` which part of
/// the page is compared, and shows the beginning of the text that each rule leaves out.
#[utoipa::path(
    post, path = "/v1/probe", operation_id = "probe_page", tag = "advice", request_body = ProbeRequest,
    responses(
        (status = 200, description = "The advice on the page", body = ProbeAnswer),
        (status = 400, description = "The request has neither or both of html and text, or it has no URL with a host although the policy reads the site"),
        (status = 413, description = "The page is over the limit"),
        refusals::ReadsAndIndex,
    ),
)]
pub(crate) async fn probe(State(app): State<App>, request: Request) -> Result<Json<ProbeAnswer>, Problem> {
    let (probe, share): (ProbeRequest, _) = extract::json(&app, request, PROBE_BYTES).await?;
    let body = match (probe.html, probe.text) {
        (Some(html), None) => PageBody::Html(html),
        (None, Some(text)) => PageBody::Text(text),
        _ => return Err(Problem::bad_request("a probe must have exactly one of html and text")),
    };
    if let PageBody::Html(content) | PageBody::Text(content) = &body
        && content.len() > PAGE_BYTES_MAX
    {
        let detail = format!("{} bytes are more than the limit of {PAGE_BYTES_MAX}", content.len());
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
            let mut page = FetchedPage::from(item);
            if let Some(content) = page.body.raw_content() {
                ingest::check(content, true)?;
            }
            let mut main_content = None;
            if app.policy().reads_main() {
                let (read, taken) = app.ingest().main_content(page, LEFT_OUT_CHARS)?;
                (page, main_content) = (read, taken.map(comparison::main_content));
            }
            let submission: Submission = pages::extract(app, PageSource::Fetched(page))?;
            let advise = |reads: &dyn Tier1Reads| {
                let mut advisor = app.advisor(reads, market.as_ref());
                Ok(advisor.probe(app.tier2(), &submission, own.as_ref())?)
            };
            Ok((app.ask(advise)?, main_content))
        })
        .await?;
    let (aged, main_content) = answer;
    let (url, age_ms) = (probe.url.unwrap_or_default(), aged.age.map(millis));
    Ok(Json(ProbeAnswer { advice: Advice { url, age_ms, ..aged.answer }, main_content }))
}
