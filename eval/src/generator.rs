//! A collection of any size: real pages first, then families of pages made from them.
//!
//! - A family's text is a *recombination*: stretches of 10 to 80 words of random real pages, one after the
//!   other, until it has the length of a random real page. Recombinations share shingles with the pages
//!   they come from and with each other, and are not near-duplicates.
//! - Three of four families have one page, the others 2 to 11, evenly, whatever the size of the collection:
//!   it grows as when a crawl reaches more sites. A page is that text with each word replaced by a random
//!   other one with probability p; p is drawn for each page, evenly from 0 to 0.07. So J with the text, about
//!   s / (2 - s) for s = (1 - p)^5, goes from 1 down to 0.5, and many pairs are near tau on either side.
//! - An update of any page replaces words in the same way, with p evenly from 0 to 0.04 (J with the version
//!   before: 1 to 0.69).
//! - Pages of all families come in random order.
//!
//! Everything is a function of the real pages and the seed.

use std::sync::Arc;

use doppel_model::Random;
use doppel_model::signature::{Builder, Signature};

const FAMILY_RATE: f64 = 0.07;
const UPDATE_RATE: f64 = 0.04;

/// Where a page's first version comes from.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Real(usize),
    Member { family: u64, member: u64 },
}

/// The pages, made one by one when they are asked for.
pub(crate) struct Generator {
    real: Vec<Vec<u64>>,
    seed: u64,
    /// Where the pages come from, in order of arrival, and how often each was updated.
    pages: Vec<(Origin, u32)>,
    builder: Builder,
}

impl Generator {
    /// `pages` pages from real ones, each given as the hashes of its tokens.
    pub(crate) fn new(real: Vec<Vec<u64>>, pages: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut made = Vec::new();
        let wanted = pages.saturating_sub(real.len());
        for family in 0.. {
            if made.len() >= wanted || real.is_empty() {
                break;
            }
            let members = if random.index(4) > 0 { 1 } else { 2 + random.below(10) };
            made.extend((0..members).map(|member| Origin::Member { family, member }));
        }
        random.shuffle(&mut made);
        let mut pages: Vec<(Origin, u32)> =
            (0..real.len()).map(Origin::Real).chain(made).take(pages).map(|origin| (origin, 0)).collect();
        pages.shrink_to_fit();
        Self { real, seed, pages, builder: Builder::new() }
    }

    /// How many pages there are.
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// The present version of a page.
    pub(crate) fn signature(&mut self, page: usize) -> Arc<Signature> {
        let words = self.words(page);
        Arc::new(self.builder.build(&words))
    }

    /// Gives a page its next version.
    pub(crate) fn update(&mut self, page: usize) -> Arc<Signature> {
        self.pages[page].1 += 1;
        self.signature(page)
    }

    fn words(&self, page: usize) -> Vec<u64> {
        let (origin, updates) = self.pages[page];
        let mut words = match origin {
            Origin::Real(number) => self.real[number].clone(),
            Origin::Member { family, member } => {
                let mut words = self.family(family);
                replace(&mut words, FAMILY_RATE, &mut Random::of(self.seed, [1, family, member]));
                words
            }
        };
        for update in 0..u64::from(updates) {
            replace(&mut words, UPDATE_RATE, &mut Random::of(self.seed, [2, page as u64, update]));
        }
        words
    }

    fn family(&self, family: u64) -> Vec<u64> {
        let mut random = Random::of(self.seed, [0, family, 0]);
        let real = &self.real;
        let length = real[random.index(real.len())].len();
        let mut words = Vec::with_capacity(length);
        while words.len() < length {
            let from = &real[random.index(real.len())];
            let start = random.index(from.len());
            let stretch = (10 + random.index(71)).min(from.len() - start).min(length - words.len());
            words.extend_from_slice(&from[start..start + stretch]);
        }
        words
    }
}

/// Replaces words with a probability from 0 to `rate_max`.
fn replace(words: &mut [u64], rate_max: f64, random: &mut Random) {
    let rate = random.unit() * rate_max;
    for word in words {
        if random.unit() < rate {
            *word = random.number();
        }
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::stable_hash64;

    use super::*;

    fn real() -> Vec<Vec<u64>> {
        (0..20)
            .map(|page| (0..200).map(|word| stable_hash64(&[page, (word % 101) as u8])).collect())
            .collect()
    }

    #[test]
    fn the_same_pages_again_and_families_among_them() {
        let (mut a, mut b) = (Generator::new(real(), 400, 7), Generator::new(real(), 400, 7));
        assert_eq!(a.len(), 400);
        let pages: Vec<_> = (0..400).map(|page| a.signature(page)).collect();
        assert!((0..400).all(|page| b.signature(page) == pages[page]));
        let other = Generator::new(real(), 400, 8).signature(399);
        assert_ne!(other, pages[399]);
        let policy = doppel_model::pairwise::Policy::default();
        let alike = |i: usize| (0..i).any(|j| policy.similar(&pages[i], &pages[j]));
        let alike = (20..400).filter(|i| alike(*i)).count();
        assert!((40..300).contains(&alike), "{alike} of 380 generated pages have an earlier near-duplicate");
    }

    #[test]
    fn updates_stay_near_the_version_before() {
        let mut generator = Generator::new(real(), 100, 7);
        let mut near = 0;
        for page in 0..100 {
            let before = generator.signature(page);
            let after = generator.update(page);
            assert_eq!(generator.signature(page), after);
            near += u32::from(doppel_model::pairwise::Policy::default().similar(&before, &after));
        }
        assert!((30..90).contains(&near), "{near} of 100 updates are near-duplicates of the version before");
    }
}
