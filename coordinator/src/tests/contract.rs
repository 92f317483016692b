//! Tests of the OpenAPI document: it describes the actual answers, and client generators can use it.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use axum::http::Method;

use super::*;
use crate::contract::PROBLEMS;
use crate::limits;
use crate::problem::kind::ProblemKind;

/// Headers that tell browsers what to do with the operator's page.
const OF_BROWSERS: [&str; 4] =
    ["cache-control", "content-security-policy", "referrer-policy", "x-content-type-options"];

static DOCUMENT: LazyLock<Value> = LazyLock::new(|| serde_json::to_value(crate::openapi()).unwrap());

/// Returns true if a path matches a template.
fn is_of(template: &str, path: &str) -> bool {
    let parts = |text: &str| text.split('/').map(str::to_owned).collect::<Vec<_>>();
    let (template, path) = (parts(template), parts(path));
    template.len() == path.len()
        && template
            .iter()
            .zip(&path)
            .all(|(of, part)| of == part || (of.starts_with('{') && !part.is_empty()))
}

/// Checks that the document describes the status, the content type, the headers, and the problem type of an
/// answer. Requests that match no operation are not checked.
#[track_caller]
pub(super) fn check(method: &Method, path: &str, reply: &Reply) {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let exact = paths.get(path);
    let item =
        exact.or_else(|| paths.iter().find(|(template, _)| is_of(template, path)).map(|(_, item)| item));
    let Some(operation) = item.and_then(|item| item.get(method.as_str().to_lowercase())) else { return };
    let documented = &operation["responses"][reply.status.as_str()];
    assert!(documented.is_object(), "{method} {path}: {} is not documented", reply.status);
    let kind =
        reply.headers.get("content-type").map(|kind| kind.to_str().unwrap().split(';').next().unwrap());
    let content = documented["content"].as_object();
    match (kind, content) {
        (Some(kind), Some(content)) => assert!(content.contains_key(kind), "{method} {path}: {kind}"),
        (None, None) => {}
        differ => panic!("{method} {path}: {differ:?}"),
    }
    for name in
        reply.headers.keys().filter(|name| !["content-type", "content-length"].contains(&name.as_str()))
    {
        let is_known = documented["headers"].get(name.as_str()).is_some();
        assert!(is_known || OF_BROWSERS.contains(&name.as_str()), "{method} {path}: the header {name}");
    }
    if reply.status.as_u16() >= 400 {
        let problem = reply.json();
        let types = documented[PROBLEMS].as_array().unwrap();
        assert!(types.contains(&problem["type"]), "{method} {path}: {problem}, documented are {types:?}");
    }
}

/// Every operation with its name.
fn operations() -> Vec<(String, &'static Value)> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let of_path = |(path, item): (&String, &'static Value)| {
        let item = item.as_object().unwrap();
        item.iter().map(|(method, of)| (format!("{method} {path}"), of)).collect::<Vec<_>>()
    };
    paths.iter().flat_map(of_path).collect()
}

#[test]
fn operations_have_names_of_their_own() {
    let mut names = BTreeMap::new();
    for (operation, of) in operations() {
        let name = of["operationId"].as_str().unwrap();
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{name}");
        assert!(!["get", "post", "list", "delete"].contains(&name), "{operation}: {name} says nothing");
        assert_eq!(names.insert(name, operation.clone()), None, "{operation}: {name} is taken");
        assert!(of["summary"].is_string() && of["tags"].is_array(), "{operation}");
    }
}

