//! Any bytes as a page, under any policy: no panic, a signature that reads back, the same answer from used buffers, and every token
//! either in the main content or left out.

#![no_main]

use std::cell::RefCell;

use doppel_model::pairwise::{Policy, Signer};
use doppel_model::signature::{SignatureKind, Signature};
use doppel_model::{PageUrl, RawContent};
use doppel_text::{Extraction, Extractor};
use libfuzzer_sys::fuzz_target;

thread_local! {
    /// One of each policy. Buffers have been used by the pages before.
    static EXTRACTORS: RefCell<Vec<Extractor>> = RefCell::new(Policy::all().map(extractor).collect());
}

/// Where the policy reads tables, they are learnt of a few texts.
fn extractor(policy: Policy) -> Extractor {
    let mut reader = Extractor::default();
    let texts = ["a page of some words", "another page of other words", "words and more words", "some more"];
    let terms = texts.map(|text| reader.text_terms(text).terms.to_vec());
    Extractor::signing(Signer::learnt(policy, terms))
}

fuzz_target!(|page: (u8, Option<&str>, &[u8])| {
    let (policy, charset, html) = page;
    EXTRACTORS.with_borrow_mut(|extractors| {
        let at = usize::from(policy) % extractors.len();
        read(&mut extractors[at], charset, html);
    });
});

fn read(extractor: &mut Extractor, charset: Option<&str>, html: &[u8]) {
    let url = PageUrl::parse("http://a.example/b/c?d").expect("a URL");
    if let Ok(text) = std::str::from_utf8(html) {
        extractor.text(text);
        extractor.text_at(&url, text);
    }
    let extracted = extractor.html(&url, html, charset);
    let raw = RawContent::Html { bytes: html, charset };
    let taken = extractor.main_content_report(&url, raw, 100);
    extractor.lines(&url, raw);
    extractor.terms(&url, raw);
    assert_eq!(extractor.html(&url, html, charset), extracted);
    match extracted {
        Extraction::Page(page) => {
            let read = Signature::from_bytes(page.signature.as_bytes()).expect("what was built is valid");
            assert_eq!(read, page.signature);
            let taken = taken.expect("it is no redirect");
            let left_out: usize = taken.left_out.iter().map(|omitted| omitted.tokens).sum();
            assert_eq!(taken.tokens + left_out, taken.of);
            let reads_main = matches!(read.kind(), SignatureKind::Content | SignatureKind::Copies);
            assert_eq!(read.tokens() as usize, if reads_main { taken.tokens } else { taken.of });
            assert!(!(reads_main || read.kind() == SignatureKind::Shingles) || read.size() <= read.tokens());
        }
        Extraction::Redirect(target) => assert_ne!(target, url),
    }
}
