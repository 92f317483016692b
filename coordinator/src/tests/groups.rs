//! Tests of groups, repairs and reports.

use doppel_contract::Status;

use super::*;

async fn three_groups() -> TestService {
    let service = TestService::new();
    fill(&service).await;
    service
}

/// Groups of 5, 2 and 3 pages, and a redirect to the first.
async fn fill(service: &TestService) {
    let mut pages = vec![json!({"url": "http://r/", "redirect_to": "http://a/0"})];
    for (topic, size) in [("a", 5), ("b", 2), ("c", 3)] {
        pages.extend((0..size).map(|n| page(&format!("http://{topic}/{n}"), topic, n % 2)));
    }
    service.store(&pages).await;
}

#[tokio::test]
async fn a_group_is_paged() {
    let service = three_groups().await;
    let id = service.status("http://a/0").await["group"].as_str().unwrap().to_owned();
    let (mut urls, mut after, mut pages) = (Vec::new(), String::new(), 0);
    loop {
        let group = service.get(&format!("/v1/groups/{id}?limit=2{after}")).await.json();
        assert_eq!(
            (&group["group"], &group["members"], &group["winner"]),
            (&json!(id), &json!(5), &json!("http://a/0"))
        );
        assert_eq!((&group["merged_into"], &group["quarantined"]), (&Value::Null, &json!(false)));
        urls.extend(
            group["pages"].as_array().unwrap().iter().map(|page| page["url"].as_str().unwrap().to_owned()),
        );
        pages += 1;
        match group["next"].as_str() {
            Some(next) => after = format!("&after={next}"),
            None => break,
        }
    }
    urls.sort();
    assert_eq!(urls, ["http://a/0", "http://a/1", "http://a/2", "http://a/3", "http://a/4", "http://r/"]);
    assert_eq!(pages, 3);
    let whole = service.get(&format!("/v1/groups/{id}")).await.json();
    let redirect = whole["pages"].as_array().unwrap().iter().find(|page| page["url"] == "http://r/").unwrap();
    assert_eq!((&redirect["content"], &redirect["status"]), (&Value::Null, &json!("duplicate")));
}

#[tokio::test]
async fn the_id_of_a_merged_group_names_the_group_with_its_members() {
    let service = three_groups().await;
    let old = service.status("http://b/0").await["group"].as_str().unwrap().to_owned();
    service.store(&[page("http://b/9", "b", 0)]).await;
    service.store(&[page("http://b/8", "b", 0)]).await;
    let new = service.status("http://b/0").await["group"].clone();
    let group = service.get(&format!("/v1/groups/{old}")).await.json();
    assert_eq!((&group["merged_into"], &group["pages"]), (&new, &json!([])));
}

#[tokio::test]
async fn all_groups_or_only_suspicious_groups_are_listed() {
    let service = three_groups().await;
    let first = service.get("/v1/groups?limit=2").await.json();
    assert_eq!(first["groups"].as_array().unwrap().len(), 2);
    let next = first["next"].as_str().unwrap();
    let rest = service.get(&format!("/v1/groups?limit=2&after={next}")).await.json();
    assert_eq!((rest["groups"].as_array().unwrap().len(), &rest["next"]), (1, &Value::Null));
    assert_eq!(service.get("/v1/groups?suspicious=1").await.json()["groups"], json!([]));
    let id = service.tiers.state().group_of("http://c/0");
    service.tiers.state().groups.get_mut(&id).unwrap().0.dissimilar = 1;
    assert_eq!(service.get("/v1/groups?suspicious=33").await.json()["groups"][0]["group"], id.to_string());
    assert_eq!(service.get("/v1/groups?suspicious=34").await.json()["groups"], json!([]));
    for (path, field) in [
        ("/v1/groups?suspicious=0", "suspicious"),
        ("/v1/groups?suspicious=101", "suspicious"),
        ("/v1/groups?after=12", "after"),
        ("/v1/groups?limit=1001", "limit"),
        ("/v1/groups/12", "id"),
        ("/v1/groups/g1-0?after=xyz", "after"),
        ("/v1/groups/g1-0?limit=0", "limit"),
    ] {
        assert_eq!(service.get(path).await.problem(400)["field"], field, "{path}");
    }
    service.get("/v1/groups/g999-0").await.problem(404);
}

