//! Benchmarks of signature extraction on a real crawl. Run `cargo bench -p doppel-engine`.
//!
//! The environment variable `DOPPEL_DATA` names the directory of the crawls. The default is `../shared/data`
//! beside the repository.

use std::path::{Path, PathBuf};

use divan::Bencher;
use divan::counter::{BytesCount, ItemsCount};
use doppel_contract::page::{PageBody, PageItem};
use doppel_crawls::{FetchedBody, FetchedPage, Item, Limits};
use doppel_engine::ingest::{Ingest, PageSource};
use doppel_model::RawContent;
use doppel_model::Timestamp;
use doppel_model::pairwise::Policy;
use doppel_text::decode;

const NOW: Timestamp = Timestamp::from_millis(1_900_000_000_000);

fn main() {
    divan::main();
}

/// Reads the pages of the small crawl. Returns an empty list if the crawl is missing.
fn pages() -> Vec<FetchedPage> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let data = std::env::var_os("DOPPEL_DATA").map_or(beside, PathBuf::from);
    let file = data.join("quick/round-00.warc.gz");
    let Ok(crawl) = doppel_crawls::open(&file, Limits::at(NOW)) else {
        println!("skipped, no crawl at {}", file.display());
        return Vec::new();
    };
    crawl.filter_map(|item| if let Item::Page(page) = item { Some(page) } else { None }).collect()
}

/// Converts HTML pages to JSON lines of the public API.
fn lines(pages: &[FetchedPage]) -> Vec<Vec<u8>> {
    let line = |page: &FetchedPage| {
        let FetchedBody::Html { bytes, charset } = &page.body else { return None };
        let mut html = String::new();
        let html = decode(bytes, charset.as_deref(), &mut html).to_owned();
        let item = PageItem {
            url: page.url.clone(),
            body: PageBody::Html(html),
            fetched_at: None,
            popularity: None,
            language: None,
        };
        let mut line = Vec::new();
        item.to_json_line(&mut line);
        Some(line)
    };
    pages.iter().filter_map(line).collect()
}

fn content_bytes(page: &FetchedPage) -> usize {
    page.body.raw_content().map_or(0, RawContent::size)
}

#[divan::bench(args = [1, 2], sample_count = 10)]
fn crawl(bencher: Bencher<'_, '_>, threads: usize) {
    let ingest = Ingest::new(threads, Policy::default()).expect("threads start");
    let pages = pages();
    bencher
        .counter(ItemsCount::new(pages.len()))
        .counter(BytesCount::new(pages.iter().map(content_bytes).sum::<usize>()))
        .with_inputs(|| pages.iter().cloned().map(PageSource::Fetched).collect::<Vec<_>>())
        .bench_values(|sources| ingest.run(sources, NOW));
}

#[divan::bench(args = [1, 2], sample_count = 10)]
fn json_lines(bencher: Bencher<'_, '_>, threads: usize) {
    let ingest = Ingest::new(threads, Policy::default()).expect("threads start");
    let lines = lines(&pages());
    bencher
        .counter(ItemsCount::new(lines.len()))
        .counter(BytesCount::new(lines.iter().map(Vec::len).sum::<usize>()))
        .with_inputs(|| lines.iter().map(|line| PageSource::Json(line.clone().into())).collect::<Vec<_>>())
        .bench_values(|sources| ingest.run(sources, NOW));
}
