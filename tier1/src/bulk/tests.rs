//! Tests with collections of a few pages whose groups are obvious.

use doppel_contract::{Counters, Status, UnresolvedReason};
use doppel_model::Timestamp;
use doppel_model::signature::{Builder, Signature};
use doppel_protocol::Body;

use super::*;
use crate::check;
use crate::rows::key::RowKind;
use crate::rows::record::{AuditEntry, decode, encode};
use crate::storage::database::Database;
use crate::storage::store::Store;

mod first_start;
mod protected;
mod records;

fn bulk(group_members_max: u64) -> Bulk {
    bulk_of(Unit::Page, group_members_max)
}

fn bulk_of(unit: Unit, group_members_max: u64) -> Bulk {
    let config = BulkConfig {
        policy: Policy::default(),
        winners: WinnerOrder::DEFAULT,
        market: None,
        group_members_max,
        unit,
        keep: BulkOutput::Answer { memory_max: usize::MAX, temp_dir: &std::env::temp_dir() },
    };
    Bulk::new(&config).unwrap()
}

fn text(words: std::ops::Range<u64>) -> Arc<Signature> {
    let tokens: Vec<u64> = words.map(|n| (n + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    Arc::new(Builder::new().build(&tokens))
}

fn submit(bulk: &mut Bulk, url: &str, at: i64, body: Body) -> SubmissionOutcome {
    bulk.submit(version(url, at, body)).unwrap()
}

fn version(url: &str, at: i64, body: Body) -> Submission {
    Submission {
        url: PageUrl::parse(url).unwrap(),
        fetched_at: Timestamp::from_millis(at),
        popularity: None,
        language: None,
        canonical: None,
        body,
    }
}

fn content(words: std::ops::Range<u64>) -> Body {
    Body::Content(text(words))
}

fn redirect(to: &str) -> Body {
    Body::Redirect(PageUrl::parse(to).unwrap())
}

fn status(grouped: &GroupedCollection, url: &str) -> (Status, Option<String>) {
    let line = grouped.lines().find(|line| line.url.as_str() == url).unwrap();
    (line.status, line.winner.as_ref().map(ToString::to_string))
}

#[test]
fn pairs_linked_only_by_other_pages_are_counted() {
    let mut chain = bulk(100);
    submit(&mut chain, "http://h/a", 1, content(0..900));
    submit(&mut chain, "http://h/b", 1, content(90..990));
    submit(&mut chain, "http://h/c", 1, content(180..1_080));
    submit(&mut chain, "http://h/copy", 1, content(0..900));
    submit(&mut chain, "http://h/alone", 1, content(5_000..5_100));
    // The last page of the chain is similar to neither of the two copies of the first page.
    let chain = chain.at_rest().unwrap();
    assert_eq!(chain.within(1_000).unwrap(), PairAgreement { pairs: 6, compared: 6, unlike: 2 });
    let drawn = chain.within(5).unwrap();
    assert!(drawn.pairs == 6 && drawn.compared == 5 && drawn.unlike <= 5, "{drawn:?}");
    assert_eq!(bulk(100).at_rest().unwrap().within(5).unwrap(), PairAgreement::default());
}

#[test]
fn the_pages_of_a_chain_are_one_group() {
    let mut bulk = bulk(100);
    submit(&mut bulk, "http://h/a", 1, content(0..900));
    submit(&mut bulk, "http://h/bb", 1, content(90..990));
    submit(&mut bulk, "http://h/ccc", 1, content(180..1_080));
    submit(&mut bulk, "http://h/alone", 1, content(5_000..5_100));
    let grouped = bulk.finish().unwrap();
    let winner = || Some("http://h/a".to_owned());
    assert_eq!(status(&grouped, "http://h/a"), (Status::Winner, winner()));
    assert_eq!(status(&grouped, "http://h/bb"), (Status::Duplicate, winner()));
    assert_eq!(status(&grouped, "http://h/ccc"), (Status::Secondary, winner()));
    assert_eq!(status(&grouped, "http://h/alone"), (Status::Unique, None));
    let similarities: Vec<_> = grouped.lines().map(|line| line.similarity).collect();
    assert_eq!(similarities, [None, None, Some(806.0 / 994.0), None]);
    assert_eq!(
        grouped.groups,
        [BulkGroup {
            group: "g1-0".parse().unwrap(),
            winner: PageUrl::parse("http://h/a").unwrap(),
            winner_place: 0,
            pages: 3,
            contents: 3,
            same: false,
            protected: 0,
            quarantined: false
        }]
    );
    let Counters { live, winners, duplicates, secondaries, .. } = grouped.counters;
    assert_eq!((live, winners, duplicates, secondaries), (4, 1, 1, 1));
}

#[test]
fn the_newest_version_and_the_earliest_date_count() {
    let mut bulk = bulk(100);
    let day = Timestamp::DAY_MS;
    assert_eq!(submit(&mut bulk, "http://h/new", 5 * day, content(0..50)), SubmissionOutcome::Pending);
    assert_eq!(submit(&mut bulk, "http://h/old", 4 * day, content(0..50)), SubmissionOutcome::Pending);
    assert_eq!(submit(&mut bulk, "http://h/new", 5 * day, content(0..50)), SubmissionOutcome::Unchanged);
    assert_eq!(submit(&mut bulk, "http://h/new", 3 * day, content(90..150)), SubmissionOutcome::Stale);
    assert_eq!(submit(&mut bulk, "http://h/gone", 1, content(0..50)), SubmissionOutcome::Pending);
    assert_eq!(submit(&mut bulk, "http://h/gone", 1, Body::Dead), SubmissionOutcome::Confirmed);
    let grouped = bulk.finish().unwrap();
    // An earlier version of this page was seen before the other page.
    assert_eq!(status(&grouped, "http://h/new").0, Status::Winner);
    assert_eq!(status(&grouped, "http://h/old").0, Status::Duplicate);
    let Counters { submissions, unchanged, stale, dead, live, .. } = grouped.counters;
    assert_eq!((submissions, unchanged, stale, dead, live), (6, 1, 1, 1, 2));
}

#[test]
fn a_redirect_gets_the_status_of_the_end_of_its_chain() {
    let mut bulk = bulk(100);
    submit(&mut bulk, "http://h/page", 1, content(0..50));
    submit(&mut bulk, "http://h/dead", 1, Body::Dead);
    submit(&mut bulk, "http://h/empty", 1, content(0..0));
    for (from, to) in
        [("a", "page"), ("b", "a"), ("c", "dead"), ("d", "nowhere"), ("e", "f"), ("f", "e"), ("g", "empty")]
    {
        submit(&mut bulk, &format!("http://h/{from}"), 1, redirect(&format!("http://h/{to}")));
    }
    for hop in 0..22 {
        submit(&mut bulk, &format!("http://hops/{hop}"), 1, redirect(&format!("http://hops/{}", hop + 1)));
    }
    submit(&mut bulk, "http://hops/22", 1, content(100..150));
    let grouped = bulk.finish().unwrap();
    let reason = |url: &str| {
        let line = grouped.lines().find(|line| line.url.as_str() == url).unwrap();
        (line.status, line.reason)
    };
    assert_eq!(reason("http://h/a"), (Status::Duplicate, None));
    assert_eq!(reason("http://h/b"), (Status::Duplicate, None));
    assert_eq!(reason("http://h/page"), (Status::Winner, None));
    assert_eq!(reason("http://h/empty"), (Status::Winner, None));
    assert_eq!(reason("http://h/g"), (Status::Duplicate, None));
    assert_eq!(reason("http://h/c"), (Status::Unresolved, Some(UnresolvedReason::DeadTarget)));
    assert_eq!(reason("http://h/d"), (Status::Unresolved, Some(UnresolvedReason::UnknownTarget)));
    assert_eq!(reason("http://h/e"), (Status::Unresolved, Some(UnresolvedReason::Loop)));
    assert_eq!(reason("http://hops/1"), (Status::Unresolved, Some(UnresolvedReason::TooManyHops)));
    assert_eq!(reason("http://hops/2"), (Status::Duplicate, None));
    let pages: Vec<_> = grouped.groups.iter().map(|group| (group.pages, group.contents)).collect();
    assert_eq!(pages, [(2, 1), (3, 1), (21, 1)]);
}

#[test]
fn a_group_above_the_limit_of_contents_gives_no_advice() {
    let mut bulk = bulk(2);
    for (page, words) in [("a", 50), ("bb", 51), ("ccc", 52)] {
        submit(&mut bulk, &format!("http://h/{page}"), 1, content(0..words));
        submit(&mut bulk, &format!("http://other/{page}"), 1, content(0..0));
    }
    let grouped = bulk.finish().unwrap();
    assert!(grouped.groups[0].quarantined);
    let statuses: Vec<Status> = grouped.lines().map(|line| line.status).collect();
    assert_eq!(statuses[..3], [Status::Winner, Status::Secondary, Status::Secondary]);
    assert_eq!(statuses[3..], [Status::Unique; 3]);
    assert!(grouped.lines().all(|line| line.similarity.is_none() && line.duplicate_of.is_none()));
}

#[test]
fn equal_texts_count_once_towards_the_limit_of_contents() {
    let mut bulk = bulk(2);
    for page in 0..9 {
        // There are two contents, each with more pages than the limit.
        submit(&mut bulk, &format!("http://h/{page}"), 1, content(0..50 + page % 2));
    }
    let grouped = bulk.finish().unwrap();
    assert_eq!((grouped.groups.len(), grouped.groups[0].quarantined), (1, false));
    let kept = grouped.lines().filter(|line| line.duplicate_of.is_none()).count();
    assert_eq!(kept, 1);
}

/// Returns versions of all kinds: replaced contents, deaths, redirects, copies, and pages without tokens.
fn mixed() -> Vec<Submission> {
    let mut versions = Vec::new();
    for n in 0..60_u64 {
        let url = format!("http://h{}/{n}", n % 7);
        versions.push(version(&url, 5, content(n * 1_000..n * 1_000 + 100)));
        let body = match n % 6 {
            0 => content(0..900),
            1 => content(n..900 + n),
            2 => redirect(&format!("http://h{}/{}", (n + 5) % 7, n + 5)),
            3 => Body::Dead,
            4 => content(0..0),
            _ => content(3..9),
        };
        versions.push(version(&url, 4 + ((n + 1) % 5) as i64, body));
    }
    versions
}

#[test]
fn new_databases_pass_the_check_and_have_every_page() {
    for (shards, ranges) in [(1, 1), (5, 1), (6, 3)] {
        let home = tempfile::tempdir().unwrap();
        let dir = home.path().join("tier1");
        let map = RangeMap::new(shards, ranges).unwrap();
        let keep = BulkOutput::Databases { dir: &dir, map };
        let config = BulkConfig {
            policy: Policy::default(),
            winners: WinnerOrder::DEFAULT,
            market: None,
            group_members_max: 5,
            unit: Unit::Page,
            keep,
        };
        let mut bulk = Bulk::new(&config).unwrap();
        for version in mixed() {
            bulk.submit(version).unwrap();
        }
        let grouped = bulk.finish().unwrap();
        assert!(grouped.counters.duplicates > 0 && grouped.counters.unresolved > 0, "{:?}", grouped.counters);
        let report = check::of_directory(&dir, map, config.policy, config.winners).unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        assert_eq!(report.pages, 60);
        assert_eq!(report.groups, grouped.groups.len() as u64);
        assert!(report.backlog.is_quiescent(), "{:?}", report.backlog);
        // The rows in memory are the same.
        let (_, rows) = Bulk::rows(&config, map, mixed()).unwrap();
        let databases = Database::open_ranges(&dir, map).unwrap();
        for (database, rows) in databases.iter().zip(rows) {
            for (key, row) in rows {
                assert_eq!(timeless(&key, database.get(&key).unwrap()), timeless(&key, row), "{key:02x?}");
            }
        }
    }
}

/// Returns a row without the time at which a quarantine began.
fn timeless(key: &[u8], row: Option<Vec<u8>>) -> Option<Vec<u8>> {
    if !RowKind::Audit.is_of(key) {
        return row;
    }
    let entry: AuditEntry = decode(key, &row?).unwrap();
    Some(encode(&AuditEntry { at: Timestamp::from_millis(0), ..entry }).unwrap())
}

#[test]
fn replaced_contents_count_as_unused_signatures() {
    let home = tempfile::tempdir().unwrap();
    let dir = home.path().join("tier1");
    let map = RangeMap::new(2, 1).unwrap();
    let keep = BulkOutput::Databases { dir: &dir, map };
    let config = BulkConfig {
        policy: Policy::default(),
        winners: WinnerOrder::DEFAULT,
        market: None,
        group_members_max: 5,
        unit: Unit::Page,
        keep,
    };
    let mut bulk = Bulk::new(&config).unwrap();
    let (first, second) = (text(0..500), text(1_000..1_200));
    for (date, body) in [(1, &first), (2, &second)] {
        bulk.submit(version("http://h/a", date, Body::Content(Arc::clone(body)))).unwrap();
    }
    bulk.finish().unwrap();
    let database = Database::open_existing(&dir.join("range-0")).unwrap();
    let signatures = database.signatures().unwrap();
    assert_eq!(signatures.bytes() - signatures.compacted_bytes(), first.as_bytes().len() as u64);
}
