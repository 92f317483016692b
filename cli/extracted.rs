//! Crawls on disk as pages with signatures: read on one thread, extracted on all cores, and handed over on the
//! caller's thread in the order of the inputs. Those that have no signature are bad records.

use std::collections::BTreeMap;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use anyhow::{Context, anyhow};
use doppel_coordinator::ingest::{Batch, Ingest, IngestError, Source};
use doppel_model::PageUrl;
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

/// Pages that are being extracted, and of each its URL and bytes.
type Reading = (Batch, Vec<(PageUrl, u64)>);

/// Pages that have no signature, by reason: how many, and their bytes.
type Refused = BTreeMap<String, (u64, u64)>;

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
        let (refused, mut tally) = (taken?, read?);
        for (reason, (pages, bytes)) in refused {
            tally.unusable(&reason, pages, bytes);
        }
        Ok(tally)
    })
}

/// Reads the inputs in batches, and hands each over as soon as its extraction has begun.
fn read(inputs: &InputArgs, ingest: &Ingest, batches: &SyncSender<Reading>) -> anyhow::Result<Tally> {
    let now = crawl::now();
    let (mut pages, mut named) = (Vec::new(), Vec::new());
    let send = |pages, named| {
        let sent = batches.send((ingest.start(pages, now), named));
        sent.map_err(|_| anyhow!("nobody takes the pages"))
    };
    let mut sum = 0;
    let tally = crawl::read(inputs, |page| {
        let own = crawl::content_bytes(&page);
        sum += own;
        named.push((page.url.clone(), own));
        pages.push(Source::Fetched(page));
        if pages.len() >= BATCH_PAGES || sum >= BATCH_BYTES {
            sum = 0;
            send(std::mem::take(&mut pages), std::mem::take(&mut named))?;
        }
        Ok(())
    })?;
    send(pages, named)?;
    Ok(tally)
}

/// Gives the pages that have no signature. The first of a reason is told.
fn dispatch(
    batches: impl IntoIterator<Item = Reading>,
    mut take: impl FnMut(Vec<ExtractedPage>) -> anyhow::Result<()>,
) -> anyhow::Result<Refused> {
    let mut refused = Refused::new();
    for (batch, named) in batches {
        let mut pages = Vec::with_capacity(named.len());
        for (page, (url, bytes)) in batch.wait().into_iter().zip(named) {
            match page {
                Ok(submission) => pages.push(ExtractedPage { submission, bytes }),
                Err(error) => {
                    let (number, sum) = refused.entry(class(&error)).or_default();
                    if *number == 0 {
                        eprintln!("doppel: {url}: {error}; others like it are only counted");
                    }
                    *number += 1;
                    *sum += bytes;
                }
            }
        }
        take(pages)?;
    }
    Ok(refused)
}

/// The kind of an error, to count by.
fn class(error: &IngestError) -> String {
    match error {
        IngestError::NoSite(policy) => format!("no host in the URL, which {policy} needs"),
        IngestError::Panicked => crawl::FAILED.to_owned(),
        IngestError::Item(_) | IngestError::TooLong(_) => error.to_string(),
    }
}
