//! Reads the inputs as hashed lines. One thread reads pages, all cores hash them in batches, and the builder
//! receives them in the order of the inputs. A page on which the extractor panics counts as a bad record.
//!
//! Memory is bounded for pages of any size. The pages of a batch are small, and so are the buffers that
//! extractors keep. A large page is hashed alone, by an extractor that is dropped afterwards. The memory for
//! the large page is claimed from the budget first.

use std::thread;
use std::time::Instant;

use anyhow::{Context, anyhow};
use doppel_crawls::FetchedPage;
use doppel_model::RawContent;
use doppel_model::pairwise::Policy;
use doppel_overlap::{CollectionBuilder, Document};
use doppel_text::{Extractor, HashedLines, is_read_in_place};

use crate::arguments::InputArgs;
use crate::processor;
use crate::reading::crawl;
use crate::records::unusable::UnusablePages;
use crate::tally::{self, Tally};

/// Most pages of a batch.
const BATCH_PAGES: usize = 512;
/// Bytes of pages with which a batch is complete. The hashes of their lines take at most four times as much
/// memory.
const BATCH_BYTES: u64 = 2 << 20;
/// A page with more bytes than this is large.
const LARGE_BYTES: u64 = 256 << 10;
/// Most extractors that work in parallel. Each keeps some megabytes, and more of them would only wait for the
/// reader.
const EXTRACTORS_MAX: usize = 8;
/// Bytes that a large page may take without a claim. This memory is set aside for pages, outside the budget.
const ASIDE_BYTES: u64 = 32 << 20;

/// Result of reading the inputs.
#[derive(Debug)]
pub struct ReadReport {
    /// Counts of what was read and what was not taken.
    pub tally: Tally,
    /// Elapsed time in seconds.
    pub seconds: f64,
}

/// Function that hashes the lines of a page. Returns `None` for a redirect or a death.
type Hash = fn(&mut Extractor, &FetchedPage) -> Option<HashedLines>;

/// Hashes pages, and pushes their lines into a builder.
struct Hashing<'b> {
    extractors: Vec<Extractor>,
    builder: &'b mut CollectionBuilder,
    hash: Hash,
    batch: Vec<FetchedPage>,
    batch_bytes: u64,
    /// Pages on which the extractor panicked.
    failed: UnusablePages,
}

/// Reads all inputs, and pushes the lines of each page into `builder`.
///
/// # Errors
/// If an input does not exist, or if the memory budget is too small.
pub fn read(inputs: &InputArgs, builder: &mut CollectionBuilder) -> anyhow::Result<ReadReport> {
    let begin = Instant::now();
    let mut hashing = Hashing::new(processor::cores().min(EXTRACTORS_MAX), builder, hash);
    hashing.failed = UnusablePages::of(inputs);
    let mut tally = crawl::read(inputs, |page| hashing.take(page))?;
    hashing.flush()?;
    tally.without(hashing.failed);
    Ok(ReadReport { tally, seconds: begin.elapsed().as_secs_f64() })
}

impl<'b> Hashing<'b> {
    fn new(threads: usize, builder: &'b mut CollectionBuilder, hash: Hash) -> Self {
        let extractors = (0..threads).map(|_| extractor()).collect();
        Self {
            extractors,
            builder,
            hash,
            batch: Vec::new(),
            batch_bytes: 0,
            failed: UnusablePages::default(),
        }
    }

    fn take(&mut self, page: FetchedPage) -> anyhow::Result<()> {
        let bytes = crawl::content_bytes(&page);
        if bytes > LARGE_BYTES {
            self.flush()?;
            return self.take_large(&page).with_context(|| page.url.to_string());
        }
        self.batch.push(page);
        self.batch_bytes += bytes;
        if self.batch.len() >= BATCH_PAGES || self.batch_bytes >= BATCH_BYTES { self.flush() } else { Ok(()) }
    }

