//! Tests of `/v1/pages` and `/v1/purge`.

use doppel_model::PageUrl;

use super::*;

#[tokio::test]
async fn one_page_is_recorded_and_its_url_is_repeated() {
    let service = TestService::new();
    let url = "HTTP://A.org/x#part";
    let reply = service.post_json("/v1/pages", &json!({"url": url, "text": words("w", 0, 30)})).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json(), json!({"url": "HTTP://A.org/x", "outcome": "pending"}));
    let again = service.post_json("/v1/pages", &json!({"url": url, "text": words("w", 0, 30)})).await;
    assert_eq!(again.json()["outcome"], "unchanged");
    let older = json!({"url": url, "text": "x", "fetched_at": "2020-01-01T00:00:00Z"});
    assert_eq!(service.post_json("/v1/pages", &older).await.json()["outcome"], "stale");
}

#[tokio::test]
async fn bad_lines_are_errors_among_good_ones_in_order() {
    let service = TestService::new();
    let body = concat!(
        "{\"url\": \"http://a/1\", \"text\": \"one\"}\n",
        "\n   \n",
        "not json\n",
        "{\"url\": \"http://a/2\", \"txt\": \"two\"}\r\n",
        "{\"url\": \"ftp://a/3\", \"text\": \"three\"}\n",
        "[{\"url\": \"http://a/4\", \"text\": \"four\"}]\n",
        "{\"url\": \"http://a/5\", \"dead\": true, \"fetched_at\": \"2999-01-01T00:00:00Z\"}\n",
        "{\"url\": \"http://a/6\", \"redirect_to\": \"http://a/1\"}",
    );
    let lines = service.post("/v1/pages", NDJSON, body).await.lines();
    assert_eq!(lines.len(), 7);
    assert_eq!(lines[0], json!({"url": "http://a/1", "outcome": "pending"}));
    assert_eq!(lines[6], json!({"url": "http://a/6", "outcome": "pending"}));
    let errors: Vec<_> = lines[1..6]
        .iter()
        .map(|line| (line["line"].as_u64().unwrap(), line["url"].as_str(), line["error"]["field"].as_str()))
        .collect();
    let expected = [
        (4, None, None),
        (5, Some("http://a/2"), Some("txt")),
        (6, None, Some("url")),
        (7, None, None),
        (8, Some("http://a/5"), Some("fetched_at")),
    ];
    assert_eq!(errors, expected);
    for line in &lines[1..6] {
        assert_eq!(line["error"]["code"], "invalid");
        assert!(!line["error"]["reason"].as_str().unwrap().is_empty());
    }
    assert_eq!(service.tiers.state().submitted, [["http://a/1", "http://a/6"]]);
}

#[tokio::test]
async fn order_is_kept_over_many_chunks() {
    let service = TestService::with(Limits { chunk_lines: 7, ..Limits::default() });
    let body: String =
        (0..100).map(|n| format!("{}\n", json!({"url": format!("http://a/{n}"), "text": "x"}))).collect();
    let lines = service.post("/v1/pages", NDJSON, body).await.lines();
    let urls: Vec<_> = (0..100).map(|n| format!("http://a/{n}")).collect();
    assert_eq!(lines.iter().map(|line| line["url"].as_str().unwrap()).collect::<Vec<_>>(), urls);
    let submitted = &service.tiers.state().submitted;
    assert_eq!(submitted.concat(), urls);
    assert_eq!(submitted.len(), 15);
}

/// The clock of the tests stands still, so all versions arrive in one millisecond.
#[tokio::test]
async fn versions_without_dates_keep_the_order_of_their_arrival() {
    let service = TestService::with(Limits { chunk_lines: 3, ..Limits::default() });
    let url = "http://a/";
    let texts: Vec<String> = (0..20).map(|n| words("w", n, 30)).collect();
    let body: String = texts.iter().map(|text| format!("{}\n", json!({"url": url, "text": text}))).collect();
    let lines = service.post("/v1/pages", NDJSON, body).await.lines();
    let outcomes: Vec<_> = lines.iter().map(|line| line["outcome"].as_str().unwrap()).collect();
    assert_eq!(outcomes, vec!["pending"; 20]);
    // A deletion in the same millisecond is superseded by the next version.
    assert_eq!(service.delete("/v1/pages?url=http://a/").await.json()["outcome"], "confirmed");
    let back = service.post_json("/v1/pages", &json!({"url": url, "text": &texts[0]})).await;
    assert_eq!(back.json()["outcome"], "pending");
}

