//! `doppel explain`: why two pages are, or are not, duplicates.

use std::io::{self, Write};

use clap::Args;
use doppel_coordinator::words;
use doppel_protocol::Rule;
use reqwest::Method;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::args::AskArgs;
use crate::client::Client;
use crate::output::{Output, plural, table};

/// Say why two pages are, or are not, duplicates.
///
/// Shows what each page is, what the two have in common, and where they lie in the index.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel explain http://example.org/ http://example.org/index.html")]
pub(crate) struct Explain {
    /// One page.
    #[arg(value_name = "URL")]
    a: String,
    /// The other.
    #[arg(value_name = "URL")]
    b: String,
    #[command(flatten)]
    ask: AskArgs,
}

#[derive(Debug, Deserialize)]
struct Answer {
    a: Side,
    b: Side,
    measures: Option<Measures>,
    duplicate: bool,
    because: String,
}

#[derive(Debug, Deserialize)]
struct Side {
    advice: Advice,
    content: Option<Content>,
}

#[derive(Debug, Deserialize)]
struct Advice {
    status: String,
    group: Option<String>,
    winner: Option<String>,
    rule: Option<Rule>,
}

#[derive(Debug, Deserialize)]
struct Content {
    tokens: u32,
    shingles: u32,
    language: Option<String>,
    lengths: Vec<u32>,
    home: u32,
    probed_partitions: Vec<u32>,
}

#[derive(Debug, Deserialize)]
struct Measures {
    shared: u32,
    only_a: u32,
    only_b: u32,
    jaccard: f64,
    sketch_estimate: f64,
    equal_bands: usize,
    bands: usize,
}

impl Explain {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let client = Client::new(&self.ask.server)?;
        let request =
            client.request(Method::GET, &["v1", "explain"]).query(&[("a", &self.a), ("b", &self.b)]);
        let answer: Box<RawValue> = client.json(request)?;
        let view: Answer = serde_json::from_str(answer.get())?;
        Output { json: self.ask.json }.print(&answer, |out| view.print(out))?;
        Ok(())
    }
}

impl Answer {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let verdict = if self.duplicate { "near-duplicates" } else { "no near-duplicates" };
        writeln!(out, "{verdict}: {}", self.because)?;
        let names =
            ["", "status", "group", "tokens", "shingles", "language", "lengths", "home", "compared in"];
        let (a, b) = (self.a.column("a"), self.b.column("b"));
        let rows = names.into_iter().zip(a).zip(b).map(|((name, a), b)| vec![name.to_owned(), a, b]);
        table(out, &rows.collect::<Vec<_>>())?;
        for (name, side) in [("a", &self.a), ("b", &self.b)] {
            if let (Some(winner), Some(rule)) = (&side.advice.winner, side.advice.rule) {
                writeln!(out, "winner before {name}: {winner}, {}", words::rule(rule))?;
            }
        }
        if let Some(measures) = &self.measures {
            let Measures { shared, only_a, only_b, jaccard, sketch_estimate, equal_bands, bands } = measures;
            writeln!(
                out,
                "shingles: {shared} in both, {only_a} only in a, {only_b} only in b: J = {jaccard:.4}"
            )?;
            writeln!(
                out,
                "sketches: {equal_bands} of {bands} bands equal, estimate of J {sketch_estimate:.2}"
            )?;
        }
        Ok(())
    }
}

impl Side {
    fn column(&self, name: &str) -> Vec<String> {
        let Self { advice, content } = self;
        let group = advice.group.clone().unwrap_or_else(|| "-".to_owned());
        let mut column = vec![name.to_owned(), advice.status.clone(), group];
        match content {
            None => column.resize(9, "-".to_owned()),
            Some(Content { tokens, shingles, language, lengths, home, probed_partitions }) => {
                column.extend([
                    tokens.to_string(),
                    shingles.to_string(),
                    language.clone().unwrap_or_else(|| "-".to_owned()),
                    listed(lengths),
                    format!("partition {home}"),
                    plural(probed_partitions.len() as u64, "partition"),
                ]);
            }
        }
        column
    }
}

fn listed(numbers: &[u32]) -> String {
    numbers.iter().map(u32::to_string).collect::<Vec<_>>().join(", ")
}
