//! `doppel load`: posts crawls to a server.
//!
//! Several batches are in flight at once, yet the versions of one URL must arrive in their order. Each URL
//! therefore belongs to one lane, chosen by the hash of the URL, and a lane posts one batch after the other.
//! The service is idempotent, so an interrupted load can be repeated from the beginning.

mod acknowledged;
mod post;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use clap::Args;
use doppel_contract::answer::FlushResult;
use doppel_contract::client::{Client, Method};
use doppel_contract::page::{PageBody, PageItem};
use doppel_crawls::{FetchedBody, FetchedPage, Location};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::reading::crawl;
use doppel_inputs::tally::Tally;
use doppel_terminal::interrupt;
use doppel_terminal::output::{Output, bytes, count, say, table};
use doppel_terminal::progress;
use doppel_text::decode;
use serde::Serialize;

use crate::args::ServerArgs;
use crate::client::connect;
use post::{Batch, PostedPage, Poster, StoppedLane};

/// Longest time in which one flush request waits for decisions, before the request is sent again.
const FLUSH_STEP: Duration = Duration::from_secs(60);

/// Post crawls to a server.
///
/// Waits while the server is busy or away. After an interruption, give the same command again: for a version
/// that the server already has, the outcome is `unchanged`. A version older than the one on record is `stale`
/// and does not replace it. The command does not notice deleted files. If a file of a directory is gone since
/// an earlier load, its page stays live until a request records it as dead. `doppel dedup --data DIR --prune`
/// records such pages, in a data directory that no server uses.
///
/// A record without a date has the date of its file's last change. A file that is copied again therefore
/// brings newer versions, and a file with an older date brings `stale` ones.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel load crawl-2024-10.warc.gz crawl-2024-18.warc.gz
  doppel load --flush --json pages.jsonl.zst
  doppel load --server http://doppel.example:7700 site/")]
pub(crate) struct Load {
    #[command(flatten)]
    inputs: InputArgs,
    /// Wait until the server has decided everything that it has accepted, also from other clients.
    #[arg(long)]
    flush: bool,
    /// Batches in flight, 1 to 64.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=64))]
    lanes: u16,
    /// Pages in a batch, 1 to 100,000.
    #[arg(long, value_name = "PAGES", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    batch: u32,
    /// Give up if the server has not taken a batch, or not answered, for this many seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 120, value_parser = clap::value_parser!(u64).range(1..=86_400))]
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

/// Summary of a load.
#[derive(Debug, Serialize)]
struct Summary {
    input: Tally,
    /// Number of pages by outcome.
    outcomes: BTreeMap<String, u64>,
    /// Whether `--flush` waited until the server had decided everything.
    flushed: bool,
    seconds: f64,
    pages_per_second: f64,
}

/// A sequence of batches that are posted one after the other.
struct Lane {
    batch: Batch,
    sender: SyncSender<Batch>,
}

impl Load {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let begin = Instant::now();
        let patience = Duration::from_secs(self.patience);
        let client = connect(&self.server)?;
        interrupt::set_message("interrupted; the same command goes on")?;
        let post = Poster::new(
            client.clone(),
            patience,
            self.acknowledged.as_deref(),
            self.inputs.records.bad.clone(),
        )?;
        let input = self.post(&post)?;
        if self.flush {
            flush(&client, patience)?;
        }
        post.sync_acknowledged()?;
        let refused = post.refused();
        let seconds = begin.elapsed().as_secs_f64();
        let pages_per_second = input.records as f64 / seconds;
        let (outcomes, flushed) = (post.into_outcomes(), self.flush);
        let summary = Summary { input, outcomes, flushed, seconds, pages_per_second };
        Output { json: self.json }.print(&summary, |out| print(&summary, out))?;
        summary.input.left_out("doppel load").inspect(|left_out| say!("doppel: {left_out}"));
        Ok(summary.input.verdict_of_run(self.inputs.strict, refused)?)
    }

    /// Reads the inputs and posts them.
    fn post(&self, post: &Poster) -> anyhow::Result<Tally> {
        thread::scope(|scope| {
            let (mut lanes, threads): (Vec<_>, Vec<_>) = (0..self.lanes)
                .map(|_| {
                    let (sender, receiver) = sync_channel(1);
                    (Lane { batch: Batch::default(), sender }, scope.spawn(move || post.run_lane(&receiver)))
                })
                .unzip();
            let read = self.read(&mut lanes, post);
            // A lane still has pages if another lane failed and reading stopped. These pages were not sent.
            let mut not_acknowledged: Vec<PostedPage> =
                lanes.into_iter().filter_map(|lane| lane.batch.into_first()).collect();
            let spinner = progress::waiting("posting");
            let mut stopped = None;
            for thread in threads {
                let Err(StoppedLane { first, error }) =
                    thread.join().map_err(|_| anyhow!("a lane panicked"))?
                else {
                    continue;
                };
                not_acknowledged.push(*first);
                stopped.get_or_insert(error);
            }
            spinner.finish_and_clear();
            // If a lane fails, reading fails as a consequence. The error of the lane is therefore reported
            // first.
            match (stopped, not_acknowledged.into_iter().min_by_key(|page| page.at.before)) {
                (Some(error), Some(first)) => Err(error.context(self.how_to_continue(&first))),
                _ => read,
            }
        })
    }

