//! Texts of 4 KB without near-duplicates: pieces of pages, and texts recombined from these pieces.
//!
//! The paper cut books; here the text of each page is cut. Pieces are tried in random order. A piece is kept
//! if its exact Jaccard coefficient with every kept piece is below [`ALIKE`], by the baseline. If there are
//! too few pieces, the other texts are stretches of 10 to 80 words of random pieces, one after the other
//! (`families`). Two such texts share a stretch or two, so they are not near-duplicates. But a recombined
//! text has many topics, and is less like a piece than another piece of the same site is. Matches among
//! recombined texts are therefore counted apart.

use doppel_baseline::{Contents, Tau, similar_contents};
use doppel_model::Random;
use doppel_text::Extractor;

use crate::families;
use crate::ground_truth::labelled::CrawledPages;

/// Length of a piece.
const BYTES: usize = 4 << 10;
/// Maximum length of a piece. A piece is longer if its last word is very long, and is then left out.
const BYTES_MAX: usize = BYTES + BYTES / 4;
/// Minimum number of words of a piece. Pieces with fewer words are left out.
const WORDS_MIN: usize = 100;
/// Jaccard coefficient from which two pieces are too much alike, as for transplants.
const ALIKE: &str = "0.2";

/// Texts to search, the pieces first.
pub(super) struct Texts {
    pub(super) all: Vec<String>,
    /// Number of texts that are pieces of pages.
    pub(super) real: usize,
    /// Number of pieces before near-duplicates were left out.
    pub(super) cut: usize,
}

impl Texts {
    /// Makes `asked` texts. If `recombined` is false, makes only pieces, and at most `asked`.
    ///
    /// # Errors
    /// Never, unless [`ALIKE`] is not a threshold.
    pub(super) fn new(
        crawled: &CrawledPages,
        (asked, recombined): (usize, bool),
        seed: u64,
    ) -> anyhow::Result<Self> {
        let mut random = Random::new(seed);
        let mut pieces = pieces(crawled);
        let cut = pieces.len();
        random.shuffle(&mut pieces);
        let mut all = apart(pieces)?;
        all.truncate(asked);
        let real = all.len();
        if recombined && real > 0 {
            let words: Vec<Vec<&str>> = all.iter().map(|text| text.split(' ').collect()).collect();
            let made: Vec<String> =
                (real..asked).map(|_| families::recombined(&words, &mut random).join(" ")).collect();
            all.extend(made);
        }
        Ok(Self { all, real, cut })
    }

    /// Texts that are pieces of pages.
    pub(super) fn real(&self) -> &[String] {
        &self.all[..self.real]
    }
}

/// Cuts the texts of all pages into pieces.
fn pieces(crawled: &CrawledPages) -> Vec<String> {
    let (mut extractor, mut pieces) = (Extractor::default(), Vec::new());
    for page in &crawled.pages {
        let text = page.body.raw_content().and_then(|raw| extractor.page_text(&page.url, raw).text());
        text.iter().for_each(|text| cut(text, &mut pieces));
    }
    pieces
}

/// Cuts a text into pieces of whole words with one space between them. The remainder at the end is dropped.
fn cut(text: &str, pieces: &mut Vec<String>) {
    let (mut piece, mut words) = (String::new(), 0);
    for word in text.split_whitespace() {
        if words > 0 {
            piece.push(' ');
        }
        piece.push_str(word);
        words += 1;
        if piece.len() >= BYTES {
            if piece.len() <= BYTES_MAX && words >= WORDS_MIN {
                pieces.push(std::mem::take(&mut piece));
            }
            piece.clear();
            words = 0;
        }
    }
}

