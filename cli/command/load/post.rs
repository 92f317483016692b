//! Batches of pages on their way to the server, and what became of each page.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;
use bytes::Bytes;
use doppel_coordinator::limits::WIRE_BYTES;
use doppel_crawls::Reason;
use doppel_model::Timestamp;
use doppel_protocol::page::{LINE_BYTES_MAX, PageItem};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize, Serializer};

use crate::client::Client;
use crate::exit::Failure;
use crate::output::plural;

/// A batch is posted when it has this many bytes, whatever its pages ...
const BATCH_BYTES: usize = 8 << 20;
/// ... and with a longest line at its end the server takes it as one body.
const _: () = assert!(BATCH_BYTES + LINE_BYTES_MAX < WIRE_BYTES);
/// Pause before lines are sent again that a busy server did not take.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
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
#[derive(Debug)]
struct Posted {
    begin: usize,
    url: String,
    fetched_at: Option<Timestamp>,
}

/// The server's answer about one page.
#[derive(Debug, Deserialize)]
struct Answer {
    outcome: Option<String>,
    error: Option<LineError>,
}

/// Why the server did not take a page.
#[derive(Debug, Deserialize)]
struct LineError {
    code: String,
    reason: String,
}

/// A line of `--acknowledged`.
#[derive(Debug, Serialize)]
struct Acknowledged<'a> {
    url: &'a str,
    #[serde(serialize_with = "date")]
    fetched_at: Option<Timestamp>,
    outcome: &'a str,
}

/// What the lanes share.
pub(super) struct Post {
    client: Client,
    patience: Duration,
    outcomes: Mutex<BTreeMap<String, u64>>,
    acknowledged: Option<Mutex<File>>,
}

impl Batch {
    /// Adds a page.
    ///
    /// # Errors
    /// When it is longer as a line than is taken, which can be six times as long as it was: the server
    /// would refuse all the others with it. The batch is as it was.
    pub(super) fn push(&mut self, item: &PageItem) -> Result<(), Reason> {
        let begin = self.body.len();
        item.to_json_line(&mut self.body);
        let bytes = self.body.len() - begin - 1;
        if bytes > LINE_BYTES_MAX {
            self.body.truncate(begin);
            self.body.shrink_to(BATCH_BYTES);
            let (bytes, max) = (bytes as u64, LINE_BYTES_MAX as u64);
            return Err(Reason::TooLarge { what: "a line of JSON", bytes, max });
        }
        self.pages.push(Posted { begin, url: item.url.to_string(), fetched_at: item.fetched_at });
        Ok(())
    }

    /// Whether it is to be posted, at `pages` pages or when it is large.
    pub(super) fn is_full(&self, pages: usize) -> bool {
        self.pages.len() >= pages || self.body.len() >= BATCH_BYTES
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }
}

impl Post {
    /// Posts to the server of `client`, giving up after `patience`; `acknowledged` is appended to.
    ///
    /// # Errors
    /// When that file cannot be opened.
    pub(super) fn new(
        client: Client,
        patience: Duration,
        acknowledged: Option<&Path>,
    ) -> anyhow::Result<Self> {
        let open = |path: &Path| {
            let file = File::options().create(true).append(true).open(path);
            file.map(Mutex::new).with_context(|| format!("cannot write {}", path.display()))
        };
        let acknowledged = acknowledged.map(open).transpose()?;
        Ok(Self { client, patience, outcomes: Mutex::default(), acknowledged })
    }

    /// Posts one batch after the other.
    pub(super) fn lane(&self, batches: &Receiver<Batch>) -> anyhow::Result<()> {
        for batch in batches {
            self.post(batch)?;
        }
        Ok(())
    }

