//! Any bytes as a page: no panic, and a signature that reads back.

#![no_main]

use doppel_common::model::PageUrl;
use doppel_common::signature::Signature;
use doppel_common::text::{Extracted, Extractor};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|page: (Option<&str>, &[u8])| {
    let (charset, html) = page;
    let url = PageUrl::parse("http://a.example/b/c?d").expect("a URL");
    match Extractor::new().html(&url, html, charset) {
        Extracted::Page(page) => {
            let read = Signature::from_bytes(page.signature.as_bytes()).expect("what was built is valid");
            assert_eq!(read, page.signature);
            assert!(read.shingles() <= read.tokens());
        }
        Extracted::Redirect(target) => assert_ne!(target, url),
    }
});
