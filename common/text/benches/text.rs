//! Measures the path from pages to signatures on a single core, in total and by stage.
//!
//! The pages are the first half of the `mid` crawl if the corpora are present. Otherwise they are generated.
//! All throughputs except those of `text` are in bytes of HTML, so that times add up:
//!
//! - `html` without language detection takes about `stage_charset` + `stage_html_tokenizer` + `text` without
//!   language detection. The rest is the work at each tag.
//! - `text` without language detection consists of the tokens and `stage_build`, which includes
//!   `stage_sketch`.
//!
//! `cargo bench -p doppel-text --bench text`
#![allow(clippy::unwrap_used)]

use std::convert::Infallible;
use std::hint::black_box;
use std::sync::LazyLock;

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use doppel_model::signature::{Builder, Signature};
use doppel_model::sketch::sketch;
use doppel_model::{PageUrl, stable_hash64};
use doppel_text::{Extraction, Extractor};
use html5gum::emitters::callback::{CallbackEmitter, CallbackEvent};
use html5gum::{Emitter, Error, Span, State, Tokenizer};

use crate::crawl::Html;

#[path = "../tests/crawl/mod.rs"]
mod crawl;

fn main() {
    divan::main();
}

static PAGES: LazyLock<Vec<Html>> = LazyLock::new(|| {
    let pages = crawl::html(&["mid/mid-00"]).unwrap_or_else(generated);
    println!("{} pages, {} bytes of HTML, {} of text", pages.len(), bytes(&pages), text_bytes(&pages));
    pages
});

static TEXTS: LazyLock<Vec<String>> = LazyLock::new(|| PAGES.iter().map(|p| text_of(&p.bytes)).collect());

/// Generates pages with paragraphs of words that have natural lengths.
fn generated() -> Vec<Html> {
    let mut seed = 1u64;
    let mut random = |below: u64| {
        seed = stable_hash64(&seed.to_le_bytes());
        seed % below
    };
    let mut page = |number: u64| {
        let mut html = format!("<!doctype html><title>page {number}</title><body class=\"page\">");
        for _ in 0..random(40) {
            html.push_str("<p class=\"text\">");
            for _ in 0..40 {
                let word = random(5_000);
                let letters = "etaoinshrdlu".chars().cycle().skip(word as usize % 12);
                html.extend(letters.take(1 + (word % 9) as usize));
                html.push(' ');
            }
        }
        let url = PageUrl::parse(&format!("http://example.org/{number}")).unwrap();
        Html { url, charset: None, bytes: html.into_bytes() }
    };
    (0..5_000).map(&mut page).collect()
}

/// Returns the text of a page without scripts and styles.
fn text_of(html: &[u8]) -> String {
    let mut text = String::new();
    let mut is_ignored = false;
    let mut emitter = CallbackEmitter::new(|event: CallbackEvent<'_>, _: Span<()>| {
        match event {
            CallbackEvent::OpenStartTag { name } => {
                is_ignored = name == b"script" || name == b"style";
                text.push(' ');
            }
            CallbackEvent::EndTag { .. } => {
                is_ignored = false;
                text.push(' ');
            }
            CallbackEvent::String { value } if !is_ignored => text.push_str(&String::from_utf8_lossy(value)),
            _ => {}
        }
        None::<Infallible>
    });
    emitter.naively_switch_states(true);
    let Ok(()) = Tokenizer::new_with_emitter(html, emitter).finish();
    text
}

fn bytes(pages: &[Html]) -> usize {
    pages.iter().map(|p| p.bytes.len()).sum()
}

fn text_bytes(pages: &[Html]) -> usize {
    pages.iter().map(|p| text_of(&p.bytes).len()).sum()
}

fn extractor(language: bool) -> Extractor {
    if language { Extractor::default().detecting_language() } else { Extractor::default() }
}

fn signatures() -> Vec<Signature> {
    let mut extractor = Extractor::default();
    let read = |page: &Html| match extractor.html(&page.url, &page.bytes, page.charset.as_deref()) {
        Extraction::Page(page) => Some(page.signature),
        Extraction::Redirect(_) => None,
    };
    PAGES.iter().filter_map(read).collect()
}

#[divan::bench(sample_count = 5, sample_size = 1, args = [true, false])]
fn html(bencher: Bencher<'_, '_>, language: bool) {
    let mut extractor = extractor(language);
    bencher.counter(BytesCount::new(bytes(&PAGES))).bench_local(|| {
        for page in PAGES.iter() {
            black_box(extractor.html(&page.url, &page.bytes, page.charset.as_deref()));
        }
    });
}