#[tokio::test]
async fn repairs_reach_tier_1_with_the_name_of_the_person() {
    let service = three_groups().await;
    let id = service.tiers.state().group_of("http://a/0");
    let dry =
        service.post_json(&format!("/v1/groups/{id}/repair?dry_run=true&by=ann"), &Value::Null).await.json();
    assert_eq!((&dry["group"], &dry["applied"]), (&json!(id.to_string()), &json!(false)));
    assert_eq!(dry["before"].as_array().unwrap().len(), 5);
    let many = json!({"groups": [id.to_string(), "g999-0"], "by": "bob"});
    let done = service.post_json("/v1/repair", &many).await.json();
    assert_eq!((&done["repairs"][0]["applied"], &done["unknown"]), (&json!(true), &json!(["g999-0"])));
    let unknown = "g999-0".parse().unwrap();
    assert_eq!(
        service.tiers.state().repairs,
        [(id, true, "ann".to_owned()), (id, false, "bob".to_owned()), (unknown, false, "bob".to_owned())]
    );
    service.post_json("/v1/groups/g999-0/repair", &Value::Null).await.problem(404);
    let name = "x".repeat(101);
    for bad in [
        json!({"groups": ["12"]}),
        json!({"groups": vec!["g1-0"; 101]}),
        json!({"groups": [], "by": ""}),
        json!({"groups": [], "by": "a\nb"}),
        json!({"groups": [], "by": name}),
        json!({"group": "g1-0"}),
    ] {
        service.post_json("/v1/repair", &bad).await.problem(400);
    }
}

#[tokio::test]
async fn a_repair_waits_for_the_repair_before_it() {
    let service = Arc::new(TestService::new());
    let closed = service.tiers.gate.close("repair");
    let repairs = [(), ()].map(|()| {
        let service = Arc::clone(&service);
        tokio::spawn(
            async move { service.post_json("/v1/repair", &json!({"groups": ["g1-0"]})).await.status },
        )
    });
    service.tiers.gate.begun("repair", 1).await;
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    assert_eq!(service.tiers.gate.count("repair"), 1);
    drop(closed);
    for repair in repairs {
        assert_eq!(repair.await.unwrap(), 200);
    }
}

#[tokio::test]
async fn the_repairs_of_an_answer_share_its_url_limit() {
    let service = TestService::with(Limits { repair_urls: 6, ..Limits::default() });
    fill(&service).await;
    let groups = ["a", "b", "c"].map(|host| service.tiers.state().group_of(&format!("http://{host}/0")));
    let answer = service.post_json("/v1/repair", &json!({"groups": groups.map(|id| id.to_string())})).await;
    let answer = answer.json();
    let sizes = |key: &str| -> Vec<Value> {
        answer["repairs"].as_array().unwrap().iter().map(|repair| repair[key].clone()).collect()
    };
    let listed: Vec<_> = sizes("before").iter().map(|before| before.as_array().unwrap().len()).collect();
    assert_eq!(listed, [5, 1, 0]);
    assert_eq!(sizes("truncated"), [Value::Null, json!(true), json!(true)]);
    assert_eq!(sizes("total_members"), [Value::Null, json!(2), json!(3)]);
    assert_eq!(sizes("total_components"), [Value::Null, json!(1), json!(1)]);
}

