//! `doppel changes`: the feed of status changes.

use std::io::{self, Write};

use clap::Args;
use reqwest::Method;
use serde::Deserialize;
use serde_json::Value;

use crate::args::AskArgs;
use crate::client::Client;
use crate::output::Output;

/// Seconds that one request of `--follow` waits for news.
const WAIT_SECONDS: &str = "30";
const EVENTS_PER_REQUEST: &str = "10000";

/// Print status changes, oldest first.
///
/// Ends at the present, or with --follow waits for more. With --json each line has the cursor to
/// continue from after it; without, the last cursor is printed to standard error.
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
    changes: Vec<Value>,
    cursor: String,
    at_end: bool,
}

impl Changes {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = Client::new(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        let mut cursor = self.cursor;
        loop {
            let mut query = vec![("limit", EVENTS_PER_REQUEST)];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            if self.follow {
                query.push(("wait", WAIT_SECONDS));
            }
            let answer: Answer = client.json(client.request(Method::GET, &["v1", "changes"]).query(&query))?;
            output.print(&answer.changes, |_| Ok(()))?;
            cursor = Some(answer.cursor);
            if answer.at_end && !self.follow {
                break;
            }
        }
        Ok(())
    }
}
