//! Checks both pairing methods on real pages against an independent comparison of every pair, which uses sets
//! of the lines themselves.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};

#[path = "../../text/tests/crawl/mod.rs"]
mod crawl;

use doppel_model::RawContent;
use doppel_model::pairwise::Policy;
use doppel_overlap::{Budget, Chunking, CollectionBuilder, Document, OverlappingPair, PairingMethod};
use doppel_text::Extractor;

#[test]
fn both_methods_find_the_pairs_of_a_crawl_that_comparing_every_pair_finds() {
    let Some(pages) = crawl::html(&["quick/round-00", "quick/round-01", "quick/round-02"]) else { return };
    let dir = tempfile::tempdir().unwrap();
    let budget = Budget::new(1 << 20, 1 << 30, dir.path());
    let chunkings = [Chunking { lines: 4, shared: 15 }, Chunking { lines: 2, shared: 25 }];
    let mut builder = CollectionBuilder::new(&budget, &chunkings, true).unwrap();
    let mut extractor = Extractor::new(Policy::default());
    let (mut all_lines, mut texts) = (Vec::new(), Vec::new());
    for crawl::Html { url, charset, bytes } in &pages {
        let raw = RawContent::Html { bytes, charset: charset.as_deref() };
        let Some(hashed) = extractor.lines(url, raw) else { continue };
        let (host, bytes) = (url.host(), bytes.len() as u64);
        let (url, text, lines) = (url.as_str(), hashed.text, hashed.lines);
        builder.push(&Document { url, host: &host, bytes, text, lines: &lines }).unwrap();
        texts.push(text);
        all_lines.push(lines);
    }
    let collection = builder.finish().unwrap();
    let mut first = BTreeMap::new();
    let is_central = |at: &usize| *first.entry(texts[*at]).or_insert(*at) == *at || texts[*at].is_none();
    let central: Vec<usize> = (0..texts.len()).filter(is_central).collect();
    assert_eq!(collection.copies().count(), texts.len() - central.len());
    assert!(central.len() > 300 && central.len() < texts.len());
    for (number, Chunking { lines, shared }) in chunkings.into_iter().enumerate() {
        let sets: Vec<BTreeSet<&[u64]>> =
            all_lines.iter().map(|all| all.chunks(lines as usize).collect()).collect();
        let mut expected = Vec::new();
        for (at, a) in central.iter().enumerate() {
            for b in &central[at + 1..] {
                let common = sets[*a].intersection(&sets[*b]).count() as u32;
                if common >= u32::from(shared) {
                    let (of_a, of_b) = (sets[*a].len() as u32, sets[*b].len() as u32);
                    expected.push(OverlappingPair { a: *a as u32, b: *b as u32, shared: common, of_a, of_b });
                }
            }
        }
        assert!(expected.len() > 50, "{}", expected.len());
        for method in [PairingMethod::Sort, PairingMethod::Coarse(None)] {
            let mut found = Vec::new();
            let result = collection.overlap(number, method, |one| {
                found.push(one);
                Ok(())
            });
            assert!(found == expected, "{method:?}, {lines} lines: {} and {}", found.len(), expected.len());
            assert!(result.unwrap().work.memory_bytes <= 1 << 20);
        }
    }
}