    /// Reads the inputs into the lanes. If this fails, incomplete batches stay in the lanes.
    fn read(&self, lanes: &mut [Lane], post: &Poster) -> anyhow::Result<Tally> {
        let tally = crawl::read_with_positions(&self.inputs, |at, page| {
            let lane = &mut lanes[usize::from(page.url.id().shard(self.lanes).0)];
            let item = item(page);
            if let Err(too_large) = lane.batch.push(&item, at) {
                post.refuse(item.url.as_str(), &too_large);
            }
            if lane.batch.is_full(self.batch as usize) {
                lane.send()?;
            }
            Ok(())
        })?;
        lanes.iter_mut().filter(|lane| !lane.batch.is_empty()).try_for_each(Lane::send)?;
        Ok(tally)
    }

    /// Describes the first page that was not acknowledged, and how to continue.
    fn how_to_continue(&self, first: &PostedPage) -> String {
        let PostedPage { url, at, .. } = first;
        let location = Location { path: &at.path, position: at.position };
        format!(
            "the first page that was not acknowledged is {url} ({location}); the same command sends all of it again, of which the \
             server takes only what it does not have"
        )
    }
}

impl Lane {
    fn send(&mut self) -> anyhow::Result<()> {
        let batch = std::mem::take(&mut self.batch);
        self.sender.send(batch).map_err(|_| anyhow!("posting ended early"))
    }
}

/// Converts a page of a crawl to the form of the public API.
pub(super) fn item(page: FetchedPage) -> PageItem {
    let FetchedPage { url, fetched_at, body, popularity, language } = page;
    let body = match body {
        FetchedBody::Html { bytes, charset } => PageBody::Html(unicode(bytes, charset.as_deref())),
        FetchedBody::Xhtml { bytes, charset } => PageBody::of_xhtml(unicode(bytes, charset.as_deref())),
        FetchedBody::Text(text) => PageBody::Text(text),
        FetchedBody::Redirect(target) => PageBody::Redirect(target),
        FetchedBody::Dead => PageBody::Dead,
    };
    PageItem { url, body, fetched_at, popularity, language }
}

/// Decodes HTML of any charset to a string. Valid UTF-8 is not copied.
fn unicode(html: Vec<u8>, charset: Option<&str>) -> String {
    let mut buffer = String::new();
    let decoded = decode(&html, charset, &mut buffer);
    if decoded.as_ptr() != html.as_ptr() || decoded.len() != html.len() {
        return decoded.to_owned();
    }
    String::from_utf8(html).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Waits until the server has decided everything that it accepted before, from all clients. Retries while the
/// server is busy or away.
fn flush(client: &Client, patience: Duration) -> anyhow::Result<()> {
    let spinner = progress::waiting("deciding");
    let wait = FLUSH_STEP.min(patience);
    let mut is_reported = false;
    loop {
        let request = client.request(Method::POST, &["v1", "flush"]);
        let request = request.query(&[("wait", "true"), ("timeout", &wait.as_secs().to_string())]);
        // The server may answer only when its waiting time is over, so the client waits a little longer.
        let answer = client.send_patiently(&request, wait + patience)?;
        let FlushResult { done, backlog } = serde_json::from_str(&answer)
            .context("cannot read the server's answer to the flush; is the server of the same version?")?;
        if done {
            spinner.finish_and_clear();
            return Ok(());
        }
        let pending = count(backlog.pending);
        if !is_reported {
            say!("doppel: the server is deciding pages of all clients; {pending} of them are pending");
            is_reported = true;
        }
        spinner.set_message(format!("deciding, {pending} pages are pending"));
    }
}

fn print(summary: &Summary, out: &mut dyn Write) -> io::Result<()> {
    let Summary { input, outcomes, flushed, seconds, pages_per_second } = summary;
    let mut rows = vec![vec!["records".to_owned(), count(input.records), bytes(input.bytes)]];
    rows.extend(outcomes.iter().map(|(outcome, pages)| vec![format!("  {outcome}"), count(*pages)]));
    if *flushed {
        rows.push(vec!["flushed".to_owned(), "all are decided".to_owned()]);
    }
    let left = |name: &str, reasons: &BTreeMap<String, u64>| {
        let row = |(reason, records): (&String, &u64)| vec![format!("{name}: {reason}"), count(*records)];
        reasons.iter().map(row).collect::<Vec<_>>()
    };
    rows.extend(left("skipped", &input.skipped));
    rows.extend(left("bad", &input.bad));
    rows.extend(input.passed_over().map(|(name, number, about)| vec![name.to_owned(), count(number), about]));
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
