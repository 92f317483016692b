//! `doppel policy-tables`: what a policy has to know of a collection's words, learnt from crawls.

use std::io::{self, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::tally::Tally;
use doppel_model::pairwise::Policy;
use doppel_model::tables::TablesHash;
use doppel_node::directory::policy_tables;
use doppel_terminal::destination::Destination;
use doppel_terminal::exit::Failure;
use doppel_terminal::output::{Output, count, plural, say};
use serde::Serialize;

/// Learn from crawls how common each word is, for policies that read that.
///
/// The policies imatch and multi-simhash weigh words, by tables that are fixed when a collection is created. Learn them from pages like
/// those to come, as a first crawl. They are learnt from the contents with the least hashes, at most 20,000, so the same
/// contents give the same tables in whatever order they come. The tables count for a policy with any parameters.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel policy-tables --policy multi-simhash --out tables crawl.warc.gz
  doppel serve --data collection --policy multi-simhash --policy-tables tables")]
pub(crate) struct PolicyTables {
    #[command(flatten)]
    inputs: InputArgs,
    /// The policy, imatch or multi-simhash.
    #[arg(long, value_name = "NAME")]
    policy: Policy,
    /// The file to write. One that is there is replaced at the end.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print the summary as JSON: a line on standard output, or on standard error where data goes to standard output.
    #[arg(long)]
    json: bool,
}

/// What was learnt.
#[derive(Debug, Serialize)]
struct Learnt {
    policy: String,
    hash: TablesHash,
    /// Contents of the sample.
    contents: u32,
    /// Words in more than one of them.
    words: usize,
    input: Tally,
}

impl PolicyTables {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let policy = self.policy;
        if !policy.reads_tables() {
            let text = format!("the policy {} reads no tables, so there is nothing to learn", policy.name());
            return Err(Failure::Usage(text).into());
        }
        self.inputs.refuse_output("--out", &self.out)?;
        let out = Destination::open(&self.out)?;
        let (tables, input) = policy_tables::learn(&self.inputs, policy, true)?;
        let learnt = Learnt {
            policy: policy.name().to_owned(),
            hash: tables.hash(),
            contents: tables.contents(),
            words: tables.terms(),
            input,
        };
        let verdict = learnt.input.verdict(self.inputs.strict, 0);
        out.write(|out| out.write_all(&tables.to_file()).context("cannot write the tables"))?;
        let output = Output { json: self.json };
        match out {
            Destination::Standard => output.print_beside(&learnt, |out| learnt.print(out))?,
            _ => output.print(&learnt, |out| learnt.print(out))?,
        }
        learnt.input.left_out("doppel policy-tables").inspect(|left_out| say!("doppel: {left_out}"));
        Ok(verdict?)
    }
}

impl Learnt {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let (pages, contents) = (plural(self.input.records, "page"), plural(self.contents.into(), "content"));
        writeln!(
            out,
            "tables of {}: {} words of {contents}, from {pages}",
            self.policy,
            count(self.words as u64)
        )?;
        writeln!(out, "hash {}", self.hash)
    }
}
