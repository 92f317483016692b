//! Posts batches of pages to the server, and counts the outcome of each page.

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

/// A batch of this many bytes is posted, however few pages it has. Larger buffers would cost time, because
/// their memory is cleared again for each batch.
const BATCH_BYTES: usize = 1 << 20;
/// Even with a line of the largest size at its end, a batch fits into one request body.
const _: () = assert!(BATCH_BYTES + LINE_BYTES_MAX < WIRE_BYTES);
/// Pause before lines are sent again that a busy server did not take.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
/// If the server has taken no page for this long, the user is told why.
const BUSY: Duration = Duration::from_secs(5);
/// Time limit of the request by which the client asks why the server takes no pages. If a node is away, the
/// server needs three seconds to answer.
const READY: Duration = Duration::from_secs(5);
/// Longest answer to the request that [`READY`] limits, in bytes. The rest of a longer answer is not read.
const READY_BYTES_MAX: u64 = 64 << 10;
const NDJSON: &str = "application/x-ndjson";
/// Outcome that is counted for pages that the server did not take.
const REFUSED: &str = "refused";
/// Refused pages that are printed one by one; later ones are only counted.
const REFUSED_SHOWN: u64 = 20;

/// Pages of one request, as lines of JSON.
#[derive(Debug, Default)]
pub(super) struct Batch {
    body: Vec<u8>,
    pages: Vec<PostedPage>,
}

/// One line of a batch.
#[derive(Debug, Clone)]
pub(super) struct PostedPage {
    begin: usize,
    /// URL of the page.
    pub(super) url: String,
    /// Position in the inputs where the page was read.
    pub(super) at: PagePosition,
    fetched_at: Option<Timestamp>,
}

/// A lane ended before the server had answered all its pages.
#[derive(Debug)]
pub(super) struct StoppedLane {
    /// First page of the lane without an answer.
    pub(super) first: Box<PostedPage>,
    /// Reason for the end.
    pub(super) error: anyhow::Error,
}

/// A line of the file of `--acknowledged`.
#[derive(Debug, Serialize)]
struct AcknowledgedLine<'a> {
    url: &'a str,
    #[serde(serialize_with = "date")]
    fetched_at: Option<Timestamp>,
    outcome: SubmissionOutcome,
}

/// State that all lanes share: the client, the counts, and the files of acknowledged and refused pages.
pub(super) struct Poster {
    client: Client,
    patience: Duration,
    outcomes: Mutex<BTreeMap<String, u64>>,
    acknowledged: Option<Mutex<AcknowledgedList>>,
    /// File to which refused pages are written.
    bad: Option<BadFile>,
    /// Whether the user was told that the server is busy.
    is_reported: AtomicBool,
}

impl Batch {
    /// Adds a page.
    ///
    /// # Errors
    /// If the line of the page is longer than the server accepts. Escapes can make a line six times as long
    /// as the page, and the server would refuse the whole batch because of it. The batch then stays
    /// unchanged.
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
        self.pages.push(PostedPage { begin, url: item.url.to_string(), at, fetched_at: item.fetched_at });
        Ok(())
    }

    /// Whether the batch must be posted now: it has `pages` pages or enough bytes.
    pub(super) fn is_full(&self, pages: usize) -> bool {
        self.pages.len() >= pages || self.body.len() >= BATCH_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns the first page of the batch, if there is one.
    pub(super) fn into_first(self) -> Option<PostedPage> {
        self.pages.into_iter().next()
    }
}

