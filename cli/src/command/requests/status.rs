//! `doppel status`: says which pages are duplicates.

use clap::Args;
use doppel_contract::answer::{Advice, StatusAnswer};
use doppel_contract::client::{Client, Method};
use doppel_contract::words;
use doppel_terminal::output::{Output, as_of, table};
use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use crate::args::AskArgs;
use crate::client::connect;
use crate::urls::{self, InvalidUrls};

/// Largest number of URLs in one request.
const URLS_PER_REQUEST: usize = 1_000;

/// Ask whether pages are duplicates, and of which kept page.
///
/// Prints one line for each page, in the order of the arguments: `unknown`, `pending`, `unique`, `winner`,
/// `duplicate` (verified: drop it), `secondary` (its group has another winner: keep it), `unresolved` (a
/// redirect) or `dead`. Ends with code 5 if an argument is no page URL.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel status http://example.org/ http://example.org/index.html
  doppel status --market de --json http://example.org/
  cut -f1 urls.tsv | doppel status -")]
pub(crate) struct Status {
    /// URLs of the pages; `-` reads one URL per line from standard input. Blank lines are skipped.
    #[arg(value_name = "URL", required = true)]
    urls: Vec<String>,
    /// Answer with the winner for a market: members on hosts of the market are preferred. Give the name of a
    /// market that the server knows (`GET /v1/winners` lists them), or a host suffix such as `de`.
    #[arg(long, value_name = "NAME")]
    market: Option<String>,
    #[command(flatten)]
    ask: AskArgs,
}

/// The answers as the server wrote them. Each is a [`StatusAnswer`].
#[derive(Debug, Deserialize)]
struct RawAnswers {
    pages: Vec<Box<RawValue>>,
}

impl Status {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = connect(&self.ask.server)?;
        let output = Output { json: self.ask.json };
        let mut bad = InvalidUrls::default();
        let mut given = urls::from_arguments(&self.urls, None)?;
        loop {
            let urls = given.by_ref().take(URLS_PER_REQUEST).collect::<anyhow::Result<Vec<_>>>()?;
            if urls.is_empty() {
                return Ok(bad.verdict()?);
            }
            self.ask_all(&client, output, &urls, &mut bad)?;
        }
    }

    /// Asks about `urls`, prints the answers, and counts invalid URLs in `bad`.
    fn ask_all(
        &self,
        client: &Client,
        output: Output,
        urls: &[String],
        bad: &mut InvalidUrls,
    ) -> anyhow::Result<()> {
        let body = json!({ "urls": urls, "market": self.market });
        let RawAnswers { pages } =
            client.json(client.request(Method::POST, &["v1", "status"]).json(&body))?;
        let answers = pages.iter().map(|page| serde_json::from_str(page.get()));
        let answers = answers.collect::<Result<Vec<StatusAnswer>, _>>()?;
        output.print_all(&pages, |out| table(out, &answers.iter().map(row).collect::<Vec<_>>()))?;
        for answer in answers {
            if let StatusAnswer::Bad { url, error } = answer {
                bad.note(&url, &error);
            }
        }
        Ok(())
    }
}

fn row(answer: &StatusAnswer) -> Vec<String> {
    match answer {
        StatusAnswer::Advice(advice) => vec![advice.status.to_string(), advice.url.clone(), about(advice)],
        StatusAnswer::Bad { url, error } => vec!["error".to_owned(), url.clone(), error.clone()],
    }
}

/// Describes what an answer says of a page besides its status.
pub(super) fn about(advice: &Advice) -> String {
    let mut about = Vec::new();
    if let Some(target) = &advice.redirect_to {
        let end = advice.reason.map(|reason| format!(", {}", words::unresolved(reason)));
        about.push(format!("redirects to {target}{}", end.unwrap_or_default()));
    }
    let why = advice.rule.map(|rule| format!(" ({})", words::rule(rule))).unwrap_or_default();
    match (&advice.duplicate_of, &advice.winner, advice.status) {
        (Some(kept), ..) => about.push(format!("of {kept}{why}")),
        (None, Some(winner), doppel_contract::Status::Secondary) => {
            about.push(format!("beside {winner}{why}"));
        }
        _ => {}
    }
    about.extend(advice.similarity.map(|similarity| format!("similarity {similarity:.3}")));
    about.extend(advice.group.as_ref().map(|group| format!("group {group}")));
    about.extend(advice.note.clone());
    about.extend(advice.age_ms.map(as_of));
    about.join(", ")
}
