//! Tests of the JSON text of every answer: fields, their order, and how a reader treats unknown fields.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

/// Parses the text, serialises it again, and parses it with an unknown field in every object.
#[track_caller]
fn assert_json_is_stable<T: Serialize + DeserializeOwned + PartialEq + Debug>(text: &str) {
    let answer: T = serde_json::from_str(text).unwrap();
    assert_eq!(serde_json::to_string(&answer).unwrap(), text);
    let mut newer: Value = serde_json::from_str(text).unwrap();
    add_fields(&mut newer);
    assert_ne!(newer, serde_json::from_str::<Value>(text).unwrap());
    assert_eq!(serde_json::from_value::<T>(newer).unwrap(), answer);
}

/// Adds a field that this version does not know to every object.
fn add_fields(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            // The keys of `markets` are names, not fields.
            fields.iter_mut().filter(|(name, _)| *name != "markets").for_each(|(_, value)| add_fields(value));
            fields.insert("added_later".to_owned(), json!({ "list": [1, null] }));
        }
        Value::Array(values) => values.iter_mut().for_each(add_fields),
        _ => {}
    }
}

const ADVICE: &str = r#"{"url":"http://a/","status":"duplicate","group":"g1-0","winner":"http://b/","duplicate_of":"http://c/","similarity":0.9,"fetched_at":"2026-01-31T08:00:00Z","rule":"shorter_url","reason":null}"#;

const REDIRECT: &str = r#"{"url":"http://a/","status":"unresolved","group":null,"winner":null,"duplicate_of":null,"similarity":null,"fetched_at":"2026-01-31T08:00:00Z","rule":null,"reason":"unknown_target","redirect_to":"http://c/","note":"large"}"#;

#[test]
fn advice_keeps_its_json() {
    assert_json_is_stable::<Advice>(ADVICE);
    assert_json_is_stable::<Advice>(REDIRECT);
    assert_json_is_stable::<StatusAnswers>(&format!(
        r#"{{"pages":[{ADVICE},{{"url":"mailto:a","error":"not http"}},{REDIRECT}]}}"#
    ));
}

#[test]
fn probes_keep_their_json() {
    assert_json_is_stable::<ProbeAnswer>(ADVICE);
    let main = r#"{"part":"page","page_tokens":30,"taken_tokens":26,"left_out_tokens":4,"left_out":[{"rule":"navigation","tokens":4,"text":"a b c…"}]}"#;
    assert_json_is_stable::<ProbeAnswer>(&format!(
        r#"{},"main_content":{main}}}"#,
        ADVICE.strip_suffix('}').unwrap()
    ));
}

#[test]
fn explanations_keep_their_json() {
    let content = r#"{"hash":"00","tokens":30,"shingles":26,"comparable":true,"language":null,"lengths":[20,6],"home":1,"probed_partitions":[1,2]}"#;
    let measures = r#"{"same_content":false,"similarity":0.5,"criteria":[{"what":"shingles","shared":24,"of":27,"needed":"above 0.8","met":true}],"shingles":{"only_a":2,"only_b":1,"sketch_estimate":0.25,"equal_bands":3,"bands":20,"examples":{"common":["01"],"only_a":[],"only_b":["02"]}}}"#;
    assert_json_is_stable::<Explanation>(&format!(
        r#"{{"a":{{"advice":{ADVICE},"compared_url":"http://a/","content":{content},"kept_before":[{{"url":"http://b/","rule":"shorter_url","similarity":0.5,"duplicate":false}}]}},"b":{{"advice":{REDIRECT},"compared_url":null,"content":null,"kept_before":[]}},"policy":"jaccard:tau=0.8","measures":{measures},"duplicate":false,"reason":"few"}}"#
    ));
}

