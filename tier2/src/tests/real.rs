//! Tests with real crawls: every answer against the definition, and the pairs of F that the bands miss.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use doppel_model::PageId;
use doppel_model::pairwise::Policy;
use doppel_model::signature::Signature;
use doppel_text::{Extraction, Extractor};

use super::model::{Components, World};

#[path = "../../../common/text/tests/crawl/mod.rs"]
mod crawl;

/// The contents of crawl files, in crawl order.
fn contents(files: &[&str]) -> Option<Vec<(PageId, Arc<Signature>)>> {
    let mut extractor = Extractor::default();
    let pages = crawl::html(files)?.into_iter().filter_map(|page| {
        match extractor.html(&page.url, &page.bytes, page.charset.as_deref()) {
            Extraction::Page(content) => Some((PageId::of(page.url.as_str()), Arc::new(content.signature))),
            Extraction::Redirect(_) => None,
        }
    });
    Some(pages.collect())
}

#[test]
fn answers_for_a_crawl_and_its_re_crawls_follow_the_definition() {
    let Some(round_0) = contents(&["trace/round-00", "trace/round-01"]) else { return };
    let rounds = ["quick/round-00", "quick/round-01", "quick/round-02", "trace/round-02", "trace/round-03"];
    let rounds = rounds.map(|file| contents(&[file]).unwrap_or_default());
    let policy = Policy::default();
    let mut world = World::new(policy, 16, 2);
    let mut answered = Components::default();
    for round in std::iter::once(&round_0).chain(&rounds) {
        for pages in round.chunks(700) {
            for (page, signature) in pages {
                let old = world.pages.lock().unwrap().get(page).map(|s| s.content());
                if old != Some(signature.content()) {
                    world.put(*page, Arc::clone(signature), signature.tokens() % 3 > 0);
                }
            }
            world.pass();
        }
    }
    world = world.reopen();
    world.search_all();
    answered.take(&world.pass());
    let signatures: BTreeMap<_, _> =
        world.pages.lock().unwrap().values().map(|s| (s.content(), Arc::clone(s))).collect();
    let signatures: Vec<_> = signatures.into_values().filter(|s| s.tokens() > 0).collect();
    assert!(signatures.len() > 2_000);
    let mut expected = Components::of(policy, &signatures);
    let groups = expected.roots().values().collect::<BTreeSet<_>>().len();
    assert!(groups < signatures.len() * 19 / 20, "{groups} groups of {}", signatures.len());
    let roots = answered
        .roots()
        .into_iter()
        .filter(|(content, _)| signatures.iter().any(|s| s.content() == *content));
    assert_eq!(roots.collect::<BTreeMap<_, _>>(), expected.roots());
}

#[test]
fn the_bands_lose_at_most_one_similar_pair_in_a_thousand() {
    let Some(pages) = contents(&["mid/mid-01"]) else { return };
    let signatures: BTreeMap<_, _> = pages.iter().map(|(_, s)| (s.content(), s)).collect();
    let mut signatures: Vec<&Arc<Signature>> = signatures.into_values().collect();
    signatures.sort_by_key(|s| s.size());
    let policy = Policy::default();
    let (mut similar, mut linked) = (0, 0);
    for (i, a) in signatures.iter().enumerate() {
        let (tau, size) = (policy.metric().unwrap(), u64::from(a.size()));
        let near = signatures[i + 1..].iter().take_while(|b| tau.exceeded_by(size, size, b.size().into()));
        for b in near {
            if policy.similar(a, b) {
                similar += 1;
                linked += usize::from(policy.linked(a, b));
            }
        }
    }
    println!("{} contents: {similar} pairs by F, {linked} of them with a band in common", signatures.len());
    assert!(similar > 1_000 && linked as f64 >= 0.999 * f64::from(similar), "{linked} of {similar}");
}
