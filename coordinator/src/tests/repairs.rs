//! Tests of the audit trail of repairs.

use doppel_contract::TrailEvent;
use doppel_model::{GroupId, PageUrl, ShardId, Timestamp};
use doppel_protocol::{RepairDetails, RepairEntry, RepairId};

use super::*;

/// Creates a coordinator with seven recorded repairs of two groups.
fn with_trail() -> TestService {
    let service = TestService::new();
    let url = |n: u64| PageUrl::parse(&format!("http://a/{n}")).unwrap();
    service.tiers.state().trail = (1..8)
        .map(|number| RepairDetails {
            entry: RepairEntry {
                id: RepairId { shard: ShardId(0), number },
                at: Timestamp::from_millis(1_800_000_000_000 + 1_000 * number as i64),
                event: TrailEvent::Repair,
                by: "ann".to_owned(),
                group: GroupId::new(number % 2, ShardId(0)),
                into: None,
                members: 2 + number,
                component_count: 2,
                truncated: number == 7,
            },
            before: (0..2).map(url).collect(),
            components: vec![vec![url(0)], vec![]],
            forgotten: 1,
        })
        .collect();
    service
}

#[tokio::test]
async fn the_trail_is_paged_newest_first() {
    let service = with_trail();
    for (query, expected) in [("", "7654321"), ("group=g1-0&", "7531"), ("group=g9-0&", "")] {
        for limit in [1, 2, 3, 100] {
            let (mut seen, mut before) = (String::new(), String::new());
            loop {
                let answer = service.get(&format!("/v1/repairs?{query}limit={limit}{before}")).await.json();
                let repairs = answer["repairs"].as_array().unwrap();
                assert!(repairs.len() <= limit);
                seen.extend(
                    repairs.iter().map(|repair| repair["id"].as_str().unwrap().as_bytes()[1] as char),
                );
                match answer["next"].as_str() {
                    Some(next) => before = format!("&before={next}"),
                    None => break,
                }
            }
            assert_eq!(seen, expected, "{query} {limit}");
        }
    }
    let answer = service.get("/v1/repairs?limit=1").await.json();
    let newest = json!({
        "id": "r7-0", "at": "2027-01-15T08:00:07Z", "event": "repair", "by": "ann", "group": "g1-0", "members": 9, "component_count": 2,
        "truncated": true,
    });
    assert_eq!(answer["repairs"], json!([newest]));
}

#[tokio::test]
async fn a_repair_is_shown_with_its_urls() {
    let service = with_trail();
    let shown = service.get("/v1/repairs/r2-0").await.json();
    let expected = json!({
        "id": "r2-0", "at": "2027-01-15T08:00:02Z", "event": "repair", "by": "ann", "group": "g0-0", "members": 4, "component_count": 2,
        "truncated": false, "before": ["http://a/0", "http://a/1"], "components": [["http://a/0"], []],
        "forgotten": 1,
    });
    assert_eq!(shown, expected);
    service.get("/v1/repairs/r8-0").await.problem(404);
}

#[tokio::test]
async fn invalid_parameters_are_named() {
    let service = with_trail();
    let long = format!("/v1/repairs?before={}", "1.".repeat(10_000));
    for (path, field) in [
        ("/v1/repairs?limit=0", "limit"),
        ("/v1/repairs?limit=1001", "limit"),
        ("/v1/repairs?group=12", "group"),
        ("/v1/repairs?before=", "before"),
        ("/v1/repairs?before=x.1", "before"),
        // A position of this collection has two numbers, because it has two shards.
        ("/v1/repairs?before=1", "before"),
        ("/v1/repairs?before=1.1.1", "before"),
        (&long, "before"),
        ("/v1/repairs/7", "id"),
        ("/v1/repairs/g1-0", "id"),
    ] {
        assert_eq!(service.get(path).await.problem(400)["field"], field, "{path}");
    }
    service.get("/v1/repairs?after=1.1").await.problem(400);
}
