//! Batches of pages on their way to the server, and what became of each page.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::io::Read as _;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use doppel_contract::SubmissionOutcome;
use doppel_contract::answer::{AcceptedPage, LineAnswer, LineCode, ProblemDetails, RejectedLine};
use doppel_contract::client::{CONTENT_TYPE, Client, ClientError, Method, StatusCode};
use doppel_contract::page::{LINE_BYTES_MAX, PageItem};
use doppel_coordinator::limits::WIRE_BYTES;
use doppel_crawls::Reason;
use doppel_inputs::reading::crawl::PagePosition;
use doppel_inputs::records::bad_records::BadFile;
use doppel_model::Timestamp;
use doppel_terminal::output::say;
use serde::{Serialize, Serializer};

use super::acknowledged::AcknowledgedList;

/// A batch is posted when it has this many bytes, whatever its pages: memory of larger ones is cleared again and again ...
const BATCH_BYTES: usize = 1 << 20;
/// ... and with a longest line at its end the server takes it as one body.
const _: () = assert!(BATCH_BYTES + LINE_BYTES_MAX < WIRE_BYTES);
/// Pause before lines are sent again that a busy server did not take.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
/// After so long without a page taken it is said why.
const BUSY: Duration = Duration::from_secs(5);
/// How long a server is asked why it does not take pages, which takes it three seconds where a node is away; and the longest answer
/// that is read, in bytes.
const READY: Duration = Duration::from_secs(5);
const READY_BYTES_MAX: u64 = 64 << 10;
const NDJSON: &str = "application/x-ndjson";
/// The outcome of pages that were not taken.
const REFUSED: &str = "refused";
/// Refused pages that are printed one by one; the others are counted.
const REFUSED_SHOWN: u64 = 20;

/// Pages on their way to one request.
#[derive(Debug, Default)]
pub(super) struct Batch {
    body: Vec<u8>,
    pages: Vec<Posted>,
}

/// One line of a batch.
#[derive(Debug, Clone)]
pub(super) struct Posted {
    begin: usize,
    /// The page.
    pub(super) url: String,
    /// Where it was read.
    pub(super) at: PagePosition,
    fetched_at: Option<Timestamp>,
}

/// Posting ended before all was answered.
#[derive(Debug)]
pub(super) struct Stopped {
    /// The first page of its lane that was not.
    pub(super) first: Box<Posted>,
    /// Why.
    pub(super) error: anyhow::Error,
}

/// A line of `--acknowledged`.
#[derive(Debug, Serialize)]
struct Acknowledged<'a> {
    url: &'a str,
    #[serde(serialize_with = "date")]
    fetched_at: Option<Timestamp>,
    outcome: SubmissionOutcome,
}

/// What the lanes share.
pub(super) struct Post {
    client: Client,
    patience: Duration,
    outcomes: Mutex<BTreeMap<String, u64>>,
    acknowledged: Option<Mutex<AcknowledgedList>>,
    /// Where pages are written that are refused.
    bad: Option<BadFile>,
    /// Whether it was said that the server takes no more.
    is_told: AtomicBool,
}

impl Batch {
    /// Adds a page.
    ///
    /// # Errors
    /// When it is longer as a line than is taken, which can be six times as long as it was: the server
    /// would refuse all the others with it. The batch is as it was.
    pub(super) fn push(&mut self, item: &PageItem, at: PagePosition) -> Result<(), Reason> {
        let begin = self.body.len();
        item.to_json_line(&mut self.body);
        let bytes = self.body.len() - begin - 1;
        if bytes > LINE_BYTES_MAX {
            self.body.truncate(begin);
            self.body.shrink_to(BATCH_BYTES);
            let (bytes, max) = (bytes as u64, LINE_BYTES_MAX as u64);
            return Err(Reason::TooLarge { what: "a line of JSON", bytes, max });
        }
        self.pages.push(Posted { begin, url: item.url.to_string(), at, fetched_at: item.fetched_at });
        Ok(())
    }

    /// Whether it is to be posted, at `pages` pages or when it is large.
    pub(super) fn is_full(&self, pages: usize) -> bool {
        self.pages.len() >= pages || self.body.len() >= BATCH_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Its first page, if it has any.
    pub(super) fn into_first(self) -> Option<Posted> {
        self.pages.into_iter().next()
    }
}

impl Post {
    /// Posts to the server of `client`, giving up after `patience`; `acknowledged` is appended to, and refused pages are written to
    /// `bad`.
    ///
    /// # Errors
    /// When that file cannot be opened.
    pub(super) fn new(
        client: Client,
        patience: Duration,
        acknowledged: Option<&Path>,
        bad: Option<BadFile>,
    ) -> anyhow::Result<Self> {
        let open = |path: &Path| {
            let list = AcknowledgedList::open(path).map(Mutex::new);
            list.with_context(|| format!("cannot write {}", path.display()))
        };
        let acknowledged = acknowledged.map(open).transpose()?;
        Ok(Self {
            client,
            patience,
            outcomes: Mutex::default(),
            acknowledged,
            bad,
            is_told: AtomicBool::default(),
        })
    }

