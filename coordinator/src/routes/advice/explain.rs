//! `GET /v1/explain`: explains why two pages are duplicates or not.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use doppel_contract::answer::{
    Advice, ContentDetails, ExplainedPage, Explanation, PageUrlForm, PrecedingKeptPage,
};
use doppel_contract::words;
use doppel_model::PageUrl;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_protocol::{DatedAnswer, PageView, Rank, Tier1Reads};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::app::App;
use crate::contract::refusals;
use crate::limits::KEPT_BEFORE;
use crate::problem::Problem;
use crate::request::extract::{Query, page_url};
use crate::response::answer_age::millis;
use doppel_engine::comparison::{self, MeasuredComparison};

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ExplainQuery {
    /// URL of one page.
    #[param(value_type = PageUrlForm)]
    a: String,
    /// URL of the other page.
    #[param(value_type = PageUrlForm)]
    b: String,
}

/// Explain why two pages are duplicates or not.
#[utoipa::path(
    get, path = "/v1/explain", operation_id = "explain_pair", tag = "advice", params(ExplainQuery),
    responses(
        (status = 200, description = "What the service knows of both pages, and their comparison", body = Explanation),
        (status = 400, description = "A page URL is invalid"),
        (status = 404, description = "A page is not on record"),
        refusals::ReadsAndIndex,
    ),
)]
pub(crate) async fn get(
    State(app): State<App>,
    Query(ExplainQuery { a, b }): Query<ExplainQuery>,
) -> Result<Json<Explanation>, Problem> {
    let (a, b) = (page_url("a", &a)?, page_url("b", &b)?);
    app.blocking(move |app| {
        let sides = |reads: &dyn Tier1Reads| Ok((side(app, reads, "a", &a)?, side(app, reads, "b", &b)?));
        let DatedAnswer { answer: ((a, first), (b, second)), age } = app.ask(sides)?;
        let policy = app.policy();
        let compared = first.as_deref().zip(second.as_deref());
        let measured = compared.map(|(x, y)| comparison::compare(policy, x, y));
        Ok(Json(Explanation {
            policy: policy.to_string(),
            duplicate: measured.as_ref().is_some_and(|measured| measured.comparison.similar),
            reason: reason(policy, &a, &b, measured.as_ref()),
            measures: measured.map(|measured| measured.measures),
            age_ms: age.map(millis),
            a,
            b,
        }))
    })
    .await
}

/// The report on one page, with the signature that is compared.
type ComparedSide = (ExplainedPage, Option<Arc<Signature>>);

fn side(app: &App, reads: &dyn Tier1Reads, field: &str, url: &PageUrl) -> Result<ComparedSide, Problem> {
    let advice = app.advisor(reads, None).advise(url)?;
    let view = |page| -> Result<Option<PageView>, Problem> { Ok(reads.pages(&[page])?.pop().flatten()) };
    let Some(page) = view(url.id())?.filter(|page| page.rank.url == *url) else {
        return Err(Problem::not_found(format!("{url} is not on record")).about(field));
    };
    let end = match page.target {
        Some(target) if page.content.is_none() => view(target)?,
        _ => Some(page),
    };
    let Some(end) = end.filter(|end| end.content.is_some()) else {
        return Ok((
            ExplainedPage { advice, compared_url: None, content: None, kept_before: Vec::new() },
            None,
        ));
    };
    let compared_url = Some(end.rank.url.to_string());
    let Some(signature) = reads.signature(end.rank.url.id())? else {
        return Ok((ExplainedPage { advice, compared_url, content: None, kept_before: Vec::new() }, None));
    };
    let lookup = app.tier2().locate(&signature)?;
    let kept_before = kept_before(app, reads, &end, &signature)?;
    let content = ContentDetails {
        hash: signature.content().to_string(),
        tokens: signature.tokens(),
        shingles: signature.kind().is_of_shingles().then(|| signature.size()),
        comparable: app.policy().comparable(&signature),
        language: end.language.map(String::from),
        lengths: lookup.lengths,
        home: lookup.home,
        probed_partitions: lookup.probed_partitions,
    };
    Ok((ExplainedPage { advice, compared_url, content: Some(content), kept_before }, Some(signature)))
}

/// Returns the kept pages of the page's group that precede the page in the winner order, with their
/// comparisons.
fn kept_before(
    app: &App,
    reads: &dyn Tier1Reads,
    page: &PageView,
    signature: &Signature,
) -> Result<Vec<PrecedingKeptPage>, Problem> {
    let Some(group) = page.line.group else { return Ok(Vec::new()) };
    let before = |rank: &Rank| app.winners().compare(rank, &page.rank, None);
    let is_before = |rank: &Rank| rank.url != page.rank.url && before(rank).0.is_lt();
    let kept = app.advisor(reads, None).kept_pages(group, KEPT_BEFORE, is_before)?;
    let mut compared = Vec::with_capacity(kept.len());
    for PageView { rank, .. } in kept {
        let (_, rule) = before(&rank);
        let Some(other) = reads.signature(rank.url.id())? else { continue };
        let comparison = app.policy().compare(signature, &other);
        let (similarity, duplicate) = (comparison.similarity.as_f64(), comparison.similar);
        compared.push(PrecedingKeptPage { url: rank.url.to_string(), rule, similarity, duplicate });
    }
    Ok(compared)
}

fn reason(
    policy: Policy,
    a: &ExplainedPage,
    b: &ExplainedPage,
    measured: Option<&MeasuredComparison>,
) -> String {
    let Some(measured) = measured else {
        let side = if a.content.is_none() { a } else { b };
        return lacks_content(side);
    };
    let leads = |side: &ExplainedPage| {
        let (from, to) = (&side.advice.url, side.compared_url.as_ref()?);
        side.advice.redirect_to.as_ref().map(|_| format!("{from} redirects to {to}"))
    };
    let compared = match a.compared_url == b.compared_url {
        true => "both have the content of one page".to_owned(),
        false => {
            let tokens = |side: &ExplainedPage| side.content.as_ref().map_or(0, |content| content.tokens);
            comparison::reason(policy, (tokens(a), tokens(b)), measured)
        }
    };
    let parts: Vec<String> = [a, b].into_iter().filter_map(leads).chain([compared]).collect();
    parts.join("; ")
}

/// Explains why a page has no content that can be compared.
fn lacks_content(side: &ExplainedPage) -> String {
    let Advice { url, redirect_to, reason, .. } = &side.advice;
    match (redirect_to, reason) {
        (Some(to), Some(reason)) => format!("{url} redirects to {to}, {}", words::unresolved(*reason)),
        (Some(to), None) => format!("{url} redirects to {to}, which has no content at the moment"),
        (None, _) => format!("{url} has no content at the moment"),
    }
}
