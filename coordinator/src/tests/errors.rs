//! Tests that provoke every kind of error once.

use doppel_protocol::Tier1Error;

use super::*;

#[tokio::test]
async fn a_refusal_of_everything_is_the_whole_answer() {
    for (refused, status, kind) in [
        (Tier1Error::Full { pending: 7, limit: 7 }, 429, "backlog-full"),
        (Tier1Error::ClientFull { pending: 7, limit: 7 }, 429, "client-limit"),
        (Tier1Error::ReadOnly("bad disk".to_owned()), 503, "read-only"),
        (Tier1Error::Unavailable("range 1 does not answer".to_owned()), 503, "range-unavailable"),
        (Tier1Error::Stopping, 503, "stopping"),
        (Tier1Error::DiskFull("no room".to_owned()), 507, "disk-full"),
    ] {
        let service = TestService::new();
        service.tiers.state().refuse = Some((0, refused));
        let bad_first = format!("nonsense\n{}", page("http://a/", "t", 0));
        for (content_type, body) in [(JSON, page("http://a/", "t", 0).to_string()), (NDJSON, bad_first)] {
            let problem = service.post("/v1/pages", content_type, body).await.problem(status);
            assert_eq!(problem["type"], format!("urn:doppel:problem:{kind}"));
            let says_what_to_do = problem["detail"]
                .as_str()
                .unwrap()
                .contains("free disk space, and the server resumes by itself");
            assert_eq!(says_what_to_do, kind == "disk-full", "{problem}");
        }
        // A dead page is decided at once, so it does not count as pending.
        if kind != "backlog-full" {
            service.delete("/v1/pages?url=http://a/").await.problem(status);
        }
    }
}

#[tokio::test]
async fn a_refusal_half_way_answers_the_rest_with_retry() {
    let service = TestService::with(Limits { chunk_lines: 2, ..Limits::default() });
    service.tiers.state().refuse = Some((2, Tier1Error::Full { pending: 7, limit: 7 }));
    let good = |n: usize| json!({"url": format!("http://a/{n}"), "text": "x"}).to_string();
    let body = [
        good(1),
        good(2),
        good(3),
        "bad".to_owned(),
        "bad".to_owned(),
        good(6),
        good(7),
        "bad".to_owned(),
        good(9),
    ];
    let reply = service.post("/v1/pages", NDJSON, body.join("\n")).await;
    assert_eq!(reply.headers["retry-after"], "2", "the client must send some lines again");
    let lines = reply.lines();
    let seen: Vec<_> = lines
        .iter()
        .map(|line| line["outcome"].as_str().or(line["error"]["code"].as_str()).unwrap().to_owned())
        .collect();
    let expected =
        ["pending", "pending", "pending", "invalid", "invalid", "retry", "retry", "retry", "retry"];
    assert_eq!(seen, expected);
    assert_eq!((&lines[5]["line"], &lines[5]["url"]), (&json!(6), &json!("http://a/6")));
    assert_eq!((&lines[8]["line"], &lines[8]["url"]), (&json!(9), &Value::Null));
    assert!(lines[8]["error"]["reason"].as_str().unwrap().contains("try again later"));
    assert_eq!(service.tiers.state().submitted.concat(), ["http://a/1", "http://a/2", "http://a/3"]);
    // An invalid line stays invalid, so the answer does not ask the client to send it again.
    service.tiers.state().refuse = None;
    let reply = service.post("/v1/pages", NDJSON, [good(1), "bad".to_owned()].join("\n")).await;
    assert!(reply.lines().len() == 2 && !reply.headers.contains_key("retry-after"), "{reply:?}");
}

#[tokio::test]
async fn other_media_types_and_encodings_are_refused() {
    let service = TestService::new();
    let body = page("http://a/", "t", 0).to_string();
    for kind in ["text/csv", "application/x-www-form-urlencoded", "", "application/jsonl"] {
        service.post("/v1/pages", kind, body.clone()).await.problem(415);
        service.post("/v1/status", kind, "{}").await.problem(415);
    }
    for kind in ["application/json; charset=utf-8", "Application/JSON"] {
        assert_eq!(service.post("/v1/pages", kind, body.clone()).await.status, 200, "{kind}");
    }
    for encoding in ["br", "deflate", "gzip, zstd"] {
        let request =
            Request::post("/v1/pages").header("content-type", JSON).header("content-encoding", encoding);
        service.send(request.body(body.clone().into()).unwrap()).await.problem(415);
    }
}

