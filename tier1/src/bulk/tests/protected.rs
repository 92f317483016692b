//! Tests with protected records.

use proptest::prelude::*;

use super::*;
use crate::bulk::grouped::NamedRecord;

/// A record: the number of its content, and whether it is protected.
type Drawn = (usize, bool);

/// Status of each unprotected record, and the record that it is a duplicate of.
type Decision = (Status, Option<NamedRecord>);

/// The reference of a protected record, by its position.
fn reference(position: usize) -> u32 {
    position as u32 / 8
}

/// Groups records. Protected and unprotected records are numbered apart, each in the order of `drawn`.
fn grouped(
    unit: Unit,
    bodies: &[Arc<Signature>],
    drawn: &[Drawn],
    group_members_max: u64,
) -> GroupedCollection {
    let mut bulk = bulk_of(unit, group_members_max);
    let mut number = 0;
    for (protected, &(body, is_protected)) in drawn.iter().enumerate() {
        let body = Body::Content(Arc::clone(&bodies[body]));
        if is_protected {
            // All protected records have one URL, which is also the URL of the first record.
            bulk.protect(reference(protected), version("http://h/000", 9 - protected as i64 % 3, body))
                .unwrap();
        } else {
            let record = InputRecord { number, refers_back: false };
            bulk.submit_record(record, version(&format!("http://h/{number:03}"), 5, body)).unwrap();
            number += 1;
        }
    }
    bulk.finish().unwrap()
}

/// The decisions by definition. Every protected record is kept. Every other record is a duplicate of the first kept
/// record in the winner order that is F with it; in a group in quarantine only protected records count.
fn expected(bodies: &[Arc<Signature>], drawn: &[Drawn], group_members_max: usize) -> Vec<Decision> {
    let similar =
        |a: usize, b: usize| Policy::default().compare(&bodies[drawn[a].0], &bodies[drawn[b].0]).similar;
    let mut connected = doppel_model::UnionFind::new(drawn.len());
    for a in 0..drawn.len() {
        (0..a).filter(|b| similar(a, *b)).for_each(|b| connected.union(a, b));
    }
    let numbers = |is_protected: bool| (0..drawn.len()).filter(move |at| drawn[*at].1 == is_protected);
    let mut protected: Vec<usize> = numbers(true).collect();
    protected.sort_by_key(|at| (reference(*at), 9 - *at as i64 % 3));
    let name = |at: usize| {
        let number = numbers(drawn[at].1).position(|other| other == at).unwrap() as u64;
        if drawn[at].1 { NamedRecord::Protected(number) } else { NamedRecord::Input(number) }
    };
    let mut kept: Vec<usize> = protected.clone();
    let mut decisions = Vec::new();
    for at in numbers(false) {
        let members: Vec<usize> =
            (0..drawn.len()).filter(|other| connected.root(*other) == connected.root(at)).collect();
        let mut contents: Vec<usize> = members.iter().map(|member| drawn[*member].0).collect();
        contents.sort_unstable();
        contents.dedup();
        let in_quarantine = contents.len() > group_members_max;
        let by =
            kept.iter().copied().find(|other| (!in_quarantine || drawn[*other].1) && similar(at, *other));
        let is_first = members.iter().all(|other| *other == at || !drawn[*other].1 && *other > at);
        decisions.push(match by {
            Some(by) => (Status::Duplicate, Some(name(by))),
            None if members.len() == 1 => (Status::Unique, None),
            None if is_first => (Status::Winner, None),
            None => (Status::Secondary, None),
        });
        if by.is_none() {
            kept.push(at);
        }
    }
    decisions
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn every_record_names_the_first_kept_record_and_protected_records_are_kept(
        drawn in prop::collection::vec((0..8_usize, prop::bool::weighted(0.3)), 1..20),
        unit in prop::sample::select(vec![Unit::Page, Unit::Record]),
        group_members_max in prop::sample::select(vec![1_u64, 2, 3, 100]),
    ) {
        // Neighbouring contents are near-duplicates, others are not.
        let bodies: Vec<Arc<Signature>> = (0..8).map(|n| text(n * 40..n * 40 + 500)).collect();
        let grouped = grouped(unit, &bodies, &drawn, group_members_max);
        let decided: Vec<Decision> = grouped
            .pages_with_contents()
            .map(|page| (page.line.status, page.records.duplicate_of))
            .collect();
        prop_assert_eq!(decided, expected(&bodies, &drawn, group_members_max as usize));
        let unprotected = drawn.iter().filter(|(_, is_protected)| !is_protected).count();
        prop_assert_eq!(grouped.counters.live, unprotected as u64, "protected records are not counted");
        prop_assert_eq!(grouped.lines().len(), unprotected);
    }
}

#[test]
fn a_protected_record_of_another_spelling_does_not_change_where_a_redirect_leads() {
    for unit in [Unit::Page, Unit::Record] {
        let mut bulk = bulk_of(unit, 100);
        bulk.protect(0, version("http://H.example/a", 1, content(900..1_000))).unwrap();
        let inputs = [
            ("http://h.example:80/a", content(0..100)),
            ("http://h.example/from", redirect("http://h.example/a")),
        ];
        for (number, (url, body)) in (0..).zip(inputs) {
            let record = InputRecord { number, refers_back: false };
            bulk.submit_record(record, version(url, 1, body)).unwrap();
        }
        let grouped = bulk.finish().unwrap();
        let line = grouped.lines().find(|line| line.url.as_str() == "http://h.example/from").unwrap();
        assert_eq!(line.duplicate_of.unwrap().as_str(), "http://h.example:80/a");
    }
}

#[test]
fn a_redirect_does_not_lead_to_a_protected_record() {
    for unit in [Unit::Page, Unit::Record] {
        let mut bulk = bulk_of(unit, 100);
        bulk.protect(0, version("http://h/to", 1, content(0..100))).unwrap();
        let record = InputRecord { number: 0, refers_back: false };
        bulk.submit_record(record, version("http://h/from", 1, redirect("http://h/to"))).unwrap();
        let line = bulk.finish().unwrap().lines().next().unwrap();
        assert_eq!((line.status, line.reason), (Status::Unresolved, Some(UnresolvedReason::UnknownTarget)));
    }
}
