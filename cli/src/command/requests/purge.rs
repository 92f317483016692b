//! `doppel purge`: deletes pages together with their records.

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
use crate::urls::{self, InvalidUrls};

/// Forget pages altogether: content, groups and history.
///
/// Prints one line for each page: `purged`, or `unknown` if the page was not on record. A purge cannot be
/// undone. Unlike a deletion it leaves no record, so the server accepts older versions of the page again. For
/// pages that are merely gone, use `doppel delete`. docs/guides/delete-pages-for-good.md says what remains of
/// a purged page, and for how long. Ends with code 5 if an argument or a line is no page URL; all other pages
/// are purged. It is safe to give the same pages again.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["urls", "file", "host"]), after_help = "\
Examples:
  doppel purge http://example.org/private
  doppel purge --file forget.txt
  cut -f1 requests.tsv | doppel purge --file -
  doppel purge --host www.example.org")]
pub(crate) struct Purge {
    /// URLs of the pages; `-` reads one URL per line from standard input.
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Read the URLs from this file, one per line; `-` is standard input. Blank lines are skipped.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Forget all pages of this host. Write the host as it is in URLs: in lower case, without a port. Its
    /// subdomains are other hosts.
    #[arg(long, value_name = "HOST")]
    host: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

/// Result for one URL or one host, as a line of JSON.
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
        let (mut bad, mut done) = (InvalidUrls::default(), 0);
        for url in urls::from_arguments(&self.urls, self.file.as_deref())? {
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

/// Requests a purge and returns the number of purged pages. Retries only if `patiently` is set, that is, once
/// the server has answered an earlier request.
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
