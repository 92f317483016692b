//! Crawls on disk as pages with signatures: read on one thread, extracted on all cores, and handed over on the
//! caller's thread in the order of the inputs.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use anyhow::{Context, anyhow};
use doppel_coordinator::ingest::{Batch, Ingest, Source};
use doppel_model::pairwise::Signer;
use doppel_protocol::Submission;
use doppel_text::Extractor;

use crate::args::InputArgs;
use crate::crawl::{self, Tally};

/// Pages of a batch ...
pub(crate) const BATCH_PAGES: usize = 1_024;
// Tier 1 refuses more.
const _: () = assert!(BATCH_PAGES <= doppel_protocol::BATCH_MAX);
/// ... or bytes of them; one page may be larger.
const BATCH_BYTES: u64 = 16 << 20;
/// Batches that are read and extracted ahead.
const BATCHES_AHEAD: usize = 2;

/// A page with its signature.
pub(crate) struct ExtractedPage {
    pub(crate) submission: Submission,
    /// Bytes of its text or HTML, as it was read.
    pub(crate) bytes: u64,
}

/// Pages that are being extracted, and the bytes of each.
type Reading = (Batch, Vec<u64>);

/// Extractors with this signer, on all cores.
///
/// # Errors
/// When the operating system gives no thread.
pub(crate) fn extractors(signer: Signer, detect_language: bool) -> anyhow::Result<Ingest> {
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let ingest = Ingest::with(threads, move || {
        let extractor = Extractor::signing(signer.clone());
        if detect_language { extractor.detecting_language() } else { extractor }
    });
    ingest.context("cannot start the extractors")
}

/// Hands the pages of all inputs to `take`, in batches.
///
/// # Errors
/// When an input is not there, or what `take` fails with.
pub(crate) fn pages(
    inputs: &InputArgs,
    (signer, detect_language): (Signer, bool),
    take: impl FnMut(Vec<ExtractedPage>) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    let ingest = extractors(signer, detect_language)?;
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        let ingest = &ingest;
        let reader = scope.spawn(move || read(inputs, ingest, &sender));
        let taken = dispatch(batches, take);
        let read = reader.join().map_err(|_| anyhow!("the reader panicked"))?;
        // When `take` fails, reading stops because of that; so its error comes first.
        let (failed, mut tally) = (taken?, read?);
        if failed > 0 {
            tally.bad.insert("failed inside the extractor".to_owned(), failed);
        }
        Ok(tally)
    })
}

/// Reads the inputs in batches, and hands each over as soon as its extraction has begun.
fn read(inputs: &InputArgs, ingest: &Ingest, batches: &SyncSender<Reading>) -> anyhow::Result<Tally> {
    let now = crawl::now();
    let (mut pages, mut bytes) = (Vec::new(), Vec::new());
    let send = |pages, bytes| {
        let sent = batches.send((ingest.start(pages, now), bytes));
        sent.map_err(|_| anyhow!("nobody takes the pages"))
    };
    let mut sum = 0;
    let tally = crawl::read(inputs, |page| {
        let own = crawl::content_bytes(&page);
        sum += own;
        bytes.push(own);
        pages.push(Source::Fetched(page));
        if pages.len() >= BATCH_PAGES || sum >= BATCH_BYTES {
            sum = 0;
            send(std::mem::take(&mut pages), std::mem::take(&mut bytes))?;
        }
        Ok(())
    })?;
    send(pages, bytes)?;
    Ok(tally)
}

/// Gives how many pages the extractor failed on.
fn dispatch(
    batches: impl IntoIterator<Item = Reading>,
    mut take: impl FnMut(Vec<ExtractedPage>) -> anyhow::Result<()>,
) -> anyhow::Result<u64> {
    let mut failed = 0;
    for (batch, bytes) in batches {
        let ingested = batch.wait().into_iter().zip(bytes);
        let read = ingested.len() as u64;
        let pages =
            ingested.filter_map(|(page, bytes)| Some(ExtractedPage { submission: page.ok()?, bytes }));
        let pages: Vec<ExtractedPage> = pages.collect();
        failed += read - pages.len() as u64;
        take(pages)?;
    }
    Ok(failed)
}
