//! Counts the terms in which two contents differ.

use std::collections::HashMap;

use doppel_baseline::tokens::each_token;
use doppel_crawls::FetchedPage;
use doppel_text::Extractor;
use serde::Serialize;

/// Terms of each content, as sorted numbers.
#[derive(Default)]
pub(super) struct Terms {
    extractor: Extractor,
    numbers: HashMap<Box<str>, u32>,
    contents: Vec<Box<[u32]>>,
}

/// Numbers of terms in which pairs differ: terms of one content without a partner in the other.
#[derive(Debug, Serialize)]
pub(crate) struct Differences {
    pub(crate) pairs: usize,
    pub(crate) mean: f64,
    pub(crate) median: u32,
    /// Number of pairs that differ in more than 200 terms.
    pub(crate) above_200: usize,
    /// Number of pairs by the number of differing terms, up to 200.
    pub(crate) to_200: Vec<(u32, u64)>,
}

impl Terms {
    /// Adds the terms of a page as the next content.
    pub(super) fn push(&mut self, page: &FetchedPage) {
        let Self { extractor, numbers, contents } = self;
        let text = page.body.raw_content().and_then(|raw| extractor.page_text(&page.url, raw).text());
        let text = text.unwrap_or_default();
        let mut terms = Vec::new();
        each_token(&text, |token| {
            let next = numbers.len() as u32;
            terms.push(numbers.get(token).copied().unwrap_or_else(|| {
                numbers.insert(token.into(), next);
                next
            }));
        });
        terms.sort_unstable();
        contents.push(terms.into());
    }

    /// Counts the terms in which two pages differ. Adds no content.
    pub(super) fn between(&mut self, a: &FetchedPage, b: &FetchedPage) -> u32 {
        let before = self.contents.len();
        self.push(a);
        self.push(b);
        let terms = differing(&self.contents[before], &self.contents[before + 1]);
        self.contents.truncate(before);
        terms
    }

    /// Counts the terms in which pairs of contents differ. A pair has the numbers of its contents.
    pub(super) fn differences(&self, pairs: impl Iterator<Item = (u32, u32)>) -> Differences {
        let of = |number: u32| &*self.contents[number as usize];
        let mut all: Vec<u32> = pairs.map(|(a, b)| differing(of(a), of(b))).collect();
        all.sort_unstable();
        let to_200 = all.chunk_by(|a, b| a == b).filter(|equal| equal[0] <= 200);
        Differences {
            to_200: to_200.map(|equal| (equal[0], equal.len() as u64)).collect(),
            pairs: all.len(),
            mean: all.iter().map(|n| f64::from(*n)).sum::<f64>() / all.len().max(1) as f64,
            median: all.get(all.len() / 2).copied().unwrap_or(0),
            above_200: all.iter().filter(|n| **n > 200).count(),
        }
    }
}

/// Counts the terms of two sorted lists that have no partner in the other list. A term counts once for each
/// surplus occurrence.
fn differing(mut a: &[u32], mut b: &[u32]) -> u32 {
    let mut shared = 0;
    let all = a.len() + b.len();
    while let ([first, rest_of_a @ ..], [second, rest_of_b @ ..]) = (a, b) {
        if first <= second {
            a = rest_of_a;
        }
        if second <= first {
            b = rest_of_b;
        }
        shared += usize::from(first == second);
    }
    (all - 2 * shared) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_occurrence_of_a_term_counts() {
        assert_eq!(differing(&[1, 1, 2, 5], &[1, 2, 2, 7, 8]), 5);
        assert_eq!((differing(&[], &[3]), differing(&[3], &[3])), (1, 0));
    }
}
