//! Pages to submissions: the way of a page from bytes to a signature, on a small pool of threads.
//!
//! Invariants: every source has exactly one answer, and answers come in the order of the sources; each thread keeps one
//! extractor with its buffers; bodies are handed over, never copied; a page that makes the extractor panic is an error of
//! that page alone; so is a content without a site where the policy reads it.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use bytes::Bytes;
use crossbeam::channel::{Receiver, Sender, bounded};
use doppel_charset::NoText;
use doppel_crawls::{Fetched, FetchedBody};
use doppel_model::pairwise::Policy;
use doppel_model::{RawContent, Timestamp};
use doppel_protocol::page::{ItemError, LINE_BYTES_MAX, PageItem};
use doppel_protocol::{Body, Submission};
use doppel_text::{Extracted, Extractor, Taken};
use doppel_threads::{GiveWay, give_way};

use crate::raw_page::RawPage;

/// Jobs waiting for a thread: some chunks of a request, so that extraction goes on while a chunk is being stored.
const QUEUE: usize = 1_024;

/// Bytes of content from which on a job gets no further source: what a thread reads in about a tenth of a millisecond.
/// Then it lets others run, so that nobody who asks for a status waits long, and small pages do not cost a switch each.
const JOB_BYTES: usize = 32 << 10;

/// The most sources of a job: the shortest pages cost some microseconds each, however short.
const JOB_SOURCES: usize = 32;

/// A page before extraction.
#[derive(Debug, Clone)]
pub enum Source {
    /// A page in the public JSON form.
    Json(Bytes),
    /// A page as it is.
    Raw(RawPage),
    /// A page whose content is text: the reader of its file has checked that.
    Fetched(Fetched),
}

/// Why a source is no submission.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IngestError {
    /// It is not a valid page.
    #[error(transparent)]
    Item(#[from] ItemError),
    /// It is longer than any valid page.
    #[error("{0} bytes of JSON, the limit is {LINE_BYTES_MAX}")]
    TooLong(usize),
    /// Its content is binary or compressed data.
    #[error("{error}")]
    NoText {
        /// The field of the content, if the page has fields.
        field: Option<&'static str>,
        /// What is wrong with it.
        error: NoText,
    },
    /// It is of no site, and the policy asks which.
    #[error(
        "the URL has no host, and the policy {0} compares pages by their sites: pages like this one take a collection of a \
         policy that does not, such as content"
    )]
    NoSite(&'static str),
    /// The extractor failed on it.
    #[error("the page could not be read because of an error inside the service")]
    Panicked,
}

/// What a source became.
pub type Ingested = Result<Submission, IngestError>;

/// A pool of extractors.
#[derive(Debug)]
pub struct Ingest {
    jobs: Option<Sender<Work>>,
    threads: Vec<JoinHandle<()>>,
}

/// What a thread is asked for.
#[derive(Debug)]
enum Work {
    /// Submissions of sources.
    Job(Job),
    /// What of a page is taken for its main content, with so many characters of what each rule leaves out.
    Main(Box<Fetched>, usize, Sender<Result<Read, IngestError>>),
}

/// A page that was read, and what of it is its main content; none of what is no HTML, or a redirect.
type Read = (Fetched, Option<Taken>);

/// Sources that follow each other.
#[derive(Debug)]
struct Job {
    sources: Vec<Source>,
    now: Timestamp,
    /// Of the first.
    position: usize,
    answers: Sender<Answers>,
}

/// The position of the first source of a job, and what each became.
type Answers = (usize, Vec<Ingested>);

/// Sources under way.
#[derive(Debug)]
pub struct Batch {
    answers: Receiver<Answers>,
    sources: usize,
}

/// Sources under way, each with a key of the caller's that comes back beside its answer.
#[derive(Debug)]
pub struct KeyedBatch<K> {
    keys: Vec<K>,
    batch: Batch,
}

