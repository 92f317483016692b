//! `doppel changes`: the feed of status changes.

use std::io::{self, Write};
use std::time::Duration;

use clap::Args;
use doppel_contract::Status;
use doppel_contract::answer::{ChangeLine, ChangesAnswer};
use doppel_contract::client::{Method, ParsedAnswer};
use doppel_terminal::output::{Output, table};

use crate::args::AskArgs;
use crate::client::connect;

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

impl Changes {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let mut cursor = self.cursor.clone();
        let ended = self.print(&mut cursor);
        // One that was refused is no place to continue from.
        let moved = ended.is_ok() || cursor != self.cursor;
        if let (Some(cursor), false, true) = (cursor, self.ask.json, moved) {
            // If stderr cannot be written, the cursor is lost, and that is all.
            let _ = writeln!(io::stderr(), "doppel: continue with --cursor {cursor}");
        }
        ended
    }

    /// Prints changes after `cursor`, and moves it on.
    fn print(&self, cursor: &mut Option<String>) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        let mut answered = false;
        loop {
            let mut query = vec![("limit", EVENTS_PER_REQUEST)];
            query.extend(cursor.as_deref().map(|cursor| ("cursor", cursor)));
            if self.follow {
                query.push(("wait", WAIT_SECONDS));
            }
            let request = client.request(Method::GET, &["v1", "changes"]).query(&query);
            let ParsedAnswer { text, value } = match self.follow && answered {
                true => client.ask_patiently(&request, PATIENCE)?,
                false => client.ask(request)?,
            };
            answered = true;
            let ChangesAnswer { changes, cursor: next, at_end } = value;
            if !(output.json && changes.is_empty() && self.follow) {
                output.print(&text, |out| table(out, &changes.iter().map(row).collect::<Vec<_>>()))?;
            }
            *cursor = Some(next);
            if at_end && !self.follow {
                return Ok(());
            }
        }
    }
}

fn row(change: &ChangeLine) -> Vec<String> {
    let mut about = Vec::new();
    match (&change.duplicate_of, &change.winner, change.status) {
        (Some(kept), ..) => about.push(format!("of {kept}")),
        (None, Some(winner), Status::Secondary) => about.push(format!("beside {winner}")),
        _ => {}
    }
    about.extend(change.group.as_ref().map(|group| format!("group {group}")));
    about.push(format!("fetched {}", change.fetched_at));
    vec![change.status.to_string(), change.url.clone(), about.join(", ")]
}