    fn take_large(&mut self, page: &FetchedPage) -> anyhow::Result<()> {
        let needed = page.body.raw_content().map_or(0, buffer_bytes).saturating_sub(ASIDE_BYTES);
        let claim = self.builder.claim(needed, "hashing the lines of a page")?;
        let hash = self.hash;
        let hashed = extractor().guarded(|extractor| hash(extractor, page));
        self.push(page, hashed)?;
        drop(claim);
        Ok(())
    }

    /// Hashes the pages of the batch, and pushes their lines into the builder.
    fn flush(&mut self) -> anyhow::Result<()> {
        self.batch_bytes = 0;
        let pages = std::mem::take(&mut self.batch);
        let each = pages.len().div_ceil(self.extractors.len()).max(1);
        let hash = self.hash;
        let hashed: Vec<Option<Option<HashedLines>>> = thread::scope(|scope| {
            let threads: Vec<_> = pages
                .chunks(each)
                .zip(&mut self.extractors)
                .map(|(pages, extractor)| {
                    let hash = move |page| extractor.guarded(|extractor| hash(extractor, page));
                    scope.spawn(move || pages.iter().map(hash).collect::<Vec<_>>())
                })
                .collect();
            let joined =
                threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("hashing panicked")));
            let all: anyhow::Result<Vec<Vec<_>>> = joined.collect();
            all.map(|all| all.into_iter().flatten().collect())
        })?;
        pages.iter().zip(hashed).try_for_each(|(page, hashed)| self.push(page, hashed))
    }

    /// Pushes the lines of a page into the builder. `hashed` is `None` if the extractor panicked on the page,
    /// and `Some(None)` for a redirect or a death.
    fn push(&mut self, page: &FetchedPage, hashed: Option<Option<HashedLines>>) -> anyhow::Result<()> {
        let (url, bytes) = (page.url.as_str(), crawl::content_bytes(page));
        match hashed {
            Some(Some(HashedLines { text, lines })) => {
                let host = page.url.host();
                self.builder.push(&Document { url, host: &host, bytes, text, lines: &lines })?;
            }
            Some(None) => self.builder.push_removal(url)?,
            None => self.failed.note(tally::FAILED, (&page.url, bytes), &tally::FAILED),
        }
        Ok(())
    }
}

fn extractor() -> Extractor {
    Extractor::new(Policy::default())
}

/// Most bytes that an extractor can hold in its buffers after it has read the page.
fn buffer_bytes(raw: RawContent<'_>) -> u64 {
    let (bytes, in_place) = match raw {
        RawContent::Html { bytes, charset } | RawContent::Xhtml { bytes, charset } => {
            (bytes, is_read_in_place(bytes, charset))
        }
        RawContent::Text(text) => (text.as_bytes(), true),
    };
    let count = |is_one: fn(&u8) -> bool| bytes.iter().filter(|byte| is_one(byte)).count() as u64;
    let length = bytes.len() as u64;
    // When the page is decoded, a byte above ASCII becomes at most three bytes, and so do two bytes of
    // UTF-16.
    let longest = (length + 2 * count(|byte| !byte.is_ascii())).max(length + length / 2);
    let (decoded, text) = if in_place { (0, length) } else { (longest, longest) };
    // A line ends at a line feed, which may be written as an entity, or at a tag.
    let lines = 1 + count(|byte| matches!(byte, b'\n' | b'\r' | b'<' | b'&'));
    // Three times the text: its tokens, its lines, and the longest line.
    decoded + 3 * text + 8 * lines
}

fn hash(extractor: &mut Extractor, page: &FetchedPage) -> Option<HashedLines> {
    page.body.raw_content().and_then(|raw| extractor.lines(&page.url, raw))
}

#[cfg(test)]
mod tests {
    use crate::records::unusable::UnusableCount;
    use doppel_crawls::FetchedBody;
    use doppel_model::PageUrl;
    use doppel_overlap::{Budget, Chunking, ExactCopy};

    use super::*;

    fn page_of(number: usize, text: String) -> FetchedPage {
        let url = PageUrl::parse(&format!("http://h/{number}")).unwrap();
        FetchedPage { url, fetched_at: None, body: FetchedBody::Text(text), popularity: None, language: None }
    }

