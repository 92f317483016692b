//! Tests of winners by other than the default rules, and for named markets.

use doppel_contract::{Market, WinnerRule};

use super::*;

fn german() -> Markets {
    let mut markets = Markets::default();
    let suffixes = [".de", ".at"].map(|suffix| suffix.parse().unwrap());
    markets.add("german", Market::new(suffixes.to_vec()).unwrap()).unwrap();
    markets.add("com", Market::new(vec!["org".parse().unwrap()]).unwrap()).unwrap();
    markets
}

/// Stores four near-duplicates, each with its own host suffix.
async fn four(service: &TestService) {
    service
        .store(&[
            page("http://a.com/", "t", 0),
            page("http://b.at/longer/page", "t", 2),
            page("http://c.de/page", "t", 2),
            page("https://d.org/even/longer/page", "t", 2),
        ])
        .await;
}

#[tokio::test]
async fn the_rules_and_markets_in_force_are_shown() {
    let usual = TestService::new().get("/v1/winners").await.json();
    let rules = ["popularity", "day_first_seen", "static_url", "shorter_url", "first_seen", "url"];
    assert_eq!(usual, json!({"rules": rules, "markets": {}}));
    let order = WinnerOrder::new(&[WinnerRule::Https, WinnerRule::Popularity]).unwrap();
    let other = TestService::electing(order, german()).get("/v1/winners").await.json();
    let expected =
        json!({"rules": ["https", "popularity", "url"], "markets": {"com": ["org"], "german": ["de", "at"]}});
    assert_eq!(other, expected);
}

#[tokio::test]
async fn a_named_market_has_all_its_suffixes() {
    let service = TestService::electing(WinnerOrder::DEFAULT, german());
    four(&service).await;
    let ask = async |market: &str| {
        let answer = service.get(&format!("/v1/status?url=http://a.com/&market={market}")).await.json();
        (answer["winner"].as_str().unwrap().to_owned(), answer["rule"].as_str().map(str::to_owned))
    };
    let in_market = |winner: &str| (winner.to_owned(), Some("market".to_owned()));
    assert_eq!(ask("german").await, in_market("http://c.de/page"), "the shorter of both suffixes");
    assert_eq!(ask("GERMAN").await, in_market("http://c.de/page"));
    assert_eq!(ask("at").await, in_market("http://b.at/longer/page"), "a suffix that has no name");
    assert_eq!(
        ask("com").await,
        in_market("https://d.org/even/longer/page"),
        "a name takes precedence over a suffix"
    );
    assert_eq!(
        ask(".com").await,
        ("http://a.com/".to_owned(), None),
        "a leading dot makes the text a suffix"
    );
    let many = json!({"urls": ["http://a.com/", "http://b.at/longer/page"], "market": "german"});
    let many = service.post_json("/v1/status", &many).await.json();
    assert_eq!(many["pages"][0]["rule"], "market");
    assert_eq!(many["pages"][1]["rule"], "shorter_url", "both are in the market: {many}");
    let probe = json!({"text": page("x", "t", 0)["text"], "market": "german"});
    assert_eq!(service.post_json("/v1/probe", &probe).await.json()["winner"], "http://c.de/page");
}

#[tokio::test]
async fn an_unknown_market_is_a_problem_that_lists_the_names() {
    let service = TestService::electing(WinnerOrder::DEFAULT, german());
    let bad = json!({"urls": [], "market": "south_german"});
    let probe = json!({"text": "", "market": "south_german"});
    for reply in [
        service.get("/v1/status?url=http://a.com/&market=south_german").await,
        service.post_json("/v1/status", &bad).await,
        service.post_json("/v1/probe", &probe).await,
    ] {
        let problem = reply.problem(400);
        assert_eq!(problem["field"], "market");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains("(com, german)"), "{detail}");
    }
    let long = "a".repeat(10_000);
    let problem = service.get(&format!("/v1/status?url=http://a.com/&market={long}")).await.problem(400);
    assert!(problem["detail"].as_str().unwrap().len() < 200);
}

#[tokio::test]
async fn the_rule_in_an_answer_is_one_of_the_order_in_use() {
    for (rules, winner, rule) in [
        (&[WinnerRule::ShorterUrl][..], "http://a.com/", "shorter_url"),
        (&[WinnerRule::Https, WinnerRule::ShorterUrl], "https://d.org/even/longer/page", "https"),
        (&[WinnerRule::Popularity], "http://a.com/", "url"),
    ] {
        let service = TestService::electing(WinnerOrder::new(rules).unwrap(), german());
        four(&service).await;
        let answer = service.status("http://c.de/page").await;
        assert_eq!(
            (answer["winner"].as_str(), answer["rule"].as_str()),
            (Some(winner), Some(rule)),
            "{answer}"
        );
        let market = service.get("/v1/status?url=http://a.com/&market=german").await.json();
        // The winner is the page of the market that comes first in the winner order.
        let first = if rule == "url" { "http://b.at/longer/page" } else { "http://c.de/page" };
        assert_eq!((market["winner"].as_str(), market["rule"].as_str()), (Some(first), Some("market")));
    }
}
