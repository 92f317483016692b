//! Crawls on disk as hashed lines: read in batches on one thread, hashed on all cores, handed over in the order of the inputs.

use std::num::NonZero;
use std::thread;
use std::time::Instant;

use anyhow::anyhow;
use doppel_crawls::{Fetched, FetchedBody};
use doppel_model::pairwise::Policy;
use doppel_overlap::{Builder, Document};
use doppel_text::{Extractor, HashedLines};

use crate::args::InputArgs;
use crate::crawl::{self, Tally};

/// Pages of a batch ...
const BATCH_PAGES: usize = 512;
/// ... or bytes of them; one page may be larger.
const BATCH_BYTES: u64 = 8 << 20;

/// What was read.
#[derive(Debug)]
pub struct Read {
    /// What came out of the inputs.
    pub tally: Tally,
    /// How long it took.
    pub seconds: f64,
}

/// The text and the lines of a page; none of what is no page.
type Hashed = Option<(Option<u64>, Vec<u64>)>;

/// Hands all pages over.
///
/// # Errors
/// When an input is not there, or the memory does not suffice.
pub fn read(inputs: &InputArgs, builder: &mut Builder) -> anyhow::Result<Read> {
    let begin = Instant::now();
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let mut extractors: Vec<Extractor> = (0..threads).map(|_| Extractor::new(Policy::default())).collect();
    let (mut pages, mut bytes) = (Vec::new(), 0);
    let tally = crawl::read(inputs, |page| {
        bytes += crawl::content_bytes(&page);
        pages.push(page);
        if pages.len() >= BATCH_PAGES || bytes >= BATCH_BYTES {
            bytes = 0;
            take(&std::mem::take(&mut pages), &mut extractors, builder)?;
        }
        Ok(())
    })?;
    take(&pages, &mut extractors, builder)?;
    Ok(Read { tally, seconds: begin.elapsed().as_secs_f64() })
}

fn take(pages: &[Fetched], extractors: &mut [Extractor], builder: &mut Builder) -> anyhow::Result<()> {
    let each = pages.len().div_ceil(extractors.len()).max(1);
    let hashed: Vec<Hashed> = thread::scope(|scope| {
        let threads: Vec<_> = pages
            .chunks(each)
            .zip(extractors)
            .map(|(pages, extractor)| {
                scope.spawn(move || pages.iter().map(|page| hash(extractor, page)).collect::<Vec<_>>())
            })
            .collect();
        let joined =
            threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("an extractor panicked")));
        let all: anyhow::Result<Vec<Vec<Hashed>>> = joined.collect();
        all.map(|all| all.into_iter().flatten().collect())
    })?;
    for (page, hashed) in pages.iter().zip(hashed) {
        match hashed {
            Some((text, lines)) => {
                let (url, host, bytes) = (page.url.as_str(), page.url.host(), crawl::content_bytes(page));
                builder.push(&Document { url, host: &host, bytes, text, lines: &lines })?;
            }
            None => builder.gone(page.url.as_str())?,
        }
    }
    Ok(())
}

fn hash(extractor: &mut Extractor, page: &Fetched) -> Hashed {
    let HashedLines { text, lines } = match &page.body {
        FetchedBody::Html { bytes, charset } => extractor.html_lines(&page.url, bytes, charset.as_deref())?,
        FetchedBody::Text(text) => extractor.text_lines(text),
        FetchedBody::Redirect(_) | FetchedBody::Dead => return None,
    };
    Some((text, lines.to_vec()))
}
