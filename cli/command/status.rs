//! `doppel status`: what Doppel says of pages.

use std::io::{self, BufRead};

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::args::AskArgs;
use crate::client::Client;
use crate::output::{Output, table};

/// URLs of one request.
const URLS_PER_REQUEST: usize = 1_000;

/// Ask whether pages are duplicates, and of which winner.
///
/// Prints one line a page, in the order asked: `unknown`, `pending`, `unique`, `winner`, `duplicate`
/// (verified: drop it), `member` (in the group, not verified: keep it), `unresolved` (a redirect) or
/// `dead`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel status http://example.org/ http://example.org/index.html
  doppel status --market de --json http://example.org/
  cut -f1 urls.tsv | doppel status -")]
pub(crate) struct Status {
    /// Pages; `-` reads one a line from standard input.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Answer with the winner for a market: prefer members whose host has this suffix.
    #[arg(long, value_name = "SUFFIX")]
    market: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Deserialize)]
struct Answers {
    pages: Vec<Box<RawValue>>,
}

/// What is printed of an answer.
#[derive(Debug, Deserialize)]
struct Answer {
    url: String,
    status: Option<String>,
    group: Option<String>,
    winner: Option<String>,
    similarity: Option<f64>,
    reason: Option<String>,
    note: Option<String>,
    error: Option<String>,
}

impl Status {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = Client::new(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        if self.urls != ["-"] {
            return self
                .urls
                .chunks(URLS_PER_REQUEST)
                .try_for_each(|urls| self.ask_all(&client, output, urls));
        }
        let mut lines = io::stdin().lock().lines();
        loop {
            let urls = lines.by_ref().take(URLS_PER_REQUEST).collect::<io::Result<Vec<_>>>()?;
            if urls.is_empty() {
                return Ok(());
            }
            self.ask_all(&client, output, &urls)?;
        }
    }

    fn ask_all(&self, client: &Client, output: Output, urls: &[String]) -> anyhow::Result<()> {
        let body = json!({ "urls": urls, "market": self.market });
        let Answers { pages } = client.json(client.request(Method::POST, &["v1", "status"]).json(&body))?;
        output.print_all(&pages, |out| {
            let pages = pages.iter().map(|page| serde_json::from_str(page.get()));
            let pages = pages.collect::<Result<Vec<Answer>, _>>()?;
            table(out, &pages.iter().map(Answer::row).collect::<Vec<_>>())
        })?;
        Ok(())
    }
}

impl Answer {
    fn row(&self) -> Vec<String> {
        let mut about = Vec::new();
        if let (Some(winner), true) = (&self.winner, self.status.as_deref() != Some("winner")) {
            about.push(format!("of {winner}"));
        }
        about.extend(self.similarity.map(|similarity| format!("similarity {similarity:.3}")));
        about.extend(self.group.as_ref().map(|group| format!("group {group}")));
        about.extend(self.reason.as_ref().map(|reason| reason.replace('_', " ")));
        about.extend(self.note.clone());
        about.extend(self.error.clone());
        let status = self.status.clone().unwrap_or_else(|| "error".to_owned());
        vec![status, self.url.clone(), about.join(", ")]
    }
}
