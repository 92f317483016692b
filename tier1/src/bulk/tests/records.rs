//! Tests in which each record is judged on its own.

use std::collections::HashMap;

use doppel_contract::Counters;
use proptest::prelude::*;

use super::*;

/// Groups records. The number of each is its position; the flag says whether it refers back.
fn judged(records: Vec<(Submission, bool)>) -> GroupedCollection {
    let mut bulk = bulk_of(Unit::Record, 100);
    for ((submission, refers_back), number) in records.into_iter().zip(0..) {
        bulk.submit_record(InputRecord { number, refers_back }, submission).unwrap();
    }
    bulk.finish().unwrap()
}

fn of_own(versions: Vec<Submission>) -> GroupedCollection {
    judged(versions.into_iter().map(|version| (version, false)).collect())
}

/// Returns the status of each line, and the record that it is a duplicate of.
fn decided(grouped: &GroupedCollection) -> Vec<(Status, Option<u64>)> {
    grouped
        .pages_with_contents()
        .map(|page| (page.line.status, page.records.duplicate_of.and_then(NamedRecord::input)))
        .collect()
}

#[test]
fn records_of_one_url_stay_apart() {
    let grouped = of_own(vec![
        version("http://h/a", 1, content(0..100)),
        version("http://h/a", 2, content(500..600)),
        version("http://h/a", 3, content(0..100)),
        version("http://h/a", 3, Body::Dead),
    ]);
    let kept = |status| (status, None);
    assert_eq!(
        decided(&grouped),
        [kept(Status::Winner), kept(Status::Unique), (Status::Duplicate, Some(0)), kept(Status::Dead)]
    );
    let own: Vec<_> = grouped.pages_with_contents().map(|page| page.records.own).collect();
    assert_eq!(own, [Some(0), Some(1), Some(2), Some(3)]);
    let Counters { live, dead, winners, duplicates, .. } = grouped.counters;
    assert_eq!((live, dead, winners, duplicates), (3, 1, 1, 1));
}

#[test]
fn the_position_takes_the_place_of_the_url_in_the_winner_order() {
    let copies = ["http://h/c", "http://h/b", "http://h/a"].map(|url| version(url, 1, content(0..100)));
    let grouped = of_own(copies.to_vec());
    let of_first = (Status::Duplicate, Some(0));
    assert_eq!(decided(&grouped), [(Status::Winner, None), of_first, of_first]);
    let dated = [version("http://h/a", 2, content(0..100)), version("http://h/a", 1, content(0..100))];
    assert_eq!(
        decided(&of_own(dated.to_vec()))[0],
        (Status::Duplicate, Some(1)),
        "the record with the earlier date does not win"
    );
}

#[test]
fn a_redirect_is_a_duplicate_of_the_kept_record_for_its_newest_target() {
    let grouped = of_own(vec![
        version("http://h/from", 1, redirect("http://h/to")),
        version("http://h/k", 1, content(0..100)),
        version("http://h/to", 5, content(900..1_000)),
        version("http://h/to", 7, content(0..100)),
        version("http://h/to", 7, content(2_000..2_100)),
        version("http://h/gone", 7, redirect("http://h/dead")),
        version("http://h/dead", 1, content(3_000..3_100)),
        version("http://h/dead", 2, Body::Dead),
    ]);
    let decided = decided(&grouped);
    assert_eq!(decided[0], (Status::Duplicate, Some(1)));
    assert_eq!(decided[3], (Status::Duplicate, Some(1)));
    assert_eq!(decided[5], (Status::Unresolved, None));
    assert_eq!(grouped.lines().nth(5).unwrap().reason, Some(UnresolvedReason::DeadTarget));
}

#[test]
fn a_record_that_refers_back_never_wins_against_a_record_with_content() {
    let short = version("http://h/", 1, content(0..100));
    let long = version("http://h/long/path?of=it", 9, content(0..100));
    let grouped = judged(vec![(long, false), (short, true)]);
    assert_eq!(decided(&grouped), [(Status::Winner, None), (Status::Duplicate, Some(0))]);
}

#[derive(Debug, Clone)]
struct Drawn {
    url: usize,
    at: i64,
    body: usize,
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Compares the result with the definition. Groups are the components of F. Every removed record is F
    /// with the named record, which is kept and precedes it.
    #[test]
    fn every_removed_record_names_a_kept_record(drawn in prop::collection::vec(
        (0..4_usize, 0..3_i64, 0..8_usize).prop_map(|(url, at, body)| Drawn { url, at, body }), 1..24,
    )) {
        let urls = ["http://h/", "http://h/bb", "http://h/cc", "http://g/?d"];
        // Neighbouring contents are near-duplicates, others are not.
        let bodies: Vec<Arc<Signature>> = (0..6).map(|n| text(n * 40..n * 40 + 500)).collect();
        let records: Vec<Submission> = drawn
            .iter()
            .map(|drawn| {
                let body = match drawn.body {
                    6 => Body::Dead,
                    7 => redirect(urls[(drawn.url + 1) % 4]),
                    number => Body::Content(Arc::clone(&bodies[number])),
                };
                version(urls[drawn.url], drawn.at, body)
            })
            .collect();
        let grouped = of_own(records);
        prop_assert_eq!(grouped.lines().len(), drawn.len());
        let found: HashMap<u64, _> =
            grouped.pages_with_contents().filter_map(|page| Some((page.records.own?, page))).collect();
        for (number, one) in (0..).zip(&drawn) {
            let page = &found[&number];
            let of = page.records.duplicate_of.and_then(NamedRecord::input);
            if let (Status::Duplicate, 0..6) = (page.line.status, one.body) {
                let of = of.unwrap();
                let kept = &drawn[of as usize];
                prop_assert!(matches!(found[&of].line.status, Status::Winner | Status::Secondary));
                let similar = Policy::default().compare(&bodies[one.body], &bodies[kept.body]).similar;
                prop_assert!(similar && kept.body < 6, "record {} is removed in favour of {}, which is not F", number, of);
            }
            prop_assert_eq!(page.line.status == Status::Dead, one.body == 6);
        }
        // No two kept records with content are F.
        let kept: Vec<usize> = (0..drawn.len())
            .filter(|number| drawn[*number].body < 6)
            .filter(|number| found[&(*number as u64)].line.status != Status::Duplicate)
            .collect();
        for (at, a) in kept.iter().enumerate() {
            for b in &kept[at + 1..] {
                let [a, b] = [a, b].map(|number| &bodies[drawn[*number].body]);
                prop_assert!(!Policy::default().compare(a, b).similar);
            }
        }
    }
}
