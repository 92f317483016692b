//! `doppel probe`: what a page would be, if it were recorded.

use std::path::{Path, PathBuf};

use clap::Args;
use doppel_contract::answer::{Advice, ProbeAnswer};
use doppel_contract::client::{Method, ParsedAnswer};
use doppel_contract::page::PageBody;
use doppel_crawls::FetchedPage;
use doppel_inputs::reading::one_page::OnePage;
use doppel_inputs::records::FieldArgs;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, table};
use serde_json::{Value, json};

use super::load;
use super::status::about;
use crate::args::AskArgs;
use crate::client::connect;
use crate::command::datasets::explain::files::print_main_content;

/// Say what a page would be, without recording it.
///
/// Prints one line as `doppel status` does: `unique`, `winner`, `duplicate` or `secondary`. Where the collection's policy reads the main
/// content (docs/reference/policies.md), it shows what of the page that is, and what is left out by which rule. Nothing is stored.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel probe draft.html
  doppel probe --url http://example.org/new draft.html
  doppel probe --json --url http://example.org/ crawl.warc.gz")]
pub(crate) struct Probe {
    /// A file of HTML, text or Markdown, or a crawl file of which --url names the page.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Where the page was found: what is on record under this URL is not taken for a partner. Of a crawl file, which page is meant, if it has
    /// several. A policy that reads the site of a page needs it.
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// Answer with the winner for a market, by its name or as a host suffix such as `de`; see docs/reference/winner-rules.md.
    #[arg(long, value_name = "MARKET")]
    market: Option<String>,
    #[command(flatten)]
    fields: FieldArgs,
    #[command(flatten)]
    ask: AskArgs,
}

impl Probe {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        if self.file == Path::new("-") {
            let text = "standard input is not read here; name a file, or ./- for one of that name";
            return Err(Failure::Usage(text.to_owned()).into());
        }
        let page =
            OnePage { file: &self.file, option: "--url", url: self.url.as_deref(), fields: &self.fields };
        let page = page.page()?;
        let body = self.body(page)?;
        let client = connect(&self.ask.server)?;
        let ParsedAnswer { text, value } =
            client.ask(client.request(Method::POST, &["v1", "probe"]).json(&body))?;
        let ProbeAnswer { advice, main_content } = value;
        Output { json: self.ask.json }.print(&text, |out| {
            table(out, &[self.row(&advice)])?;
            main_content.map_or(Ok(()), |main_content| print_main_content("it", &main_content, out))
        })?;
        Ok(())
    }

    /// What is asked. A file that was found nowhere has no URL.
    fn body(&self, page: FetchedPage) -> Result<Value, Failure> {
        let item = load::item(page);
        let url = (self.url.is_some() || !item.url.host().is_empty()).then(|| item.url.to_string());
        let (form, content) = match item.body {
            PageBody::Html(html) => ("html", html),
            PageBody::Text(text) => ("text", text),
            PageBody::Redirect(target) => return Err(self.nothing(&format!("redirects to {target}"))),
            PageBody::Dead => return Err(self.nothing("is dead")),
        };
        Ok(json!({ form: content, "url": url, "market": self.market }))
    }

    fn nothing(&self, why: &str) -> Failure {
        let url = self.url.as_deref().unwrap_or("its page");
        Failure::BadInput(format!("{}: {url} {why}: there is nothing to compare", self.file.display()))
    }

    fn row(&self, advice: &Advice) -> Vec<String> {
        let page = if advice.url.is_empty() { self.file.display().to_string() } else { advice.url.clone() };
        vec![advice.status.to_string(), page, about(advice)]
    }
}