#[tokio::test]
async fn json_with_the_wrong_fields_is_refused() {
    let service = TestService::new();
    for path in ["/v1/status", "/v1/purge", "/v1/repair", "/v1/probe"] {
        for body in ["", "  ", "[", "7", "{\"unknown\": 1}"] {
            service.post(path, JSON, body).await.problem(400);
        }
    }
}

#[tokio::test]
async fn a_panic_is_a_problem_and_the_service_goes_on() {
    let service = TestService::new();
    service.tiers.state().panic = true;
    let problem = service.get("/v1/reports/quality").await.problem(500);
    assert!(
        !problem["detail"].as_str().unwrap().contains("as the test asked for"),
        "the cause stays in the log"
    );
    assert_eq!(service.get("/v1/reports/quality").await.status, 200);
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let service = TestService::new();
    let request = |method: &str, site: &str| {
        let request = Request::builder().method(method).uri("/v1/flush").header("sec-fetch-site", site);
        request.body(Body::empty()).unwrap()
    };
    service.send(request("POST", "cross-site")).await.problem(403);
    assert_eq!(service.send(request("POST", "same-origin")).await.status, 200);
    let read = Request::get("/v1/status?url=http://a/").header("sec-fetch-site", "cross-site");
    assert_eq!(service.send(read.body(Body::empty()).unwrap()).await.status, 200);
}

/// Requests of a page whose host name was pointed at this server (DNS rebinding).
#[tokio::test]
async fn a_request_for_a_foreign_host_name_reads_and_changes_nothing() {
    let service = TestService::new();
    let ask = async |method: &str, path: &str, host: &str| {
        let request =
            Request::builder().method(method).uri(path).header("host", host).header("x-request-id", "mine");
        service.send(request.body(Body::empty()).unwrap()).await
    };
    // The fast path answers this status request before the routes.
    for (method, path) in [
        ("GET", "/v1/status?url=http://a/"),
        ("GET", "/"),
        ("GET", "/metrics"),
        ("GET", "/healthz"),
        ("GET", "/openapi.json"),
        ("GET", "/v1/groups"),
        ("POST", "/v1/flush"),
        ("GET", "/nothing"),
        ("POST", "/v1/pages"),
    ] {
        let refused = ask(method, path, "evil.example:7700").await;
        assert!(refused.headers.contains_key("doppel-policy"), "{path}");
        let problem = refused.problem(421);
        assert_eq!(
            (&problem["type"], &problem["request_id"]),
            (&"urn:doppel:problem:misdirected".into(), &"mine".into()),
            "{path}"
        );
        assert!(problem["detail"].as_str().unwrap().contains("evil.example"), "{problem}");
    }
    for host in ["localhost:7700", "127.0.0.1:7700", "[::1]"] {
        assert_eq!(ask("GET", "/v1/status?url=http://a/", host).await.status, 200);
        assert_eq!(ask("POST", "/v1/flush", host).await.status, 200);
    }
}

/// Over plain HTTP, browsers send no `Sec-Fetch-Site` to host names, but they send `Origin` with every write.
#[tokio::test]
async fn a_page_of_another_origin_changes_nothing() {
    let service = TestService::new();
    let ask = async |method: &str, path: &str, origin: &str| {
        let request = Request::builder().method(method).uri(path).header("host", "10.0.0.5:7700");
        service.send(request.header("origin", origin).body(Body::empty()).unwrap()).await
    };
    for origin in ["http://wiki.example", "http://10.0.0.5:8000", "null"] {
        ask("POST", "/v1/flush", origin).await.problem(403);
        ask("DELETE", "/v1/pages?url=http://a/", origin).await.problem(403);
        assert_eq!(ask("GET", "/v1/groups", origin).await.status, 200);
    }
    assert_eq!(ask("POST", "/v1/flush", "http://10.0.0.5:7700").await.status, 200);
}

#[tokio::test]
async fn outcomes_that_do_not_match_the_pages_are_not_returned() {
    for (many, kind) in [(false, JSON), (true, NDJSON)] {
        for short in [true, false] {
            let service = TestService::new();
            service.tiers.state().miscount = Some(short);
            let lines = format!("{}\n{}", page("http://a/1", "t", 0), page("http://a/2", "t", 2));
            let body = if many { lines } else { page("http://a/1", "t", 0).to_string() };
            let problem = service.post("/v1/pages", kind, body).await.problem(500);
            assert_eq!(problem["type"], "urn:doppel:problem:internal");
            let delete = Request::delete("/v1/pages?url=http://a/1").body(Body::empty()).unwrap();
            service.send(delete).await.problem(500);
        }
    }
}
