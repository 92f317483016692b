//! Tests of `/v1/status` and `/v1/probe`: advice holds for the current contents (guarantee G5).

use std::sync::atomic::{AtomicU32, Ordering};

use doppel_contract::answer::Advice;
use doppel_contract::{Market, Status};
use doppel_model::PageUrl;
use doppel_protocol::GroupState;

use super::fake::Page;
use super::*;
use crate::limits::LIST;

/// Stores a winner, a near copy, a page that is near only to the near copy, redirects to each, and a unique
/// page.
async fn group() -> TestService {
    let service = TestService::new();
    service
        .store(&[
            page("http://w/", "t", 0),
            page("http://near/copy", "t", 4),
            json!({"url": "http://far/relative", "text": words("t", 12, 84) + &words("httpnearcopy", 0, 4)}),
            json!({"url": "http://r/near", "redirect_to": "http://near/copy"}),
            json!({"url": "http://r/far", "redirect_to": "http://far/relative"}),
            json!({"url": "http://r/winner", "redirect_to": "http://w/"}),
            json!({"url": "http://r/nowhere", "redirect_to": "http://none/"}),
            page("http://alone/", "u", 0),
            json!({"url": "http://gone/", "dead": true}),
        ])
        .await;
    service
}

#[tokio::test]
async fn statuses_in_the_table_are_answered_without_reading_rows() {
    let service = group().await;
    let by_rows = service.status("http://near/copy").await;
    let known: Advice = serde_json::from_value(by_rows.clone()).unwrap();
    service.tiers.state().known.insert(PageUrl::parse("http://near/copy").unwrap(), known);
    let reads = || service.tiers.gate.count("pages");
    let before = reads();
    let reply = service.get("/v1/status?url=http://near/copy").await;
    assert_eq!(reply.json(), by_rows);
    assert_eq!(reply.headers["content-type"], "application/json");
    assert!(reply.headers.contains_key("x-request-id"));
    let mut part = by_rows.clone();
    part["url"] = json!("http://near/copy#part");
    assert_eq!(service.get("/v1/status?url=http://near/copy%23part").await.json(), part);
    let many =
        service.post_json("/v1/status", &json!({"urls": ["http://near/copy#part", "near"]})).await.json();
    assert_eq!(many["pages"][0], part);
    assert!(many["pages"][1]["error"].is_string());
    assert_eq!(reads(), before);
    // All other requests go through the routes.
    let many =
        service.post_json("/v1/status", &json!({"urls": ["http://w/", "http://near/copy"]})).await.json();
    assert_eq!((&many["pages"][0]["status"], &many["pages"][1]), (&json!("winner"), &by_rows));
    assert!(reads() > before);
    for (query, status) in [("url=http://near/copy&market=de", 200), ("url=http://near/copy&x=1", 400)] {
        let (before, reply) = (reads(), service.get(&format!("/v1/status?{query}")).await);
        assert_eq!((reply.status.as_u16(), reads() > before), (status, status == 200), "{query}");
    }
    let metrics = service.get("/metrics").await;
    let counted =
        "doppel_coordinator_http_requests_total{method=\"GET\",route=\"/v1/status\",status=\"200\"} 4";
    assert!(String::from_utf8_lossy(&metrics.body).contains(counted));
}

