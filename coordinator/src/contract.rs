//! Completes the OpenAPI document of the public contract by rules.
//!
//! A handler declares its own answers, and names a set of [`refusals`] for the problems of the calls that it
//! makes. This module adds, in one place, the parts that all operations of a kind share:
//!
//! - the problems of a request body, of a method that changes data, and of a service that is busy or not
//!   ready;
//! - the headers;
//! - the form of errors and of JSON lines.
//!
//! Invariant: every error answer lists in `x-problems` all problem types that it can have, and every type
//! belongs to the status of that answer. The tests check every answer that they receive against this list.

pub(crate) mod refusals;

use std::collections::{BTreeMap, BTreeSet};

use axum::http::{HeaderName, header};
use doppel_contract::answer;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Content, KnownFormat, OpenApi, Ref, RefOr, Required, Response, SchemaFormat};
use utoipa::{PartialSchema, ToSchema, openapi};

use crate::access::role;
use crate::problem::kind::ProblemKind;
use crate::request::id::REQUEST_ID;
use crate::routes::operations::rebalance::RebalanceOutcomeSchema;
use crate::routes::pages::NDJSON;
use crate::server::fast_path::POLICY;

/// Extension of the OpenAPI document that lists the problem types of an answer.
pub(crate) const PROBLEMS: &str = "x-problems";

const PROBLEM_JSON: &str = "application/problem+json";

/// Header components of the document: component name, header name, type, description.
const HEADERS: [(&str, HeaderName, Type, &str); 4] = [
    (
        "Policy",
        POLICY,
        Type::String,
        "The policy of the collection with its parameters, such as `jaccard:tau=0.8`.",
    ),
    (
        "RequestId",
        REQUEST_ID,
        Type::String,
        "The id of the request, as in the log of the service. If the request has an id of 1 to 64 visible ASCII characters, the \
         service uses that id, and otherwise a new one.",
    ),
    (AUTHENTICATE, header::WWW_AUTHENTICATE, Type::String, "The missing credential: `Bearer`, a token."),
    (
        RETRY_AFTER,
        header::RETRY_AFTER,
        Type::Integer,
        "Number of seconds after which the same request, or the lines with the error code `retry`, may succeed.",
    ),
];

/// Component name of the header `WWW-Authenticate`.
const AUTHENTICATE: &str = "Authenticate";

/// Component name of the header `Retry-After`.
const RETRY_AFTER: &str = "RetryAfter";

/// Name of the security scheme of operations that require a role.
const TOKEN: &str = "token";

/// Status and description of the only error answer that is not a problem document. The HTTP library (hyper)
/// sends this answer before a request exists.
const TOO_LONG: (&str, &str) = (
    "414",
    "The URL is longer than 65,534 bytes. The answer has no body, and none of the headers that other answers have",
);

/// Adds the shared parts to the document.
pub(crate) fn complete(document: &mut OpenApi) {
    for (path, item) in &mut document.paths.paths {
        let operations = [(&mut item.get, "GET"), (&mut item.post, "POST"), (&mut item.delete, "DELETE")];
        for (operation, method) in operations {
            if let Some(operation) = operation {
                complete_operation(path, method, operation);
            }
        }
    }
    let components = document.components.get_or_insert_default();
    for (component, _, of, says) in HEADERS {
        let schema = ObjectBuilder::new().schema_type(of);
        let header = HeaderBuilder::new().schema(Some(schema)).description(Some(says)).build();
        components.headers.insert(component.to_owned(), header.into());
    }
    let token = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).description(Some(
        "A token that `doppel token new` created. An operation names the role that it needs. The role `operate` includes `write`, and \
         `write` includes `read`. A server without tokens, which is the default on the local machine, requires no token.",
    ));
    components.security_schemes.insert(TOKEN.to_owned(), SecurityScheme::Http(token.build()).into());
    // These schemas are added here because no handler names `Problem`, and parameters alone name the other
    // forms.
    let mut problem = answer::ProblemDetails::schema();
    if let RefOr::T(Schema::Object(object)) = &mut problem
        && let Some(RefOr::T(Schema::Object(kind))) = object.properties.get_mut("type")
    {
        kind.description = Some(kinds(kind.description.as_deref().unwrap_or_default()));
    }
    let schemas = [
        (answer::ProblemDetails::name(), problem),
        (answer::PageUrlForm::name(), answer::PageUrlForm::schema()),
        (answer::GroupIdForm::name(), answer::GroupIdForm::schema()),
        (answer::RepairIdForm::name(), answer::RepairIdForm::schema()),
        (answer::MarketForm::name(), answer::MarketForm::schema()),
        (answer::TimeForm::name(), answer::TimeForm::schema()),
        (answer::SimilarityForm::name(), answer::SimilarityForm::schema()),
        (RebalanceOutcomeSchema::name(), RebalanceOutcomeSchema::schema()),
    ];
    components.schemas.extend(schemas.map(|(name, schema)| (name.into_owned(), schema)));
}

/// Appends the list of all problem types to their description.
fn kinds(says: &str) -> String {
    let kinds = ProblemKind::ALL
        .map(|kind| format!("- `{}` ({}): {}", kind.urn(), kind.status().as_u16(), kind.meaning()));
    format!("{says}\n\nThese are the types. A later release may add others:\n\n{}", kinds.join("\n"))
}