#[test]
fn every_answer_is_described() {
    for (operation, of) in operations() {
        for (status, response) in of["responses"].as_object().unwrap() {
            let says = response["description"].as_str().unwrap_or_default();
            assert!(!says.is_empty(), "{operation}: {status}");
            if status == "414" {
                assert!(of["parameters"].is_array() && response["content"].is_null(), "{operation}");
                continue;
            }
            for name in ["x-request-id", "doppel-policy"] {
                assert!(response["headers"][name].is_object(), "{operation}: {status} without {name}");
            }
            if status.parse::<u16>().unwrap() < 400 {
                continue;
            }
            let problem = &response["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(problem, "#/components/schemas/Problem", "{operation}: {status}");
            let kinds: Vec<ProblemKind> = response[PROBLEMS]
                .as_array()
                .unwrap()
                .iter()
                .map(|kind| ProblemKind::of(kind.as_str().unwrap()).unwrap())
                .collect();
            assert!(!kinds.is_empty(), "{operation}: {status}");
            for kind in &kinds {
                assert_eq!(kind.status().as_str(), status, "{operation}: {kind:?}");
                assert!(says.contains(&kind.urn()), "{operation}: {says} without {kind:?}");
            }
            let waits = kinds.iter().any(|kind| kind.is_passing());
            assert_eq!(waits, response["headers"]["retry-after"].is_object(), "{operation}: {status}");
        }
    }
}

#[test]
fn every_reference_leads_somewhere() {
    let text = DOCUMENT.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(DOCUMENT.pointer(pointer).is_some(), "nothing at {pointer}");
    }
}

#[test]
fn every_operation_lists_its_problems() {
    let types = |operation: &str| -> Vec<&'static str> {
        let (_, of) = operations().into_iter().find(|(name, _)| name == operation).unwrap();
        let responses = of["responses"].as_object().unwrap();
        let listed = responses.values().filter_map(|response| response[PROBLEMS].as_array());
        listed.flatten().map(|kind| kind.as_str().unwrap().rsplit(':').next().unwrap()).collect()
    };
    let taking = types("post /v1/pages");
    for kind in [
        "bad-request",
        "cross-site",
        "slow-body",
        "too-large",
        "media-type",
        "backlog-full",
        "read-only",
        "disk-full",
    ] {
        assert!(taking.contains(&kind), "{kind}");
    }
    assert_eq!(
        types("get /v1/winners"),
        ["unauthorized", "forbidden", "misdirected", "client-limit", "internal", "busy", "not-ready"]
    );
    assert_eq!(types("get /healthz"), ["misdirected"]);
    assert!(!types("get /v1/status").contains(&"cross-site"));
    let all: Vec<&str> = operations().iter().flat_map(|(operation, _)| types(operation)).collect();
    for kind in ProblemKind::ALL.into_iter().filter(|kind| *kind != ProblemKind::MethodNotAllowed) {
        assert!(all.contains(&kind.name()), "no operation has {kind:?}");
    }
}