#[tokio::test]
async fn every_status_has_its_fields() {
    let service = group().await;
    let group = service.status("http://w/").await["group"].as_str().unwrap().to_owned();
    for (url, duplicate_of, similarity, rule) in [
        ("http://w/", None, None, None),
        ("http://near/copy", Some("http://w/"), Some(92.0 / 108.0), Some("shorter_url")),
        ("http://far/relative", None, None, Some("shorter_url")),
        ("http://r/near", Some("http://w/"), None, Some("shorter_url")),
        ("http://r/far", Some("http://far/relative"), None, None),
        ("http://r/winner", Some("http://w/"), None, None),
    ] {
        let advice = service.status(url).await;
        let status = match duplicate_of {
            Some(_) => "duplicate",
            None if url == "http://w/" => "winner",
            None => "secondary",
        };
        let mut expected = json!({
            "url": url, "status": status, "group": group, "winner": "http://w/", "duplicate_of": duplicate_of,
            "similarity": similarity, "fetched_at": NOW.to_string(), "rule": rule, "reason": null,
        });
        if let Some(target) = service.tiers.state().page(url).view.redirect_to.clone() {
            expected["redirect_to"] = json!(target.as_str());
        }
        assert_eq!(advice, expected);
    }
    assert_eq!(service.status("http://r/near").await["redirect_to"], "http://near/copy");
    for (url, status, reason) in [
        ("http://r/nowhere", "unresolved", json!("unknown_target")),
        ("http://alone/", "unique", Value::Null),
        ("http://gone/", "dead", Value::Null),
        ("http://never/", "unknown", Value::Null),
    ] {
        let advice = service.status(url).await;
        assert_eq!(advice["status"], status, "{advice}");
        assert_eq!(advice["reason"], reason);
        assert!(advice["group"].is_null() && advice["winner"].is_null() && advice["similarity"].is_null());
    }
    service.post_json("/v1/pages", &page("http://new/", "v", 0)).await;
    assert_eq!(service.status("http://new/").await["status"], "pending");
}

#[tokio::test]
async fn a_recorded_verification_counts_only_for_the_same_contents() {
    let service = group().await;
    // The winner's content changes, and the shard of the members does not know it yet.
    let other = service.tiers.state().page("http://alone/").signature.clone().unwrap();
    {
        let mut state = service.tiers.state();
        let winner = state.page("http://w/");
        winner.view.content = Some(other.content());
        winner.signature = Some(other);
        assert_eq!(state.page("http://near/copy").view.line.status, Status::Duplicate);
    }
    let advice = service.status("http://near/copy").await;
    assert_eq!((advice["status"].as_str(), &advice["similarity"]), (Some("secondary"), &Value::Null));
    // A redirect counts as a duplicate of its final target if the target is kept.
    assert_eq!(service.status("http://r/near").await["duplicate_of"], "http://near/copy");
    assert_eq!(service.status("http://r/winner").await["status"], "duplicate", "its target is the winner");
}

#[tokio::test]
async fn duplicates_of_a_pending_winner_are_kept_and_redirects_to_it_are_pending() {
    let service = group().await;
    service.tiers.state().page("http://w/").view.line.status = Status::Pending;
    for (url, status) in
        [("http://near/copy", "secondary"), ("http://r/near", "duplicate"), ("http://r/winner", "pending")]
    {
        assert_eq!(service.status(url).await["status"], status, "{url}");
    }
    // All answers about many pages agree.
    let group = service.tiers.state().group_of("http://w/");
    let listed = service.get(&format!("/v1/groups/{group}")).await.json();
    let exported = service.get("/v1/export").await.lines();
    for pages in [listed["pages"].as_array().unwrap(), &exported] {
        let of = |url: &str| pages.iter().find(|page| page["url"] == url).unwrap();
        assert_eq!(of("http://near/copy")["status"], "secondary");
        assert_eq!(of("http://r/winner")["status"], "pending");
        assert_eq!(of("http://r/near")["duplicate_of"], "http://near/copy");
    }
}

#[tokio::test]
async fn a_new_winner_is_compared_at_once() {
    let service = group().await;
    {
        let mut state = service.tiers.state();
        let id = state.group_of("http://w/");
        let near = state.page("http://near/copy").view.rank.url.clone();
        state.groups.get_mut(&id).unwrap().0.winner = Some(near);
    }
    let old = service.status("http://w/").await;
    assert_eq!(
        (old["status"].as_str(), old["winner"].as_str()),
        (Some("duplicate"), Some("http://near/copy"))
    );
    let new = service.status("http://near/copy").await;
    assert_eq!((new["status"].as_str(), &new["similarity"]), (Some("winner"), &Value::Null));
    assert_eq!(service.status("http://far/relative").await["status"], "duplicate");
}

