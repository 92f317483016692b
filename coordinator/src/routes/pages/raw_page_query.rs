//! The query parameters of `POST /v1/pages` for a page that is sent as a raw body.
//!
//! Each parameter has the meaning, the limits and the error messages of the JSON field with its name.

use std::borrow::Cow;

use axum::http::{HeaderMap, header};
use doppel_contract::answer::{PageUrlForm, TimeForm};
use doppel_contract::page::{self, ItemError, ItemReason};
use doppel_model::Timestamp;
use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::Problem;
use crate::request::body::media_type;
use crate::request::extract::page_url;
use doppel_engine::ingest::IngestError;
use doppel_engine::raw_page::{PageMedia, RawPageHead};

/// Media types of pages that are sent as raw bodies.
pub(crate) const MEDIA_TYPES: [&str; 3] = ["text/html", "application/xhtml+xml", "text/plain"];

#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct RawPageQuery {
    /// URL of the page, if the body is a raw page. A JSON body has all fields itself.
    #[param(value_type = Option<PageUrlForm>)]
    url: Option<String>,
    /// Time at which the page was fetched, in RFC 3339, at most 24 hours ahead. Default: now.
    #[param(value_type = Option<TimeForm>)]
    fetched_at: Option<String>,
    /// Any measure of popularity, not negative.
    #[param(minimum = 0)]
    popularity: Option<f64>,
    /// Language tag of the page.
    #[param(pattern = "^[A-Za-z0-9-]{1,35}$")]
    language: Option<String>,
}

impl RawPageQuery {
    /// Checks that a request with a JSON body has none of these query parameters.
    ///
    /// # Errors
    /// If the query has a parameter.
    pub(crate) fn refuse_beside_json(&self) -> Result<(), Problem> {
        let Self { url, fetched_at, popularity, language } = self;
        let given = [
            ("url", url.is_some()),
            ("fetched_at", fetched_at.is_some()),
            ("popularity", popularity.is_some()),
            ("language", language.is_some()),
        ];
        match given.into_iter().find(|(_, is_given)| *is_given) {
            None => Ok(()),
            Some((field, _)) => {
                let types = MEDIA_TYPES.join(", ");
                let detail = format!(
                    "a JSON body has this field itself; the query may have it only for a body of {types}"
                );
                Err(Problem::field(field, detail))
            }
        }
    }

    /// Validates the parameters and headers, and returns the fields of the page.
    ///
    /// # Errors
    /// If the URL is missing or a parameter is invalid.
    pub(crate) fn head(self, headers: &HeaderMap, now: Timestamp) -> Result<RawPageHead, Problem> {
        let Self { url, fetched_at, popularity, language } = self;
        let Some(url) = url else {
            let detail = "missing; give the URL of a raw page in the query: /v1/pages?url=URL";
            return Err(Problem::field("url", detail));
        };
        let refused = |field: &'static str, reason| {
            Problem::from(IngestError::Item(ItemError { field: Some(Cow::Borrowed(field)), reason }))
        };
        let fetched_at = fetched_at.map(|date| page::fetched_at(&date, now)).transpose();
        if popularity.is_some_and(|popularity| !popularity.is_finite() || popularity < 0.0) {
            return Err(refused("popularity", ItemReason::Popularity));
        }
        if language.as_deref().is_some_and(|tag| !page::is_language(tag)) {
            return Err(refused("language", ItemReason::Language));
        }
        let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default();
        let media = match media_type(headers).as_str() {
            "text/plain" => PageMedia::Text,
            "application/xhtml+xml" => PageMedia::Xhtml,
            _ => PageMedia::Html,
        };
        Ok(RawPageHead {
            url: page_url("url", &url)?,
            fetched_at: fetched_at.map_err(IngestError::from)?,
            popularity,
            language,
            media,
            charset: doppel_charset::label(content_type).map(str::to_owned),
        })
    }
}