/// Drops every piece that is too much like an earlier piece that was kept (see [`ALIKE`]). The other pieces
/// stay in their order.
fn apart(pieces: Vec<String>) -> anyhow::Result<Vec<String>> {
    let mut contents = Contents::default();
    // The baseline numbers contents in the order of the pieces. A copy gets the number of an earlier piece.
    let is_new = |piece: &String| {
        let known = contents.all().len();
        contents.intern(piece).index() == known
    };
    let distinct: Vec<String> = pieces.into_iter().filter(is_new).collect();
    let similar = similar_contents(contents.all(), ALIKE.parse::<Tau>()?);
    let mut earlier: Vec<Vec<usize>> = vec![Vec::new(); distinct.len()];
    similar.above.into_iter().chain(similar.at).for_each(|(a, b)| earlier[b].push(a));
    let mut is_kept = vec![false; distinct.len()];
    for at in 0..distinct.len() {
        is_kept[at] = !earlier[at].iter().any(|other| is_kept[*other]);
    }
    Ok(distinct.into_iter().zip(is_kept).filter_map(|(piece, is_kept)| is_kept.then_some(piece)).collect())
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::HashSet;

    use doppel_crawls::{FetchedBody, FetchedPage};
    use doppel_model::PageUrl;

    use super::*;

    /// Makes pages of about ten pieces each. Every second page is the page before it with other words at its
    /// end.
    pub(in super::super) fn crawl(pages: usize) -> CrawledPages {
        let mut crawled = CrawledPages::default();
        for page in 0..pages {
            let mut random = Random::of(1, [page as u64 / 2, 0, 0]);
            let mut words: Vec<String> = (0..7_000).map(|_| format!("w{:04}", random.index(3_000))).collect();
            let end = words.len() - if page % 2 == 1 { 300 } else { 0 };
            words[end..].iter_mut().for_each(|word| word.push('x'));
            let url = PageUrl::parse(&format!("http://h/{page}")).unwrap();
            let body = FetchedBody::Text(words.join("\n "));
            crawled.add(FetchedPage { url, fetched_at: None, body, popularity: None, language: None });
        }
        crawled
    }

    fn jaccard(a: &str, b: &str) -> f64 {
        let shingles = |text: &str| -> HashSet<Vec<String>> {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            words.windows(5).map(<[String]>::to_vec).collect()
        };
        let (a, b) = (shingles(a), shingles(b));
        let shared = a.intersection(&b).count();
        shared as f64 / (a.len() + b.len() - shared) as f64
    }

    #[test]
    fn no_two_texts_are_alike() {
        let crawled = crawl(6);
        let texts = Texts::new(&crawled, (60, true), 3).unwrap();
        // Each page has ten pieces. All but the last piece of a page and its version are copies, and the last
        // piece differs by half.
        assert_eq!((texts.cut, texts.all.len(), texts.real), (60, 60, 30));
        for (at, a) in texts.all.iter().enumerate() {
            let range = if at < texts.real { BYTES..BYTES + 8 } else { BYTES - 200..BYTES + 200 };
            assert!(range.contains(&a.len()), "{}", a.len());
            for b in &texts.all[..at] {
                assert!(jaccard(a, b) < 0.2, "{}", jaccard(a, b));
            }
        }
        let again = Texts::new(&crawled, (60, true), 3).unwrap();
        assert_eq!(texts.all, again.all);
        assert_ne!(texts.all, Texts::new(&crawled, (60, true), 4).unwrap().all);
        let real = Texts::new(&crawled, (60, false), 3).unwrap();
        assert_eq!(real.all, texts.real());
        assert_eq!(Texts::new(&crawled, (7, true), 3).unwrap().all, texts.real()[..7]);
    }

    #[test]
    fn pieces_that_are_no_text_are_left_out() {
        let of = |text: &str| {
            let mut pieces = Vec::new();
            cut(text, &mut pieces);
            pieces.len()
        };
        assert_eq!(
            (of(&"word ".repeat(819)), of(&"word ".repeat(820)), of(&"word ".repeat(1_700))),
            (0, 1, 2)
        );
        // A piece of few long words, and a piece with one very long word.
        assert_eq!((of(&"x".repeat(90).repeat(60)), of(&format!("{}\n", "x".repeat(60)).repeat(68))), (0, 0));
        assert_eq!(of(&format!("{}{}", "word ".repeat(700), "x".repeat(6_000))), 0);
    }
}
