//! Families of pages, for collections of any size.
//!
//! - A family's text is a *recombination*: stretches of 10 to 80 words of random real pages, one after the
//!   other, until it has the length of a random real page. Recombinations share shingles with the pages
//!   they come from and with each other, and are not near-duplicates. Where there are no real pages, the text is
//!   what the source of words makes up.
//! - Three of four families have one page, the others 2 to 11, evenly.
//! - A page is that text with each word replaced by a random other one with probability p; p is drawn for each page,
//!   evenly from 0 to 0.07. So J with the text, about s / (2 - s) for s = (1 - p)^5, goes from 1 down to 0.5, and many
//!   pairs are near tau on either side.

use doppel_model::Random;

/// The highest probability with which a word of a family's text is replaced in one of its pages.
pub(crate) const RATE: f64 = 0.07;

/// The most pages in a family.
pub(crate) const SIZE_MAX: usize = 11;

/// The number of pages in a family.
pub(crate) fn size(random: &mut Random) -> usize {
    if random.index(4) > 0 { 1 } else { 2 + random.index(SIZE_MAX - 1) }
}

/// The text of a family as words, recombined from real pages.
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

/// Replaces words by what `other` draws, with a probability that is drawn from 0 to `rate_max`.
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
