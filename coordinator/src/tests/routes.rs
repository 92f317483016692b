//! Tests that the routes and the OpenAPI document agree.

use std::collections::BTreeSet;

use super::*;

/// Routes of the public contract.
const CONTRACT: &[&str] = &[
    "DELETE /v1/pages",
    "DELETE /v1/rebalance",
    "GET /",
    "GET /assets/{file}",
    "GET /healthz",
    "GET /metrics",
    "GET /openapi.json",
    "GET /readyz",
    "GET /v1/backup",
    "GET /v1/changes",
    "GET /v1/cluster",
    "GET /v1/explain",
    "GET /v1/export",
    "GET /v1/groups",
    "GET /v1/groups/{id}",
    "GET /v1/load/history",
    "GET /v1/rebalance",
    "GET /v1/repairs",
    "GET /v1/repairs/{id}",
    "GET /v1/reports/groups",
    "GET /v1/reports/load-balance",
    "GET /v1/reports/load-balance/what-if",
    "GET /v1/reports/quality",
    "GET /v1/reports/savings",
    "GET /v1/sample",
    "GET /v1/status",
    "GET /v1/winners",
    "POST /v1/cluster/takeover",
    "POST /v1/flush",
    "POST /v1/groups/{id}/repair",
    "POST /v1/pages",
    "POST /v1/probe",
    "POST /v1/purge",
    "POST /v1/rebalance",
    "POST /v1/repair",
    "POST /v1/status",
];

async fn documented(service: &TestService) -> BTreeSet<String> {
    let document = service.get("/openapi.json").await.json();
    assert_eq!(document["openapi"].as_str().map(|version| &version[..2]), Some("3."));
    let paths = document["paths"].as_object().unwrap();
    let methods = |(path, item): (&String, &Value)| {
        let item = item.as_object().unwrap();
        item.keys().map(|method| format!("{} {path}", method.to_uppercase())).collect::<Vec<_>>()
    };
    paths.iter().flat_map(methods).collect()
}

#[tokio::test]
async fn the_document_has_the_whole_contract() {
    let contract: BTreeSet<String> = CONTRACT.iter().map(|call| (*call).to_owned()).collect();
    assert_eq!(documented(&TestService::new()).await, contract);
}

#[tokio::test]
async fn the_router_has_exactly_what_is_documented() {
    let service = TestService::new();
    let documented = documented(&service).await;
    let paths: BTreeSet<&str> = documented.iter().filter_map(|line| Some(line.split_once(' ')?.1)).collect();
    for path in &paths {
        for method in ["GET", "POST", "PUT", "DELETE", "PATCH"] {
            let request = Request::builder().method(method).uri(path.replace("{id}", "g1-0"));
            let status = service.send(request.body(Body::empty()).unwrap()).await.status;
            let allowed = status != StatusCode::METHOD_NOT_ALLOWED;
            assert_eq!(
                allowed,
                documented.contains(&format!("{method} {path}")),
                "{method} {path}: {status}"
            );
        }
    }
    // The debug output of the router lists its paths, and no other text in the output begins like a path.
    let printed = format!("{:?}", service.router);
    let quoted = printed.split('"').skip(1).step_by(2);
    let routed: BTreeSet<&str> =
        quoted.filter(|text| text.starts_with('/') && !text.contains("__private__")).collect();
    assert_eq!(routed, paths);
}

#[tokio::test]
async fn every_parameter_and_schema_is_documented() {
    let document = TestService::new().get("/openapi.json").await.json();
    let parameters = |path: &str, method: &str| -> Vec<String> {
        let list = document["paths"][path][method]["parameters"].as_array().cloned().unwrap_or_default();
        list.iter()
            .map(|p| format!("{} {}", p["in"].as_str().unwrap(), p["name"].as_str().unwrap()))
            .collect()
    };
    assert_eq!(parameters("/v1/status", "get"), ["query url", "query market"]);
    assert_eq!(parameters("/v1/changes", "get"), ["query cursor", "query wait", "query limit"]);
    assert_eq!(
        parameters("/v1/groups/{id}", "get"),
        ["path id", "query after", "query limit", "query market"]
    );
    assert_eq!(parameters("/v1/pages", "delete"), ["query url", "query fetched_at"]);
    let text = document.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().unwrap();
        assert!(document["components"]["schemas"][name].is_object(), "no schema {name}");
    }
}

#[tokio::test]
async fn unknown_routes_and_methods_are_problems() {
    let service = TestService::new();
    assert!(
        service.get("/v1/nothing").await.problem(404)["detail"].as_str().unwrap().contains("/v1/nothing")
    );
    let reply = service.post("/v1/export", JSON, "").await;
    reply.problem(405);
    assert_eq!(reply.headers["allow"], "GET,HEAD");
}
