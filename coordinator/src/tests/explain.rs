//! Tests of `/v1/explain` for pairs of pages.

use super::*;

async fn ask(service: &TestService, a: &str, b: &str) -> Value {
    let reply = service.get(&format!("/v1/explain?a={a}&b={b}")).await;
    assert_eq!(reply.status, 200, "{reply:?}");
    reply.json()
}

#[tokio::test]
async fn explanations_cover_near_far_equal_and_short_contents() {
    let service = TestService::new();
    service
        .store(&[
            page("http://a/", "t", 0),
            page("http://near/", "t", 2),
            page("http://far/", "t", 40),
            page("http://same/", "t", 0),
            json!({"url": "http://short/1", "text": words("t", 0, 19)}),
            json!({"url": "http://short/2", "text": words("t", 0, 18)}),
            json!({"url": "http://empty/1", "text": "!"}),
            json!({"url": "http://empty/2", "text": "?"}),
            json!({"url": "http://moved/", "redirect_to": "http://near/"}),
            json!({"url": "http://gone/", "dead": true}),
            json!({"url": "http://lost/", "redirect_to": "http://none/"}),
            json!({"url": "http://late/", "redirect_to": "http://gone/"}),
        ])
        .await;
    let near = ask(&service, "http://a/", "http://near/").await;
    let (measures, shingles) = (&near["measures"], &near["measures"]["shingles"]);
    assert_eq!((&near["duplicate"], &near["policy"]), (&json!(true), &json!("jaccard:tau=0.8")));
    assert_eq!(
        (&shingles["only_a"], &shingles["only_b"], &measures["same_content"]),
        (&json!(6), &json!(6), &json!(false))
    );
    let criterion = json!({"what": "shingles", "shared": 94, "of": 106, "needed": "above 0.8", "met": true});
    assert_eq!(measures["criteria"], json!([criterion]));
    assert!((measures["similarity"].as_f64().unwrap() - 94.0 / 106.0).abs() < 1e-12);
    assert!((shingles["sketch_estimate"].as_f64().unwrap() - 94.0 / 106.0).abs() < 0.25);
    assert_eq!(shingles["bands"], 16);
    assert!(shingles["equal_bands"].as_u64().unwrap() > 0);
    for kind in ["common", "only_a", "only_b"] {
        let examples = shingles["examples"][kind].as_array().unwrap();
        assert_eq!(examples.len(), 5, "{kind}");
        assert!(examples.iter().all(|hash| hash.as_str().unwrap().len() == 10));
    }
    assert_eq!(near["reason"], "94 of 106 shingles are in both, which is above 0.8");
    let content = &near["a"]["content"];
    assert_eq!(
        (&content["tokens"], &content["shingles"], &content["home"]),
        (&json!(100), &json!(100), &json!(1))
    );
    assert_eq!((&content["lengths"], &content["probed_partitions"]), (&json!([100, 0, 0]), &json!([0, 1])));
    assert_eq!(near["b"]["advice"]["status"], "duplicate");

    let far = ask(&service, "http://a/", "http://far/").await;
    assert_eq!(
        (&far["duplicate"], &far["reason"]),
        (&json!(false), &json!("56 of 144 shingles are in both, which is not above 0.8"))
    );
    let same = ask(&service, "http://a/", "http://same/").await;
    assert_eq!((&same["duplicate"], &same["measures"]["similarity"]), (&json!(true), &json!(1.0)));
    assert_eq!(same["reason"], "they have the same words (punctuation and case ignored)");
    assert_eq!(same["measures"]["shingles"]["examples"]["only_a"], json!([]));
    let short = ask(&service, "http://short/1", "http://short/2").await;
    assert_eq!((&short["duplicate"], &short["a"]["content"]["comparable"]), (&json!(false), &json!(false)));
    assert!(short["reason"].as_str().unwrap().starts_with("one has 19 tokens"), "{short}");
    let empty = ask(&service, "http://empty/1", "http://empty/2").await;
    assert_eq!((&empty["duplicate"], &empty["reason"]), (&json!(false), &json!("neither has any text")));
    assert_eq!(
        (&empty["measures"]["shingles"]["equal_bands"], &empty["measures"]["shingles"]["sketch_estimate"]),
        (&json!(0), &json!(0.0))
    );
    let moved = ask(&service, "http://a/", "http://moved/").await;
    assert_eq!((&moved["duplicate"], &moved["b"]["compared_url"]), (&json!(true), &json!("http://near/")));
    let reason =
        "http://moved/ redirects to http://near/; 94 of 106 shingles are in both, which is above 0.8";
    assert_eq!(moved["reason"], reason);
    let moved = ask(&service, "http://near/", "http://moved/").await;
    let reason = "http://moved/ redirects to http://near/; both have the content of one page";
    assert_eq!(moved["reason"], reason);
    for (url, target, end) in [
        ("http://lost/", "http://none/", "and the redirect chain ends at an unknown page"),
        ("http://late/", "http://gone/", "and the redirect chain ends at a dead page"),
    ] {
        let lost = ask(&service, "http://a/", url).await;
        assert_eq!(lost["reason"], format!("{url} redirects to {target}, {end}"));
    }
    let gone = ask(&service, "http://a/", "http://gone/").await;
    assert_eq!((&gone["duplicate"], &gone["measures"]), (&json!(false), &Value::Null));
    assert_eq!(gone["reason"], "http://gone/ has no content at the moment");
}

#[tokio::test]
async fn unknown_pages_and_invalid_urls_are_answered() {
    let service = TestService::new();
    service.store(&[page("http://a/", "t", 0)]).await;
    assert_eq!(service.get("/v1/explain?a=http://a/&b=http://b/").await.problem(404)["field"], "b");
    assert_eq!(service.get("/v1/explain?a=a&b=http://a/").await.problem(400)["field"], "a");
    service.get("/v1/explain?a=http://a/").await.problem(400);
}