    /// Posts one batch after the other.
    ///
    /// # Errors
    /// When the server refuses pages for good or takes none for too long, or what it has taken cannot be noted.
    pub(super) fn lane(&self, batches: &Receiver<Batch>) -> Result<(), Stopped> {
        for Batch { body, pages } in batches {
            let mut left = &pages[..];
            let posted = self.post(&Bytes::from(body), &mut left);
            if let (Err(error), Some(first)) = (posted, left.first()) {
                return Err(Stopped { first: Box::new(first.clone()), error });
            }
        }
        Ok(())
    }

    /// Counts a page that is not taken, and says why.
    pub(super) fn refuse(&self, url: &str, reason: &dyn Display) {
        if let Some(bad) = &self.bad {
            bad.note_page(REFUSED, url, reason.to_string());
        }
        let refused = self.count(REFUSED);
        if refused <= REFUSED_SHOWN {
            say!("doppel: {url}: {reason}");
        } else if refused == REFUSED_SHOWN + 1 {
            say!("doppel: more refused pages are only counted");
        }
    }

    /// Ensures that the list of the pages that were taken is on disk, where there is one.
    ///
    /// # Errors
    /// When it cannot be synced.
    pub(super) fn sync_acknowledged(&self) -> anyhow::Result<()> {
        let Some(list) = &self.acknowledged else { return Ok(()) };
        lock(list).sync().context("cannot write the acknowledged pages")
    }

    /// Pages that were not taken.
    pub(super) fn refused(&self) -> u64 {
        lock(&self.outcomes).get(REFUSED).copied().unwrap_or(0)
    }