impl Poster {
    /// Creates the shared state. Lanes post to the server of `client` and give up after `patience`.
    /// Acknowledged pages are appended to the file `acknowledged`, and refused pages are written to `bad`.
    ///
    /// # Errors
    /// If the file `acknowledged` cannot be opened.
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
            is_reported: AtomicBool::default(),
        })
    }

    /// Posts batches one after the other, until the sender is dropped.
    ///
    /// # Errors
    /// If the server refuses pages for good, takes none for too long, or an acknowledged page cannot be
    /// recorded.
    pub(super) fn run_lane(&self, batches: &Receiver<Batch>) -> Result<(), StoppedLane> {
        for Batch { body, pages } in batches {
            let mut left = &pages[..];
            let posted = self.post(&Bytes::from(body), &mut left);
            if let (Err(error), Some(first)) = (posted, left.first()) {
                return Err(StoppedLane { first: Box::new(first.clone()), error });
            }
        }
        Ok(())
    }

    /// Counts a page that the server does not take, and prints the reason.
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

    /// Syncs the list of acknowledged pages to disk, if there is one.
    ///
    /// # Errors
    /// If the list cannot be synced.
    pub(super) fn sync_acknowledged(&self) -> anyhow::Result<()> {
        let Some(list) = &self.acknowledged else { return Ok(()) };
        lock(list).sync().context("cannot write the acknowledged pages")
    }

    /// Number of pages that were not taken.
    pub(super) fn refused(&self) -> u64 {
        lock(&self.outcomes).get(REFUSED).copied().unwrap_or(0)
    }

    /// Number of pages by outcome.
    pub(super) fn into_outcomes(self) -> BTreeMap<String, u64> {
        self.outcomes.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts one more page of an outcome, and returns the new count.
    fn count(&self, outcome: &str) -> u64 {
        let mut outcomes = lock(&self.outcomes);
        let pages = outcomes.entry(outcome.to_owned()).or_default();
        *pages += 1;
        *pages
    }

    /// Posts the pages of a batch until all are answered, and removes answered pages from `pages`. A busy
    /// server takes the first pages and asks for the rest again. If the server finds the body too large, the
    /// method halves it, down to a single page, which is then refused.
    fn post(&self, body: &Bytes, pages: &mut &[PostedPage]) -> anyhow::Result<()> {
        let mut most = pages.len();
        let mut progress = Instant::now();
        while let Some(first) = pages.first() {
            let (sent, later) = pages.split_at(most.min(pages.len()));
            let end = later.first().map_or(body.len(), |page| page.begin);
            let request = self.client.request(Method::POST, &["v1", "pages"]);
            let request = request.header(CONTENT_TYPE, NDJSON).body(body.slice(first.begin..end));
            let answers = match self.client.send_patiently(&request, self.patience) {
                Ok(text) => pair_answers(&text, sent)?,
                Err(error) if error.is_too_large() && sent.len() > 1 => {
                    most = sent.len() / 2;
                    continue;
                }
                Err(error) if error.is_too_large() => {
                    self.refuse(&first.url, &error);
                    *pages = later;
                    continue;
                }
                Err(error @ ClientError::Late { .. }) => {
                    return Err(self.why_not_ready().unwrap_or(error).into());
                }
                Err(error) => return Err(error.into()),
            };
            let retry = |(_, answer): &(&PostedPage, LineAnswer)| matches!(answer, LineAnswer::Rejected(RejectedLine { error, .. }) if error.code == LineCode::Retry);
            let taken = answers.iter().position(retry).unwrap_or(sent.len());
            self.note(&answers[..taken])?;
            if let Some((_, LineAnswer::Rejected(RejectedLine { error, .. }))) = answers.get(taken) {
                if taken > 0 {
                    progress = Instant::now();
                } else if progress.elapsed() > self.patience {
                    let (status, text) = (StatusCode::TOO_MANY_REQUESTS, error.reason.clone());
                    return Err(ClientError::Refused { status, text }.into());
                } else if progress.elapsed() >= BUSY && !self.is_reported.swap(true, Ordering::Relaxed) {
                    let seconds = self.patience.as_secs();
                    say!(
                        "doppel: the server accepts no more pages at present: {}; retrying for {seconds} s",
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

    /// Asks the server for its readiness, and returns why it does not answer posts. `None` if it says nothing
    /// about that.
    fn why_not_ready(&self) -> Option<ClientError> {
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

    /// Counts pages by outcome, and records acknowledged pages.
    fn note(&self, answers: &[(&PostedPage, LineAnswer)]) -> anyhow::Result<()> {
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
                let line = AcknowledgedLine { url: &page.url, fetched_at: page.fetched_at, outcome };
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

/// Pairs each page that was sent with its answer.
///
/// # Errors
/// If the number of answers differs from the number of pages, or an answer is about another page.
fn pair_answers<'s>(text: &str, sent: &'s [PostedPage]) -> anyhow::Result<Vec<(&'s PostedPage, LineAnswer)>> {
    let answers = text.lines().map(serde_json::from_str).collect::<Result<Vec<LineAnswer>, _>>();
    let answers = answers.context("cannot read the server's answer; is the server of the same version?")?;
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

/// Writes a date in RFC 3339.
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
        let page = |url: &str| PostedPage { begin: 0, url: url.to_owned(), at: at.clone(), fetched_at: None };
        let sent = [page("http://a/"), page("http://b/")];
        let (taken, bad) = (
            r#"{"url":"http://a/","outcome":"pending"}"#,
            r#"{"line":2,"error":{"code":"invalid","reason":"no page"}}"#,
        );
        let answers = pair_answers(&format!("{taken}\n{bad}\n"), &sent).unwrap();
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
            (
                format!("{taken}\nnonsense\n"),
                "cannot read the server's answer; is the server of the same version?",
            ),
        ] {
            assert_eq!(pair_answers(&text, &sent).unwrap_err().to_string(), reason);
        }
    }
}
