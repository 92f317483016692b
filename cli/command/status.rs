//! `doppel status`: what Doppel says of pages.

use std::io::{self, BufRead};

use clap::Args;
use doppel_coordinator::words;
use doppel_protocol::{Rule, Unresolved};
use reqwest::Method;
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::args::AskArgs;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{Output, count, table};

/// URLs of one request.
const URLS_PER_REQUEST: usize = 1_000;

/// Ask whether pages are duplicates, and of which winner.
///
/// Prints one line a page, in the order asked: `unknown`, `pending`, `unique`, `winner`, `duplicate`
/// (verified: drop it), `member` (in the group, not verified: keep it), `unresolved` (a redirect) or
/// `dead`. Ends with code 5 when one is no page URL.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel status http://example.org/ http://example.org/index.html
  doppel status --market de --json http://example.org/
  cut -f1 urls.tsv | doppel status -")]
pub(crate) struct Status {
    /// Pages; `-` reads one a line from standard input, where blank lines are skipped.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Answer with the winner for a market: prefer members of its hosts. The name of a market that the server
    /// knows (`GET /v1/winners` lists them), or a host suffix.
    #[arg(long, value_name = "NAME")]
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
    rule: Option<Rule>,
    reason: Option<Unresolved>,
    redirect_to: Option<String>,
    note: Option<String>,
    error: Option<String>,
}

impl Status {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = Client::new(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        let mut bad = 0;
        if self.urls == ["-"] {
            let is_blank = |line: &String| line.trim().is_empty();
            let mut lines = io::stdin().lock().lines().filter(|line| !line.as_ref().is_ok_and(is_blank));
            loop {
                let urls = lines.by_ref().take(URLS_PER_REQUEST).collect::<io::Result<Vec<_>>>()?;
                if urls.is_empty() {
                    break;
                }
                bad += self.ask_all(&client, output, &urls)?;
            }
        } else {
            for urls in self.urls.chunks(URLS_PER_REQUEST) {
                bad += self.ask_all(&client, output, urls)?;
            }
        }
        if bad > 0 {
            let verb = if bad == 1 { "is no page URL" } else { "are no page URLs" };
            return Err(Failure::BadInput(format!("{} {verb}", count(bad))).into());
        }
        Ok(())
    }

    /// Gives how many of them are no page URLs.
    fn ask_all(&self, client: &Client, output: Output, urls: &[String]) -> anyhow::Result<u64> {
        let body = json!({ "urls": urls, "market": self.market });
        let Answers { pages } = client.json(client.request(Method::POST, &["v1", "status"]).json(&body))?;
        let answers = pages.iter().map(|page| serde_json::from_str(page.get()));
        let answers = answers.collect::<Result<Vec<Answer>, _>>()?;
        output.print_all(&pages, |out| table(out, &answers.iter().map(Answer::row).collect::<Vec<_>>()))?;
        Ok(answers.iter().filter(|answer| answer.error.is_some()).count() as u64)
    }
}

impl Answer {
    fn row(&self) -> Vec<String> {
        let mut about = Vec::new();
        if let Some(target) = &self.redirect_to {
            let end = self.reason.map(|reason| format!(", {}", words::unresolved(reason)));
            about.push(format!("redirects to {target}{}", end.unwrap_or_default()));
        }
        if let (Some(winner), true) = (&self.winner, self.status.as_deref() != Some("winner")) {
            let why = self.rule.map(|rule| format!(" ({})", words::rule(rule))).unwrap_or_default();
            about.push(format!("of {winner}{why}"));
        }
        about.extend(self.similarity.map(|similarity| format!("similarity {similarity:.3}")));
        about.extend(self.group.as_ref().map(|group| format!("group {group}")));
        about.extend(self.note.clone());
        about.extend(self.error.clone());
        let status = self.status.clone().unwrap_or_else(|| "error".to_owned());
        vec![status, self.url.clone(), about.join(", ")]
    }
}
