//! `doppel policy-tables`: learns from crawls what a policy must know about the words of a collection.

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

/// Learn from crawls how common each word is, for policies that need it.
///
/// The policies imatch and multi-simhash weigh words by tables, which are fixed when a collection is created.
/// Learn the tables from pages like those that will come, for example from a first crawl. At most 20,000
/// contents are used, those with the smallest hashes, so the same contents give the same tables in any order.
/// The tables fit the policy with any parameters.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel policy-tables --policy multi-simhash --out tables crawl.warc.gz
  doppel serve --data collection --policy multi-simhash --policy-tables tables")]
pub(crate) struct PolicyTables {
    #[command(flatten)]
    inputs: InputArgs,
    /// Policy that needs tables: imatch or multi-simhash.
    #[arg(long, value_name = "NAME")]
    policy: Policy,
    /// File to write. An existing file is replaced at the end.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Print the summary as one line of JSON on standard output, or on standard error if standard output
    /// receives data.
    #[arg(long)]
    json: bool,
}

/// Summary of the learned tables.
#[derive(Debug, Serialize)]
struct LearntSummary {
    policy: String,
    hash: TablesHash,
    /// Contents in the sample.
    contents: u32,
    /// Words that are in more than one content of the sample.
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
        let learnt = LearntSummary {
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

impl LearntSummary {
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
