//! `doppel explain`: why two pages are, or are not, duplicates. A server is asked about pages on record; pages on disk are compared here.

pub(crate) mod files;

use std::io::{self, Write};
use std::path::Path;

use clap::Args;
use doppel_contract::Status;
use doppel_contract::answer::{
    Advice, ComparisonMeasures, ContentDetails, CriterionResult, ExplainedPage, Explanation,
    PrecedingKeptPage, ShingleComparison,
};
use doppel_contract::client::{Method, ParsedAnswer};
use doppel_contract::words;
use doppel_model::PageUrl;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, as_of, plural, table};

use crate::args::AskArgs;
use crate::client::connect;

/// Say why two pages are, or are not, duplicates.
///
/// Of two URLs it asks the server, and shows what each page is, what the two have in common, and where they lie in the index. Two
/// files are compared here under any policy, without a server: files of HTML, text or Markdown, or crawl files, of which --url-a and
/// --url-b name the page. Where the policy reads the main content (docs/reference/policies.md), it shows what of each page that is, and what is
/// left out by which rule; a server does not keep what is left out.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel explain http://example.org/ http://example.org/index.html
  doppel explain --policy content one.html other.html
  doppel explain --policy copies --url-a http://a.example/1 --url-b http://b.example/ crawl.warc.gz other.html")]
pub(crate) struct Explain {
    /// One page.
    #[arg(value_name = "URL|FILE")]
    a: String,
    /// The other.
    #[arg(value_name = "URL|FILE")]
    b: String,
    #[command(flatten)]
    files: files::FilesArgs,
    #[command(flatten)]
    ask: AskArgs,
}

impl Explain {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let output = Output { json: self.ask.json };
        match [&self.a, &self.b].map(|one| Path::new(one).is_file()) {
            [true, true] => return self.files.run(Path::new(&self.a), Path::new(&self.b), output),
            [false, false] => {
                [&self.a, &self.b].into_iter().try_for_each(|one| check_url(one))?;
                self.files.check_unused()?;
            }
            [is_file, _] => {
                let (file, other) = if is_file { (&self.a, &self.b) } else { (&self.b, &self.a) };
                check_url(other)?;
                let text = format!("{file} is a file, and {other} is none: give two files or two URLs");
                return Err(Failure::Usage(text).into());
            }
        }
        let client = connect(&self.ask.server)?;
        let request =
            client.request(Method::GET, &["v1", "explain"]).query(&[("a", &self.a), ("b", &self.b)]);
        let ParsedAnswer { text, value } = client.ask(request)?;
        output.print(&text, |out| print(&value, out))?;
        Ok(())
    }
}

/// Refuses what is no file and no URL either.
fn check_url(text: &str) -> Result<(), Failure> {
    let path = Path::new(text);
    let why = match PageUrl::parse(text) {
        _ if path.is_dir() => "is a directory",
        _ if path.exists() => "is no regular file",
        Err(_) => "does not exist, and is no URL",
        Ok(_) => return Ok(()),
    };
    Err(Failure::Usage(format!("{text} {why}: give two files or two URLs")))
}

fn print(explanation: &Explanation, out: &mut dyn Write) -> io::Result<()> {
    let verdict = if explanation.duplicate { "near-duplicates" } else { "no near-duplicates" };
    let age = explanation.age_ms.map(|age| format!(" ({})", as_of(age))).unwrap_or_default();
    writeln!(out, "{verdict}: {}{age}", explanation.reason)?;
    let names = ["", "status", "group", "tokens", "shingles", "language", "lengths", "home", "compared in"];
    let (a, b) = (column(&explanation.a, "a"), column(&explanation.b, "b"));
    let rows = names.into_iter().zip(a).zip(b).map(|((name, a), b)| vec![name.to_owned(), a, b]);
    table(out, &rows.collect::<Vec<_>>())?;
    for (name, side) in [("a", &explanation.a), ("b", &explanation.b)] {
        let Advice { duplicate_of, winner, rule, .. } = &side.advice;
        match (duplicate_of, winner, rule) {
            (Some(kept), _, Some(rule)) => {
                writeln!(out, "kept before {name}: {kept}, {}", words::rule(*rule))?;
            }
            (None, Some(winner), Some(rule)) => {
                writeln!(out, "winner before {name}: {winner}, {}", words::rule(*rule))?;
            }
            _ => {}
        }
    }
    for (name, side) in [("a", &explanation.a), ("b", &explanation.b)] {
        if side.kept_before.len() < 2 && side.advice.status != Status::Secondary {
            continue;
        }
        for PrecedingKeptPage { url, similarity, duplicate, .. } in &side.kept_before {
            let verdict = if *duplicate { "near-duplicates" } else { "no near-duplicates" };
            writeln!(out, "{name} and the kept page {url}: similarity {similarity:.4}, {verdict}")?;
        }
    }
    match &explanation.measures {
        Some(measures) => print_measures(&explanation.policy, measures, explanation.duplicate, out),
        None => Ok(()),
    }
}

fn print_measures(
    policy: &str,
    measures: &ComparisonMeasures,
    is_duplicate: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let ComparisonMeasures { same_content, similarity, criteria, shingles } = measures;
    if *same_content && !is_duplicate {
        // Neither has any text, so there is nothing to measure.
        return Ok(());
    }
    writeln!(out, "similarity under {policy}: {similarity:.4}")?;
    for CriterionResult { what, shared, of, needed, met } in criteria {
        let verdict = if *met { "met" } else { "not met" };
        writeln!(out, "{what}: {shared} of {of} in both; {needed} is asked for: {verdict}")?;
    }
    if *same_content && criteria.iter().any(|criterion| !criterion.met) {
        writeln!(
            out,
            "(pages with the same {} are near-duplicates without)",
            if policy.contains("tokens=") { "tokens" } else { "words" }
        )?;
    }
    if let Some(ShingleComparison { only_a, only_b, sketch_estimate, equal_bands, bands, .. }) = shingles {
        writeln!(out, "only in a: {only_a}, only in b: {only_b}")?;
        writeln!(out, "sketches: {equal_bands} of {bands} bands equal, estimate of J {sketch_estimate:.2}")?;
    }
    Ok(())
}

fn column(side: &ExplainedPage, name: &str) -> Vec<String> {
    let ExplainedPage { advice, content, .. } = side;
    let group = advice.group.clone().unwrap_or_else(|| "-".to_owned());
    let mut column = vec![name.to_owned(), advice.status.to_string(), group];
    match content {
        None => column.resize(9, "-".to_owned()),
        Some(ContentDetails { tokens, shingles, language, lengths, home, probed_partitions, .. }) => {
            column.extend([
                tokens.to_string(),
                shingles.map_or_else(|| "-".to_owned(), |shingles| shingles.to_string()),
                language.clone().unwrap_or_else(|| "-".to_owned()),
                listed(lengths),
                format!("partition {home}"),
                plural(probed_partitions.len() as u64, "partition"),
            ]);
        }
    }
    column
}

fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
