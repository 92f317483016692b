//! Crawls on disk as pages with signatures: read on one thread, extracted on all cores, and handed over on the
//! caller's thread in the order of the inputs. Those that have no signature are bad records.

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

/// Pages of a batch.
pub const BATCH_PAGES: usize = 1_024;
// Tier 1 refuses more.
const _: () = assert!(BATCH_PAGES <= doppel_protocol::BATCH_MAX);
const BATCH: BatchSize = BatchSize { pages: BATCH_PAGES, bytes: 4 << 20 };
/// Batches that are read and extracted ahead.
const BATCHES_AHEAD: usize = 2;

/// A page with its signature.
#[derive(Debug, Serialize, Deserialize)]
pub struct ExtractedPage {
    /// How many pages come before it in the inputs, those that have no signature, too.
    pub record: u64,
    /// The page with its signature, as tier 1 takes it.
    pub submission: Submission,
    /// Bytes of its text or HTML, as it was read.
    pub bytes: u64,
    /// Where it comes from.
    pub origin: Origin,
}

impl ExtractedPage {
    /// The record that it is read from.
    pub fn input_record(&self) -> InputRecord {
        InputRecord { number: self.record, is_reference: self.origin.refers_back.is_some() }
    }

    /// The number of the record whose content it has, if it stores none of its own.
    pub fn original(&self) -> Option<u64> {
        self.origin.refers_back.and_then(|back| self.record.checked_sub(back))
    }

    /// Whether it is a redirect.
    pub fn is_redirect(&self) -> bool {
        matches!(self.submission.body, Body::Redirect(_))
    }
}

/// Pages that are being extracted.
struct Extracting {
    batch: ExtractionBatch,
    /// The URL of each page, and its bytes.
    named: Vec<(PageUrl, u64)>,
    origins: Vec<Origin>,
    /// The files that end with them.
    ended: Vec<FileEnd>,
}

/// Pages with their signatures, and the files of which all pages are among these and those before.
#[derive(Debug)]
pub struct ExtractedBatch {
    /// The pages that have a signature, in the order of the inputs.
    pub pages: Vec<ExtractedPage>,
    /// The files whose last record is in this batch.
    pub ended: Vec<FileEnd>,
}

/// Extractors with this signer, on all cores.
///
/// # Errors
/// When the operating system gives no thread.
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
/// When an input is not there, or what `take` fails with.
pub fn pages(
    inputs: &InputArgs,
    extractor: (Signer, bool),
    mut take: impl FnMut(Vec<ExtractedPage>) -> anyhow::Result<()>,
) -> anyhow::Result<Tally> {
    files(inputs, extractor, None, |ExtractedBatch { pages, .. }| take(pages))
}

/// The same for a collection: files that `reading` knows are left out.
///
/// # Errors
/// The same.
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
        // When `take` fails, reading stops because of that; so its error comes first.
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
        batches.send(extracting).map_err(|_| anyhow!("nobody takes the pages"))
    })
}

/// Gives the pages that have a signature. The first page of the batches has the number `record`.
fn dispatch(
    batches: impl IntoIterator<Item = Extracting>,
    mut record: u64,
    mut unusable: UnusablePages,
    mut take: impl FnMut(ExtractedBatch) -> anyhow::Result<()>,
) -> anyhow::Result<UnusablePages> {
    // Those that could not be used since the last end of a file, in their order.
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

/// The kind of an error, to count by.
fn class(error: &IngestError) -> String {
    match error {
        IngestError::NoText { .. } => "binary or compressed data, not text".to_owned(),
        IngestError::NoSite(policy) => format!("no host in the URL, which {policy} needs"),
        IngestError::Panicked => tally::FAILED.to_owned(),
        IngestError::Item(_) | IngestError::TooLong(_) => error.to_string(),
    }
}
