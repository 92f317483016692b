//! Serves the operator's page at `/` and its files.
//!
//! The files are compiled into the program and contain no data of a collection. The content security policy
//! allows the page to talk to this server alone.
//!
//! The files are the HTML, CSS and JavaScript modules in `coordinator/assets`, without a build step. Browsers
//! cache them and revalidate them with `If-None-Match`.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use doppel_model::stable_hash64;

use crate::app::App;
use crate::problem::Problem;

/// Content security policy of the page: it may use its own files and talk to this server.
const PAGE_POLICY: &str = "default-src 'none'; connect-src 'self'; img-src 'self'; style-src 'self'; script-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const CSS: &str = "text/css; charset=utf-8";
const HTML: &str = "text/html; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";
const SVG: &str = "image/svg+xml";
const TEXT: &str = "text/plain; charset=utf-8";

macro_rules! files {
    ($($folder:literal $name:literal: $kind:ident;)+) => {
        /// Name, media type, and text of each file. The name in a URL has no folder.
        const FILES: &[(&str, &str, &str)] =
            &[$(($name, $kind, include_str!(concat!("../../assets/", $folder, $name)))),+];
    };
}

files! {
    "scripts/" "api.js": JAVASCRIPT;
    "scripts/" "chart.js": JAVASCRIPT;
    "scripts/" "cluster.js": JAVASCRIPT;
    "scripts/" "dom.js": JAVASCRIPT;
    "scripts/" "explain.js": JAVASCRIPT;
    "scripts/" "group.js": JAVASCRIPT;
    "scripts/" "groups.js": JAVASCRIPT;
    "" "icon.svg": SVG;
    "scripts/" "load.js": JAVASCRIPT;
    "scripts/" "main.js": JAVASCRIPT;
    "scripts/" "overview.js": JAVASCRIPT;
    "scripts/" "page.js": JAVASCRIPT;
    "scripts/" "refresh.js": JAVASCRIPT;
    "scripts/" "repair.js": JAVASCRIPT;
    "" "style.css": CSS;
    "scripts/" "format_values.js": JAVASCRIPT;
    "uplot/" "uplot.css": CSS;
    "uplot/" "uplot.js": JAVASCRIPT;
    "uplot/" "uplot-licence.txt": TEXT;
}

/// Open the operator's page.
#[utoipa::path(
    get, path = "/", operation_id = "get_operator_page", tag = "operations",
    responses(
        (status = 200, description = "The HTML page", body = str, content_type = "text/html", headers(("etag" = String, description = "Tag of the current text, for `If-None-Match`"))),
        (status = 304, description = "`If-None-Match` has the tag of the current text", headers(("etag" = String, description = "Tag of the current text, for `If-None-Match`"))),
    ),
)]
pub(crate) async fn page(State(app): State<App>, headers: HeaderMap) -> Response {
    let page = include_str!("../../assets/index.html")
        .replace("{version}", env!("CARGO_PKG_VERSION"))
        .replace("{policy}", &app.policy().to_string());
    file(&headers, HTML, page)
}

/// Read a file of the operator's page.
#[utoipa::path(
    get, path = "/assets/{file}", operation_id = "get_operator_page_file", tag = "operations",
    params(("file" = String, Path, description = "Name of the file")),
    responses(
        (status = 200, description = "The file", content(
            (str = "text/javascript"), (str = "text/css"), (str = "image/svg+xml"), (str = "text/plain"),
        ), headers(("etag" = String, description = "Tag of the current text, for `If-None-Match`"))),
        (status = 304, description = "`If-None-Match` has the tag of the current text", headers(("etag" = String, description = "Tag of the current text, for `If-None-Match`"))),
        (status = 404, description = "The file does not exist"),
    ),
)]
pub(crate) async fn asset(uri: Uri, headers: HeaderMap) -> Result<Response, Problem> {
    // The path is not percent-decoded, because no file name contains a character that needs encoding.
    let name = uri.path().strip_prefix("/assets/").unwrap_or_default();
    let found = FILES.iter().find(|(have, ..)| *have == name);
    let (_, kind, text) = found.ok_or_else(|| Problem::not_found(format!("the page has no file {name}")))?;
    Ok(file(&headers, kind, (*text).to_owned()))
}

fn file(headers: &HeaderMap, kind: &str, text: String) -> Response {
    let tag = format!("\"{:016x}\"", stable_hash64(text.as_bytes()));
    let known = headers.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
    let is_current = known
        .flat_map(|value| value.split(','))
        .map(|known| known.trim().trim_start_matches("W/"))
        .any(|known| known == tag || known == "*");
    let all = [
        (header::ETAG, tag.as_str()),
        (header::CACHE_CONTROL, "no-cache"),
        (HeaderName::from_static("content-security-policy"), PAGE_POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    if is_current {
        return (StatusCode::NOT_MODIFIED, all).into_response();
    }
    (all, [(header::CONTENT_TYPE, kind)], text).into_response()
}
