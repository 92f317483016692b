//! `doppel plan`: how a collection would lie on so many nodes.

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

/// Contents that a map is learned from, at most: those with the least hashes.
const SAMPLE_MAX: usize = 50_000;
/// Which inputs an error is about, where it is not the first ones.
const LEARN_FROM: &str = "--learn-from";

/// Learn a partition map from crawls, or from a running server, and show what it makes of them.
///
/// Takes each distinct content that is live after the last input once; redirects and dead pages are left out.
/// A content is stored on one node and compared on the nodes that may hold a near-duplicate of it; by a
/// learned map none is ever missed. The same inputs give the same map.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel plan --nodes 64 crawl-1.warc.gz crawl-2.warc.gz
  doppel plan --nodes 16 --tau 0.9 --assignments where.jsonl --map map.json pages.jsonl
  doppel plan --learn-from crawl-1.warc.gz crawl-2.warc.gz
  doppel plan --nodes 64 --from-server http://127.0.0.1:7700

docs/reference/partition-map.md says what is in the files and what the warnings mean.")]
pub(crate) struct Plan {
    /// Crawls: WARC files, JSON lines or directories, as of `doppel dedup`. Several are successive crawls, in
    /// the order given.
    #[arg(value_name = "INPUT", required_unless_present = "from_server")]
    inputs: Vec<PathBuf>,
    /// End with code 5 when a record could not be read, too.
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    records: RecordArgs,
    /// In place of crawls: a sample of what this server has, of 100,000 contents at most. Give --tau as the server has
    /// it.
    #[arg(long, value_name = "URL", conflicts_with_all = ["inputs", "strict", "learn_from", "assignments"])]
    from_server: Option<String>,
    #[command(flatten)]
    credentials: CredentialArgs,
    /// Nodes that share the collection, 1 to 4096.
    #[arg(long, value_name = "M", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    nodes: u32,
    /// Partitions of a node, fewer where that would be more than 4096 in all: a node's partitions can move
    /// one by one. In the paper's mapping: boxes of a node.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    partitions_per_node: u32,
    /// The threshold: pages are near-duplicates when their Jaccard coefficient is above it, 0.3 to 0.9999.
    #[arg(long, value_name = "TAU", default_value_t = Tau::DEFAULT)]
    tau: Tau,
    /// Dimensions of the length vector, 1 to 8.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = doppel_node::args::dimensions)]
    dimensions: usize,
    #[command(flatten)]
    layout: LayoutArgs,
    /// Learn from this crawl, given once or more, and not from the inputs: they are then later data, on which
    /// the plan is measured.
    #[arg(long, value_name = "FILE")]
    learn_from: Vec<PathBuf>,
    /// Write a line of JSON for every content to this file, sorted by URL: one of its URLs, the partition and
    /// node it is stored on, and the nodes it is compared on; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    assignments: Option<PathBuf>,
    /// Write the map to this file as JSON; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Print the summary as JSON: a line on standard output, or on standard error where data goes to standard output.
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
        // Before the first reading, which would replace what the second one reads.
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

/// How far the contents are from those that a map was learned from.
fn drift(layout: &ContentLayout, contents: &Contents) -> Option<Drift> {
    let ContentLayout::Learned(plan) = layout else { return None };
    let map = plan.map();
    let lengths: Vec<_> = signatures(contents).map(|signature| map.lexicon().lengths(signature)).collect();
    map.sample().drift(&map.measure(&lengths))
}
