//! Draws pages by their URLs, to measure how long a page takes.

use std::collections::BTreeMap;
use std::hint::black_box;

use doppel_crawls::FetchedPage;
use doppel_inputs::processor::thread_seconds;
use doppel_inputs::reading::crawl::content_bytes;
use doppel_model::PageId;
use doppel_model::pairwise::{Policy, Signer};
use doppel_text::{Extractor, PagePart};
use serde::Serialize;

/// Number of pages in the sample.
const PAGES: usize = 500;
/// Largest number of bytes in the sample.
const BYTES: u64 = 64 << 20;
/// Number of pages that are read before the measurement begins.
const WARM_UP: usize = 50;

/// The pages with the smallest ids. Ids are hashes of URLs, so the sample does not depend on the order of the
/// input.
#[derive(Debug, Default)]
pub(super) struct Sample {
    pages: BTreeMap<PageId, FetchedPage>,
    bytes: u64,
}

impl Sample {
    pub(super) fn take(&mut self, page: &FetchedPage) {
        let id = page.url.id();
        // A page behind the last one of a full sample would be dropped again, so it is not even copied.
        let is_past =
            self.pages.len() >= PAGES && self.pages.last_key_value().is_some_and(|(last, _)| *last < id);
        if is_past || !page.body.has_content() {
            return;
        }
        self.bytes += content_bytes(page);
        if let Some(before) = self.pages.insert(id, page.clone()) {
            self.bytes -= content_bytes(&before);
        }
        while self.pages.len() > PAGES || (self.bytes > BYTES && self.pages.len() > 1) {
            let Some((_, out)) = self.pages.pop_last() else { return };
            self.bytes -= content_bytes(&out);
        }
    }

    /// Microseconds of processor time that a page takes from its fetched form to its signature, on average;
    /// `None` if the sample is empty.
    pub(super) fn microseconds(&self, signer: &Signer) -> Option<f64> {
        let mut extractor = Extractor::signing(signer.clone());
        self.pages.values().take(WARM_UP).for_each(|page| read(&mut extractor, page));
        let begin = thread_seconds();
        self.pages.values().for_each(|page| read(&mut extractor, page));
        let spent = thread_seconds() - begin;
        (!self.pages.is_empty()).then(|| spent * 1e6 / self.pages.len() as f64)
    }

    /// Counts pages of HTML, and those whose main content is too small to be compared alone.
    pub(super) fn main_contents(&self) -> MainContents {
        let mut extractor = Extractor::new(Policy::default());
        let taken = self.pages.values().filter_map(|page| {
            let raw = page.body.raw_content()?;
            extractor.guarded(|extractor| extractor.main_content_report(&page.url, raw, 0)).flatten()
        });
        taken.fold(MainContents::default(), |found, taken| MainContents {
            pages: found.pages + 1,
            whole: found.whole + u64::from(taken.part == PagePart::Whole),
        })
    }
}

/// Pages of HTML, by which part of them is compared.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct MainContents {
    /// Number of drawn pages of HTML.
    pub(super) pages: u64,
    /// Number of pages that are compared whole, because too little is left without their template.
    pub(super) whole: u64,
}

fn read(extractor: &mut Extractor, page: &FetchedPage) {
    if let Some(raw) = page.body.raw_content() {
        // Pages that fail here are counted when they are read for a trial.
        black_box(extractor.guarded(|extractor| extractor.extract(&page.url, raw)));
    }
}

#[cfg(test)]
mod tests {
    use doppel_crawls::FetchedBody;
    use doppel_model::PageUrl;

    use super::*;

    fn page(number: usize) -> FetchedPage {
        let url = PageUrl::parse(&format!("http://h/{number}")).unwrap();
        let body = FetchedBody::Text(format!("{number} one two three"));
        FetchedPage { url, fetched_at: None, body, popularity: None, language: None }
    }

    #[test]
    fn pages_with_too_little_main_content_are_counted() {
        let menu = "<nav>".to_owned() + &"menu ".repeat(30) + "</nav>";
        let long = "word ".repeat(30);
        let mut sample = Sample::default();
        for (number, html) in [format!("{menu}a stub"), format!("{menu}{long}"), long].into_iter().enumerate()
        {
            let body = FetchedBody::Html { bytes: html.into_bytes(), charset: None };
            sample.take(&FetchedPage { body, ..page(number) });
        }
        sample.take(&page(3));
        assert_eq!(sample.main_contents(), MainContents { pages: 3, whole: 1 });
    }

    #[test]
    fn the_order_of_the_input_does_not_matter() {
        let [mut forth, mut back] = [Sample::default(), Sample::default()];
        (0..2_000).for_each(|number| forth.take(&page(number)));
        (0..2_000).rev().for_each(|number| back.take(&page(number)));
        // A repeated page takes no more room.
        back.take(&page(3));
        assert_eq!(forth.pages.len(), PAGES);
        assert!(forth.pages.keys().eq(back.pages.keys()) && forth.bytes == back.bytes);
        let bytes: u64 = forth.pages.values().map(content_bytes).sum();
        assert_eq!(forth.bytes, bytes);
        let signer = Signer::new(Policy::default());
        assert!(forth.microseconds(&signer).is_some());
        assert!(Sample::default().microseconds(&signer).is_none());
    }
}
