//! Any bytes as XHTML: no panic, bounded expansion of entities, the same answer from used buffers, and the same answer of a document in which an XML
//! declaration says what a media type says.

#![no_main]

use std::cell::RefCell;

use doppel_model::{PageUrl, RawContent};
use doppel_text::{Extraction, Extractor, PageText};
use libfuzzer_sys::fuzz_target;

thread_local! {
    /// Buffers have been used by the pages before.
    static EXTRACTOR: RefCell<Extractor> = RefCell::default();
}

/// The most bytes of entities that are expanded in a page.
const EXPANDED_MAX: usize = 1 << 20;

fuzz_target!(|document: &str| {
    EXTRACTOR.with_borrow_mut(|extractor| read(extractor, document));
});

fn read(extractor: &mut Extractor, document: &str) {
    let url = PageUrl::parse("http://a.example/b/c?d").expect("a URL");
    let charset = Some("utf-8");
    let raw = RawContent::Xhtml { bytes: document.as_bytes(), charset };
    let extracted = extractor.extract(&url, raw);
    assert_eq!(Extractor::default().extract(&url, raw), extracted);
    match extractor.page_text(&url, raw) {
        // Each byte of text, and one space for each tag; tags of entities are among what is expanded.
        PageText::Text(text) => assert!(text.len() <= 4 * (document.len() + EXPANDED_MAX)),
        PageText::Redirect(target) => {
            assert_ne!(target, url);
            assert_eq!(extracted, Extraction::Redirect(target));
        }
    }
    extractor.lines(&url, raw);
    extractor.main_content_report(&url, raw, 100);
    let is_declared = document.trim_ascii_start().starts_with("<?xml") || document.starts_with('\u{feff}');
    if !is_declared {
        let declared = format!("<?xml version=\"1.0\"?>{document}");
        let of_declared = RawContent::Html { bytes: declared.as_bytes(), charset };
        match (extractor.extract(&url, of_declared), &extracted) {
            (Extraction::Page(a), Extraction::Page(b)) => assert_eq!(a.signature.tokens(), b.signature.tokens()),
            (a, b) => assert_eq!(a, *b),
        }
    }
}