    #[test]
    fn a_large_page_claims_what_it_takes_and_keeps_its_place() {
        let home = tempfile::tempdir().unwrap();
        let chunking = Chunking { lines: 4, shared: 15 };
        let budget = Budget::new(96 << 20, 1 << 30, home.path());
        let mut builder = CollectionBuilder::new(&budget, &[chunking], false).unwrap();
        let before = budget.peaks().memory_bytes;
        let mut hashing = Hashing::new(2, &mut builder, hash);
        for number in 0..3 {
            hashing.take(page_of(number, "a\n".repeat(if number == 1 { 3 << 20 } else { 9 }))).unwrap();
        }
        hashing.flush().unwrap();
        // Three times the 6 MiB of text, the hashes of 3 Mi lines, and the chunks of the page; less the
        // memory that is set aside.
        assert!(budget.peaks().memory_bytes >= before + (18 << 20) + (24 << 20) - ASIDE_BYTES + (3 << 20));
        let collection = builder.finish().unwrap();
        assert_eq!(
            (0..3).map(|document| collection.url(document).unwrap()).collect::<Vec<_>>(),
            ["http://h/0", "http://h/1", "http://h/2"]
        );
        assert_eq!(collection.copies().collect::<Vec<_>>(), [ExactCopy { central: 0, copy: 2 }]);
        // A page that does not fit is refused, and the error names the page.
        let budget = Budget::new(4 << 20, 1 << 30, home.path());
        let mut builder = CollectionBuilder::new(&budget, &[chunking], false).unwrap();
        let refused =
            Hashing::new(2, &mut builder, hash).take(page_of(7, "a\n".repeat(3 << 20))).unwrap_err();
        let refused = format!("{refused:#}");
        assert!(refused.starts_with("http://h/7: "), "{refused}");
        assert!(refused.contains("needed for hashing the lines of a page"), "{refused}");
    }

    #[test]
    fn what_is_decoded_takes_more_than_what_is_read_in_place() {
        let html = "<p>文".repeat(1_000);
        let buffers = |charset| buffer_bytes(RawContent::Html { bytes: html.as_bytes(), charset });
        // Of every six bytes, three are above ASCII and become three bytes each. The decoded text is in
        // memory four times instead of three.
        assert_eq!((buffers(None), buffers(Some("latin1"))), (3 * 6_000 + 8 * 1_001, 4 * 12_000 + 8 * 1_001));
        assert_eq!(buffers(Some("utf-8")), buffers(None));
    }

    #[test]
    fn a_page_that_the_extractor_fails_on_is_bad_and_harms_no_other() {
        let failing: Hash = |extractor, page| match page.url.as_str() {
            "http://h/3" => panic!("no page"),
            _ => hash(extractor, page),
        };
        let page = |number: usize| page_of(number, "the text of all".to_owned());
        let home = tempfile::tempdir().unwrap();
        let budget = Budget::new(96 << 20, 1 << 30, home.path());
        let mut builder =
            CollectionBuilder::new(&budget, &[Chunking { lines: 4, shared: 15 }], false).unwrap();
        let mut hashing = Hashing::new(2, &mut builder, failing);
        (0..6).try_for_each(|number| hashing.take(page(number))).unwrap();
        // Also a large page, which is hashed alone.
        let large = page_of(3, "a ".repeat(LARGE_BYTES as usize));
        hashing.take(large).unwrap();
        hashing.flush().unwrap();
        let failed: Vec<_> = hashing.failed.by_reason().collect();
        let expected =
            UnusableCount { reason: tally::FAILED.to_owned(), pages: 2, bytes: 15 + 2 * LARGE_BYTES };
        assert_eq!(failed, [expected]);
        // The other pages have the same text, so each of them but the first is a copy.
        let collection = builder.finish().unwrap();
        let url = |document| collection.url(document).unwrap().to_string();
        let copies: Vec<_> = collection.copies().map(|one| (url(one.central), url(one.copy))).collect();
        let expected = [1, 2, 4, 5].map(|n| ("http://h/0".to_owned(), format!("http://h/{n}")));
        assert_eq!(copies, expected);
    }
}
