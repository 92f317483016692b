//! Tests of `POST /v1/pages` with a page as the raw body.

use doppel_contract::page::PAGE_BYTES_MAX;

use super::limits::gzip;
use super::*;

impl TestService {
    /// Sends a page as a raw body.
    async fn post_raw(&self, query: &str, content_type: &str, body: impl Into<Body>) -> Reply {
        self.post(&format!("/v1/pages?{query}"), content_type, body).await
    }
}

#[tokio::test]
async fn a_raw_page_is_recorded() {
    let service = TestService::new();
    let text = words("wort", 0, 30);
    let html = format!("<title>a</title><p>{text}</p><script>x</script>");
    service.store(&[json!({"url": "http://json/", "html": html})]).await;
    let reply = service.post_raw("url=http://a/%3Fx", "text/html", html.clone()).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.json(), json!({"url": "http://a/?x", "outcome": "pending"}));
    for (query, content_type) in [
        ("url=http://b/", "text/html; charset=utf-8"),
        ("url=http://c/", " Text/HTML"),
        ("url=http://d/", "application/xhtml+xml"),
    ] {
        assert_eq!(service.post_raw(query, content_type, html.clone()).await.status, 200, "{content_type}");
    }
    service.post_raw("url=http://text/", "text/plain", format!("a {text}")).await;
    let mut state = service.tiers.state();
    let content = state.page("http://json/").view.content;
    for url in ["http://a/?x", "http://b/", "http://c/", "http://d/", "http://text/"] {
        assert_eq!(state.page(url).view.content, content, "{url}");
    }
}

#[tokio::test]
async fn xhtml_is_read_as_xml_by_its_content_type() {
    let service = TestService::new();
    // HTML has no self-closing script element, so the script contains everything that follows.
    let text = words("wort", 0, 30);
    let page = format!(
        "<html xmlns='http://www.w3.org/1999/xhtml'><body><script src='a.js'/><p>{text}</p></body></html>"
    );
    service.store(&[json!({"url": "http://json/", "text": text})]).await;
    let packed = gzip(page.as_bytes());
    for (n, (content_type, encoding, body)) in [
        ("application/xhtml+xml", "identity", page.as_bytes()),
        (" Application/XHTML+XML ; charset=utf-8", "identity", page.as_bytes()),
        ("application/xhtml+xml;charset=\"windows-1252\"", "identity", page.as_bytes()),
        ("application/xhtml+xml", "gzip", &packed),
        ("text/html", "identity", page.as_bytes()),
    ]
    .into_iter()
    .enumerate()
    {
        let url = format!("http://a/{n}");
        let request = Request::post(format!("/v1/pages?url={url}"))
            .header("content-type", content_type)
            .header("content-encoding", encoding);
        assert_eq!(service.send(request.body(body.to_vec().into()).unwrap()).await.status, 200);
        let mut state = service.tiers.state();
        let content = state.page("http://json/").view.content;
        let is_xhtml = content_type != "text/html";
        assert_eq!(state.page(&url).view.content == content, is_xhtml, "{content_type}, {encoding}");
    }
}

#[tokio::test]
async fn the_query_has_the_fields_of_a_page() {
    let service = TestService::new();
    let fields = "fetched_at=2024-01-31T08:00:00Z&popularity=7.5&language=de";
    let reply = service.post_raw(&format!("url=http://a/&{fields}"), "text/plain", "ein Text").await;
    assert_eq!(reply.status, 200, "{reply:?}");
    let mut state = service.tiers.state();
    let page = &state.page("http://a/").view;
    assert_eq!((page.language.as_deref(), page.rank.popularity), (Some("de"), Some(7.5)));
    assert_eq!(page.fetched_at.to_string(), "2024-01-31T08:00:00Z");
}

#[tokio::test]
async fn the_charset_is_the_declared_one_or_that_of_the_bytes() {
    let service = TestService::new();
    let text = "Съешь ещё этих мягких французских булок, да выпей чаю. ".repeat(4);
    service.store(&[json!({"url": "http://json/", "text": text})]).await;
    let (old, _, _) = encoding_rs::WINDOWS_1251.encode(&text);
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for (n, (content_type, body)) in [
        ("text/plain", text.as_bytes()),
        ("text/plain", &*old),
        ("text/html", &*old),
        ("text/plain; charset=windows-1251", &*old),
        ("text/html; charset=\"windows-1251\"", &*old),
        ("text/plain; charset=klingon", &*old),
        ("text/plain; charset=utf-16be", &*utf_16),
        ("text/plain", &*utf_16),
    ]
    .into_iter()
    .enumerate()
    {
        let url = format!("http://a/{n}");
        assert_eq!(service.post_raw(&format!("url={url}"), content_type, body.to_vec()).await.status, 200);
        let mut state = service.tiers.state();
        let content = state.page("http://json/").view.content;
        assert_eq!(state.page(&url).view.content, content, "{content_type} {n}");
    }
}

