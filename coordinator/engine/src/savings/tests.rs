//! Compares the savings report with a slow reference count.

use std::collections::BTreeMap;

use doppel_contract::answer::HostMirror;
use doppel_model::Tau;
use doppel_model::signature::Builder;
use proptest::prelude::*;

use super::*;

/// A generated page, in a form that a strategy can produce easily.
#[derive(Debug, Clone)]
struct Made {
    host: u8,
    /// Number of the content. `None` for a redirect, [`WORDLESS`] for a page without words.
    content: Option<u8>,
    status: Status,
    /// Host and content of the kept page.
    of: (u8, u8),
    bytes: Option<u64>,
}

/// Number of the content without words.
const WORDLESS: u8 = 0;

fn hash(content: u8) -> ContentHash {
    if content == WORDLESS { Builder::new().content_of(&[]) } else { ContentHash([content; 16]) }
}

/// Generates pages as the tiers report them. A page without words is never a duplicate. A unique page has a
/// content that no other page has, or no words.
fn made_pages() -> impl Strategy<Value = Vec<Made>> {
    prop::collection::vec(made(), 0..80).prop_map(|mut pages| {
        for (page, own) in pages.iter_mut().zip(100..) {
            match (page.status, page.content) {
                (Status::Duplicate, Some(WORDLESS)) => page.content = Some(1),
                (Status::Unique, content) if content != Some(WORDLESS) => page.content = Some(own),
                _ => {}
            }
        }
        pages
    })
}

fn made() -> impl Strategy<Value = Made> {
    let status = prop_oneof![
        4 => Just(Status::Duplicate),
        2 => Just(Status::Winner),
        1 => Just(Status::Secondary),
        1 => Just(Status::Unique),
        1 => Just(Status::Pending),
        1 => Just(Status::Dead),
    ];
    (0..4_u8, prop::option::weighted(0.8, 0..6_u8), status, (0..4_u8, 0..6_u8), 0..1_000_u64)
        .prop_map(|(host, content, status, of, bytes)| Made { host, content, status, of, bytes: Some(bytes) })
}

fn count(pages: &[Made], chunk_bytes: usize) -> Savings {
    let dir = tempfile::tempdir().unwrap();
    let mut counting = SavingsCounter::with(Policy::jaccard(Tau::DEFAULT), dir.path(), chunk_bytes, 1_000);
    let url = |host: u8, number: usize| PageUrl::parse(&format!("http://h{host}/{number}")).unwrap();
    for (number, page) in pages.iter().enumerate() {
        let of = (page.status == Status::Duplicate).then(|| url(page.of.0, 1_000 + number));
        counting
            .add(&CountedPage {
                url: &url(page.host, number),
                status: page.status,
                of: of.as_ref(),
                content: page.content.map(hash),
                is_copy: page.content == Some(page.of.1),
                bytes: page.bytes,
            })
            .unwrap();
    }
    counting.finish(false, &|| false).unwrap()
}

#[test]
fn the_final_sort_stops_when_the_service_stops() {
    let dir = tempfile::tempdir().unwrap();
    // Sorts once in memory and once in files.
    for chunk_bytes in [1 << 20, 100] {
        let mut counting = SavingsCounter::with(Policy::default(), dir.path(), chunk_bytes, 1_000);
        for number in 0..50 {
            let url = PageUrl::parse(&format!("http://h/{number}")).unwrap();
            let content = Some(hash(number));
            let (status, of, is_copy, bytes) = (Status::Winner, None, false, None);
            counting.add(&CountedPage { url: &url, status, of, content, is_copy, bytes }).unwrap();
        }
        let stopped = counting.finish(false, &|| true);
        assert!(matches!(stopped, Err(SavingsCountError::Stopped)), "{stopped:?}");
    }
}

