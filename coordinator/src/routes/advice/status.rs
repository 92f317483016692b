//! `GET /v1/status` and `POST /v1/status`: tell whether a page is a duplicate, and of which kept page.

use axum::Json;
use axum::extract::State;
use axum::http::{Method, Uri};
use axum::response::{IntoResponse, Response};
use doppel_contract::answer::{Advice, MarketForm, PageUrlForm, StatusAnswers};
use doppel_model::PageUrl;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::app::App;
use crate::contract::refusals;
use crate::limits::{STATUS_URLS, STATUS_URLS_AT_ONCE};
use crate::problem::Problem;
use crate::request::extract::{JsonBody, Query, market, page_url};
use crate::response::answer_age::millis;
use crate::routes::advice::status_batch::{answer_all, answers_if_complete, look_up};

/// Path of status requests for one page.
pub(crate) const PATH: &str = "/v1/status";

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct StatusQuery {
    /// URL of the page.
    #[param(value_type = PageUrlForm)]
    url: String,
    /// Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer then
    /// prefers winners on hosts of this market.
    #[param(value_type = Option<MarketForm>)]
    market: Option<String>,
}

/// Look up the status of a page.
///
/// The status `duplicate` is verified on the current contents of the page and of the page in `duplicate_of`.
/// Keep a page whose status is `winner`, `unique`, `secondary` or `pending`.
#[utoipa::path(
    get, path = "/v1/status", operation_id = "get_status", tag = "advice", params(StatusQuery),
    responses(
        (status = 200, description = "The advice on the page", body = Advice),
        (status = 400, description = "The page URL or the market is invalid"),
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
pub(crate) fn is_status_request(method: &Method, uri: &Uri) -> bool {
    method == Method::GET && uri.path() == PATH
}

/// Answers a status request for one page if the answer needs no read of rows. Returns `None` for every other
/// request, including an invalid one, which [`get`] then answers.
pub(crate) fn answer_from_memory(app: &App, uri: &Uri) -> Option<Response> {
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
    /// URLs of the pages, at most 1,000. A text that is not a page URL gets an error of its own in the
    /// answer.
    #[schema(max_items = 1_000)]
    urls: Vec<String>,
    /// Name of a market, as `GET /v1/winners` lists it, or a host suffix such as `de`. The answer then
    /// prefers winners on hosts of this market.
    #[schema(value_type = Option<MarketForm>)]
    market: Option<String>,
}

/// Look up the statuses of many pages.
#[utoipa::path(
    post, path = "/v1/status", operation_id = "get_statuses", tag = "advice", request_body = StatusRequest,
    responses(
        (status = 200, description = "The advice on each page, in the order of the URLs", body = StatusAnswers),
        (status = 400, description = "There are too many URLs, or the body is invalid"),
        refusals::Reads,
    ),
)]
pub(crate) async fn post(
    State(app): State<App>,
    JsonBody(StatusRequest { urls, market: asked }, share): JsonBody<StatusRequest>,
) -> Result<Json<StatusAnswers>, Problem> {
    if urls.len() > STATUS_URLS {
        let detail = format!("{} URLs are more than the limit of {STATUS_URLS}; ask in parts", urls.len());
        return Err(Problem::field("urls", detail));
    }
    let market = market(app.markets(), asked.as_deref())?;
    let by_table = asked.is_none();
    let (mut asked, mut left) = (Vec::new(), urls);
    if left.len() <= STATUS_URLS_AT_ONCE {
        asked = look_up(&app, by_table, std::mem::take(&mut left));
    }
    if left.is_empty() {
        match answers_if_complete(asked) {
            Ok(pages) => return Ok(Json(StatusAnswers { pages })),
            Err(some) => asked = some,
        }
    }
    app.blocking(move |app| {
        let _share = share;
        asked.extend(look_up(app, by_table, left));
        Ok(Json(StatusAnswers { pages: answer_all(app, asked, market.as_ref())? }))
    })
    .await
}
