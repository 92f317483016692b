//! Turns pages into submissions: a small pool of threads extracts the text of each page and computes its
//! signature.
//!
//! Invariants:
//!
//! - Every source gets exactly one answer, and answers come in the order of the sources.
//! - A failure affects its own page alone. This includes a page that makes the extractor panic, and a page
//!   without a site under a policy that reads the site.
//! - Each thread keeps one extractor and reuses its buffers.
//! - Bodies are moved to the thread and never copied.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use crossbeam::channel::{Receiver, Sender, bounded};
use doppel_charset::NoText;
use doppel_contract::page::{ItemError, LINE_BYTES_MAX, PageItem};
use doppel_crawls::{FetchedBody, FetchedPage};
use doppel_model::pairwise::Policy;
use doppel_model::{RawContent, Timestamp};
use doppel_protocol::{Body, Submission};
use doppel_text::{Extraction, Extractor, MainContentReport};
use doppel_threads::{LoweredPriority, lower_priority};

use crate::raw_page::RawPage;

/// Number of jobs that can wait for a thread. The queue holds several chunks of a request, so that extraction
/// continues while a chunk is being stored.
const QUEUE: usize = 1_024;

/// A job with this many bytes of content takes no further source. A thread extracts this amount in about a
/// tenth of a millisecond.
///
/// After each job the thread yields, so that status requests do not wait long. Packing small pages into one
/// job avoids a thread switch for every page.
const JOB_BYTES: usize = 32 << 10;

/// Maximum number of sources in a job. Even the shortest page costs a few microseconds.
const JOB_SOURCES: usize = 32;

/// A page before extraction.
#[derive(Debug, Clone)]
pub enum PageSource {
    /// A page in the JSON form of the public API.
    Json(Bytes),
    /// A page sent as a raw request body.
    Raw(RawPage),
    /// A page read from a file. The reader of the file has already checked that the content is text.
    Fetched(FetchedPage),
}

/// Reason why a source did not become a submission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IngestError {
    /// The source is not a valid page.
    #[error(transparent)]
    Item(#[from] ItemError),
    /// The JSON of the page is longer than any valid page. The field is its length in bytes.
    #[error("{0} bytes of JSON are more than the limit of {LINE_BYTES_MAX}")]
    TooLong(usize),
    /// The content of the page is binary or compressed data.
    #[error("{error}")]
    NoText {
        /// Name of the content's JSON field. `None` if the page has no JSON fields.
        field: Option<&'static str>,
        /// Reason why the content is not text.
        error: NoText,
    },
    /// The URL has no host, but the policy reads the site of a page. The field is the name of the policy.
    #[error(
        "the URL has no host, and the policy {0} compares pages by their sites; submit such pages to a collection whose policy \
         does not, such as content"
    )]
    NoSite(&'static str),
    /// The extractor panicked on this page.
    #[error("the page could not be read because of an error inside the service")]
    Panicked,
}

/// Result of extracting one source.
pub type IngestResult = Result<Submission, IngestError>;

/// A pool of threads with one extractor each.
#[derive(Debug)]
pub struct Ingest {
    jobs: Option<Sender<PoolTask>>,
    threads: Vec<JoinHandle<()>>,
}

/// A task in the queue of the pool.
#[derive(Debug)]
enum PoolTask {
    /// Turn sources into submissions.
    Extract(ExtractionJob),
    /// Report the main content of a page. The number limits the characters shown of the text that each rule
    /// leaves out.
    ReportMainContent(Box<FetchedPage>, usize, Sender<Result<MainContentResult, IngestError>>),
}

/// A page with the report on its main content. The report is `None` if the page is a redirect or not HTML.
type MainContentResult = (FetchedPage, Option<MainContentReport>);

/// A run of consecutive sources of one batch.
#[derive(Debug)]
struct ExtractionJob {
    sources: Vec<PageSource>,
    now: Timestamp,
    /// Index of the first source in its batch.
    position: usize,
    answers: Sender<JobResults>,
}

/// Position of a job's first source in its batch, and the results of all sources of the job.
type JobResults = (usize, Vec<IngestResult>);

/// A batch of sources that the pool is extracting.
#[derive(Debug)]
pub struct ExtractionBatch {
    answers: Receiver<JobResults>,
    sources: usize,
}

/// Like [`ExtractionBatch`], but every source has a key of the caller, which is returned with the answer.
#[derive(Debug)]
pub struct KeyedBatch<K> {
    keys: Vec<K>,
    batch: ExtractionBatch,
}

