//! Reads crawls on disk as pages with signatures.
//!
//! One thread reads, all cores extract, and the caller's thread gets the pages in the order of the inputs.
//! Pages without a signature are bad records.

use std::collections::VecDeque;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use anyhow::{Context, anyhow};
use doppel_engine::ingest::{ExtractionBatch, Ingest, IngestError, PageSource};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::ingested::ReadingPlan;
use doppel_inputs::processor;
use doppel_inputs::reading::crawl::{FileEnd, content_bytes};
use doppel_inputs::reading::page_batches::{BatchSize, PageBatch, read_files};
use doppel_inputs::records::record_names::Origin;
use doppel_inputs::records::unusable::UnusablePages;
use doppel_inputs::tally::{self, Tally};
use doppel_model::pairwise::Signer;
use doppel_model::{PageUrl, Timestamp};
use doppel_protocol::{Body, Submission};
use doppel_text::Extractor;
use doppel_tier1::bulk::InputRecord;
use serde::{Deserialize, Serialize};

/// Largest number of pages in a batch.
pub const BATCH_PAGES: usize = 1_024;
// Tier 1 refuses larger batches.
const _: () = assert!(BATCH_PAGES <= doppel_protocol::BATCH_PAGES_MAX);
const BATCH: BatchSize = BatchSize { pages: BATCH_PAGES, bytes: 4 << 20 };
/// Number of batches that are read and extracted ahead of the caller.
const BATCHES_AHEAD: usize = 2;

/// A page with its signature, its size and its origin.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExtractedPage {
    /// Number of pages before this page in the inputs, including pages without a signature.
    pub record: u64,
    /// The page with its signature, in the form that tier 1 takes.
    pub submission: Submission,
    /// Size of the text or HTML as it was read, in bytes.
    pub bytes: u64,
    /// File and position of the record.
    pub origin: Origin,
}

impl ExtractedPage {
    /// The record from which the page was read.
    pub fn input_record(&self) -> InputRecord {
        InputRecord { number: self.record, refers_back: self.origin.refers_back.is_some() }
    }

    /// Number of the record that stores the content, if this record refers back to another one.
    pub fn original(&self) -> Option<u64> {
        self.origin.refers_back.and_then(|back| self.record.checked_sub(back))
    }

    /// Whether the page is a redirect.
    pub fn is_redirect(&self) -> bool {
        matches!(self.submission.body, Body::Redirect(_))
    }
}

/// A batch of pages that is being extracted.
struct Extracting {
    batch: ExtractionBatch,
    /// URL and size in bytes of each page.
    named: Vec<(PageUrl, u64)>,
    origins: Vec<Origin>,
    /// Files whose last record is in this batch.
    ended: Vec<FileEnd>,
}

/// A batch of pages with signatures, and the files that are complete with this batch.
#[derive(Debug)]
pub struct ExtractedBatch {
    /// Pages with a signature, in the order of the inputs.
    pub pages: Vec<ExtractedPage>,
    /// Files whose last record is in this batch.
    pub ended: Vec<FileEnd>,
}

/// Starts extractors with this signer on all cores.
///
/// # Errors
/// If the operating system cannot start a thread.
pub fn extractors(signer: Signer, detect_language: bool) -> anyhow::Result<Ingest> {
    let ingest = Ingest::with(processor::cores(), move || {
        let extractor = Extractor::signing(signer.clone());
        if detect_language { extractor.detecting_language() } else { extractor }
    });
    ingest.context("cannot start the extractors")
}

/// Hands the pages of all inputs to `take`, in batches.
///
/// # Errors
/// If an input cannot be opened; or the error of `take`.
pub fn pages(
    inputs: &InputArgs,
    extractor: (Signer, bool),
    mut take: impl FnMut(Vec<ExtractedPage>) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    files(inputs, extractor, None, |ExtractedBatch { pages, .. }| take(pages))
}

/// Like [`pages`], for a collection: skips the files that `reading` knows, and passes on the ends of files.
///
/// # Errors
/// See [`pages`].
pub fn files(
    inputs: &InputArgs,
    (signer, detect_language): (Signer, bool),
    reading: Option<&ReadingPlan>,
    take: impl FnMut(ExtractedBatch) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    let ingest = extractors(signer, detect_language)?;
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(BATCHES_AHEAD);
        let ingest = &ingest;
        let reader = scope.spawn(move || read(inputs, reading, ingest, &sender));
        let replayed = reading.map_or(0, ReadingPlan::replayed_pages);
        let taken = dispatch(batches, replayed, UnusablePages::of(inputs), take);
        let read = reader.join().map_err(|_| anyhow!("the reader panicked"))?;
        // If `take` fails, reading stops as a consequence, so the error of `take` is returned first.
        let (unusable, mut tally) = (taken?, read?);
        tally.without(unusable);
        Ok(tally)
    })
}

/// Reads the inputs in batches, and hands each over as soon as its extraction has begun.
fn read(
    inputs: &InputArgs,
    reading: Option<&ReadingPlan>,
    ingest: &Ingest,
    batches: &SyncSender<Extracting>,
) -> anyhow::Result<Tally> {
    let now = Timestamp::now();
    read_files(inputs, ("reading", true), (BATCH, reading), |PageBatch { pages, origins, ended }| {
        let named = pages.iter().map(|page| (page.url.clone(), content_bytes(page))).collect();
        let batch = ingest.start(pages.into_iter().map(PageSource::Fetched).collect(), now);
        let extracting = Extracting { batch, named, origins, ended };
        batches.send(extracting).map_err(|_| anyhow!("the receiver of the pages has stopped"))
    })
}

/// Hands the pages with a signature to `take`, and notes all other pages as unusable. `record` is the record
/// number of the first page.
fn dispatch(
    batches: impl IntoIterator<Item = Extracting>,
    mut record: u64,
    mut unusable: UnusablePages,
    mut take: impl FnMut(ExtractedBatch) -> anyhow::Result<()>,
) -> anyhow::Result<UnusablePages> {
    // Unusable records since the last end of a file, in order.
    let mut without: VecDeque<u64> = VecDeque::new();
    for Extracting { batch, named, origins, ended: ends } in batches {
        let mut pages = Vec::with_capacity(named.len());
        for ((page, (url, bytes)), origin) in batch.wait().into_iter().zip(named).zip(origins) {
            match page {
                Ok(submission) => {
                    pages.push(ExtractedPage { record, submission, bytes, origin });
                }
                Err(error) => {
                    unusable.note(&class(&error), (&url, bytes), &error);
                    without.push_back(record);
                }
            }
            record += 1;
        }
        let mut ended = Vec::with_capacity(ends.len());
        for FileEnd { source, before, ingested } in ends {
            let begin = before - ingested.had().pages();
            let gone = without.partition_point(|record| *record < before);
            let of_it = without.drain(..gone).filter(|record| *record >= begin).count();
            ended.push(FileEnd { source, before, ingested: ingested.without(of_it as u64) });
        }
        take(ExtractedBatch { pages, ended })?;
    }
    Ok(unusable)
}

/// The kind of an error, by which unusable pages are counted.
fn class(error: &IngestError) -> String {
    match error {
        IngestError::NoText { .. } => "binary or compressed data, not text".to_owned(),
        IngestError::NoSite(policy) => format!("no host in the URL, which {policy} needs"),
        IngestError::Panicked => tally::FAILED.to_owned(),
        IngestError::Item(_) | IngestError::TooLong(_) => error.to_string(),
    }
}
