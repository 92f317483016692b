//! An experiment: the Jaccard coefficient weighted by how common a shingle is on its site.
//!
//! A shingle that d of the n pages of a host contain has the weight log2((n + 1) / d) there, so that a
//! repeated template counts little. The similarity of a pair is a quotient. The numerator sums the smaller
//! weights of shingles that both pages contain. The denominator sums the larger weights of shingles that
//! either page contains. The table of weights is frozen: it is made from all pages of the corpora before any
//! comparison. The table has only shingles of labelled pages, because no other page is compared.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use doppel_baseline::tokens::each_token;
use doppel_crawls::FetchedBody;
use doppel_inputs::reading::crawl;
use doppel_model::pairwise::TOKENS_MIN;
use doppel_model::{PageUrl, stable_hash64};
use doppel_text::Extractor;

use super::methods::Method;
use super::pairs::{LabelledPairs, Pair};

/// What a measure compares: shingles of `words` words, of the main content or of the whole page.
#[derive(Debug, Clone, Copy)]
struct Measure {
    name: &'static str,
    words: usize,
    main: bool,
}

const MEASURES: [Measure; 4] = [
    Measure { name: "weighted, 5 words of whole pages", words: 5, main: false },
    Measure { name: "weighted, 2 words of whole pages", words: 2, main: false },
    Measure { name: "weighted, 5 words of main contents", words: 5, main: true },
    Measure { name: "weighted, 2 words of main contents", words: 2, main: true },
];

/// Smallest threshold to try, in hundredths. Weights make similarities smaller than without weights.
pub(super) const LEAST: u32 = 10;

/// Runs every measure on every pair. No pair is accepted, because a measure has no fixed threshold.
///
/// # Errors
/// If the corpora cannot be read.
pub(super) fn all(set: &LabelledPairs) -> anyhow::Result<Vec<Method>> {
    let begin = Instant::now();
    let mut extractor = Extractor::default();
    let mut shingles: [HashMap<&PageUrl, HashSet<u64>>; 4] = Default::default();
    for (url, body) in &set.pages {
        let found = shingles_of(&mut extractor, url, body).unwrap_or_default();
        shingles.iter_mut().zip(found).for_each(|(of, found)| drop(of.insert(url, found)));
    }
    let tables = tables(set, &shingles)?;
    // One reading of all pages serves all measures.
    let seconds = begin.elapsed().as_secs_f64();
    let method = |((measure, shingles), table): ((Measure, _), _)| Method {
        name: measure.name.to_owned(),
        accepted: vec![false; set.pairs.len()],
        similarity: similarities(set, shingles, table),
        seconds,
    };
    Ok(MEASURES.into_iter().zip(&shingles).zip(&tables).map(method).collect())
}

fn similarities(
    set: &LabelledPairs,
    shingles: &HashMap<&PageUrl, HashSet<u64>>,
    table: &ShingleTable,
) -> Vec<f64> {
    let similarity = |Pair { pair, .. }: &Pair| match (shingles.get(&pair.a), shingles.get(&pair.b)) {
        (Some(a), Some(b)) => similarity(table, (&pair.a.host(), a), (&pair.b.host(), b)),
        _ => 0.0,
    };
    set.pairs.iter().map(similarity).collect()
}

/// Numbers of pages of each host, and of pages of each host that contain a shingle.
#[derive(Default)]
struct ShingleTable {
    pages: HashMap<String, u32>,
    counts: HashMap<(String, u64), u32>,
}

impl ShingleTable {
    fn weight(&self, host: &str, shingle: u64) -> f64 {
        let pages = self.pages.get(host).copied().unwrap_or(0);
        // A shingle of no page of the table weighs as much as a shingle of one page.
        let count = self.counts.get(&(host.to_owned(), shingle)).copied().unwrap_or(0).max(1);
        (f64::from(pages + 1) / f64::from(count)).log2()
    }
}

fn tables(
    set: &LabelledPairs,
    labelled: &[HashMap<&PageUrl, HashSet<u64>>; 4],
) -> anyhow::Result<[ShingleTable; 4]> {
    let wanted = labelled.each_ref().map(|of| of.values().flatten().copied().collect::<HashSet<u64>>());
    let (mut tables, mut extractor) = (<[ShingleTable; 4]>::default(), Extractor::default());
    let tally = crawl::read(&set.inputs, |page| {
        let Some(found) = shingles_of(&mut extractor, &page.url, &page.body) else { return Ok(()) };
        let host = page.url.host();
        for ((table, wanted), shingles) in tables.iter_mut().zip(&wanted).zip(found) {
            for shingle in shingles.into_iter().filter(|shingle| wanted.contains(shingle)) {
                *table.counts.entry((host.clone(), shingle)).or_default() += 1;
            }
            *table.pages.entry(host.clone()).or_default() += 1;
        }
        Ok(())
    })?;
    tally.verdict(set.inputs.strict, 0)?;
    Ok(tables)
}

/// Shingles of a page for each measure. A set is empty if the page has too few words. `None` if the page has
/// no content or redirects.
fn shingles_of(extractor: &mut Extractor, url: &PageUrl, body: &FetchedBody) -> Option<[HashSet<u64>; 4]> {
    let [mut whole, mut main] = [Vec::new(), Vec::new()];
    let read = |text: &str, words: &mut Vec<u64>| {
        each_token(text, |word| words.push(stable_hash64(word.as_bytes())));
    };
    let raw = body.raw_content()?;
    read(&extractor.page_text(url, raw).text()?, &mut whole);
    read(&extractor.main_text(url, raw).text()?, &mut main);
    let hash = |words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        stable_hash64(&bytes)
    };
    Some(MEASURES.map(|measure| {
        let words = if measure.main { &main } else { &whole };
        if words.len() < TOKENS_MIN as usize {
            return HashSet::new();
        }
        words.windows(measure.words).map(hash).collect()
    }))
}

fn similarity(
    table: &ShingleTable,
    (host, a): (&str, &HashSet<u64>),
    (other, b): (&str, &HashSet<u64>),
) -> f64 {
    let (mut shared, mut either) = (0.0, 0.0);
    for shingle in a.union(b) {
        let of = |host: &str, set: &HashSet<u64>| {
            if set.contains(shingle) { table.weight(host, *shingle) } else { 0.0 }
        };
        let (first, second) = (of(host, a), of(other, b));
        shared += f64::min(first, second);
        either += f64::max(first, second);
    }
    if either > 0.0 { shared / either } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shingles_of_every_page_of_a_site_count_little() {
        let mut table = ShingleTable::default();
        table.pages.extend([("h".to_owned(), 100), ("g".to_owned(), 1)]);
        table.counts.extend([(("h".to_owned(), 1), 100), (("h".to_owned(), 2), 100)]);
        let set = |shingles: &[u64]| shingles.iter().copied().collect::<HashSet<u64>>();
        let of = |a: &[u64], b: &[u64]| similarity(&table, ("h", &set(a)), ("h", &set(b)));
        assert!(of(&[1, 2, 7], &[1, 2, 8]) < 0.01, "pages that share only the template are similar");
        assert!(of(&[1, 7, 8], &[2, 7, 8]) > 0.99, "pages that differ only in the template are not similar");
        assert_eq!((of(&[7], &[7]), of(&[7], &[8]), of(&[], &[])), (1.0, 0.0, 0.0));
        // On a small site a shingle weighs less, and the smaller weight is the shared one.
        let across = similarity(&table, ("h", &set(&[7])), ("g", &set(&[7])));
        assert!((across - 1.0 / 101_f64.log2()).abs() < 1e-9, "{across}");
    }
}