impl Ingest {
    /// Starts `threads` extractors (at least one) for a policy that reads no tables.
    ///
    /// The extractors do not detect languages. A page has a language only if its record names one.
    ///
    /// # Errors
    /// If the operating system cannot create a thread.
    pub fn new(threads: usize, policy: Policy) -> io::Result<Self> {
        Self::with(threads, move || Extractor::new(policy))
    }

    /// Like [`new`](Self::new), but the extractors detect the language of a page if its record names none.
    /// Detection takes as long as the rest of the extraction.
    ///
    /// # Errors
    /// If the operating system cannot create a thread.
    pub fn detecting_language(threads: usize, policy: Policy) -> io::Result<Self> {
        Self::with(threads, move || Extractor::new(policy).detecting_language())
    }

    /// Like [`new`](Self::new), but each thread creates its extractor by calling `extractor`.
    ///
    /// # Errors
    /// If the operating system cannot create a thread.
    pub fn with(
        threads: usize,
        extractor: impl Fn() -> Extractor + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, queue) = bounded::<PoolTask>(QUEUE);
        let spawn = |number| {
            let (queue, extractor) = (queue.clone(), extractor.clone());
            thread::Builder::new().name(format!("ingest-{number}")).spawn(move || work(&queue, &extractor))
        };
        let threads = (0..threads.max(1)).map(spawn).collect::<io::Result<_>>()?;
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Extracts `sources` and returns the results in the same order. Blocks until all are done.
    ///
    /// `now` is the fetch time of sources that name none.
    #[must_use]
    pub fn run(&self, sources: Vec<PageSource>, now: Timestamp) -> Vec<IngestResult> {
        self.start(sources, now).wait()
    }

    /// Queues `sources` and returns while the pool extracts them. Blocks while the queue is full.
    ///
    /// `now` is the fetch time of sources that name none.
    #[must_use]
    pub fn start(&self, sources: Vec<PageSource>, now: Timestamp) -> ExtractionBatch {
        // The channel has room for every answer, so that no thread ever waits for the caller.
        let (answers, received) = bounded(sources.len());
        let batch = ExtractionBatch { answers: received, sources: sources.len() };
        let (mut next, mut bytes, mut position) = (Vec::new(), 0, 0);
        let mut send = |next: &mut Vec<PageSource>| {
            let sources = std::mem::take(next);
            let job = ExtractionJob { now, position, answers: answers.clone(), sources };
            position += job.sources.len();
            // Sending fails only if every thread has ended. `ExtractionBatch::wait` then reports the missing
            // answers.
            let _ = self.jobs.as_ref().map(|jobs| jobs.send(PoolTask::Extract(job)));
        };
        for source in sources {
            bytes += source.bytes();
            next.push(source);
            if bytes >= JOB_BYTES || next.len() >= JOB_SOURCES {
                bytes = 0;
                send(&mut next);
            }
        }
        if !next.is_empty() {
            send(&mut next);
        }
        batch
    }

    /// Like [`start`](Self::start), but returns each answer with the key of its source.
    #[must_use]
    pub fn start_keyed<K>(&self, sources: Vec<(K, PageSource)>, now: Timestamp) -> KeyedBatch<K> {
        let (keys, sources) = sources.into_iter().unzip();
        KeyedBatch { keys, batch: self.start(sources, now) }
    }

    /// Reports the main content of a page, and returns the page with the report. Blocks until the report is
    /// done.
    ///
    /// The report shows up to `chars` characters of the text that each rule leaves out. It is `None` if the
    /// page is a redirect or not HTML.
    ///
    /// # Errors
    /// [`IngestError::Panicked`] if the extractor panics on the page.
    pub fn main_content(
        &self,
        page: FetchedPage,
        chars: usize,
    ) -> Result<(FetchedPage, Option<MainContentReport>), IngestError> {
        let (answer, answered) = bounded(1);
        let _ = self
            .jobs
            .as_ref()
            .map(|jobs| jobs.send(PoolTask::ReportMainContent(Box::new(page), chars, answer)));
        answered.recv().unwrap_or(Err(IngestError::Panicked))
    }
}

impl<K> KeyedBatch<K> {
    /// Waits for all answers and returns them with their keys, in the order of the sources.
    #[must_use]
    pub fn wait(self) -> Vec<(K, IngestResult)> {
        // A batch has as many answers as sources, and every source has a key.
        self.keys.into_iter().zip(self.batch.wait()).collect()
    }

    /// Abandons the answers and returns the keys.
    #[must_use]
    pub fn into_keys(self) -> Vec<K> {
        self.keys
    }
}