#[tokio::test]
async fn records_that_keep_changing_end_in_safe_advice() {
    let service = group().await;
    let asked = Arc::new(AtomicU32::new(0));
    {
        let mut state = service.tiers.state();
        let other = state.page("http://alone/").signature.clone();
        let counted = Arc::clone(&asked);
        state.on_signature = Some(Box::new(move |state| {
            counted.fetch_add(1, Ordering::Relaxed);
            state.page("http://far/relative").signature.clone_from(&other);
        }));
    }
    assert_eq!(service.status("http://far/relative").await["status"], "secondary");
    assert_eq!(asked.load(Ordering::Relaxed), 2 * 4, "both signatures in each of four attempts");
}

#[tokio::test]
async fn merges_are_followed_and_quarantine_is_respected() {
    let service = group().await;
    let old = service.tiers.state().group_of("http://w/");
    let outdated = service.tiers.state().page("http://near/copy").view.clone();
    service.store(&[page("http://near/more", "t", 2)]).await;
    // The record still names the old group.
    service.tiers.state().page("http://near/copy").view = outdated;
    let new = service.tiers.state().group_of("http://w/");
    assert_ne!(old, new);
    let advice = service.status("http://near/copy").await;
    assert_eq!(
        (advice["group"].as_str(), advice["status"].as_str()),
        (Some(&*new.to_string()), Some("duplicate"))
    );
    service.tiers.state().groups.get_mut(&new).unwrap().0.quarantined = true;
    for (url, status) in
        [("http://near/copy", "secondary"), ("http://r/winner", "duplicate"), ("http://w/", "winner")]
    {
        let advice = service.status(url).await;
        assert_eq!(advice["status"], status, "{url}");
        let note = advice["note"].as_str().unwrap();
        assert!(
            note.starts_with(&format!(
                "group {new} with 4 members is in quarantine for the number of its contents"
            )),
            "{note}"
        );
    }
    // Following a circle of forwards, which tier 1 never creates, still ends.
    service.tiers.state().groups.get_mut(&new).unwrap().0.state = GroupState::MergedInto { group: old };
    assert_eq!(service.status("http://near/copy").await["status"], "secondary");
}

#[tokio::test]
async fn a_changed_page_keeps_its_group_and_is_not_a_duplicate() {
    let service = group().await;
    service.tiers.state().page("http://near/copy").view.line.status = Status::Pending;
    let advice = service.status("http://near/copy").await;
    assert_eq!((advice["status"].as_str(), advice["winner"].as_str()), (Some("pending"), Some("http://w/")));
    assert!(advice["similarity"].is_null());
}

#[tokio::test]
async fn a_market_has_its_own_winner() {
    let service = TestService::new();
    service
        .store(&[
            page("http://a.com/", "t", 0),
            page("http://www.longer.de/page", "t", 2),
            page("http://x.de/longest/page/of/all", "t", 4),
            page("http://x.fr/page", "t", 30),
        ])
        .await;
    let ask = async |url: &str, market: &str| {
        service.get(&format!("/v1/status?url={url}&market={market}")).await.json()
    };
    let usual = service.status("http://www.longer.de/page").await;
    assert_eq!(
        (usual["status"].as_str(), usual["winner"].as_str()),
        (Some("duplicate"), Some("http://a.com/"))
    );
    let winner = ask("http://www.longer.de/page", "de").await;
    assert_eq!((winner["status"].as_str(), winner["rule"].as_str()), (Some("winner"), None), "{winner}");
    let loser = ask("http://a.com/", ".DE").await;
    assert_eq!(loser["winner"], "http://www.longer.de/page");
    assert_eq!((loser["status"].as_str(), loser["rule"].as_str()), (Some("duplicate"), Some("market")));
    assert!((loser["similarity"].as_f64().unwrap() - 94.0 / 106.0).abs() < 1e-9, "{loser}");
    let second = ask("http://x.de/longest/page/of/all", "de").await;
    assert_eq!(
        (second["status"].as_str(), second["rule"].as_str()),
        (Some("duplicate"), Some("shorter_url"))
    );
    // No member of the group is in that market.
    assert_eq!(ask("http://www.longer.de/page", "it").await["winner"], "http://a.com/");
    for bad in ["", ".", "d%20e", "d/e"] {
        let reply = service.get(&format!("/v1/status?url=http://a.com/&market={bad}")).await;
        assert_eq!(reply.problem(400)["field"], "market");
    }
}

