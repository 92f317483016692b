//! Pairs of contents that B or C finds, and the graph that these pairs form.

use std::collections::{HashMap, HashSet};

use doppel_crawls::FetchedPage;
use doppel_model::PageUrl;
use doppel_terminal::output::share;
use serde::Serialize;

use super::degrees::PowerLaw;
use super::measures::{B, C, Measures, PageSignatures, is_one_site};
use super::terms::{Differences, Terms};

/// Distinct contents, each with the page where it occurred first.
#[derive(Default)]
pub(super) struct ComparedContents {
    signed: Vec<PageSignatures>,
    urls: Vec<PageUrl>,
    known: HashSet<doppel_model::ContentHash>,
    terms: Terms,
}

/// Near-duplicate contents, by their numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct NearPair {
    pub(super) a: u32,
    pub(super) b: u32,
    pub(super) measures: Measures,
}

/// Graph whose edges are the pairs of near-duplicates.
#[derive(Debug, Serialize)]
pub(crate) struct Graph {
    pub(crate) pairs: u64,
    /// Number of contents that are in a pair.
    pub(crate) contents: u64,
    pub(crate) mean_degree: f64,
    /// Share of the contents in pairs that have degree 100 or more.
    pub(crate) degree_100: f64,
    /// Share of the pairs that are on one site.
    pub(crate) one_site: f64,
    /// Degrees, each with the number of contents of this degree.
    pub(crate) degrees: Vec<(u32, u64)>,
    pub(crate) power_law: Option<PowerLaw>,
}

impl ComparedContents {
    /// Adds the content of a page, unless an earlier page has the same content.
    pub(super) fn add(&mut self, signed: PageSignatures, page: &FetchedPage) {
        if self.known.insert(signed.b.content()) {
            self.signed.push(signed);
            self.urls.push(page.url.clone());
            self.terms.push(page);
        }
    }

    pub(super) fn len(&self) -> usize {
        self.signed.len()
    }

    /// Finds every pair with two equal supershingles or 372 agreeing bits. Such a pair has a key of B or C in
    /// common, so contents with a common key are compared.
    pub(super) fn pairs(&self) -> Vec<NearPair> {
        let mut by_key: HashMap<(bool, u64), Vec<u32>> = HashMap::new();
        for (number, signed) in (0_u32..).zip(&self.signed) {
            let mut add = |is_b, key| by_key.entry((is_b, key)).or_default().push(number);
            B.keys(&signed.b, |key| add(true, key));
            C.keys(&signed.c, |key| add(false, key));
        }
        let mut compared = HashSet::new();
        let mut found = Vec::new();
        for members in by_key.into_values() {
            for (at, a) in members.iter().enumerate() {
                for b in &members[at + 1..] {
                    if a == b || !compared.insert((*a, *b)) {
                        continue;
                    }
                    let measures = self.signed[*a as usize].measures(&self.signed[*b as usize]);
                    if measures.b >= 2 || measures.c >= 372 {
                        found.push(NearPair { a: *a, b: *b, measures });
                    }
                }
            }
        }
        found.sort_unstable_by_key(|pair| (pair.a, pair.b));
        found
    }

    /// Computes the graph of some pairs.
    pub(super) fn graph(&self, pairs: &[NearPair]) -> Graph {
        let mut degree: HashMap<u32, u32> = HashMap::new();
        let mut one_site = 0_u64;
        for NearPair { a, b, .. } in pairs {
            *degree.entry(*a).or_default() += 1;
            *degree.entry(*b).or_default() += 1;
            one_site += u64::from(self.is_one_site(*a, *b));
        }
        let mut degrees: HashMap<u32, u64> = HashMap::new();
        degree.values().for_each(|degree| *degrees.entry(*degree).or_default() += 1);
        let mut degrees: Vec<(u32, u64)> = degrees.into_iter().collect();
        degrees.sort_unstable();
        let large: u64 = degrees.iter().filter(|(degree, _)| *degree >= 100).map(|(_, n)| n).sum();
        let (all, contents) = (pairs.len() as u64, degree.len() as u64);
        Graph {
            pairs: all,
            contents,
            mean_degree: share(2 * all, contents),
            degree_100: share(large, contents),
            one_site: share(one_site, all),
            power_law: PowerLaw::fit(&degrees),
            degrees,
        }
    }

    fn is_one_site(&self, a: u32, b: u32) -> bool {
        is_one_site(&self.urls[a as usize], &self.urls[b as usize])
    }

    /// Counts the terms in which the contents of some pairs differ.
    pub(super) fn differences(&self, pairs: &[NearPair]) -> Differences {
        self.terms.differences(pairs.iter().map(|pair| (pair.a, pair.b)))
    }
}

#[cfg(test)]
mod tests {
    use doppel_crawls::FetchedBody;
    use doppel_model::{PageUrl, Random};

    use super::*;

    #[test]
    fn the_pairs_equal_those_of_brute_force() {
        let mut random = Random::new(5);
        let mut extractors =
            super::super::measures::extractors(doppel_model::pairwise::ComparedTokens::Words);
        let mut contents = ComparedContents::default();
        for family in 0..8 {
            for member in 0..6 {
                let mut words: Vec<String> = (0..400).map(|n| format!("w{family}x{n}")).collect();
                (0..member).for_each(|_| words[random.index(400)] = format!("other{}", random.number()));
                let body = FetchedBody::Text(words.join(" "));
                let url = PageUrl::parse(&format!("http://h{}/{family}/{member}", member % 2)).unwrap();
                let page = FetchedPage { url, fetched_at: None, body, popularity: None, language: None };
                let signed = super::super::measures::sign(&mut extractors, &page).unwrap();
                contents.add(signed.clone(), &page);
                contents.add(signed, &page);
            }
        }
        let mut slow = Vec::new();
        for a in 0..contents.len() {
            for b in a + 1..contents.len() {
                let measures = contents.signed[a].measures(&contents.signed[b]);
                if measures.b >= 2 || measures.c >= 372 {
                    slow.push((a as u32, b as u32, measures));
                }
            }
        }
        assert!(slow.len() > 20 && contents.len() == 48, "{} {}", slow.len(), contents.len());
        let found = contents.pairs();
        assert_eq!(found.iter().map(|pair| (pair.a, pair.b, pair.measures)).collect::<Vec<_>>(), slow);
        let graph = contents.graph(&found);
        let degrees: u64 = graph.degrees.iter().map(|(degree, n)| u64::from(*degree) * n).sum();
        assert_eq!((graph.pairs, degrees), (slow.len() as u64, 2 * slow.len() as u64));
        let one = slow.iter().filter(|(a, b, _)| contents.is_one_site(*a, *b));
        assert!((graph.one_site - one.count() as f64 / slow.len() as f64).abs() < 1e-12);
        // Each replaced word removes one term and adds another.
        let terms = contents.differences(&found);
        assert!(terms.pairs == found.len() && terms.mean > 1.0 && terms.mean < 22.0, "{terms:?}");
    }
}
