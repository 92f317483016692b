//! Any bytes as a page: no panic, a signature that reads back, and the same answer from used buffers.

#![no_main]

use doppel_model::PageUrl;
use doppel_model::signature::Signature;
use doppel_text::{Extracted, Extractor};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|page: (Option<&str>, &[u8])| {
    let (charset, html) = page;
    let url = PageUrl::parse("http://a.example/b/c?d").expect("a URL");
    let mut extractor = Extractor::default();
    if let Ok(text) = std::str::from_utf8(html) {
        extractor.text(text);
    }
    let extracted = extractor.html(&url, html, charset);
    assert_eq!(extractor.html(&url, html, charset), extracted);
    match extracted {
        Extracted::Page(page) => {
            let read = Signature::from_bytes(page.signature.as_bytes()).expect("what was built is valid");
            assert_eq!(read, page.signature);
            assert!(read.size() <= read.tokens());
        }
        Extracted::Redirect(target) => assert_ne!(target, url),
    }
});
