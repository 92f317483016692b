//! Compares the product with the reference on a set of pages: signatures, F of all pairs, candidate pairs,
//! and the components that the join of `doppel dedup` finds.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use doppel_baseline::components;
use doppel_join::{ContentIndex, Contents};
use doppel_model::pairwise::{Policy, Signer};
use doppel_model::signature::Signature;
use doppel_model::tables::{Tables, TermSample};
use doppel_text::{Extraction, Extractor};

use crate::page::{Page, Source};
use crate::rule::{PolicyFeatures, PolicyPage, Reader, Rule};
use crate::shingles::sketch;
use crate::terms::TermStatistics;

/// Policies by their text, with their rule in the reference. Every policy comes first with its defaults,
/// which are spelled out here.
pub(crate) const ALL: [(&str, Rule); 27] = {
    use crate::page::Site::{Host, Parent, Registrable};
    [
        ("jaccard", Rule::Jaccard { above: 8_000, words: 5 }),
        ("supershingle", Rule::Supershingle { words: 8, equal: 2 }),
        ("projection", Rule::Projection { agreeing: 372 }),
        ("combined", Rule::Combined { equal: 2, agreeing: 355 }),
        ("by-site", Rule::BySite { site: Registrable, across: 372, equal: 2, agreeing: 355 }),
        ("simhash", Rule::Simhash { differing: 3 }),
        ("imatch", Rule::Imatch { lexicons: 10, percent: (20, 85) }),
        ("multi-simhash", Rule::MultiSimhash { words: 2, lexicons: 5, below: 3 }),
        ("content", Rule::Content { above: 8_000 }),
        ("copies", Rule::Copies { text: 8_500, within: 9_000, across: 8_500, site: Host }),
        ("overlap", Rule::Overlap { lines: 4, shared: 15 }),
        ("jaccard:tau=0.3", Rule::Jaccard { above: 3_000, words: 5 }),
        ("jaccard:tau=0.6,words=3", Rule::Jaccard { above: 6_000, words: 3 }),
        ("jaccard:words=13", Rule::Jaccard { above: 8_000, words: 13 }),
        ("supershingle:words=5,equal=1", Rule::Supershingle { words: 5, equal: 1 }),
        ("jaccard:tokens=code", Rule::Jaccard { above: 8_000, words: 5 }),
        ("supershingle:words=5,equal=1,tokens=code", Rule::Supershingle { words: 5, equal: 1 }),
        ("projection:agreeing=361", Rule::Projection { agreeing: 361 }),
        ("combined:equal=1,agreeing=330", Rule::Combined { equal: 1, agreeing: 330 }),
        (
            "by-site:site=host,across=365,equal=1,agreeing=340",
            Rule::BySite { site: Host, across: 365, equal: 1, agreeing: 340 },
        ),
        ("by-site:site=parent", Rule::BySite { site: Parent, across: 372, equal: 2, agreeing: 355 }),
        ("simhash:differing=6", Rule::Simhash { differing: 6 }),
        ("imatch:lexicons=16,idf-from=0,idf-to=100", Rule::Imatch { lexicons: 16, percent: (0, 100) }),
        (
            "multi-simhash:words=3,lexicons=16,below=4",
            Rule::MultiSimhash { words: 3, lexicons: 16, below: 4 },
        ),
        ("content:tau=0.7", Rule::Content { above: 7_000 }),
        (
            "copies:text=0.6,within=0.55,across=0.75,site=registrable",
            Rule::Copies { text: 6_000, within: 5_500, across: 7_500, site: Registrable },
        ),
        ("overlap:lines=2", Rule::Overlap { lines: 2, shared: 25 }),
    ]
};

/// Numbers of what a comparison has covered.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Figures {
    /// Number of pages.
    pub(crate) pages: usize,
    /// Number of distinct contents.
    pub(crate) contents: usize,
    /// Number of contents that are long enough to be near-duplicates of others.
    pub(crate) comparable: usize,
    /// Number of pairs of distinct contents that are near-duplicates.
    pub(crate) near: usize,
    /// Number of near-duplicate pairs that share no band of the sketch.
    pub(crate) missed: usize,
}

/// Returns the tables that the product learns from the pages.
pub(crate) fn tables(policy: Policy, pages: &[Page]) -> Tables {
    let (mut sample, mut extractor) = (TermSample::new(), Extractor::default());
    for page in pages {
        let read = extractor.terms(&page.url, page.source.raw()).unwrap();
        sample.add(read.content, &mut read.terms.to_vec());
    }
    Tables::learn(policy.name(), &sample)
}

/// Returns the term statistics that the reference learns from the pages.
pub(crate) fn statistics(pages: &[Page]) -> TermStatistics {
    TermStatistics::of(pages.iter().map(|page| (&*page.words, &*page.terms)))
}

fn extractor(policy: Policy, pages: &[Page]) -> Extractor {
    Extractor::signing(match policy.reads_tables() {
        true => Signer::with_tables(policy, Arc::new(tables(policy, pages))).unwrap(),
        false => Signer::new(policy),
    })
}

fn signature(extractor: &mut Extractor, page: &Page) -> Signature {
    match &page.source {
        Source::Text(text) => extractor.text_at(&page.url, text).signature,
        Source::Html(html) => match extractor.html(&page.url, html.as_bytes(), Some("utf-8")) {
            Extraction::Page(page) => page.signature,
            Extraction::Redirect(target) => panic!("{:?} redirects to {target:?}", page.url),
        },
    }
}