#[test]
fn feed_events_keep_their_json() {
    let change = r#"{"url":"http://a/","status":"dead","group":null,"winner":null,"duplicate_of":null,"similarity":null,"reason":"loop","fetched_at":"2026-01-31T08:00:00Z"}"#;
    assert_json_is_stable::<ChangesAnswer>(&format!(
        r#"{{"changes":[{change}],"cursor":"1.2","at_end":true}}"#
    ));
}

#[test]
fn export_lines_keep_their_json_and_refuse_a_bad_group_id() {
    for text in [
        r#"{"url":"http://a/","status":"duplicate","group":"g7-3","winner":"http://b/","duplicate_of":"http://b/","similarity":0.85}"#,
        r#"{"url":"http://a/","status":"unique","group":null,"winner":null,"duplicate_of":null,"similarity":null}"#,
        // Escaped text cannot be borrowed.
        r#"{"url":"http://a/\"","status":"unique","group":null,"winner":null,"duplicate_of":null,"similarity":null}"#,
    ] {
        let line: ExportLine<'_> = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&line).unwrap(), text);
    }
    let bad = r#"{"url":"http://a/","status":"unique","group":"7-3","winner":null,"duplicate_of":null,"similarity":null}"#;
    assert!(serde_json::from_str::<ExportLine<'_>>(bad).unwrap_err().to_string().contains("group id"));
}

#[test]
fn groups_keep_their_json() {
    let group = r#""group":"g1-0","merged_into":null,"winner":"http://b/","members":3,"dissimilar":2,"secondaries":1,"uncovered":false,"dirty":true,"quarantined":false"#;
    assert_json_is_stable::<GroupList>(&format!(r#"{{"groups":[{{{group}}}],"next":"g1-0"}}"#));
    assert_json_is_stable::<GroupPage>(&format!(
        r#"{{{group},"pages":[{{"url":"http://b/","status":"winner","duplicate_of":null,"similarity":null,"content":"00"}}],"next":null}}"#
    ));
    assert_json_is_stable::<GroupSizes>(&format!(
        r#"{{"groups":1,"truncated":false,"quarantined":0,"histogram":[{{"from":2,"to":3,"groups":1}}],"largest":[{{{group}}}],"most_secondaries":[]}}"#
    ));
}

#[test]
fn savings_keep_their_json() {
    let saving = r#"{"pages":1,"share":0.25,"bytes":null,"bytes_share":null}"#;
    let mirror = r#"{"host":"a","of":"b","pages":1,"copies":0,"near":1,"redirects":0,"bytes":7}"#;
    assert_json_is_stable::<Savings>(&format!(
        r#"{{"policy":"jaccard:tau=0.8","pages":4,"bytes":null,"truncated":false,"redirects":{saving},"copies":{saving},"near":{saving},"all":{saving},"held_back":0,"undecided":0,"on_one_host":2,"across_hosts":1,"mirrors":[{mirror}],"mirrors_left_out":0,"mirrors_cut":false,"age_ms":10500}}"#
    ));
}

#[test]
fn intake_answers_keep_their_json() {
    assert_json_is_stable::<LineAnswer>(r#"{"url":"http://a/","outcome":"confirmed"}"#);
    assert_json_is_stable::<LineAnswer>(r#"{"line":2,"error":{"code":"retry","reason":"later"}}"#);
    assert_json_is_stable::<LineAnswer>(
        r#"{"line":3,"url":"http://a/","error":{"code":"invalid","field":"dead","reason":"missing"}}"#,
    );
    assert_json_is_stable::<PurgeResult>(r#"{"purged":4}"#);
    let taken = r#"{"url":"http://a/","outcome":"stale"}"#;
    assert!(matches!(serde_json::from_str(taken).unwrap(), LineAnswer::Accepted(AcceptedPage { .. })));
}

#[test]
fn the_cluster_status_keeps_its_json() {
    let node = r#"{"name":"index-1","role":"tier2","address":"10.0.0.3:7802","answers":true,"reason":null,"router":false,"partitions":[0,3],"contents":5,"lag":0}"#;
    let range = r#"{"range":1,"first_shard":8,"last_shard":15,"owner":"record-2","served":true,"epoch":3,"standbys":[{"node":"record-1","follows":true,"lag":2,"reason":null}],"replicas":2,"live_replicas":2,"live":9,"pending":0}"#;
    let server = r#"{"name":"log-1","address":"nats://10.0.0.11:4222","version":"2.9.10","answers":true,"reason":null}"#;
    let stream = r#"{"range":1,"stream":"doppel-0f-range-1","bytes":7,"limit":8,"first":1,"last":3,"leader":"log-1","copies":3,"current_copies":2,"behind":["log-3"],"reason":null}"#;
    let engine = format!(r#"{{"servers":[{server}],"streams":[{stream}]}}"#);
    let attention = r#"{"what":"it is away","remedy":"start it"}"#;
    for (replicated, engine) in [(true, &*engine), (false, "null")] {
        assert_json_is_stable::<ClusterStatus>(&format!(
            r#"{{"cluster":"0f","replicated":{replicated},"nodes":[{node}],"ranges":[{range}],"engine":{engine},"orders_waiting":2,"attention":[{attention}]}}"#
        ));
    }
}

#[test]
fn the_load_balance_keeps_its_json() {
    let partition = r#"{"partition":0,"node":1,"box":{"lo":[null,-3],"hi":[9,null]},"contents":5,"pages":6,"received":7,"comparisons":8,"bytes":9}"#;
    let report = format!(
        r#""plan_version":4,"dimensions":2,"partitions":[{partition}],"searches":10,"fan_out":20,"imbalance":1.5,"imbalance_floor":1.2,"fan_out_saved":0.25,"serving_nodes":2,"node_fan_out":13,"node_imbalance":1.3,"node_imbalance_floor":1.1,"node_fan_out_saved":null,"file_bytes":7"#
    );
    let node = r#"{"node":1,"partitions":1,"contents":5,"pages":6,"received":7,"comparisons":8,"bytes":9}"#;
    let progress = r#"{"plan_version":4,"next_version":5,"copied":1,"contents":2,"changed":0,"seconds":0.5}"#;
    let point = r#"{"at":"2026-01-31T08:00:00Z","plan_version":4,"contents":5,"node_imbalance":1.3,"node_imbalance_floor":1.1,"node_fan_out_saved":0.5}"#;
    assert_json_is_stable::<LoadBalance>(&format!(
        r#"{{{report},"nodes":[{node}],"drained":[2],"progress":{progress},"history":[{point}],"variation":null,"shard_map_version":1,"shards":[{{"shard":0,"node":"local"}}]}}"#
    ));
}

#[test]
fn the_mapping_keeps_its_json() {
    let progress = r#"{"plan_version":4,"next_version":5,"copied":1,"contents":2,"changed":0,"seconds":0.5}"#;
    assert_json_is_stable::<PresentMapping>(&format!(
        r#"{{"plan_version":4,"nodes":3,"drained":[2],"progress":{progress},"request":{{"action":"drain","node":2}},"outcome":{{"action":"move","partition":7,"node":1,"failed":null,"cancelled":false,"plan_version":4,"copied":3,"seconds":0.5}}}}"#
    ));
    assert_json_is_stable::<PresentMapping>(
        r#"{"plan_version":4,"nodes":3,"drained":[],"progress":null,"request":null,"outcome":{"action":"learn","failed":"full","cancelled":false,"plan_version":4,"copied":0,"seconds":0.5}}"#,
    );
    let what_if = r#"{"dimensions":2,"nodes":4,"imbalance":1.5,"imbalance_floor":1.25,"fan_out_saved":0.5,"speed_up":3.5}"#;
    assert_json_is_stable::<WhatIfReport>(&format!(
        r#"{{"sample":9,"present":{what_if},"rows":[{what_if}]}}"#
    ));
}

#[test]
fn quality_and_flush_keep_their_json() {
    let counters = r#"{"live":1,"redirects":2,"unresolved":3,"dead":4,"crowded":0,"groups":5,"winners":6,"duplicates":7,"secondaries":8,"submissions":9,"unchanged":10,"stale":11,"confirmed":12,"compared_updates":13,"verified":14,"rejected":15,"merges":16,"rechecks":17,"evictions":18,"searches":19,"stale_results":20}"#;
    let backlog = r#"{"pending":1,"deferred_searches":2,"dirty_groups":3,"uncovered_groups":6,"unverified":4,"messages":5}"#;
    assert_json_is_stable::<Quality>(&format!(
        r#"{{"counters":{counters},"unique":1,"backlog":{backlog},"pending_limit":9,"quiescent":false,"confirm_share":0.5,"reject_share":null,"decisions":{{"oldest_pending_ms":1500,"waited":[{{"up_to_ms":30,"pages":2}},{{"up_to_ms":null,"pages":1}}]}},"full_disks":1,"not_ready":"no room"}}"#
    ));
    assert_json_is_stable::<FlushResult>(&format!(r#"{{"done":false,"backlog":{backlog}}}"#));
}

#[test]
fn repairs_keep_their_json() {
    let whole = r#"{"group":"g1-0","before":["http://a/"],"components":[["http://a/"]],"applied":true}"#;
    let cut = r#"{"group":"g2-0","before":[],"components":[],"applied":false,"truncated":true,"total_members":3,"total_components":2}"#;
    assert_json_is_stable::<RepairResults>(&format!(r#"{{"repairs":[{whole},{cut}],"unknown":["g9-9"]}}"#));
    let applied = r#""id":"r7-0","at":"2026-01-31T08:00:00Z","event":"repair","by":"alice","group":"g1-0","members":3,"component_count":2,"truncated":false"#;
    let released = r#""id":"r8-0","at":"2026-01-31T08:00:00Z","event":"released","group":"g1-0","into":"g0-0","members":3,"component_count":0,"truncated":false"#;
    assert_json_is_stable::<Trail>(&format!(r#"{{"repairs":[{{{released}}},{{{applied}}}],"next":"0.1"}}"#));
    assert_json_is_stable::<AppliedRepairUrls>(&format!(
        r#"{{{applied},"before":["http://a/"],"components":[["http://a/"],[]],"forgotten":1}}"#
    ));
}

#[test]
fn winners_and_problems_keep_their_json() {
    assert_json_is_stable::<WinnerRules>(
        r#"{"rules":["popularity","url"],"markets":{"german":["de","at"]}}"#,
    );
    assert_json_is_stable::<ProblemDetails>(
        r#"{"type":"urn:doppel:problem:busy","title":"Service Unavailable","status":503,"detail":"later","retry_after":1}"#,
    );
    assert_json_is_stable::<ProblemDetails>(
        r#"{"type":"urn:doppel:problem:bad-request","title":"Bad Request","status":400,"detail":"none","field":"url","request_id":"a-1"}"#,
    );
}

#[test]
fn examples_of_the_contract_parse_as_answers() {
    fn check<T: utoipa::PartialSchema + DeserializeOwned + Serialize>() {
        let schema = serde_json::to_value(T::schema()).unwrap();
        // If a field is flattened, the examples show the whole object.
        let examples = schema["examples"].as_array().unwrap_or_else(|| panic!("{schema}"));
        assert!(!examples.is_empty());
        for example in examples {
            let read: T = serde_json::from_value(example.clone()).unwrap();
            assert_eq!(&serde_json::to_value(read).unwrap(), example);
        }
    }
    check::<Advice>();
    check::<ChangesAnswer>();
    check::<GroupPage>();
    check::<AcceptedPage>();
    check::<RejectedLine>();
    check::<ProblemDetails>();
}
