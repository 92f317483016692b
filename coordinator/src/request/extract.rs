//! Extracts parameters, path segments and small JSON bodies from requests. An invalid value becomes a problem
//! that names the field.

use axum::extract::{self, FromRequest, FromRequestParts, Path, Request};
use axum::http::request::Parts;
use doppel_contract::{Market, Markets};
use doppel_model::{GroupId, PageUrl};
use doppel_protocol::{InvalidRepairId, RepairId};
use serde::de::DeserializeOwned;

use crate::access::Caller;
use crate::app::App;
use crate::limits::JSON_BYTES;
use crate::problem::Problem;
use crate::request::body;
use crate::request::memory::MemoryShare;
use crate::request::query;

/// Maximum number of characters of a field name that an answer repeats.
const FIELD_CHARS: usize = 60;

/// The parsed query string. Unknown parameters are errors if `T` denies unknown fields.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

/// A JSON body of at most [`JSON_BYTES`], with its share of the memory budget. The handler must keep the
/// share as long as the value.
#[derive(Debug)]
pub(crate) struct JsonBody<T>(pub(crate) T, pub(crate) MemoryShare);

/// The group id in the path.
#[derive(Debug)]
pub(crate) struct GroupPath(pub(crate) GroupId);

/// The repair id in the path.
#[derive(Debug)]
pub(crate) struct RepairPath(pub(crate) RepairId);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let pairs = extract::Query::<Vec<(String, String)>>::from_request_parts(parts, state).await;
        let extract::Query(pairs) = pairs
            .map_err(|rejection| Problem::bad_request(format!("the query: {}", rejection.body_text())))?;
        query::parameters(pairs).map(Self)
    }
}

impl<T: DeserializeOwned> FromRequest<App> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, app: &App) -> Result<Self, Problem> {
        json(app, request, JSON_BYTES).await.map(|(value, share)| Self(value, share))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for GroupPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        group("id", &id(parts, state).await?).map(Self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for RepairPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let id = id(parts, state).await?.parse();
        id.map(Self).map_err(|error: InvalidRepairId| Problem::field("id", error.to_string()))
    }
}

async fn id<S: Send + Sync>(parts: &mut Parts, state: &S) -> Result<String, Problem> {
    let path = Path::<String>::from_request_parts(parts, state).await;
    path.map(|Path(text)| text).map_err(|rejection| Problem::field("id", rejection.body_text()))
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        caller(parts)
    }
}

/// Returns the client that sent a request. The access check has stored the client in the request.
fn caller(parts: &Parts) -> Result<Caller, Problem> {
    parts.extensions.get().cloned().ok_or_else(Problem::internal)
}

/// Reads a body of at most `max` bytes as JSON. Also returns the body's share of the memory budget, which the
/// caller must keep as long as the value.
pub(crate) async fn json<T: DeserializeOwned>(
    app: &App,
    request: Request,
    max: usize,
) -> Result<(T, MemoryShare), Problem> {
    let (parts, body) = request.into_parts();
    if body::media_type(&parts.headers) != "application/json" {
        return Err(Problem::media_type("the content type must be application/json"));
    }
    let caller = caller(&parts)?;
    let held = app.read(&caller, &parts.headers, body, max).await?;
    if held.bytes().trim_ascii().is_empty() {
        return Err(Problem::bad_request("the body is empty"));
    }
    let value = read_json(held.bytes())?;
    Ok((value, held.into_share()))
}

/// Parses a JSON body. The problem names the field that is invalid, unknown, missing or duplicated.
fn read_json<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    let mut json = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let reason = error.inner().to_string();
        let named = ["unknown field `", "missing field `", "duplicate field `"];
        let named = named.into_iter().find_map(|begin| reason.strip_prefix(begin)?.split('`').next());
        let path = error.path().to_string();
        match named.or((path != ".").then_some(&*path)) {
            Some(field) => Problem::field(field.chars().take(FIELD_CHARS).collect::<String>(), &*reason),
            None => Problem::bad_request(&*reason),
        }
    })?;
    json.end().map_err(|error| Problem::bad_request(error.to_string()))?;
    Ok(value)
}

/// Parses the page URL in `field`.
pub(crate) fn page_url(field: &str, text: &str) -> Result<PageUrl, Problem> {
    PageUrl::parse(text).map_err(|error| Problem::field(field, error.to_string()))
}

/// Parses the group id in `field`.
pub(crate) fn group(field: &str, text: &str) -> Result<GroupId, Problem> {
    text.parse().map_err(|error: doppel_model::IdError| Problem::field(field, error.to_string()))
}

/// Resolves the parameter `market`, if the request has one. Its value is the name of a market or a host
/// suffix.
pub(crate) fn market(known: &Markets, asked: Option<&str>) -> Result<Option<Market>, Problem> {
    let found = asked.map(|asked| known.find(asked)).transpose();
    found.map_err(|error| Problem::field("market", error.to_string()))
}

/// Checks that the number in `field` lies from `least` to `most`. Returns `default` if the request gives
/// none.
pub(crate) fn number<N: PartialOrd + std::fmt::Display + Copy>(
    field: &str,
    given: Option<N>,
    default: N,
    least: N,
    most: N,
) -> Result<N, Problem> {
    match given.unwrap_or(default) {
        n if n < least || n > most => {
            Err(Problem::field(field, format!("{n} is not from {least} to {most}")))
        }
        n => Ok(n),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct UrlsBody {
        #[serde(rename = "urls")]
        _urls: Vec<String>,
    }

    #[test]
    fn a_problem_of_a_body_names_its_field() {
        for (body, field) in [
            ("{}", Some("urls")),
            (r#"{"urls": 5}"#, Some("urls")),
            (r#"{"urls": ["a", 5]}"#, Some("urls[1]")),
            (r#"{"urls": [], "x": 1}"#, Some("x")),
            (r#"{"urls": [], "urls": []}"#, Some("urls")),
            ("[]", None),
            (r#"{"urls": []} x"#, None),
            ("nul", None),
        ] {
            let problem = read_json::<UrlsBody>(body.as_bytes()).unwrap_err();
            assert!(format!("{problem:?}").contains(&format!("field: {field:?}")), "{body}: {problem:?}");
        }
    }
}