impl Ingest {
    /// Starts `threads` extractors (at least one), which make the signatures of a policy without tables. They do not detect languages:
    /// a page has the one that its record gives.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn new(threads: usize, policy: Policy) -> io::Result<Self> {
        Self::with(threads, move || Extractor::new(policy))
    }

    /// The same, but the extractors detect the language of a page whose record gives none. That takes as long as all the
    /// rest.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn detecting_language(threads: usize, policy: Policy) -> io::Result<Self> {
        Self::with(threads, move || Extractor::new(policy).detecting_language())
    }

    /// The same with the extractors that the caller makes, one for each thread.
    ///
    /// # Errors
    /// When the operating system gives no thread.
    pub fn with(
        threads: usize,
        extractor: impl Fn() -> Extractor + Clone + Send + 'static,
    ) -> io::Result<Self> {
        let (jobs, queue) = bounded::<Work>(QUEUE);
        let spawn = |number| {
            let (queue, extractor) = (queue.clone(), extractor.clone());
            thread::Builder::new().name(format!("ingest-{number}")).spawn(move || work(&queue, &extractor))
        };
        let threads = (0..threads.max(1)).map(spawn).collect::<io::Result<_>>()?;
        Ok(Self { jobs: Some(jobs), threads })
    }

    /// Extracts `sources`; answers in their order. `now` is the date of those without one. Blocks.
    #[must_use]
    pub fn run(&self, sources: Vec<Source>, now: Timestamp) -> Vec<Ingested> {
        self.start(sources, now).wait()
    }

    /// Hands `sources` over and returns while they are being extracted. Blocks while the queue is full.
    #[must_use]
    pub fn start(&self, sources: Vec<Source>, now: Timestamp) -> Batch {
        // Room for every answer, so that no thread ever waits for the caller.
        let (answers, received) = bounded(sources.len());
        let batch = Batch { answers: received, sources: sources.len() };
        let (mut next, mut bytes, mut position) = (Vec::new(), 0, 0);
        let mut send = |next: &mut Vec<Source>| {
            let sources = std::mem::take(next);
            let job = Job { now, position, answers: answers.clone(), sources };
            position += job.sources.len();
            // Fails only when every thread is gone; `wait` then answers for the missing ones.
            let _ = self.jobs.as_ref().map(|jobs| jobs.send(Work::Job(job)));
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

    /// The same; each answer comes back beside the key of its source.
    #[must_use]
    pub fn start_keyed<K>(&self, sources: Vec<(K, Source)>, now: Timestamp) -> KeyedBatch<K> {
        let (keys, sources) = sources.into_iter().unzip();
        KeyedBatch { keys, batch: self.start(sources, now) }
    }

    /// Says what of a page is taken for its main content, with so many `chars` of what each rule leaves out, and gives the page back.
    /// None of what is no HTML, or a redirect. Blocks.
    ///
    /// # Errors
    /// When the extractor fails on the page.
    pub fn main_content(&self, page: Fetched, chars: usize) -> Result<(Fetched, Option<Taken>), IngestError> {
        let (answer, answered) = bounded(1);
        let _ = self.jobs.as_ref().map(|jobs| jobs.send(Work::Main(Box::new(page), chars, answer)));
        answered.recv().unwrap_or(Err(IngestError::Panicked))
    }
}

impl<K> KeyedBatch<K> {
    /// Waits for the answers, in the order of the sources.
    #[must_use]
    pub fn wait(self) -> Vec<(K, Ingested)> {
        // A batch has as many answers as sources, and there is a key for each source.
        self.keys.into_iter().zip(self.batch.wait()).collect()
    }

    /// Gives the answers up.
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

impl Batch {
    /// Waits for the answers, in the order of the sources.
    #[must_use]
    pub fn wait(self) -> Vec<Ingested> {
        let mut ordered: Vec<Option<Ingested>> = Vec::new();
        ordered.resize_with(self.sources, || None);
        for (first, answers) in self.answers {
            for (place, answer) in ordered[first..].iter_mut().zip(answers) {
                *place = Some(answer);
            }
        }
        ordered.into_iter().map(|answer| answer.unwrap_or(Err(IngestError::Panicked))).collect()
    }
}

fn work(queue: &Receiver<Work>, new: &impl Fn() -> Extractor) {
    give_way(GiveWay::ToAnswers);
    let mut extractor = new();
    for work in queue {
        thread::yield_now();
        match work {
            Work::Job(Job { sources, now, position, answers }) => {
                let extracted = sources.into_iter().map(|source| {
                    let answer = extractor.guarded(|extractor| submission(extractor, source, now));
                    answer.unwrap_or(Err(IngestError::Panicked))
                });
                let _ = answers.send((position, extracted.collect()));
            }
            Work::Main(page, chars, answer) => {
                let read = extractor.guarded(|extractor| main_content(extractor, *page, chars));
                let _ = answer.send(read.ok_or(IngestError::Panicked));
            }
        }
    }
}

fn main_content(extractor: &mut Extractor, page: Fetched, chars: usize) -> Read {
    let taken = page.body.raw_content().and_then(|raw| extractor.taken(&page.url, raw, chars));
    (page, taken)
}

impl Source {
    /// Bytes to be read.
    fn bytes(&self) -> usize {
        match self {
            Self::Json(json) => json.len(),
            Self::Raw(page) => page.bytes(),
            Self::Fetched(fetched) => fetched.body.raw_content().map_or(0, RawContent::size),
        }
    }
}

/// What a page of a crawl becomes; none of one that is gone.
pub fn extracted(extractor: &mut Extractor, page: &Fetched) -> Option<Extracted> {
    match (page.body.raw_content(), &page.body) {
        (Some(raw), _) => Some(extractor.extract(&page.url, raw)),
        (None, FetchedBody::Redirect(target)) => Some(Extracted::Redirect(target.clone())),
        (None, _) => None,
    }
}

/// Refuses content that is binary or compressed data. The error names the field of the content, if the page has fields.
///
/// # Errors
/// [`IngestError::NoText`].
pub fn check(content: RawContent<'_>, has_fields: bool) -> Result<(), IngestError> {
    doppel_charset::check(content).map_err(|error| {
        let name = if matches!(content, RawContent::Text(_)) { "text" } else { "html" };
        IngestError::NoText { field: has_fields.then_some(name), error }
    })
}

fn submission(extractor: &mut Extractor, source: Source, now: Timestamp) -> Ingested {
    let has_fields = matches!(source, Source::Json(_));
    let is_checked = matches!(source, Source::Fetched(_));
    let fetched: Fetched = match source {
        Source::Json(json) if json.len() > LINE_BYTES_MAX => return Err(IngestError::TooLong(json.len())),
        Source::Json(json) => PageItem::parse(&json, now)?.into(),
        Source::Raw(page) => page.fetched()?,
        Source::Fetched(fetched) => fetched,
    };
    if let Some(content) = fetched.body.raw_content().filter(|_| !is_checked) {
        check(content, has_fields)?;
    }
    let policy = extractor.policy();
    // All that have none would be of one site.
    if policy.reads_site() && fetched.body.has_content() && fetched.url.host().is_empty() {
        return Err(IngestError::NoSite(policy.name()));
    }
    let extracted = extracted(extractor, &fetched);
    let Fetched { url, fetched_at, popularity, language, .. } = fetched;
    let given = language.map(String::into_boxed_str);
    let (body, language, canonical) = match extracted {
        Some(Extracted::Page(page)) => {
            (Body::Content(Arc::new(page.signature)), given.or(page.language), page.canonical)
        }
        Some(Extracted::Redirect(target)) => (Body::Redirect(target), given, None),
        None => (Body::Dead, given, None),
    };
    Ok(Submission { url, fetched_at: fetched_at.unwrap_or(now), popularity, language, canonical, body })
}

#[cfg(test)]
mod tests;