/// Returns the pages and bytes of redirects, copies and near-duplicates, and the number of copies that are
/// kept.
fn slow(pages: &[Made]) -> ([(u64, u64); 3], u64) {
    let live: Vec<&Made> = pages.iter().filter(|page| page.status != Status::Dead).collect();
    let sum = |pages: &[&Made]| (pages.len() as u64, pages.iter().map(|page| page.bytes.unwrap()).sum());
    let redirects: Vec<&Made> =
        live.iter().copied().filter(|p| p.content.is_none() && p.status == Status::Duplicate).collect();
    let (mut copies, mut near, mut held_back) = (Vec::new(), Vec::new(), 0);
    // Pages with one content are copies of each other, whatever their status is, if they have words.
    for content in (0..=u8::MAX).filter(|content| *content != WORDLESS) {
        let (dropped, kept): (Vec<&Made>, Vec<&Made>) = live
            .iter()
            .copied()
            .filter(|page| page.content == Some(content))
            .partition(|page| page.status == Status::Duplicate);
        let first_is_near = usize::from(kept.is_empty()).min(dropped.len());
        near.extend(&dropped[..first_is_near]);
        copies.extend(&dropped[first_is_near..]);
        held_back += kept.len().saturating_sub(1) as u64;
    }
    ([sum(&redirects), sum(&copies), sum(&near)], held_back)
}

fn slow_mirrors(pages: &[Made]) -> Vec<HostMirror> {
    let mut pairs: BTreeMap<(u8, u8), HostMirror> = BTreeMap::new();
    let dropped = pages.iter().filter(|page| page.status == Status::Duplicate);
    for page in dropped.filter(|page| page.host != page.of.0) {
        let mirror = pairs.entry((page.host, page.of.0)).or_insert_with(|| HostMirror {
            host: format!("h{}", page.host),
            of: format!("h{}", page.of.0),
            pages: 0,
            copies: 0,
            near: 0,
            redirects: 0,
            bytes: Some(0),
        });
        mirror.pages += 1;
        mirror.bytes = mirror.bytes.map(|bytes| bytes + page.bytes.unwrap());
        match page.content {
            None => mirror.redirects += 1,
            Some(content) if content == page.of.1 => mirror.copies += 1,
            Some(_) => mirror.near += 1,
        }
    }
    let mut mirrors: Vec<HostMirror> = pairs.into_values().collect();
    mirrors.sort_by_key(|mirror| std::cmp::Reverse(mirror.pages));
    mirrors
}

proptest! {
    #[test]
    fn savings_equal_those_of_a_naive_count(pages in made_pages(), spills: bool) {
        let savings = count(&pages, if spills { 200 } else { 1 << 20 });
        let ([redirects, copies, near], held_back) = slow(&pages);
        let all = |saving: RemovableShare| (saving.pages, saving.bytes.unwrap());
        prop_assert_eq!(all(savings.redirects), redirects);
        prop_assert_eq!(all(savings.copies), copies);
        prop_assert_eq!(all(savings.near), near);
        prop_assert_eq!(savings.held_back, held_back);
        let live: Vec<&Made> = pages.iter().filter(|page| page.status != Status::Dead).collect();
        let dropped = live.iter().filter(|page| page.status == Status::Duplicate).count() as u64;
        prop_assert_eq!((savings.pages, savings.all.pages), (live.len() as u64, dropped));
        prop_assert_eq!(savings.on_one_host + savings.across_hosts, dropped);
        prop_assert_eq!(savings.mirrors, slow_mirrors(&pages));
    }
}

#[test]
fn pages_without_words_do_not_count_as_copies_of_each_other() {
    let page =
        |host, content, status| Made { host, content: Some(content), status, of: (0, 0), bytes: Some(1) };
    // Redirects point to the first two pages, so each of these pages is in a group.
    let pages = [
        page(0, WORDLESS, Status::Winner),
        page(1, WORDLESS, Status::Winner),
        page(2, WORDLESS, Status::Unique),
        page(0, 1, Status::Winner),
        page(1, 1, Status::Secondary),
    ];
    let savings = count(&pages, 1 << 20);
    assert_eq!((savings.pages, savings.held_back, savings.all.pages), (5, 1, 0));
}

#[test]
fn unknown_sizes_are_not_guessed() {
    let page = |host, status, bytes| Made { host, content: Some(1), status, of: (0, 1), bytes };
    let pages = [
        page(0, Status::Winner, Some(9)),
        page(1, Status::Duplicate, None),
        page(1, Status::Duplicate, Some(3)),
    ];
    let savings = count(&pages, 1 << 20);
    assert_eq!((savings.bytes, savings.copies.bytes, savings.copies.bytes_share), (None, None, None));
    assert_eq!((savings.copies.pages, savings.near.bytes, savings.mirrors[0].bytes), (2, Some(0), None));
    assert!((savings.copies.share - 2.0 / 3.0).abs() < 1e-12);
}
