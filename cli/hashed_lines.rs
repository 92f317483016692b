//! Crawls on disk as hashed lines: read in batches on one thread, hashed on all cores, handed over in the order of the inputs. A page
//! that makes the extractor panic is a bad record.

use std::thread;
use std::time::Instant;

use anyhow::anyhow;
use doppel_crawls::Fetched;
use doppel_model::pairwise::Policy;
use doppel_overlap::{Builder, Document};
use doppel_text::{Extractor, HashedLines};

use crate::args::InputArgs;
use crate::crawl::{self, BatchSize, Tally, Unusable};
use crate::processor;

/// Pages that are in memory at once. No further ones are read while these are hashed: counting has a bound on memory that leaves
/// room for no more ([`bounded`](crate::bounded)).
const BATCH: BatchSize = BatchSize { pages: 512, bytes: 8 << 20 };

/// What was read.
#[derive(Debug)]
pub struct Read {
    /// What came out of the inputs.
    pub tally: Tally,
    /// How long it took.
    pub seconds: f64,
}

/// What became of a page.
enum Hashed {
    /// Its text and its lines.
    Page(Option<u64>, Vec<u64>),
    /// It is no page, or no more.
    Gone,
}

/// How a page is hashed.
type Hash = fn(&mut Extractor, &Fetched) -> Hashed;

/// Hashes pages into a builder.
struct Hashing<'b> {
    extractors: Vec<Extractor>,
    builder: &'b mut Builder,
    hash: Hash,
    /// Pages that the extractor failed on.
    failed: Unusable,
}

/// Hands all pages over.
///
/// # Errors
/// When an input is not there, or the memory does not suffice.
pub fn read(inputs: &InputArgs, builder: &mut Builder) -> anyhow::Result<Read> {
    let begin = Instant::now();
    let mut hashing = Hashing::new(processor::cores(), builder, hash);
    let mut tally = crawl::read_batches(inputs, ("reading", true), BATCH, |pages| hashing.take(&pages))?;
    tally.without(hashing.failed);
    Ok(Read { tally, seconds: begin.elapsed().as_secs_f64() })
}

impl<'b> Hashing<'b> {
    fn new(threads: usize, builder: &'b mut Builder, hash: Hash) -> Self {
        let extractors = (0..threads).map(|_| Extractor::new(Policy::default())).collect();
        Self { extractors, builder, hash, failed: Unusable::default() }
    }

    fn take(&mut self, pages: &[Fetched]) -> anyhow::Result<()> {
        let each = pages.len().div_ceil(self.extractors.len()).max(1);
        let hash = self.hash;
        let hashed: Vec<Option<Hashed>> = thread::scope(|scope| {
            let threads: Vec<_> = pages
                .chunks(each)
                .zip(&mut self.extractors)
                .map(|(pages, extractor)| {
                    let hash = move |page| extractor.guarded(|extractor| hash(extractor, page));
                    scope.spawn(move || pages.iter().map(hash).collect::<Vec<_>>())
                })
                .collect();
            let joined =
                threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a thread panicked")));
            let all: anyhow::Result<Vec<Vec<Option<Hashed>>>> = joined.collect();
            all.map(|all| all.into_iter().flatten().collect())
        })?;
        for (page, hashed) in pages.iter().zip(hashed) {
            let (url, bytes) = (page.url.as_str(), crawl::content_bytes(page));
            match hashed {
                Some(Hashed::Page(text, lines)) => {
                    let host = page.url.host();
                    self.builder.push(&Document { url, host: &host, bytes, text, lines: &lines })?;
                }
                Some(Hashed::Gone) => self.builder.gone(url)?,
                None => self.failed.note(crawl::FAILED, (&page.url, bytes), &crawl::FAILED),
            }
        }
        Ok(())
    }
}

fn hash(extractor: &mut Extractor, page: &Fetched) -> Hashed {
    let hashed = page.body.raw_content().and_then(|raw| extractor.lines(&page.url, raw));
    hashed.map_or(Hashed::Gone, |HashedLines { text, lines }| Hashed::Page(text, lines.to_vec()))
}

#[cfg(test)]
mod tests {
    use doppel_crawls::FetchedBody;
    use doppel_model::PageUrl;
    use doppel_overlap::{Budget, Chunking};

    use super::*;

    #[test]
    fn a_page_that_the_extractor_fails_on_is_bad_and_harms_no_other() {
        let failing: Hash = |extractor, page| match page.url.as_str() {
            "http://h/3" => panic!("no page"),
            _ => hash(extractor, page),
        };
        let page = |number: usize| {
            let url = PageUrl::parse(&format!("http://h/{number}")).unwrap();
            let body = FetchedBody::Text("the text of all".to_owned());
            Fetched { url, fetched_at: None, body, popularity: None, language: None }
        };
        let home = tempfile::tempdir().unwrap();
        let budget = Budget::new(96 << 20, 1 << 30, home.path());
        let mut builder = Builder::new(&budget, &[Chunking { lines: 4, shared: 15 }], false).unwrap();
        let mut hashing = Hashing::new(2, &mut builder, failing);
        hashing.take(&(0..6).map(page).collect::<Vec<_>>()).unwrap();
        let mut failed = Unusable::default();
        failed.note(crawl::FAILED, (&page(3).url, 15), &"expected");
        assert_eq!(hashing.failed, failed);
        // The others are one text, so each but the first is a copy.
        let collection = builder.finish().unwrap();
        let url = |document| collection.url(document).unwrap().to_string();
        let copies: Vec<_> = collection.copies().map(|(of, copy)| (url(of), url(copy))).collect();
        let expected = [1, 2, 4, 5].map(|n| ("http://h/0".to_owned(), format!("http://h/{n}")));
        assert_eq!(copies, expected);
    }
}