#[tokio::test]
async fn invalid_parameters_are_refused_with_the_field() {
    let service = TestService::new();
    for (query, field) in [
        ("", Some("url")),
        ("fetched_at=2024-01-31T08:00:00Z", Some("url")),
        ("url=", Some("url")),
        ("url=ftp://a/", Some("url")),
        ("url=http://a/&fetched_at=now", Some("fetched_at")),
        ("url=http://a/&fetched_at=2999-01-01T00:00:00Z", Some("fetched_at")),
        ("url=http://a/&popularity=-1", Some("popularity")),
        ("url=http://a/&popularity=NaN", Some("popularity")),
        ("url=http://a/&popularity=x", Some("popularity")),
        ("url=http://a/&language=de_DE", Some("language")),
        ("url=http://a/&title=x", Some("title")),
        ("url=http://a/&url=http://b/", Some("url")),
    ] {
        let problem = service.post_raw(query, "text/html", "<p>x").await.problem(400);
        assert_eq!(problem["field"].as_str(), field, "{query}: {problem}");
    }
    for content_type in ["text/html", "text/plain"] {
        service.post_raw("url=http://a/", content_type, "").await.problem(400);
    }
    for content_type in ["application/x-www-form-urlencoded", "text/css", "application/pdf", "text"] {
        let problem = service.post_raw("url=http://a/", content_type, "<p>x").await.problem(415);
        assert!(problem["detail"].as_str().unwrap().contains("text/html"), "{problem}");
    }
    // A JSON page has its fields in the body, so query parameters are refused.
    for (kind, query, field) in [(JSON, "url=http://a/", "url"), (NDJSON, "language=de", "language")] {
        let body = json!({"url": "http://a/", "text": "x"}).to_string();
        let problem = service.post(&format!("/v1/pages?{query}"), kind, body).await.problem(400);
        assert_eq!(problem["field"], field, "{problem}");
    }
    assert!(service.tiers.state().submitted.is_empty());
}

#[tokio::test]
async fn binary_data_are_refused_however_they_are_sent() {
    let service = TestService::new();
    let text = "word ".repeat(10) + "\0\u{1}";
    for (kind, field, body) in [
        (JSON, Some("text"), json!({"url": "http://a/", "text": text}).to_string()),
        (JSON, Some("html"), json!({"url": "http://a/", "html": text}).to_string()),
        ("text/plain", None, text.clone()),
        ("text/html", None, text.clone()),
    ] {
        let query = if kind == JSON { "" } else { "?url=http://a/" };
        let problem = service.post(&format!("/v1/pages{query}"), kind, body).await.problem(400);
        assert_eq!(problem["field"].as_str(), field, "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("2 of 52 characters"), "{problem}");
    }
    let line = json!({"url": "http://a/", "text": text}).to_string();
    let lines = service.post("/v1/pages", NDJSON, line).await.lines();
    assert_eq!(
        (&lines[0]["error"]["code"], &lines[0]["error"]["field"]),
        (&json!("invalid"), &json!("text"))
    );
    let problem = service.post_json("/v1/probe", &json!({"text": text})).await.problem(400);
    assert_eq!(problem["field"], "text");
    assert!(service.tiers.state().submitted.is_empty());
    let harmless = "word ".repeat(20) + "\0\u{1}";
    assert_eq!(service.post_raw("url=http://a/", "text/plain", harmless).await.status, 200);
}

#[tokio::test]
async fn a_page_has_the_limits_of_a_page() {
    let service = TestService::new();
    service.post_raw("url=http://a/", "text/plain", vec![b'x'; PAGE_BYTES_MAX + 1]).await.problem(413);
    // Each byte becomes two in UTF-8.
    let (wide, _, _) = encoding_rs::WINDOWS_1251.encode("ж");
    let wide = wide.repeat(PAGE_BYTES_MAX / 2 + 1);
    service.post_raw("url=http://a/", "text/plain; charset=windows-1251", wide).await.problem(400);
    let small = TestService::with(Limits { body_bytes: 10, ..Limits::default() });
    small.post_raw("url=http://a/", "text/html", "<p>12345678").await.problem(413);
}
