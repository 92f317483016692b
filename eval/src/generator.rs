//! Makes a collection of any size: real pages first, if there are any, then families of pages.
//!
//! - Sizes of families (see `families`) do not depend on the size of the collection. A crawl grows in the
//!   same way when it reaches more sites.
//! - An update of a page replaces words with a probability that is drawn from 0 to 0.04. The Jaccard
//!   coefficient with the version before is 1 to 0.69.
//! - Pages of all families come in random order.
//!
//! Every page is a function of the source of words and the seed.

use std::sync::Arc;

use doppel_model::Random;
use doppel_model::signature::{Builder, Signature};

use super::families;

/// Highest probability with which an update replaces a word.
const UPDATE_RATE: f64 = 0.04;

/// Source of the words from which pages are made.
pub(crate) trait Source {
    /// Representation of a word, such as a number or a hash.
    type Word: Copy;
    /// Number of real pages.
    fn real(&self) -> usize;
    /// Words of a real page.
    fn page(&self, number: usize) -> &[Self::Word];
    /// Makes the text of a family.
    fn family(&self, random: &mut Random) -> Vec<Self::Word>;
    /// Draws a word that replaces another one.
    fn word(&self, random: &mut Random) -> Self::Word;
    /// Whether the source has no words, so that no text can be made.
    fn is_empty(&self) -> bool;
}

/// Real pages as hashes of their tokens. A replacement word is a random hash, so it occurs nowhere else.
pub(crate) struct Hashes(pub(crate) Vec<Vec<u64>>);

impl Source for Hashes {
    type Word = u64;

    fn real(&self) -> usize {
        self.0.len()
    }

    fn page(&self, number: usize) -> &[u64] {
        &self.0[number]
    }

    fn family(&self, random: &mut Random) -> Vec<u64> {
        families::recombined(&self.0, random)
    }

    fn word(&self, random: &mut Random) -> u64 {
        random.number()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Origin of a page's first version: a real page, or a member of a family of made pages.
///
/// A collection may have many millions of pages, so each number takes only 32 bits.
#[derive(Debug, Clone, Copy)]
enum Origin {
    Real(u32),
    Member { family: u32, member: u32 },
}

/// Collection whose pages are made one by one, on demand.
pub(crate) struct Generator<S> {
    source: S,
    seed: u64,
    /// Origin and number of updates of each page, in order of arrival.
    pages: Vec<(Origin, u32)>,
}

impl<S: Source> Generator<S> {
    /// Plans a collection of `pages` pages, fewer than 2^32.
    pub(crate) fn new(source: S, pages: usize, seed: u64) -> Self {
        let mut random = Random::new(seed);
        let mut origins = Vec::with_capacity(pages + families::SIZE_MAX);
        origins.extend((0..source.real().min(pages) as u32).map(|number| (Origin::Real(number), 0)));
        let real = origins.len();
        for family in 0.. {
            if origins.len() >= pages || source.is_empty() {
                break;
            }
            let members = 0..families::size(&mut random) as u32;
            origins.extend(members.map(|member| (Origin::Member { family, member }, 0)));
        }
        random.shuffle(&mut origins[real..]);
        origins.truncate(pages);
        Self { source, seed, pages: origins }
    }

    /// Source of the words.
    pub(crate) fn source(&self) -> &S {
        &self.source
    }

    /// Number of pages.
    pub(crate) fn len(&self) -> usize {
        self.pages.len()
    }

    /// Words of the present version of a page.
    pub(crate) fn words(&self, page: usize) -> Vec<S::Word> {
        let (origin, updates) = self.pages[page];
        let mut words = match origin {
            Origin::Real(number) => self.source.page(number as usize).to_vec(),
            Origin::Member { family, member } => {
                let (family, member) = (u64::from(family), u64::from(member));
                let mut words = self.source.family(&mut Random::of(self.seed, [0, family, 0]));
                self.replace(&mut words, families::RATE, [1, family, member]);
                words
            }
        };
        for update in 0..u64::from(updates) {
            self.replace(&mut words, UPDATE_RATE, [2, page as u64, update]);
        }
        words
    }

    fn replace(&self, words: &mut [S::Word], rate_max: f64, thing: [u64; 3]) {
        let mut random = Random::of(self.seed, thing);
        families::replace(words, rate_max, &mut random, |random| self.source.word(random));
    }
}

impl Generator<Hashes> {
    /// Signature of the present version of a page.
    pub(crate) fn signature(&self, builder: &mut Builder, page: usize) -> Arc<Signature> {
        Arc::new(builder.build(&self.words(page)))
    }

    /// Updates a page, and returns the signature of its next version.
    pub(crate) fn update(&mut self, builder: &mut Builder, page: usize) -> Arc<Signature> {
        self.pages[page].1 += 1;
        self.signature(builder, page)
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
    fn a_seed_repeats_its_pages_and_families_have_near_duplicates() {
        let (a, b) = (Generator::new(Hashes(real()), 400, 7), Generator::new(Hashes(real()), 400, 7));
        let mut builder = Builder::new();
        assert_eq!(a.len(), 400);
        let pages: Vec<_> = (0..400).map(|page| a.signature(&mut builder, page)).collect();
        assert!((0..400).all(|page| b.signature(&mut builder, page) == pages[page]));
        let other = Generator::new(Hashes(real()), 400, 8).signature(&mut builder, 399);
        assert_ne!(other, pages[399]);
        let policy = doppel_model::pairwise::Policy::default();
        let alike = |i: usize| (0..i).any(|j| policy.similar(&pages[i], &pages[j]));
        let alike = (20..400).filter(|i| alike(*i)).count();
        assert!((40..300).contains(&alike), "{alike} of 380 generated pages have an earlier near-duplicate");
    }

    #[test]
    fn updates_stay_near_the_version_before() {
        let mut generator = Generator::new(Hashes(real()), 100, 7);
        let mut builder = Builder::new();
        let mut near = 0;
        for page in 0..100 {
            let before = generator.signature(&mut builder, page);
            let after = generator.update(&mut builder, page);
            assert_eq!(generator.signature(&mut builder, page), after);
            near += u32::from(doppel_model::pairwise::Policy::default().similar(&before, &after));
        }
        assert!((30..90).contains(&near), "{near} of 100 updates are near-duplicates of the version before");
    }
}