#[tokio::test]
async fn extracted_fields_and_contents_reach_tier_1() {
    let service = TestService::new();
    let html = "<html><head><meta charset=latin1><link rel=canonical href=/c></head><body>gr\u{fc}n ";
    let html = html.to_owned() + &words("wort", 0, 30);
    let text = "gr\u{fc}n ".to_owned() + &words("wort", 0, 30);
    let moved = "<meta http-equiv=refresh content='0; url=/there'>";
    service
        .store(&[
            json!({"url": "http://a/html", "html": html, "language": "de", "popularity": 7.5}),
            json!({"url": "http://b/text", "text": text}),
            json!({"url": "http://a/moved", "html": moved}),
        ])
        .await;
    let mut state = service.tiers.state();
    let page = &state.page("http://a/html").view;
    assert_eq!((page.language.as_deref(), page.rank.popularity), (Some("de"), Some(7.5)));
    assert_eq!(page.canonical.as_ref().map(PageUrl::as_str), Some("http://a/c"));
    let content = page.content;
    assert_eq!(state.page("http://b/text").view.content, content, "JSON is Unicode whatever the HTML says");
    let moved = &state.page("http://a/moved").view;
    assert_eq!(moved.redirect_to.as_ref().map(PageUrl::as_str), Some("http://a/there"));
}

#[tokio::test]
async fn invalid_pages_are_refused_with_the_field() {
    let service = TestService::new();
    for (body, field) in [
        (json!({"url": "http://a/", "html": "", "text": ""}), Some("text")),
        (json!({"text": "x"}), Some("url")),
        (json!({"url": "http://a/", "text": "x", "popularity": -1}), Some("popularity")),
        (json!({"url": "http://a/", "redirect_to": "http://a/"}), Some("redirect_to")),
        (json!({"url": "http://a/"}), None),
    ] {
        let problem = service.post_json("/v1/pages", &body).await.problem(400);
        assert_eq!(problem["field"].as_str(), field, "{problem}");
    }
    let array = json!([{"url": "http://a/", "text": "x"}]);
    let problem = service.post_json("/v1/pages", &array).await.problem(400);
    assert!(problem["detail"].as_str().unwrap().contains("x-ndjson"));
    for kind in [JSON, NDJSON] {
        service.post("/v1/pages", kind, "").await.problem(400);
        service.post("/v1/pages", kind, " \n\n ").await.problem(400);
    }
    assert!(service.tiers.state().submitted.is_empty());
}

#[tokio::test]
async fn a_deletion_is_recorded_and_its_parameters_are_checked() {
    let service = TestService::new();
    service.store(&[json!({"url": "http://a/", "text": "x", "fetched_at": "2024-01-01T00:00:00Z"})]).await;
    let delete = |query: &str| Request::delete(format!("/v1/pages?{query}")).body(Body::empty()).unwrap();
    let reply = service.send(delete("url=http://a/&fetched_at=2023-01-01T00:00:00Z")).await;
    assert_eq!(reply.json(), json!({"url": "http://a/", "outcome": "stale"}));
    let reply = service.send(delete("url=http://a/")).await;
    assert_eq!(reply.json(), json!({"url": "http://a/", "outcome": "confirmed"}));
    assert_eq!(service.status("http://a/").await["status"], "dead");
    for (query, field) in [
        ("url=a", "url"),
        ("url=http://a/&fetched_at=now", "fetched_at"),
        ("url=http://a/&fetched_at=2999-01-01T00:00:00Z", "fetched_at"),
    ] {
        assert_eq!(service.send(delete(query)).await.problem(400)["field"], field);
    }
    service.send(delete("url=http://a/&when=now")).await.problem(400);
    service.send(delete("")).await.problem(400);
}

#[tokio::test]
async fn a_purge_names_a_page_or_a_host() {
    let service = TestService::new();
    let pages = ["http://a/1", "http://a/2", "http://b/1"].map(|url| json!({"url": url, "text": "x"}));
    service.store(&pages).await;
    assert_eq!(service.post_json("/v1/purge", &json!({"url": "http://a/1"})).await.json()["purged"], 1);
    assert_eq!(service.status("http://a/1").await["status"], "unknown");
    assert_eq!(service.post_json("/v1/purge", &json!({"host": "a"})).await.json()["purged"], 1);
    assert_eq!(service.post_json("/v1/purge", &json!({"host": "a"})).await.json()["purged"], 0);
    for bad in [
        json!({}),
        json!({"url": "http://a/", "host": "a"}),
        json!({"host": ""}),
        json!({"host": "A"}),
        json!({"host": "a:80"}),
        json!({"host": ".a"}),
        json!({"host": "http://a"}),
    ] {
        service.post_json("/v1/purge", &bad).await.problem(400);
    }
    service.post_json("/v1/purge", &json!({"urls": []})).await.problem(400);
}
