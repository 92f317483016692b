//! A collection of any size: real pages first, then families of pages made from them.
//!
//! - The families (see `families`) have the same sizes in a collection of any size, as when a crawl reaches more sites.
//! - An update of any page replaces words in the same way, with p evenly from 0 to 0.04 (J with the version
//!   before: 1 to 0.69).
//! - Pages of all families come in random order.
//!
//! Everything is a function of the real pages and the seed.

use std::sync::Arc;

use doppel_model::Random;
use doppel_model::signature::{Builder, Signature};

use super::families;

/// The highest probability with which an update replaces a word.
const UPDATE_RATE: f64 = 0.04;

/// The origin of a page's first version.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Real(usize),
    Member { family: u64, member: u64 },
}

/// The pages, made one by one when they are asked for.
pub(crate) struct Generator {
    real: Vec<Vec<u64>>,
    seed: u64,
    /// The origins of the pages, in order of arrival, and the number of updates of each.
    pages: Vec<(Origin, u32)>,
    builder: Builder,
}

impl Generator {
    /// Makes `pages` pages from real ones, which are given as the hashes of their tokens.
    pub(crate) fn new(real: Vec<Vec<u64>>, pages: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut made = Vec::new();
        let wanted = pages.saturating_sub(real.len());
        for family in 0.. {
            if made.len() >= wanted || real.is_empty() {
                break;
            }
            let members = families::size(&mut random);
            made.extend((0..members).map(|member| Origin::Member { family, member }));
        }
        random.shuffle(&mut made);
        let mut pages: Vec<(Origin, u32)> =
            (0..real.len()).map(Origin::Real).chain(made).take(pages).map(|origin| (origin, 0)).collect();
        pages.shrink_to_fit();
        Self { real, seed, pages, builder: Builder::new() }
    }

    /// The number of pages.
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
                let mut words = families::text(&self.real, &mut Random::of(self.seed, [0, family, 0]));
                families::replace(
                    &mut words,
                    families::RATE,
                    &mut Random::of(self.seed, [1, family, member]),
                );
                words
            }
        };
        for update in 0..u64::from(updates) {
            families::replace(&mut words, UPDATE_RATE, &mut Random::of(self.seed, [2, page as u64, update]));
        }
        words
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