#[tokio::test]
async fn reports_add_up() {
    let service = three_groups().await;
    let load = service.get("/v1/reports/load-balance").await.json();
    assert_eq!(load["shards"], json!([{"shard": 0, "node": "local"}, {"shard": 1, "node": "local"}]));
    assert_eq!(
        (&load["plan_version"], &load["shard_map_version"], &load["imbalance"]),
        (&json!(4), &json!(1), &json!(1.17))
    );
    let x = &load["nodes"][0];
    assert_eq!(
        (&x["node"], &x["partitions"], &x["contents"], &x["received"]),
        (&json!(0), &json!(2), &json!(12), &json!(20))
    );
    assert_eq!(load["partitions"][0]["box"]["hi"], json!([9, 9, 9, 9]));

    let quality = service.get("/v1/reports/quality").await.json();
    assert_eq!((&quality["confirm_share"], &quality["reject_share"]), (&json!(0.75), &Value::Null));
    assert_eq!((&quality["quiescent"], &quality["counters"]["live"]), (&json!(true), &json!(11)));

    assert_eq!(quality["unique"], 11, "the counters name no page that is anything else");
    let sizes = service.get("/v1/reports/groups").await.json();
    assert_eq!(sizes["quarantined"], 0);
    assert_eq!((&sizes["groups"], &sizes["truncated"]), (&json!(3), &json!(false)));
    let histogram = json!([{"from": 2, "to": 3, "groups": 2}, {"from": 4, "to": 7, "groups": 1}]);
    assert_eq!(sizes["histogram"], histogram);
    let largest: Vec<_> =
        sizes["largest"].as_array().unwrap().iter().map(|group| group["members"].clone()).collect();
    assert_eq!(largest, [5, 3, 2]);
    // Made once in a while, not at every call.
    service.store(&[page("http://b/9", "b", 0)]).await;
    assert_eq!(sizes.get("age_ms"), None);
    assert_eq!(without_age(service.get("/v1/reports/groups").await.json()), sizes);
}

#[tokio::test]
async fn savings_are_reported_by_reason() {
    let service = three_groups().await;
    // The page is a copy of a page of the group, on another host.
    service.store(&[page("http://mirror/0", "a", 0)]).await;
    let savings = service.get("/v1/reports/savings").await.json();
    let pages = |name: &str| savings[name]["pages"].as_u64().unwrap();
    assert_eq!(savings["policy"], "jaccard:tau=0.8");
    assert_eq!((&savings["pages"], &savings["bytes"]), (&json!(12), &Value::Null));
    // All pages of each group except the winner can be dropped, and so can the redirect.
    let duplicates = service.get("/v1/export").await.lines();
    let duplicates = duplicates.iter().filter(|line| line["status"] == "duplicate").count() as u64;
    assert_eq!((pages("all"), pages("redirects")), (duplicates, 1));
    assert_eq!(pages("copies") + pages("near") + 1, duplicates);
    // The even pages of a group are copies of its first; the odd ones have words of their own.
    assert_eq!(pages("copies"), 4, "{savings}");
    let mirrors = savings["mirrors"].as_array().unwrap();
    let pair = |mirror: &Value| (mirror["host"].clone(), mirror["of"].clone(), mirror["copies"].clone());
    assert!(
        mirrors.iter().map(pair).any(|pair| pair == (json!("mirror"), json!("a"), json!(1))),
        "{savings}"
    );
    // Made once in a while, not at every call.
    service.store(&[page("http://mirror/2", "a", 0)]).await;
    assert_eq!(without_age(service.get("/v1/reports/savings").await.json()), savings);
}

#[tokio::test]
async fn a_page_that_is_purged_during_the_report_is_no_redirect() {
    let service = Arc::new(three_groups().await);
    let closed = service.tiers.gate.close("pages");
    let begun = service.tiers.gate.count("pages");
    let asking = tokio::spawn({
        let service = Arc::clone(&service);
        async move { service.get("/v1/reports/savings").await.json() }
    });
    // By now the report has read the lines of the first pages.
    service.tiers.gate.begun("pages", begun + 1).await;
    let duplicates = |service: &TestService| {
        let state = service.tiers.state();
        let duplicates = state.pages.iter().filter(|(_, page)| page.view.line.status == Status::Duplicate);
        duplicates.filter(|(_, page)| page.view.content.is_some()).map(|(id, _)| *id).collect::<Vec<_>>()
    };
    let purged = duplicates(&service);
    service.tiers.state().pages.retain(|id, _| !purged.contains(id));
    drop(closed);
    let savings = asking.await.unwrap();
    assert_eq!(
        (&savings["redirects"]["pages"], &savings["all"]["pages"]),
        (&json!(1), &json!(1)),
        "{savings}"
    );
    assert_eq!(savings["pages"], 11 - purged.len(), "{savings}");
}

/// Removes the age from a cached report.
fn without_age(mut report: Value) -> Value {
    assert!(report.as_object_mut().unwrap().remove("age_ms").is_some(), "it is kept: {report}");
    report
}
