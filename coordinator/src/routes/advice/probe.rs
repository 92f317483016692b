//! `POST /v1/probe`: tells what a page would be if it were recorded, without recording it.

use axum::Json;
use axum::extract::{Request, State};
use doppel_contract::{
    answer::{Advice, MarketForm, PageUrlForm, Probed},
    page::{PAGE_BYTES_MAX, PageBody, PageItem},
};
use doppel_crawls::FetchedPage;
use doppel_engine::comparison;
use doppel_engine::ingest::{self, Source};
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
            let mut page = FetchedPage::from(item);
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
