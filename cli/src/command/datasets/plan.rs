//! `doppel plan`: shows how a collection would be spread over a number of nodes.

mod contents;
mod outputs;
mod summary;
mod warnings;

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use doppel_control::layout::{ContentLayout, LayoutArgs, Shape};
use doppel_inputs::arguments::InputArgs;
use doppel_inputs::records::RecordArgs;
use doppel_model::Tau;
use doppel_model::signature::Signature;
use doppel_partitioning::{Drift, MappingLoad};
use doppel_terminal::output::Output;
use doppel_terminal::progress;

use crate::args::CredentialArgs;
use contents::{Contents, signatures};
use outputs::Outputs;
use summary::{Figures, Summary};
use warnings::warnings;

/// Largest number of contents from which a map is learned. The contents with the smallest hashes are taken.
const SAMPLE_MAX: usize = 50_000;
/// Option that an error names if it is about the inputs to learn from.
const LEARN_FROM: &str = "--learn-from";

/// Learn a partition map from crawls, or from a running server, and show how it spreads the contents.
///
/// The command uses each distinct content that is live after the last input once. Redirects and dead pages
/// are left out. A content is stored on one node and compared on the nodes that may hold near-duplicates of
/// it. A learned map never misses a near-duplicate. The same inputs give the same map.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel plan --nodes 64 crawl-1.warc.gz crawl-2.warc.gz
  doppel plan --nodes 16 --tau 0.9 --assignments where.jsonl --map map.json pages.jsonl
  doppel plan --learn-from crawl-1.warc.gz crawl-2.warc.gz
  doppel plan --nodes 64 --from-server http://127.0.0.1:7700

docs/reference/partition-map.md says what is in the files and what the warnings mean.")]
pub(crate) struct Plan {
    /// Crawls: WARC files, JSON lines or directories, as for `doppel dedup`. Several inputs are successive
    /// crawls, in the given order.
    #[arg(value_name = "INPUT", required_unless_present = "from_server")]
    inputs: Vec<PathBuf>,
    /// Also end with code 5 if a record could not be read.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    records: RecordArgs,
    /// Instead of crawls, use a sample of at most 100,000 contents of this server. Give the --tau of the
    /// server.
    #[arg(long, value_name = "URL", conflicts_with_all = ["inputs", "strict", "learn_from", "assignments"])]
    from_server: Option<String>,
    #[command(flatten)]
    credentials: CredentialArgs,
    /// Nodes that share the collection, 1 to 4096.
    #[arg(long, value_name = "M", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    nodes: u32,
    /// Partitions on each node, fewer if there would be more than 4096 in all. A node's partitions can move
    /// one by one. With --mapping paper: boxes of the grid on each node.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    partitions_per_node: u32,
    /// Threshold: pages are near-duplicates if their Jaccard coefficient is above it, 0.3 to 0.9999.
    #[arg(long, value_name = "TAU", default_value_t = Tau::DEFAULT)]
    tau: Tau,
    /// Dimensions of the length vector, 1 to 8.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = doppel_node::args::dimensions)]
    dimensions: usize,
    #[command(flatten)]
    layout: LayoutArgs,
    /// Learn from this crawl instead of the inputs. The plan is then measured on the inputs as later data.
    /// May be given several times.
    #[arg(long, value_name = "FILE")]
    learn_from: Vec<PathBuf>,
    /// Write a line of JSON for every content to this file, sorted by URL: one of its URLs, the partition and
    /// node that store it, and the nodes that compare it. `-` is standard output.
    #[arg(long, value_name = "FILE")]
    assignments: Option<PathBuf>,
    /// Write the map to this file as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Print the summary as one line of JSON on standard output, or on standard error if standard output
    /// receives data.
    #[arg(long)]
    json: bool,
}

impl Plan {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let rho = self.layout.rho()?;
        let strict = self.strict;
        let args = |inputs: &[PathBuf]| InputArgs::new(inputs.to_vec(), strict, self.records.clone());
        let inputs = args(&[&self.inputs[..], &self.learn_from].concat());
        let outputs = Outputs::open(self.assignments.as_deref(), self.map.as_deref(), &inputs)?;
        // The file of bad records is checked here against all inputs. Each reading would check only its own
        // inputs, so the first one might replace an input of the second.
        let sources = inputs.sources()?;
        self.records.bad.as_ref().map_or(Ok(()), |bad| bad.begin(sources))?;
        let read = |inputs: &[PathBuf]| contents::read(&args(inputs));
        let (contents, input) = match &self.from_server {
            Some(server) => (contents::sample(server, &self.credentials)?, None),
            None => read(&self.inputs).map(|(contents, input)| (contents, Some(input)))?,
        };
        let known =
            (!self.learn_from.is_empty()).then(|| read(&self.learn_from)).transpose().context(LEARN_FROM)?;
        let from = known.as_ref().map_or(&contents, |(known, _)| known);
        let sample: Vec<&Signature> = signatures(from).take(SAMPLE_MAX).collect();
        let bar = progress::waiting("learning");
        let shape = Shape {
            nodes: self.nodes,
            each: self.partitions_per_node,
            tau: self.tau,
            dimensions: self.dimensions,
        };
        let layout = match rho {
            Some(rho) => ContentLayout::paper(&sample, shape, rho)?,
            None => ContentLayout::learned(&sample, shape)?,
        };
        let control = ContentLayout::learned(&sample, Shape { dimensions: 1, ..shape })?;
        let [load, control_load] = [&layout, &control].map(|layout| layout.measure(signatures(&contents)));
        bar.finish_and_clear();
        outputs.write(&layout, &contents)?;
        let dealt = MappingLoad::at_random(self.nodes as usize, contents.len() as u64);
        let mut summary = Summary {
            tau: self.tau,
            nodes: self.nodes,
            mapping: self.layout.mapping,
            contents: contents.len(),
            sample: sample.len(),
            imbalance_floor: dealt.imbalance(),
            plan: Figures::of(&layout, &load),
            control: Figures::of(&control, &control_load),
            drift: drift(&layout, &contents),
            load,
            warnings: Vec::new(),
        };
        summary.warnings = warnings(&summary, &layout, shape, &sample);
        let output = Output { json: self.json };
        if outputs.on_stdout() {
            output.print_beside(&summary, |out| summary.print(out))?;
        } else {
            output.print(&summary, |out| summary.print(out))?;
        }
        known.map_or(Ok(()), |(_, input)| input.verdict(strict, 0)).context(LEARN_FROM)?;
        Ok(input.map_or(Ok(()), |input| input.verdict(strict, 0))?)
    }
}

/// Measures how far the contents differ from the sample from which a map was learned.
fn drift(layout: &ContentLayout, contents: &Contents) -> Option<Drift> {
    let ContentLayout::Learned(plan) = layout else { return None };
    let map = plan.map();
    let lengths: Vec<_> = signatures(contents).map(|signature| map.lexicon().lengths(signature)).collect();
    map.sample().drift(&map.measure(&lengths))
}
