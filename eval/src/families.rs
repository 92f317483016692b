//! Families of similar pages, for collections of any size.
//!
//! - A family has one text, a *recombination* of real pages. Stretches of 10 to 80 words of random pages
//!   follow each other until the text has the length of a random real page. Recombinations share shingles
//!   with their source pages and with each other, and are not near-duplicates. Without real pages, the source
//!   of words makes up the text.
//! - Three of four families have one page. The others have 2 to 11 pages, each size with the same
//!   probability.
//! - A page is the family's text in which each word is replaced by a random other word with probability p.
//!   Each page draws its p from 0 to 0.07. The Jaccard coefficient J of the page and the text is about s / (2
//!   - s), with s = (1 - p)^5. J ranges from 1 down to 0.5, so many pairs are near tau on either side.

use doppel_model::Random;

/// Highest probability with which a page replaces a word of its family's text.
pub(crate) const RATE: f64 = 0.07;

/// Maximum number of pages in a family.
pub(crate) const SIZE_MAX: usize = 11;

/// Draws the number of pages of a family.
pub(crate) fn size(random: &mut Random) -> usize {
    if random.index(4) > 0 { 1 } else { 2 + random.index(SIZE_MAX - 1) }
}

/// Recombines real pages into the text of a family, as words.
pub(crate) fn recombined<W: Copy>(real: &[Vec<W>], random: &mut Random) -> Vec<W> {
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

/// Replaces words by words that `other` draws. The probability is drawn from 0 to `rate_max`.
pub(crate) fn replace<W>(
    words: &mut [W],
    rate_max: f64,
    random: &mut Random,
    other: impl Fn(&mut Random) -> W,
) {
    let rate = random.unit() * rate_max;
    for word in words {
        if random.unit() < rate {
            *word = other(random);
        }
    }
}