/// Like [`html`], for the default policy and for policies that compare the main content.
#[divan::bench(sample_count = 5, sample_size = 1, args = ["jaccard", "content", "copies"])]
fn html_under(bencher: Bencher<'_, '_>, policy: &str) {
    let mut extractor = Extractor::new(policy.parse().unwrap());
    bencher.counter(BytesCount::new(bytes(&PAGES))).bench_local(|| {
        for page in PAGES.iter() {
            black_box(extractor.html(&page.url, &page.bytes, page.charset.as_deref()));
        }
    });
}

#[divan::bench(sample_count = 5, sample_size = 1, args = [true, false])]
fn text(bencher: Bencher<'_, '_>, language: bool) {
    let mut extractor = extractor(language);
    bencher.counter(BytesCount::new(TEXTS.iter().map(String::len).sum::<usize>())).bench_local(|| {
        for text in TEXTS.iter() {
            black_box(extractor.text(text));
        }
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn stage_charset(bencher: Bencher<'_, '_>) {
    bencher.counter(BytesCount::new(bytes(&PAGES))).bench_local(|| {
        for page in PAGES.iter() {
            let _ = black_box(std::str::from_utf8(&page.bytes));
        }
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn stage_html_tokenizer(bencher: Bencher<'_, '_>) {
    bencher.counter(BytesCount::new(bytes(&PAGES))).bench_local(|| {
        for page in PAGES.iter() {
            let Ok(()) = Tokenizer::new_with_emitter(page.bytes.as_slice(), DiscardingEmitter).finish();
        }
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn stage_build(bencher: Bencher<'_, '_>) {
    let contents: Vec<Vec<u64>> = signatures()
        .iter()
        .map(|s| (0..u64::from(s.tokens())).map(|i| stable_hash64(&i.to_le_bytes())).collect())
        .collect();
    let mut builder = Builder::new();
    bencher.counter(BytesCount::new(bytes(&PAGES))).bench_local(|| {
        for tokens in &contents {
            black_box(builder.build(tokens));
        }
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn stage_sketch(bencher: Bencher<'_, '_>) {
    let sets: Vec<Vec<u64>> = signatures().iter().map(|s| s.set().collect()).collect();
    bencher.counter(BytesCount::new(bytes(&PAGES))).bench_local(|| {
        for set in &sets {
            black_box(sketch(set));
        }
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn stage_language(bencher: Bencher<'_, '_>) {
    let samples: Vec<String> = TEXTS.iter().map(|t| t.chars().take(300).collect()).collect();
    bencher.counter(BytesCount::new(bytes(&PAGES))).bench_local(|| {
        for sample in &samples {
            black_box(whatlang::detect(sample));
        }
    });
}

#[divan::bench(sample_count = 5, sample_size = 1)]
fn shared_of_neighbours(bencher: Bencher<'_, '_>) {
    let signatures = signatures();
    let shingles: usize = signatures.windows(2).map(|w| (w[0].size() + w[1].size()) as usize).sum();
    bencher.counter(ItemsCount::new(shingles)).bench_local(|| {
        for pair in signatures.windows(2) {
            black_box(pair[0].shared_with(&pair[1]));
        }
    });
}

/// Emitter that drops everything. Its time is that of the tokenizer alone.
struct DiscardingEmitter;

impl Emitter for DiscardingEmitter {
    type Token = Infallible;

    fn should_emit_errors(&mut self) -> bool {
        false
    }
    fn pop_token(&mut self) -> Option<Infallible> {
        None
    }
    fn emit_string(&mut self, piece: &[u8]) {
        black_box(piece);
    }
    fn emit_current_tag(&mut self) -> Option<State> {
        None
    }
    fn current_is_appropriate_end_tag_token(&mut self) -> bool {
        false
    }
    fn set_last_start_tag(&mut self, _: Option<&[u8]>) {}
    fn emit_eof(&mut self) {}
    fn emit_error(&mut self, _: Error) {}
    fn init_start_tag(&mut self) {}
    fn init_end_tag(&mut self) {}
    fn init_comment(&mut self) {}
    fn emit_current_comment(&mut self) {}
    fn emit_current_doctype(&mut self) {}
    fn set_self_closing(&mut self) {}
    fn set_force_quirks(&mut self) {}
    fn push_tag_name(&mut self, _: &[u8]) {}
    fn push_comment(&mut self, _: &[u8]) {}
    fn push_doctype_name(&mut self, _: &[u8]) {}
    fn init_doctype(&mut self) {}
    fn init_attribute(&mut self) {}
    fn push_attribute_name(&mut self, _: &[u8]) {}
    fn push_attribute_value(&mut self, _: &[u8]) {}
    fn set_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn set_doctype_system_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_public_identifier(&mut self, _: &[u8]) {}
    fn push_doctype_system_identifier(&mut self, _: &[u8]) {}
}
