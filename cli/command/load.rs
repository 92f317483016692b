//! `doppel load`: crawls into a server.
//!
//! Several batches are in flight, and the versions of one URL still arrive in their order: each URL
//! belongs to one lane, and a lane posts one batch after the other. The service is idempotent, so a
//! load that was interrupted is simply done again.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};
use bytes::Bytes;
use clap::Args;
use doppel_common::api::page::{PageBody, PageItem};
use doppel_common::input::{Fetched, FetchedBody};
use doppel_common::model::Timestamp;
use doppel_common::text::decode;
use reqwest::Method;
use reqwest::header::CONTENT_TYPE;
use serde::{Deserialize, Serialize, Serializer};

use crate::args::{InputArgs, ServerArgs};
use crate::client::Client;
use crate::crawl::{self, Tally};
use crate::exit::Failure;
use crate::output::{Output, bytes, count, table};
use crate::progress;

/// A batch is posted when it has this many bytes, whatever its pages.
const BATCH_BYTES: usize = 8 << 20;
/// Pause before lines are sent again that a busy server did not take.
const BUSY_PAUSE: Duration = Duration::from_millis(500);
const NDJSON: &str = "application/x-ndjson";
/// Refused pages that are printed one by one; the others are counted.
const REFUSED_SHOWN: u64 = 20;

/// Post crawls to a server.
///
/// Waits while the server is busy. May be repeated after an interruption: what the server has is
/// `unchanged` then.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel load crawl-2024-10.warc.gz crawl-2024-18.warc.gz
  doppel load --flush --json pages.jsonl.zst
  doppel load --server http://doppel.example:7700 site/")]
pub(crate) struct Load {
    #[command(flatten)]
    inputs: InputArgs,
    /// Wait until everything is decided.
    #[arg(long)]
    flush: bool,
    /// Batches in flight.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: u16,
    /// Pages of a batch, 1 to 100,000.
    #[arg(long, value_name = "PAGES", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Give up when the server has not taken a batch, or not answered, for this long.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    patience: u64,
    /// Append a line of JSON to this file for every page that the server has acknowledged.
    #[arg(long, value_name = "FILE")]
    acknowledged: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
}

/// What the load did.
#[derive(Debug, Serialize)]
struct Summary {
    input: Tally,
    /// Pages by what became of them.
    outcomes: BTreeMap<String, u64>,
    seconds: f64,
    pages_per_second: f64,
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

/// Pages on their way to one request.
#[derive(Debug, Default)]
struct Batch {
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

/// What the lanes share.
struct Post {
    client: Client,
    patience: Duration,
    outcomes: Mutex<BTreeMap<String, u64>>,
    acknowledged: Option<Mutex<File>>,
}

impl Load {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let open = |path: &PathBuf| {
            let file = File::options().create(true).append(true).open(path);
            file.map(Mutex::new).with_context(|| format!("cannot write {}", path.display()))
        };
        let post = Post {
            client: Client::new(&self.server)?,
            patience: Duration::from_secs(self.patience),
            outcomes: Mutex::default(),
            acknowledged: self.acknowledged.as_ref().map(open).transpose()?,
        };
        let input = thread::scope(|scope| {
            let (lanes, threads): (Vec<_>, Vec<_>) = (0..self.lanes)
                .map(|_| {
                    let (sender, receiver) = sync_channel(1);
                    let post = &post;
                    (Lane { batch: Batch::default(), sender }, scope.spawn(move || post.lane(&receiver)))
                })
                .unzip();
            let read = self.read(lanes);
            let posted =
                threads.into_iter().map(|thread| thread.join().map_err(|_| anyhow!("a lane panicked"))?);
            // Where a lane failed, reading stopped because of it.
            posted.collect::<anyhow::Result<Vec<()>>>()?;
            read
        })?;
        if self.flush {
            flush(&post.client)?;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let pages_per_second = input.records as f64 / seconds;
        let outcomes = post.outcomes.into_inner().unwrap_or_else(PoisonError::into_inner);
        let summary = Summary { input, outcomes, seconds, pages_per_second };
        Output { json: self.json }.print(&summary, |out| print(&summary, out))?;
        Ok(summary.input.verdict(self.inputs.strict)?)
    }

    /// Reads the inputs into the lanes.
    fn read(&self, mut lanes: Vec<Lane>) -> anyhow::Result<Tally> {
        let tally = crawl::read(&self.inputs, |page| {
            let lane = usize::from(page.url.id().shard(self.lanes).0);
            let batch = lanes[lane].push(&item(page));
            if batch.pages.len() >= self.batch as usize || batch.body.len() >= BATCH_BYTES {
                lanes[lane].send()?;
            }
            Ok(())
        })?;
        lanes.iter_mut().filter(|lane| !lane.batch.pages.is_empty()).try_for_each(Lane::send)?;
        Ok(tally)
    }
}

/// One order of posts.
struct Lane {
    batch: Batch,
    sender: SyncSender<Batch>,
}

impl Lane {
    fn push(&mut self, item: &PageItem) -> &Batch {
        let begin = self.batch.body.len();
        item.to_json_line(&mut self.batch.body);
        self.batch.pages.push(Posted { begin, url: item.url.to_string(), fetched_at: item.fetched_at });
        &self.batch
    }