#[test]
fn the_documented_limits_are_the_limits_of_the_service() {
    use doppel_contract::page::PAGE_BYTES_MAX;
    use doppel_protocol::RepairPosition;

    let parameter = |operation: &str, name: &str| -> &'static Value {
        let (_, of) = operations().into_iter().find(|(called, _)| called == operation).unwrap();
        let list = of["parameters"].as_array().unwrap();
        &list.iter().find(|parameter| parameter["name"] == name).unwrap()["schema"]
    };
    let field = |schema: &str, name: &str| &DOCUMENT["components"]["schemas"][schema]["properties"][name];
    for (schema, limit, is) in [
        (parameter("get /v1/groups", "limit"), "maximum", limits::LIST as u64),
        (parameter("get /v1/groups/{id}", "limit"), "maximum", limits::LIST as u64),
        (parameter("get /v1/repairs", "limit"), "maximum", limits::LIST as u64),
        (parameter("get /v1/repairs", "before"), "maxLength", RepairPosition::BYTES_MAX as u64),
        (parameter("get /v1/changes", "limit"), "maximum", limits::CHANGES as u64),
        (parameter("get /v1/changes", "wait"), "maximum", limits::CHANGES_WAIT_S),
        (parameter("get /v1/changes", "cursor"), "maxLength", limits::CURSOR_BYTES as u64),
        (parameter("get /v1/sample", "contents"), "maximum", limits::SAMPLE_CONTENTS as u64),
        (parameter("post /v1/flush", "timeout"), "maximum", limits::FLUSH_S),
        (parameter("post /v1/groups/{id}/repair", "by"), "maxLength", limits::NAME_BYTES as u64),
        (field("RepairRequest", "by"), "maxLength", limits::NAME_BYTES as u64),
        (field("RepairRequest", "groups"), "maxItems", limits::REPAIR_GROUPS as u64),
        (field("StatusRequest", "urls"), "maxItems", limits::STATUS_URLS as u64),
        (field("Page", "html"), "maxLength", PAGE_BYTES_MAX as u64),
        (field("Page", "text"), "maxLength", PAGE_BYTES_MAX as u64),
        (field("ProbeRequest", "html"), "maxLength", PAGE_BYTES_MAX as u64),
        (field("ProbeRequest", "text"), "maxLength", PAGE_BYTES_MAX as u64),
    ] {
        assert_eq!(schema[limit].as_u64(), Some(is), "{limit} of {schema}");
    }
    for of in [
        "Page",
        "ProbeRequest",
        "PurgeRequest",
        "RebalanceBody",
        "RepairRequest",
        "StatusRequest",
        "TakeOverBody",
    ] {
        let schema = &DOCUMENT["components"]["schemas"][of];
        assert_eq!(schema["additionalProperties"], false, "{of}");
        assert!(schema["examples"].is_array(), "{of} without an example");
    }
}

#[test]
fn the_manual_lists_every_type_of_problem() {
    let manual = include_str!("../../../docs/reference/http-conventions.md");
    let row = |kind: ProblemKind| {
        let meaning = kind.meaning().replace("docs/reference/security.md", "[security](security.md)");
        format!("| `{}` | {} | {meaning} |", kind.name(), kind.status().as_u16())
    };
    let expected = ProblemKind::ALL.map(row).join("\n");
    assert!(manual.contains(&expected), "the table should be:\n{expected}");
    let kind = &DOCUMENT["components"]["schemas"]["Problem"]["properties"]["type"]["description"];
    for of in ProblemKind::ALL {
        assert!(kind.as_str().unwrap().contains(&of.urn()), "{of:?}");
    }
}

#[test]
fn every_operation_states_its_role() {
    let role = |operation: &str| -> Option<&str> {
        let (_, of) = operations().into_iter().find(|(name, _)| name == operation).unwrap();
        of["security"][0]["token"][0].as_str()
    };
    for (operation, of) in operations() {
        let (method, path) = operation.split_once(' ').unwrap();
        let required = crate::access::role::required(&method.to_uppercase(), path);
        assert_eq!(role(&operation), required.map(crate::access::Role::name), "{operation}");
        let answers = of["responses"].as_object().unwrap();
        assert_eq!(answers.contains_key("401"), required.is_some(), "{operation}");
    }
    // All operations that this test does not list only read data.
    let of = |role: Option<&str>| -> Vec<String> {
        let all = operations();
        let stated = |of: &Value| of["security"][0]["token"][0].as_str().map(str::to_owned);
        all.into_iter().filter(|(_, of)| stated(of).as_deref() == role).map(|(name, _)| name).collect()
    };
    let open = ["get /", "get /assets/{file}", "get /healthz", "get /openapi.json", "get /readyz"];
    assert_eq!(of(None), open);
    assert_eq!(of(Some("write")), ["post /v1/flush", "delete /v1/pages", "post /v1/pages"]);
    let operate = [
        "get /v1/backup",
        "post /v1/cluster/takeover",
        "post /v1/groups/{id}/repair",
        "post /v1/purge",
        "delete /v1/rebalance",
        "post /v1/rebalance",
        "post /v1/repair",
    ];
    assert_eq!(of(Some("operate")), operate);
    assert_eq!(DOCUMENT["components"]["securitySchemes"]["token"]["scheme"], "bearer");
}