#[tokio::test]
async fn redirects_do_not_count_among_the_members_looked_at_for_a_market() {
    let service = TestService::new();
    service
        .store(&[
            page("http://a.com/", "t", 0),
            page("http://b.com/", "t", 2),
            json!({"url": "http://r.com/", "redirect_to": "http://a.com/"}),
        ])
        .await;
    // The group has more members than one call reads, and more redirects than the number of members that are
    // read.
    {
        let mut state = service.tiers.state();
        let group = state.group_of("http://b.com/");
        for (model, count) in [("http://b.com/", LIST), ("http://r.com/", Market::MEMBERS_MAX)] {
            let Page { view, signature } = state.page(model).clone();
            for n in 0..count {
                let mut view = view.clone();
                view.rank.url = PageUrl::parse(&format!("{model}{n}")).unwrap();
                view.line.url = view.rank.url.clone();
                let id = view.rank.url.id();
                if view.content.is_some() {
                    state.groups.get_mut(&group).unwrap().1.push(id);
                }
                state.pages.insert(id, Page { view, signature: signature.clone() });
            }
        }
        state.groups.get_mut(&group).unwrap().1.sort();
    }
    let advice = service.get("/v1/status?url=http://b.com/7&market=com").await.json();
    assert_eq!((&advice["winner"], &advice["note"]), (&json!("http://a.com/"), &Value::Null), "{advice}");
}

#[tokio::test]
async fn many_statuses_are_answered_in_order_with_errors_for_invalid_urls() {
    let service = group().await;
    let urls = ["http://near/copy", "nonsense", "http://w/#top", "http://never/"];
    let answers = service.post_json("/v1/status", &json!({"urls": urls, "market": null})).await.json();
    let pages = answers["pages"].as_array().unwrap();
    let statuses: Vec<_> = pages.iter().map(|page| page["status"].as_str()).collect();
    assert_eq!(statuses, [Some("duplicate"), None, Some("winner"), Some("unknown")]);
    assert_eq!(pages.iter().map(|page| page["url"].as_str().unwrap()).collect::<Vec<_>>(), urls);
    assert!(pages[1]["error"].as_str().unwrap().contains("absolute"));
    let many = json!({"urls": vec!["http://w/"; 1_001]});
    assert_eq!(service.post_json("/v1/status", &many).await.problem(400)["field"], "urls");
    let most = json!({"urls": vec!["http://w/"; 1_000]});
    assert_eq!(service.post_json("/v1/status", &most).await.json()["pages"].as_array().unwrap().len(), 1_000);
}