    fn send(&mut self) -> anyhow::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.sender.send(batch).map_err(|_| anyhow!("posting ended early"))
    }
}

/// A page in the public form.
fn item(page: Fetched) -> PageItem {
    let Fetched { url, fetched_at, body, popularity, language } = page;
    let body = match body {
        FetchedBody::Html { bytes, charset } => PageBody::Html(unicode(bytes, charset.as_deref())),
        FetchedBody::Text(text) => PageBody::Text(text),
        FetchedBody::Redirect(target) => PageBody::Redirect(target),
        FetchedBody::Dead => PageBody::Dead,
    };
    PageItem { url, body, fetched_at, popularity, language }
}

/// HTML of any charset as a string; valid UTF-8 is not copied.
fn unicode(html: Vec<u8>, charset: Option<&str>) -> String {
    let mut buffer = String::new();
    let decoded = decode(&html, charset, &mut buffer);
    if decoded.as_ptr() != html.as_ptr() || decoded.len() != html.len() {
        return decoded.to_owned();
    }
    String::from_utf8(html).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

impl Post {
    fn lane(&self, batches: &Receiver<Batch>) -> anyhow::Result<()> {
        for batch in batches {
            self.post(batch)?;
        }
        Ok(())
    }

    /// Posts a batch until every line is answered. A busy server takes a beginning of it and asks for
    /// the rest again.
    fn post(&self, batch: Batch) -> anyhow::Result<()> {
        let body = Bytes::from(batch.body);
        let mut pages = &batch.pages[..];
        let mut progress = Instant::now();
        while let Some(first) = pages.first() {
            let request = self.client.request(Method::POST, &["v1", "pages"]);
            let request = request.header(CONTENT_TYPE, NDJSON).body(body.slice(first.begin..));
            let text = self.client.send_patiently(&request, self.patience)?;
            let answers = text.lines().map(serde_json::from_str).collect::<Result<Vec<Answer>, _>>();
            let answers = answers.context("the server's answer is not what this program expects")?;
            let (got, sent) = (answers.len(), pages.len());
            anyhow::ensure!(got == sent, "the server answered {got} of {sent} pages");
            let retry = |answer: &Answer| answer.error.as_ref().is_some_and(|error| error.code == "retry");
            let taken = answers.iter().position(retry).unwrap_or(sent);
            self.note(&answers[..taken], pages)?;
            if let Some(Answer { error: Some(error), .. }) = answers.get(taken) {
                if taken > 0 {
                    progress = Instant::now();
                } else if progress.elapsed() > self.patience {
                    return Err(Failure::Refused(error.reason.clone()).into());
                }
                thread::sleep(BUSY_PAUSE);
            }
            pages = &pages[taken..];
        }
        Ok(())
    }

    /// Counts and records answers to the first of `pages`.
    fn note(&self, answers: &[Answer], pages: &[Posted]) -> anyhow::Result<()> {
        let mut lines = Vec::new();
        let mut outcomes = lock(&self.outcomes);
        for (answer, page) in answers.iter().zip(pages) {
            let outcome = answer.outcome.as_deref().unwrap_or("refused");
            let known = outcomes.entry(outcome.to_owned()).or_default();
            *known += 1;
            match &answer.error {
                Some(error) if *known <= REFUSED_SHOWN => eprintln!("doppel: {}: {}", page.url, error.reason),
                Some(_) => {}
                None if self.acknowledged.is_none() => {}
                None => {
                    let line = Acknowledged { url: &page.url, fetched_at: page.fetched_at, outcome };
                    serde_json::to_writer(&mut lines, &line)?;
                    lines.push(b'\n');
                }
            }
        }
        drop(outcomes);
        if let Some(file) = &self.acknowledged {
            lock(file).write_all(&lines).context("cannot write the acknowledged pages")?;
        }
        Ok(())
    }
}

/// Decides everything accepted so far.
fn flush(client: &Client) -> anyhow::Result<()> {
    #[derive(Deserialize)]
    struct Flushed {
        done: bool,
    }
    let spinner = progress::waiting("deciding");
    loop {
        let request = client.request(Method::POST, &["v1", "flush"]).query(&[("wait", "true")]);
        let Flushed { done } = client.json(request)?;
        if done {
            spinner.finish_and_clear();
            return Ok(());
        }
    }
}

/// RFC 3339.
fn date<S: Serializer>(date: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
    date.map(|date| date.to_string()).serialize(serializer)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn print(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let Summary { input, outcomes, seconds, pages_per_second } = summary;
    let mut rows = vec![vec!["records".to_owned(), count(input.records), bytes(input.bytes)]];
    rows.extend(outcomes.iter().map(|(outcome, pages)| vec![format!("  {outcome}"), count(*pages)]));
    let left = |name: &str, reasons: &BTreeMap<String, u64>| {
        let row = |(reason, records): (&String, &u64)| vec![format!("{name}: {reason}"), count(*records)];
        reasons.iter().map(row).collect::<Vec<_>>()
    };
    rows.extend(left("skipped", &input.skipped));
    rows.extend(left("bad", &input.bad));
    rows.push(vec!["time".to_owned(), format!("{seconds:.1} s"), format!("{pages_per_second:.0} pages/s")]);
    table(out, &rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_becomes_unicode() {
        assert_eq!(unicode("<p>gr\u{fc}n".into(), None), "<p>gr\u{fc}n");
        assert_eq!(unicode(b"<p>gr\xfcn".to_vec(), Some("iso-8859-1")), "<p>gr\u{fc}n");
        assert_eq!(unicode(b"\xef\xbb\xbf<p>a".to_vec(), None), "<p>a");
        assert_eq!(unicode(Vec::new(), None), "");
    }
}
