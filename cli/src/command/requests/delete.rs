//! `doppel delete`: record that pages are gone.

use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgGroup, Args};
use doppel_contract::answer::AcceptedPage;
use doppel_contract::client::{Method, ParsedAnswer};
use doppel_model::PageUrl;
use doppel_terminal::output::{Output, plural, table};
use serde_json::json;

use crate::args::AskArgs;
use crate::client::{PATIENCE, connect};
use crate::urls::{self, Bad};

/// Record that pages are gone.
///
/// Prints a line a page with its outcome: `confirmed`, `unchanged` where it was recorded before, or `stale` where a newer version of the
/// page is on record. A page that is not on record is recorded as gone, too, and `confirmed`. A page that is gone is `dead`: its group has another winner then, and an older version of it is not taken. To
/// forget a page altogether there is `doppel purge`; very many are recorded faster by `doppel load`, as lines of
/// `{"url": ..., "dead": true}`. Ends with code 5 when one is no page URL; all others are recorded.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).args(["urls", "file"]), after_help = "\
Examples:
  doppel delete http://example.org/old
  doppel delete --fetched-at 2026-01-31T08:00:00Z http://example.org/old
  doppel delete --file gone.txt")]
pub(crate) struct Delete {
    /// Pages; `-` reads one a line from standard input.
    #[arg(value_name = "URL")]
    urls: Vec<String>,
    /// Read the pages from this file, one a line, where blank lines are skipped; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// When they were found to be gone, in RFC 3339 [default: now].
    #[arg(long, value_name = "TIME")]
    fetched_at: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

impl Delete {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        let (mut bad, mut done) = (Bad::default(), 0);
        for url in urls::given(&self.urls, self.file.as_deref())? {
            let url = url?;
            if let Err(error) = PageUrl::parse(&url) {
                let error = error.to_string();
                bad.note(&url, &error);
                let row = vec!["error".to_owned(), url.clone(), error.clone()];
                output.print(&json!({ "url": url, "error": error }), |out| table(out, &[row]))?;
                continue;
            }
            let mut query = vec![("url", url.as_str())];
            query.extend(self.fetched_at.as_deref().map(|date| ("fetched_at", date)));
            let request = client.request(Method::DELETE, &["v1", "pages"]).query(&query);
            let answer = match done {
                0 => client.ask::<AcceptedPage>(request),
                _ => client.ask_patiently(&request, PATIENCE),
            };
            let ParsedAnswer { text, value: AcceptedPage { url, outcome } } =
                answer.with_context(|| format!("{} before {url} done", plural(done, "page")))?;
            done += 1;
            output.print(&text, |out| table(out, &[vec![outcome.to_string(), url]]))?;
        }
        Ok(bad.verdict()?)
    }
}
