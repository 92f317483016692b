//! Exact Jaccard of whole pages as a truth. It is circular for `jaccard`, whose F it is. For other policies
//! it says how similar to `jaccard` they are.
//!
//! Some pages are drawn, and each is compared with all others, so no figure depends on how candidates are
//! found. Every pair is in the sample with the same probability, so shares are those of all pairs. The first
//! of several pages with equal texts stands for all of them.

use std::collections::HashSet;

use doppel_baseline::{Contents, Tau as BaselineTau, near_duplicate};
use doppel_model::Random;
use doppel_text::Extractor;
use rayon::prelude::*;

use crate::ground_truth::labelled::{CrawledPages, Truth};

/// Threshold of the default policy.
const TAU: &str = "0.8";

/// Pairs of a drawn page and any other page.
pub(super) struct ExactPairs {
    /// One page for each text, as its number in the crawl.
    pages: Vec<usize>,
    /// Drawn pages, as positions in `pages`.
    drawn: Vec<usize>,
    /// Pairs of positions whose coefficient is above the threshold, the smaller position first.
    same: HashSet<(usize, usize)>,
}

impl ExactPairs {
    /// Draws `draws` pages, or all pages if there are fewer.
    pub(super) fn new(crawled: &CrawledPages, draws: usize, seed: u64) -> anyhow::Result<Self> {
        let tau: BaselineTau = TAU.parse()?;
        let (mut contents, mut extractor) = (Contents::default(), Extractor::default());
        let (mut pages, mut ids, mut seen) = (Vec::new(), Vec::new(), HashSet::new());
        for (number, page) in crawled.pages.iter().enumerate() {
            let text = page.body.raw_content().and_then(|raw| extractor.page_text(&page.url, raw).text());
            let Some(text) = text else { continue };
            let id = contents.intern(&text);
            if contents.get(id).tokens > 0 && seen.insert(id) {
                pages.push(number);
                ids.push(id);
            }
        }
        let mut drawn: Vec<usize> = (0..pages.len()).collect();
        Random::new(seed).shuffle(&mut drawn);
        drawn.truncate(draws);
        let alike = |at: &usize| {
            let own = contents.get(ids[*at]);
            let others = (0..ids.len()).filter(move |other| other != at);
            let same = others.filter(|other| near_duplicate(own, contents.get(ids[*other]), tau));
            same.map(|other| (other.min(*at), other.max(*at))).collect::<Vec<_>>()
        };
        let same = drawn.par_iter().flat_map_iter(alike).collect();
        Ok(Self { pages, drawn, same })
    }

    /// Returns the number of [`Truth::Same`] pairs and the number of all other pairs.
    pub(super) fn counts(&self) -> (usize, usize) {
        // A pair of two drawn pages counts once.
        let (drawn, pages) = (self.drawn.len(), self.pages.len());
        let all = drawn * pages.saturating_sub(drawn) + drawn * drawn.saturating_sub(1) / 2;
        (self.same.len(), all - self.same.len())
    }

    /// Calls `of` for every pair, with the numbers of its pages in the crawl. Returns the truth and the
    /// result for each pair.
    pub(super) fn each<T: Send>(&self, of: impl Fn(usize, usize) -> T + Sync) -> Vec<(Truth, T)> {
        let drawn: HashSet<usize> = self.drawn.iter().copied().collect();
        let of_page = |at: &usize| {
            let at = *at;
            let others =
                (0..self.pages.len()).filter(|other| *other > at || *other < at && !drawn.contains(other));
            let pair = |other: usize| {
                let is_same = self.same.contains(&(other.min(at), other.max(at)));
                let truth = if is_same { Truth::Same } else { Truth::Other };
                (truth, of(self.pages[at], self.pages[other]))
            };
            others.map(pair).collect::<Vec<_>>()
        };
        self.drawn.par_iter().flat_map_iter(of_page).collect()
    }
}

#[cfg(test)]
mod tests {
    use doppel_crawls::FetchedPage;
    use doppel_model::PageUrl;

    use super::*;

    #[test]
    fn every_pair_of_a_drawn_page_comes_once() {
        let mut crawled = CrawledPages::default();
        let mut add = |number: usize, text: String| {
            let url = PageUrl::parse(&format!("http://h/{number}")).unwrap();
            let body = doppel_crawls::FetchedBody::Text(text);
            crawled.add(FetchedPage { url, fetched_at: None, body, popularity: None, language: None });
        };
        let words = |family: usize| (0..100).map(|n| format!("w{family}x{n} ")).collect::<String>();
        // Two near copies in each family of three pages, of which one comes twice; and a page without words.
        for family in 0..4 {
            add(4 * family, words(family));
            add(4 * family + 1, words(family) + "more");
            add(4 * family + 2, words(family));
            add(4 * family + 3, words(family + 10));
        }
        add(16, String::new());
        let all = ExactPairs::new(&crawled, usize::MAX, 1).unwrap();
        assert_eq!(all.counts(), (4, 12 * 11 / 2 - 4));
        let mut pairs = all.each(|a, b| (a.min(b), a.max(b)));
        pairs.sort_unstable_by_key(|(_, pair)| *pair);
        pairs.dedup_by_key(|(_, pair)| *pair);
        assert_eq!(pairs.len(), 66);
        let same = pairs.iter().filter(|(truth, _)| *truth == Truth::Same).map(|(_, pair)| *pair);
        assert_eq!(same.collect::<Vec<_>>(), [(0, 1), (4, 5), (8, 9), (12, 13)]);
        let some = ExactPairs::new(&crawled, 5, 1).unwrap();
        let (same, other) = some.counts();
        assert_eq!((same + other, some.each(|_, _| ()).len()), (5 * 7 + 10, 45));
    }
}