/// Compares all signatures and all pairs of contents under a policy. `text` is the policy, and `rule` its
/// rule in the reference.
pub(crate) fn compare(text: &str, rule: Rule, pages: &[Page], statistics: &TermStatistics) -> Figures {
    let policy: Policy = text.parse().unwrap();
    let (mut extractor, mut reader) =
        (extractor(policy, pages), Reader::new(rule, text.contains("tokens=code"), statistics));
    let mut contents: BTreeMap<Vec<u8>, (PolicyPage, Arc<Signature>)> = BTreeMap::new();
    for page in pages {
        let (expected, actual) = (reader.read(page), signature(&mut extractor, page));
        let bytes = rule.signature(&expected);
        assert!(
            bytes == actual.as_bytes(),
            "{text}: the signature of {:?} is {actual:?}\n{:02x?}\nbut the reference has\n{bytes:02x?}",
            page.url,
            actual.as_bytes()
        );
        contents.insert(bytes, (expected, Arc::new(actual)));
    }
    let contents: Vec<_> = contents.into_values().collect();
    let mut figures = Figures { pages: pages.len(), contents: contents.len(), ..Figures::default() };
    figures.comparable = contents.iter().filter(|(page, _)| page.words.len() >= 20).count();
    let keys: Vec<_> = contents.iter().map(|(_, signature)| keys(policy, signature)).collect();
    let sketches: Vec<_> = contents.iter().map(|(page, _)| expected_sketch(page)).collect();
    let (mut linked, rows) = (Vec::new(), rows(rule));
    for (a, (first, x)) in contents.iter().enumerate() {
        // A page without words is no near-duplicate, not even of its own copy.
        assert_eq!(policy.similar(x, x), !first.words.is_empty());
        for (b, (second, y)) in contents[..a].iter().enumerate() {
            let near = rule.near(first, second);
            assert_eq!(policy.similar(x, y), near, "{text}: {x:?} and {y:?}");
            let meets =
                sketches[a].as_ref().zip(sketches[b].as_ref()).is_none_or(|(a, b)| share_a_band(a, b, rows));
            assert_eq!(policy.linked(x, y), near && meets, "{text}: {x:?} and {y:?}");
            if near && meets {
                assert!(!keys[a].is_disjoint(&keys[b]), "{text}: no key finds {x:?} and {y:?}");
                let two = joined(policy, &[x, y]);
                assert!(two[0] == two[1], "{text}: the join does not find {x:?} and {y:?}");
                linked.push((a, b));
            }
            figures.near += usize::from(near);
            figures.missed += usize::from(near && !meets);
        }
    }
    let signatures: Vec<_> = contents.iter().map(|(_, signature)| signature).collect();
    let expected = components(contents.len(), linked);
    assert_eq!(groups(&joined(policy, &signatures)), groups(&expected), "{text}");
    figures
}

fn keys(policy: Policy, signature: &Signature) -> BTreeSet<u64> {
    let mut keys = BTreeSet::new();
    policy.keys(signature, |key| {
        keys.insert(key);
    });
    keys
}

fn expected_sketch(page: &PolicyPage) -> Option<Vec<u8>> {
    match &page.features {
        PolicyFeatures::Set(_, hashes) => Some(sketch(hashes)),
        _ => None,
    }
}

/// Returns the number of rows (bytes) of a band. This is the maximum with which a pair at the lowest
/// threshold of the policy shares a band with a probability of at least 0.9995.
fn rows(rule: Rule) -> usize {
    let least = match rule {
        Rule::Jaccard { above, .. } | Rule::Content { above } => above,
        Rule::Copies { text, within, across, .. } => text.min(within).min(across),
        _ => return 1,
    };
    let agree = |rows: usize| (least as f64 / 10_000.0).powi(rows as i32);
    let is_sure = |rows: &usize| 1.0 - (1.0 - agree(*rows)).powi((64 / rows) as i32) >= 0.9995;
    (1..=64).filter(is_sure).max().unwrap()
}

/// Whether two sketches share a band of `rows` bytes.
fn share_a_band(a: &[u8], b: &[u8], rows: usize) -> bool {
    a.chunks_exact(rows).zip(b.chunks_exact(rows)).any(|(a, b)| a == b)
}

/// Returns for each content the component that the join finds.
fn joined(policy: Policy, signatures: &[&Arc<Signature>]) -> Vec<ContentIndex> {
    let mut contents = Contents::new(policy);
    for signature in signatures {
        assert!(contents.add(signature).1, "distinct signatures must be distinct contents");
    }
    let read = |content: ContentIndex| Ok::<_, Infallible>(Arc::clone(signatures[content.0 as usize]));
    contents.components(&read, |_| true).unwrap()
}

/// Returns the components as sets of positions, independent of their names.
fn groups<T: Ord + Copy>(of: &[T]) -> BTreeSet<Vec<usize>> {
    let mut groups: BTreeMap<T, Vec<usize>> = BTreeMap::new();
    for (at, group) in of.iter().enumerate() {
        groups.entry(*group).or_default().push(at);
    }
    groups.into_values().collect()
}