    /// Pages by what became of them.
    pub(super) fn into_outcomes(self) -> BTreeMap<String, u64> {
        self.outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more page of an outcome; gives how many there are.
    fn count(&self, outcome: &str) -> u64 {
        let mut outcomes = lock(&self.outcomes);
        let pages = outcomes.entry(outcome.to_owned()).or_default();
        *pages += 1;
        *pages
    }

    /// Posts the pages of a batch until none is left that was not answered. A busy server takes a beginning of it and asks for
    /// the rest again. One that takes no body as large gets smaller ones, down to one page, which is
    /// then the one to blame.
    fn post(&self, body: &Bytes, pages: &mut &[Posted]) -> anyhow::Result<()> {
        let mut most = pages.len();
        let mut progress = Instant::now();
        while let Some(first) = pages.first() {
            let (sent, later) = pages.split_at(most.min(pages.len()));
            let end = later.first().map_or(body.len(), |page| page.begin);
            let request = self.client.request(Method::POST, &["v1", "pages"]);
            let request = request.header(CONTENT_TYPE, NDJSON).body(body.slice(first.begin..end));
            let answers = match self.client.send_patiently(&request, self.patience) {
                Ok(text) => paired(&text, sent)?,
                Err(error) if error.is_too_large() && sent.len() > 1 => {
                    most = sent.len() / 2;
                    continue;
                }
                Err(error) if error.is_too_large() => {
                    self.refuse(&first.url, &error);
                    *pages = later;
                    continue;
                }
                Err(error @ ClientError::Late { .. }) => return Err(self.waits().unwrap_or(error).into()),
                Err(error) => return Err(error.into()),
            };
            let retry = |(_, answer): &(&Posted, LineAnswer)| matches!(answer, LineAnswer::Rejected(RejectedLine { error, .. }) if error.code == LineCode::Retry);
            let taken = answers.iter().position(retry).unwrap_or(sent.len());
            self.note(&answers[..taken])?;
            if let Some((_, LineAnswer::Rejected(RejectedLine { error, .. }))) = answers.get(taken) {
                if taken > 0 {
                    progress = Instant::now();
                } else if progress.elapsed() > self.patience {
                    let (status, text) = (StatusCode::TOO_MANY_REQUESTS, error.reason.clone());
                    return Err(ClientError::Refused { status, text }.into());
                } else if progress.elapsed() >= BUSY && !self.is_told.swap(true, Ordering::Relaxed) {
                    let seconds = self.patience.as_secs();
                    say!(
                        "doppel: the server takes no more at present: {}; trying for {seconds} s",
                        error.reason
                    );
                }
                thread::sleep(BUSY_PAUSE);
            }
            *pages = &pages[taken..];
            most = most.saturating_mul(2);
        }
        Ok(())
    }

    /// Why the server does not answer that pages were taken, where it says that it takes no writes.
    fn waits(&self) -> Option<ClientError> {
        let request = self.client.request(Method::GET, &["readyz"]).query(&[("ranges", "served")]);
        let answer = request.timeout(READY).send().ok()?;
        let (status, mut text) = (answer.status(), String::new());
        answer.take(READY_BYTES_MAX).read_to_string(&mut text).ok()?;
        let ProblemDetails { detail, .. } = serde_json::from_str(&text).ok()?;
        let seconds = self.patience.as_secs();
        let text = format!(
            "the server has not answered in {seconds} s; asked whether it takes writes it says: {detail}"
        );
        Some(ClientError::Refused { status, text })
    }

    /// Counts pages by what became of them, and records those that were taken.
    fn note(&self, answers: &[(&Posted, LineAnswer)]) -> anyhow::Result<()> {
        let mut lines = Vec::new();
        for (page, answer) in answers {
            let outcome = match answer {
                LineAnswer::Accepted(AcceptedPage { outcome, .. }) => *outcome,
                LineAnswer::Rejected(RejectedLine { error, .. }) => {
                    self.refuse(&page.url, &error.reason);
                    continue;
                }
            };
            self.count(&outcome.to_string());
            if self.acknowledged.is_some() {
                let line = Acknowledged { url: &page.url, fetched_at: page.fetched_at, outcome };
                serde_json::to_writer(&mut lines, &line)?;
                lines.push(b'\n');
            }
        }
        if let Some(list) = &self.acknowledged {
            lock(list).write(&lines).context("cannot write the acknowledged pages")?;
        }
        Ok(())
    }
}

/// Reads the answers to the pages that were sent, each beside its page.
///
/// # Errors
/// When there are more or fewer, or one is about another page.
fn paired<'s>(text: &str, sent: &'s [Posted]) -> anyhow::Result<Vec<(&'s Posted, LineAnswer)>> {
    let answers = text.lines().map(serde_json::from_str).collect::<Result<Vec<LineAnswer>, _>>();
    let answers = answers.context("the server's answer is not what this program expects")?;
    let got = answers.len();
    anyhow::ensure!(got == sent.len(), "the server answered {got} of {} pages", sent.len());
    for ((answer, page), line) in answers.iter().zip(sent).zip(1..) {
        let is_its_own = match answer {
            LineAnswer::Accepted(taken) => taken.url == page.url,
            LineAnswer::Rejected(not_taken) => not_taken.line == line,
        };
        anyhow::ensure!(is_its_own, "the answer to line {line}, {}, is about another page", page.url);
    }
    Ok(sent.iter().zip(answers).collect())
}

/// RFC 3339.
fn date<S: Serializer>(date: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    date.map(|date| date.to_string()).serialize(serializer)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use doppel_crawls::InputPosition;

    use super::*;

    #[test]
    fn an_answer_belongs_to_the_page_that_was_sent() {
        let at = PagePosition {
            id: None,
            refers_back: None,
            before: 0,
            input: 0,
            path: Path::new("a").into(),
            position: InputPosition::File,
        };
        let page = |url: &str| Posted { begin: 0, url: url.to_owned(), at: at.clone(), fetched_at: None };
        let sent = [page("http://a/"), page("http://b/")];
        let (taken, bad) = (
            r#"{"url":"http://a/","outcome":"pending"}"#,
            r#"{"line":2,"error":{"code":"invalid","reason":"no page"}}"#,
        );
        let answers = paired(&format!("{taken}\n{bad}\n"), &sent).unwrap();
        assert_eq!(answers[0].0.url, "http://a/");
        assert!(matches!(
            &answers[0].1,
            LineAnswer::Accepted(AcceptedPage { outcome: SubmissionOutcome::Pending, .. })
        ));
        assert_eq!(answers[1].0.url, "http://b/");
        assert!(matches!(&answers[1].1, LineAnswer::Rejected(RejectedLine { line: 2, .. })));
        for (text, reason) in [
            (format!("{taken}\n"), "the server answered 1 of 2 pages"),
            (format!("{taken}\n{bad}\n{bad}\n"), "the server answered 3 of 2 pages"),
            (format!("{taken}\n{taken}\n"), "the answer to line 2, http://b/, is about another page"),
            (format!("{bad}\n{taken}\n"), "the answer to line 1, http://a/, is about another page"),
            (format!("{taken}\nnonsense\n"), "the server's answer is not what this program expects"),
        ] {
            assert_eq!(paired(&text, &sent).unwrap_err().to_string(), reason);
        }
    }
}
