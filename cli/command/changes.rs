//! `doppel changes`: the feed of status changes.

use std::io::{self, Write};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::args::AskArgs;
use crate::client::Client;
use crate::output::{Output, table};

/// Seconds that one request of `--follow` waits for news.
const WAIT_SECONDS: &str = "30";
const EVENTS_PER_REQUEST: &str = "10000";

/// How long `--follow` waits for a server that is away once it has answered.
const PATIENCE: Duration = Duration::from_secs(120);

/// Print status changes.
///
/// The changes of a page come in their order. The newest change of every page is kept, so from the beginning
/// it prints every page once. Ends at the present, or with --follow waits for more, and for a server that is
/// away for up to two minutes; then says on standard error how to continue. With --json a line is the
/// server's whole answer to one request: the changes, and the cursor to continue from.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel changes
  doppel changes --follow --json | your-index-updater")]
pub(crate) struct Changes {
    /// Continue after this cursor instead of from the beginning.
    #[arg(long)]
    cursor: Option<String>,
    /// Wait for more.
    #[arg(long)]
    follow: bool,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Deserialize)]
struct Answer {
    changes: Vec<Change>,
    cursor: String,
    at_end: bool,
}

#[derive(Debug, Deserialize)]
struct Change {
    fetched_at: String,
    status: String,
    url: String,
    group: Option<String>,
    winner: Option<String>,
}

impl Changes {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut cursor = self.cursor.clone();
        let ended = self.print(&mut cursor);
        // One that was refused is no place to continue from.
        let moved = ended.is_ok() || cursor != self.cursor;
        if let (Some(cursor), false, true) = (cursor, self.ask.json, moved) {
            // Where nobody reads stderr, nobody continues.
            let _ = writeln!(io::stderr(), "doppel: continue with --cursor {cursor}");
        }
        ended
    }

    /// Prints changes after `cursor`, and moves it on.
    fn print(&self, cursor: &mut Option<String>) -> anyhow::Result<()> {
        let client = Client::new(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        let mut answered = false;
        loop {
            let mut query = vec![("limit", EVENTS_PER_REQUEST)];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            if self.follow {
                query.push(("wait", WAIT_SECONDS));
            }
            let request = client.request(Method::GET, &["v1", "changes"]).query(&query);
            let answer: Box<RawValue> = if self.follow && answered {
                let text = client.send_patiently(&request, PATIENCE)?;
                RawValue::from_string(text)
                    .context("the answer is no JSON; is the server the same version?")?
            } else {
                client.json(request)?
            };
            answered = true;
            let Answer { changes, cursor: next, at_end } = serde_json::from_str(answer.get())?;
            if !(output.json && changes.is_empty() && self.follow) {
                output
                    .print(&answer, |out| table(out, &changes.iter().map(Change::row).collect::<Vec<_>>()))?;
            }
            *cursor = Some(next);
            if at_end && !self.follow {
                return Ok(());
            }
        }
    }
}

impl Change {
    fn row(&self) -> Vec<String> {
        let mut about = Vec::new();
        if let (Some(winner), "duplicate" | "member") = (&self.winner, self.status.as_str()) {
            about.push(format!("of {winner}"));
        }
        about.extend(self.group.as_ref().map(|group| format!("group {group}")));
        about.push(format!("fetched {}", self.fetched_at));
        vec![self.status.clone(), self.url.clone(), about.join(", ")]
    }
}