    /// Counts a page that is not taken, and says why.
    pub(super) fn refuse(&self, url: &str, reason: &dyn Display) {
        let refused = self.count(REFUSED);
        if refused <= REFUSED_SHOWN {
            eprintln!("doppel: {url}: {reason}");
        } else if refused == REFUSED_SHOWN + 1 {
            eprintln!("doppel: more refused pages are only counted");
        }
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

    /// Posts a batch until every line is answered. A busy server takes a beginning of it and asks for
    /// the rest again. One that takes no body as large gets smaller ones, down to one page, which is
    /// then the one to blame.
    fn post(&self, batch: Batch) -> anyhow::Result<()> {
        let body = Bytes::from(batch.body);
        let mut pages = &batch.pages[..];
        let mut most = pages.len();
        let mut progress = Instant::now();
        while let Some(first) = pages.first() {
            let (sent, later) = pages.split_at(most.min(pages.len()));
            let end = later.first().map_or(body.len(), |page| page.begin);
            let request = self.client.request(Method::POST, &["v1", "pages"]);
            let request = request.header(CONTENT_TYPE, NDJSON).body(body.slice(first.begin..end));
            let answers = match self.client.send_patiently(&request, self.patience) {
                Ok(text) => parse(&text, sent.len())?,
                Err(error) => match error.downcast_ref::<Failure>() {
                    Some(Failure::TooLarge(_)) if sent.len() > 1 => {
                        most = sent.len() / 2;
                        continue;
                    }
                    Some(Failure::TooLarge(reason)) => {
                        self.refuse(&first.url, reason);
                        pages = later;
                        continue;
                    }
                    Some(Failure::Refused { .. }) => return Err(error.context(named(first, sent.len()))),
                    _ => return Err(error),
                },
            };
            let retry = |answer: &Answer| answer.error.as_ref().is_some_and(|error| error.code == "retry");
            let taken = answers.iter().position(retry).unwrap_or(sent.len());
            self.note(&answers[..taken], sent)?;
            if let Some(Answer { error: Some(error), .. }) = answers.get(taken) {
                if taken > 0 {
                    progress = Instant::now();
                } else if progress.elapsed() > self.patience {
                    let (status, text) = (StatusCode::TOO_MANY_REQUESTS, error.reason.clone());
                    let refused = Failure::Refused { status, text };
                    return Err(anyhow::Error::new(refused).context(named(first, sent.len())));
                }
                thread::sleep(BUSY_PAUSE);
            }
            pages = &pages[taken..];
            most = most.saturating_mul(2);
        }
        Ok(())
    }

    /// Counts and records answers to the first of `pages`.
    fn note(&self, answers: &[Answer], pages: &[Posted]) -> anyhow::Result<()> {
        let mut lines = Vec::new();
        for (answer, page) in answers.iter().zip(pages) {
            if let Some(error) = &answer.error {
                self.refuse(&page.url, &error.reason);
                continue;
            }
            let outcome =
                answer.outcome.as_deref().context("an answer has neither an outcome nor an error")?;
            self.count(outcome);
            if self.acknowledged.is_some() {
                let line = Acknowledged { url: &page.url, fetched_at: page.fetched_at, outcome };
                serde_json::to_writer(&mut lines, &line)?;
                lines.push(b'\n');
            }
        }
        if let Some(file) = &self.acknowledged {
            lock(file).write_all(&lines).context("cannot write the acknowledged pages")?;
        }
        Ok(())
    }
}

/// Reads the answers to `sent` lines.
fn parse(text: &str, sent: usize) -> anyhow::Result<Vec<Answer>> {
    let answers = text.lines().map(serde_json::from_str).collect::<Result<Vec<Answer>, _>>();
    let answers = answers.context("the server's answer is not what this program expects")?;
    let got = answers.len();
    anyhow::ensure!(got == sent, "the server answered {got} of {sent} pages");
    Ok(answers)
}

/// The pages of a request, for an error.
fn named(first: &Posted, pages: usize) -> String {
    match pages {
        1 => first.url.clone(),
        _ => format!("{} and {} after it", first.url, plural(pages as u64 - 1, "page")),
    }
}

/// RFC 3339.
fn date<S: Serializer>(date: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    date.map(|date| date.to_string()).serialize(serializer)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