#[tokio::test]
async fn probes_answer_like_stored_pages_and_store_nothing() {
    let service = group().await;
    let group = service.status("http://w/").await["group"].clone();
    let before = service.tiers.state().pages.len();
    let probe = async |body: Value| {
        let reply = service.post_json("/v1/probe", &body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    };
    let copy = probe(json!({"text": words("t", 0, 98) + "other end"})).await;
    assert_eq!(
        (&copy["status"], &copy["group"], &copy["winner"]),
        (&json!("duplicate"), &group, &json!("http://w/"))
    );
    assert!((copy["similarity"].as_f64().unwrap() - 94.0 / 106.0).abs() < 1e-9, "{copy}");
    // The text is near only to the page that is far from the winner.
    let far = words("t", 14, 82) + &words("httpnearcopy", 0, 4);
    let far = probe(json!({"html": format!("<p>{far}</p>")})).await;
    let found = (&far["status"], &far["group"], &far["duplicate_of"]);
    assert_eq!(found, (&json!("duplicate"), &group, &json!("http://far/relative")), "{far}");
    assert_eq!(probe(json!({"text": words("z", 0, 50)})).await["status"], "unique");
    assert_eq!(probe(json!({"text": ""})).await["status"], "unique");
    let alone = probe(json!({"text": words("u", 0, 100)})).await;
    assert_eq!(
        (&alone["status"], &alone["winner"], &alone["similarity"]),
        (&json!("duplicate"), &json!("http://alone/"), &json!(1.0))
    );
    // A page that is stored under the probe's own URL is not a partner.
    let own = probe(json!({"text": words("u", 0, 100), "url": "http://alone/"})).await;
    assert_eq!((&own["status"], &own["url"]), (&json!("unique"), &json!("http://alone/")));
    let own = probe(json!({"text": words("t", 0, 100), "url": "http://w/"})).await;
    assert_eq!(own["status"], "winner");
    assert_eq!(service.tiers.state().pages.len(), before);
    for bad in
        [json!({}), json!({"text": "", "html": ""}), json!({"text": "", "url": "x"}), json!({"txt": ""})]
    {
        service.post_json("/v1/probe", &bad).await.problem(400);
    }
}

#[tokio::test]
async fn a_probe_of_a_redirect_follows_it() {
    let service = group().await;
    let probe = async |to: &str| {
        let html = format!("<meta http-equiv=refresh content='0; url={to}'>");
        service.post_json("/v1/probe", &json!({"html": html, "url": "http://w/old"})).await.json()
    };
    for (to, status, winner) in [
        ("http://w/", "duplicate", json!("http://w/")),
        ("/", "duplicate", json!("http://w/")),
        ("http://r/near", "duplicate", json!("http://w/")),
        ("http://far/relative", "duplicate", json!("http://w/")),
        ("http://alone/", "duplicate", json!("http://alone/")),
        ("http://never/", "unresolved", Value::Null),
        ("http://gone/", "unresolved", Value::Null),
        ("http://r/nowhere", "unresolved", Value::Null),
    ] {
        let advice = probe(to).await;
        assert_eq!((advice["status"].as_str(), &advice["winner"]), (Some(status), &winner), "{to}");
        assert_eq!(advice["reason"].is_null(), status != "unresolved", "{advice}");
        assert_eq!(advice["redirect_to"], if to == "/" { "http://w/" } else { to });
    }
}

#[tokio::test]
async fn a_probe_of_a_redirect_finds_its_target_in_any_spelling() {
    let service = TestService::new();
    let names = ["http://a.example", "HTTP://a.example", "http://a.example/", "http://a.example:80"];
    let probe = async || {
        let html = format!("<meta http-equiv=refresh content='0; url={}'>", names[3]);
        service.post_json("/v1/probe", &json!({"html": html, "url": "http://from/"})).await.json()
    };
    assert_eq!(probe().await["reason"], "unknown_target");
    // In turn: another spelling, a spelling before it in byte order, the normalised form, and the exact
    // target.
    for (name, text) in names.into_iter().zip(["t", "u", "v", "w"]) {
        service.store(&[page(name, text, 0)]).await;
        let advice = probe().await;
        assert_eq!((&advice["status"], &advice["duplicate_of"]), (&json!("duplicate"), &json!(name)));
    }
}

#[tokio::test]
async fn a_probe_shows_what_the_main_content_leaves_out() {
    let html = format!("<title>T</title><nav>{}</nav>{}", words("menu", 0, 200), words("t", 0, 50));
    let probe = async |policy: &str, body: Value| {
        let reply = TestService::comparing(policy.parse().unwrap()).post_json("/v1/probe", &body).await;
        assert_eq!(reply.status, 200, "{reply:?}");
        reply.json()
    };
    for policy in ["content", "copies"] {
        let answer = probe(policy, json!({"html": html, "url": "http://a/"})).await;
        assert_eq!((&answer["status"], &answer["url"]), (&json!("unique"), &json!("http://a/")));
        let mut main = answer["main_content"].clone();
        let shown = main["left_out"][1]["text"].take();
        let shown = shown.as_str().unwrap();
        assert!(shown.starts_with("menu0 menu1 ") && shown.ends_with('…'), "{shown}");
        assert_eq!(shown.chars().count(), crate::limits::LEFT_OUT_CHARS);
        let expected = json!({
            "part": "page", "page_tokens": 251, "taken_tokens": 50, "left_out_tokens": 201,
            "left_out": [
                {"rule": "title", "tokens": 1, "text": "T"},
                {"rule": "navigation", "tokens": 200, "text": null},
            ],
        });
        assert_eq!(main, expected);
        // Plain text is compared as a whole, and a redirect has no content.
        let redirect = "<meta http-equiv=refresh content='0; url=http://b/'>";
        for other in
            [json!({"text": "a b", "url": "http://a/"}), json!({"html": redirect, "url": "http://a/"})]
        {
            assert_eq!(probe(policy, other).await.get("main_content"), None);
        }
    }
    // A policy that reads the site needs a URL.
    let copies = TestService::comparing("copies".parse().unwrap());
    assert_eq!(copies.post_json("/v1/probe", &json!({"html": html})).await.problem(400)["field"], "url");
    // Another policy compares the whole page.
    assert_eq!(probe("jaccard", json!({"html": html})).await.get("main_content"), None);
}

#[tokio::test]
async fn pages_and_probes_without_a_site_are_refused_if_the_policy_reads_sites() {
    for name in ["by-site", "copies"] {
        let service = TestService::comparing(name.parse().unwrap());
        let text = words("t", 0, 100);
        for (probe, says) in [
            (json!({"text": text}), "missing; the policy"),
            (json!({"html": text}), "missing; the policy"),
            (json!({"text": text, "url": "file:///t"}), "has no host"),
        ] {
            let problem = service.post_json("/v1/probe", &probe).await.problem(400);
            assert_eq!(problem["field"], "url", "{problem}");
            let detail = problem["detail"].as_str().unwrap();
            assert!(detail.contains(says) && detail.contains(name), "{problem}");
        }
        let reply = service.post_json("/v1/probe", &json!({"text": text, "url": "http://a/"})).await;
        assert_eq!(reply.json()["status"], "unique");
        let problem = service.post_json("/v1/pages", &page("file:///t", "t", 100)).await.problem(400);
        assert_eq!(problem["field"], "url", "{problem}");
        // In a batch, the refused page does not affect the others.
        let pages = ["http://a/", "file:///t", "http://b/"].map(|url| page(url, "t", 100).to_string());
        let answers = service.post("/v1/pages", NDJSON, pages.join("\n")).await;
        let text = String::from_utf8(answers.body.to_vec()).unwrap();
        let answers: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((&answers[0]["url"], &answers[2]["url"]), (&json!("http://a/"), &json!("http://b/")));
        assert!(answers[0]["error"].is_null() && answers[2]["error"].is_null(), "{text}");
        let error = &answers[1]["error"];
        assert_eq!((&error["code"], &error["field"]), (&json!("invalid"), &json!("url")), "{text}");
        assert!(error["reason"].as_str().unwrap().contains("such as content"), "{text}");
        assert_eq!(service.tiers.state().pages.len(), 2);
    }
}
