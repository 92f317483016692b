//! `doppel purge`: forget pages altogether.

use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgGroup, Args};
use doppel_contract::answer::PurgeResult;
use doppel_contract::client::{Client, Method};
use doppel_model::PageUrl;
use doppel_terminal::output::{Output, plural, table};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::AskArgs;
use crate::client::{PATIENCE, connect};
use crate::urls::{self, Bad};

/// Forget pages altogether: content, groups and history.
///
/// Prints a line a page: `purged`, or `unknown` where no such page was on record. A purge cannot be undone, and unlike a deletion it
/// leaves no record, so an older version of the page would be taken again. For pages that have merely gone there is `doppel delete`.
/// What is kept of a purged page, and for how long, is in docs/guides/delete-pages-for-good.md. Ends with code 5 when one is no page
/// URL; all others are purged. To give the same pages again is safe.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["urls", "file", "host"]), after_help = "\
Examples:
  doppel purge http://example.org/private
  doppel purge --file forget.txt
  cut -f1 requests.tsv | doppel purge --file -
  doppel purge --host www.example.org")]
pub(crate) struct Purge {
    /// Pages; `-` reads one a line from standard input.
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Read the pages from this file, one a line, where blank lines are skipped; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Forget all pages of this host, as URLs have it: lower case, without a port. Its subdomains are other hosts.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

/// What became of a URL or a host, in JSON.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Line<'l> {
    Page { url: &'l str, purged: u64 },
    Host { host: &'l str, purged: u64 },
    Bad { url: &'l str, error: String },
}

impl Purge {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        if let Some(host) = &self.host {
            let purged = forget(&client, &json!({ "host": host }), false)?;
            let line = Line::Host { host, purged };
            output.print(&line, |out| writeln!(out, "{} of {host} purged", plural(purged, "page")))?;
            return Ok(());
        }
        let (mut bad, mut done) = (Bad::default(), 0);
        for url in urls::given(&self.urls, self.file.as_deref())? {
            let url = url?;
            let line = match PageUrl::parse(&url) {
                Ok(_) => {
                    let purged = forget(&client, &json!({ "url": url }), done > 0);
                    let purged =
                        purged.with_context(|| format!("{} before {url} done", plural(done, "page")))?;
                    done += 1;
                    Line::Page { url: &url, purged }
                }
                Err(error) => {
                    let error = error.to_string();
                    bad.note(&url, &error);
                    Line::Bad { url: &url, error }
                }
            };
            output.print(&line, |out| table(out, &[row(&line)]))?;
        }
        Ok(bad.verdict()?)
    }
}

/// Asks for a purge, and patiently once the server has answered. Returns how many pages there were.
fn forget(client: &Client, what: &Value, patiently: bool) -> anyhow::Result<u64> {
    let request = client.request(Method::POST, &["v1", "purge"]).json(what);
    let PurgeResult { purged } = match patiently {
        true => client.ask_patiently(&request, PATIENCE)?.value,
        false => client.json(request)?,
    };
    Ok(purged)
}

fn row(line: &Line<'_>) -> Vec<String> {
    match line {
        Line::Page { url, purged: 0 } => vec!["unknown".to_owned(), (*url).to_owned()],
        Line::Page { url, .. } => vec!["purged ".to_owned(), (*url).to_owned()],
        Line::Host { host, purged } => vec![plural(*purged, "page"), (*host).to_owned()],
        Line::Bad { url, error } => vec!["error  ".to_owned(), (*url).to_owned(), error.clone()],
    }
}