impl Drop for Ingest {
    fn drop(&mut self) {
        self.jobs = None;
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl ExtractionBatch {
    /// Waits for all answers and returns them in the order of the sources.
    #[must_use]
    pub fn wait(self) -> Vec<IngestResult> {
        let mut ordered: Vec<Option<IngestResult>> = Vec::new();
        ordered.resize_with(self.sources, || None);
        for (first, answers) in self.answers {
            for (place, answer) in ordered[first..].iter_mut().zip(answers) {
                *place = Some(answer);
            }
        }
        ordered.into_iter().map(|answer| answer.unwrap_or(Err(IngestError::Panicked))).collect()
    }
}

fn work(queue: &Receiver<PoolTask>, new: &impl Fn() -> Extractor) {
    lower_priority(LoweredPriority::BelowAnswers);
    let mut extractor = new();
    for work in queue {
        thread::yield_now();
        match work {
            PoolTask::Extract(ExtractionJob { sources, now, position, answers }) => {
                let extracted = sources.into_iter().map(|source| {
                    let answer = extractor.guarded(|extractor| submission(extractor, source, now));
                    answer.unwrap_or(Err(IngestError::Panicked))
                });
                let _ = answers.send((position, extracted.collect()));
            }
            PoolTask::ReportMainContent(page, chars, answer) => {
                let read = extractor.guarded(|extractor| main_content(extractor, *page, chars));
                let _ = answer.send(read.ok_or(IngestError::Panicked));
            }
        }
    }
}

fn main_content(extractor: &mut Extractor, page: FetchedPage, chars: usize) -> MainContentResult {
    let taken = page.body.raw_content().and_then(|raw| extractor.main_content_report(&page.url, raw, chars));
    (page, taken)
}

impl PageSource {
    /// Number of bytes that the extractor reads.
    fn bytes(&self) -> usize {
        match self {
            Self::Json(json) => json.len(),
            Self::Raw(page) => page.bytes(),
            Self::Fetched(fetched) => fetched.body.raw_content().map_or(0, RawContent::size),
        }
    }
}

/// Extracts a page of a crawl. Returns `None` for a page that no longer exists.
pub fn extracted(extractor: &mut Extractor, page: &FetchedPage) -> Option<Extraction> {
    match (page.body.raw_content(), &page.body) {
        (Some(raw), _) => Some(extractor.extract(&page.url, raw)),
        (None, FetchedBody::Redirect(target)) => Some(Extraction::Redirect(target.clone())),
        (None, _) => None,
    }
}

/// Refuses content that is binary or compressed data. If `has_fields`, the error names the JSON field of the
/// content.
///
/// # Errors
/// [`IngestError::NoText`] if the content is not text.
pub fn check(content: RawContent<'_>, has_fields: bool) -> Result<(), IngestError> {
    doppel_charset::check(content).map_err(|error| {
        let name = if matches!(content, RawContent::Text(_)) { "text" } else { "html" };
        IngestError::NoText { field: has_fields.then_some(name), error }
    })
}

fn submission(extractor: &mut Extractor, source: PageSource, now: Timestamp) -> IngestResult {
    let has_fields = matches!(source, PageSource::Json(_));
    let is_checked = matches!(source, PageSource::Fetched(_));
    let fetched: FetchedPage = match source {
        PageSource::Json(json) if json.len() > LINE_BYTES_MAX => {
            return Err(IngestError::TooLong(json.len()));
        }
        PageSource::Json(json) => PageItem::parse(&json, now)?.into(),
        PageSource::Raw(page) => page.fetched()?,
        PageSource::Fetched(fetched) => fetched,
    };
    if let Some(content) = fetched.body.raw_content().filter(|_| !is_checked) {
        check(content, has_fields)?;
    }
    let policy = extractor.policy();
    // Without this check, all pages without a host would count as pages of one site.
    if policy.reads_site() && fetched.body.has_content() && fetched.url.host().is_empty() {
        return Err(IngestError::NoSite(policy.name()));
    }
    let extracted = extracted(extractor, &fetched);
    let FetchedPage { url, fetched_at, popularity, language, .. } = fetched;
    let given = language.map(String::into_boxed_str);
    let (body, language, canonical) = match extracted {
        Some(Extraction::Page(page)) => {
            (Body::Content(Arc::new(page.signature)), given.or(page.language), page.canonical)
        }
        Some(Extraction::Redirect(target)) => (Body::Redirect(target), given, None),
        None => (Body::Dead, given, None),
    };
    Ok(Submission { url, fetched_at: fetched_at.unwrap_or(now), popularity, language, canonical, body })
}

#[cfg(test)]
mod tests;