fn complete_operation(path: &str, method: &str, operation: &mut Operation) {
    let role = role::required(method, path);
    operation.security = role.map(|role| vec![SecurityRequirement::new(TOKEN, [role.name()])]);
    let all = problems(path, method, operation);
    let responses = &mut operation.responses.responses;
    for (status, kinds) in all {
        let declared = responses.remove(&status);
        responses.insert(status, refusal(declared, &kinds).into());
    }
    for response in responses.values_mut() {
        let RefOr::T(response) = response else { continue };
        for (component, name, ..) in
            HEADERS.into_iter().filter(|header| ![RETRY_AFTER, AUTHENTICATE].contains(&header.0))
        {
            response.headers.insert(name.to_string(), component_header(component));
        }
        for (media_type, content) in &mut response.content {
            complete_content(media_type, content);
        }
    }
    if operation.parameters.is_some() {
        responses.insert(TOO_LONG.0.to_owned(), Response::new(TOO_LONG.1).into());
    }
    if let Some(RefOr::T(body)) = &mut operation.request_body {
        // No operation has an optional body.
        body.required = Some(Required::True);
        for (media_type, content) in &mut body.content {
            complete_content(media_type, content);
        }
    }
}

/// Collects the problems of an operation by status.
fn problems(path: &str, method: &str, operation: &Operation) -> BTreeMap<String, BTreeSet<ProblemKind>> {
    let mut kinds: BTreeSet<ProblemKind> = operation.responses.responses.iter().flat_map(declared).collect();
    let (has_body, has_parameters) = (operation.request_body.is_some(), operation.parameters.is_some());
    let of_v1 = path.starts_with("/v1/");
    let has_role = role::required(method, path).is_some();
    let rules: [(bool, &[ProblemKind]); 7] = [
        (true, &[ProblemKind::Misdirected]),
        (has_body || has_parameters, &[ProblemKind::BadRequest]),
        (has_body, &[ProblemKind::SlowBody, ProblemKind::TooLarge, ProblemKind::MediaType]),
        (of_v1 && method != "GET", &[ProblemKind::CrossSite]),
        (of_v1, &[ProblemKind::Busy, ProblemKind::ClientLimit]),
        (has_role, &[ProblemKind::Unauthorized, ProblemKind::Forbidden]),
        // `/healthz` answers before the cluster is ready and makes no calls, so it has neither problem.
        (path != "/healthz", &[ProblemKind::Internal, ProblemKind::NotReady]),
    ];
    kinds.extend(rules.into_iter().filter(|(holds, _)| *holds).flat_map(|(_, kinds)| kinds));
    let mut by_status: BTreeMap<String, BTreeSet<ProblemKind>> = BTreeMap::new();
    for kind in kinds {
        by_status.entry(kind.status().as_str().to_owned()).or_default().insert(kind);
    }
    by_status
}

/// Returns the problems that a handler declares for an answer of this status: the listed problems, or else
/// the first kind with this status.
fn declared((status, response): (&String, &RefOr<Response>)) -> Vec<ProblemKind> {
    let RefOr::T(response) = response else { return Vec::new() };
    let listed = response.extensions.as_ref().and_then(|extensions| extensions.get(PROBLEMS)?.as_array());
    match listed {
        Some(types) => types.iter().filter_map(|kind| ProblemKind::of(kind.as_str()?)).collect(),
        None => {
            ProblemKind::ALL.into_iter().filter(|kind| kind.status().as_str() == status).take(1).collect()
        }
    }
}

/// Builds the answer for these problems. The description in `declared` is used if it is not empty.
fn refusal(declared: Option<RefOr<Response>>, kinds: &BTreeSet<ProblemKind>) -> Response {
    let own = match declared {
        Some(RefOr::T(response)) if !response.description.is_empty() => response.description,
        _ => match kinds.iter().map(|kind| kind.meaning()).collect::<Vec<_>>().as_slice() {
            [meaning] => capitalised(meaning),
            _ if kinds.iter().all(|kind| kind.is_passing()) => {
                "The same request may succeed some seconds later".to_owned()
            }
            _ if kinds.iter().all(|kind| kind.status().is_server_error()) => {
                "An error inside the service".to_owned()
            }
            meanings => capitalised(&meanings.join("; or ")),
        },
    };
    let types: Vec<String> = kinds.iter().map(|kind| kind.urn()).collect();
    let named: Vec<String> = types.iter().map(|kind| format!("`{kind}`")).collect();
    let mut response = Response::new(format!("{own} ({})", named.join(", ")));
    let problem = Ref::from_schema_name(answer::ProblemDetails::name());
    response.content.insert(PROBLEM_JSON.to_owned(), Content::new(Some(problem)).into());
    response.extensions = Some(Extensions::from_iter([(PROBLEMS, types)]));
    if kinds.iter().any(|kind| kind.is_passing()) {
        response.headers.insert(header::RETRY_AFTER.to_string(), component_header(RETRY_AFTER));
    }
    if kinds.contains(&ProblemKind::Unauthorized) {
        response.headers.insert(header::WWW_AUTHENTICATE.to_string(), component_header(AUTHENTICATE));
    }
    response
}

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect()
}

fn component_header(component: &str) -> RefOr<openapi::Header> {
    RefOr::Ref(Ref::new(format!("#/components/headers/{component}")))
}

/// Gives files and JSON lines the schema of a binary text, because they are not JSON documents. The schema of
/// JSON lines also describes the form of each line.
fn complete_content(media_type: &str, content: &mut RefOr<Content>) {
    let RefOr::T(content) = content else { return };
    let text = ObjectBuilder::new()
        .schema_type(Type::String)
        .format(Some(SchemaFormat::KnownFormat(KnownFormat::Binary)));
    let text = match media_type {
        NDJSON => text
            .description(Some("One JSON document per line, each with the schema in `contentSchema`."))
            .content_media_type("application/json")
            .content_schema(content.schema.take()),
        "application/octet-stream" => text,
        _ => return,
    };
    content.schema = Some(Schema::from(text).into());
}
