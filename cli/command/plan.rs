//! `doppel plan`: how a collection would lie on so many machines.

mod summary;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use doppel_common::api::Body;
use doppel_common::mapping::{Drift, MappingLoad};
use doppel_common::model::{ContentHash, PageUrl, Tau, Timestamp, stable_hash64};
use doppel_common::signature::Signature;
use serde::Serialize;

use crate::args::{self, InputArgs};
use crate::crawl::Tally;
use crate::destination::Destination;
use crate::extracted;
use crate::layout::{Layout, LayoutArgs, Shape};
use crate::output::Output;
use crate::progress;
use summary::{Figures, Summary, warnings};

/// Contents that a map is learned from, at most: those with the least hashes.
const SAMPLE_MAX: usize = 50_000;

/// Learn a partition map from crawls and show what it makes of them.
///
/// Takes each distinct content that is live after the last input once; redirects and dead pages are left out.
/// A content is stored on one node and compared on the nodes that may hold a near-duplicate of it; none is
/// ever missed, whatever map was learned. The same inputs give the same map.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel plan --nodes 64 crawl-1.warc.gz crawl-2.warc.gz
  doppel plan --nodes 16 --tau 0.9 --assignments where.jsonl --map map.json pages.jsonl")]
pub(crate) struct Plan {
    #[command(flatten)]
    inputs: InputArgs,
    /// Machines that share the collection, 1 to 4096.
    #[arg(long, value_name = "M", default_value_t = 16, value_parser = clap::value_parser!(u32).range(1..=4096))]
    nodes: u32,
    /// Partitions of a node, fewer where that would be more than 4096 in all: a node's partitions can move
    /// one by one.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    partitions_per_node: u32,
    /// The threshold: pages are near-duplicates when their Jaccard coefficient is above it, 0.5 to 0.9999.
    #[arg(long, value_name = "TAU", default_value_t = Tau::DEFAULT)]
    tau: Tau,
    /// Dimensions of the length vector, 1 to 8.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = args::dimensions)]
    dimensions: usize,
    #[command(flatten)]
    layout: LayoutArgs,
    /// Learn from this crawl, given once or more, and not from the inputs: they are then later data.
    #[arg(long, value_name = "FILE")]
    learn_from: Vec<PathBuf>,
    /// Write a line of JSON for every content to this file, sorted by URL: one of its URLs, the partition and
    /// node it is stored on, and the nodes it is compared on; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    assignments: Option<PathBuf>,
    /// Write the map to this file as JSON.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Assignment<'a> {
    url: &'a PageUrl,
    partition: u32,
    node: u32,
    contacts: &'a [u32],
}

/// A distinct content, under the first of its URLs.
type Contents = BTreeMap<ContentHash, (PageUrl, Arc<Signature>)>;

impl Plan {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        let assignments = self.assignments.as_deref().map(Destination::open).transpose()?;
        let map_file = self.map.as_deref().map(Destination::open).transpose()?;
        let (contents, input) = read(&self.inputs)?;
        let (known, known_input) = if self.learn_from.is_empty() {
            (None, None)
        } else {
            let strict = self.inputs.strict;
            let (known, input) = read(&InputArgs { inputs: self.learn_from.clone(), strict })?;
            (Some(known), Some(input))
        };
        let from = known.as_ref().unwrap_or(&contents).values();
        let sample: Vec<&Signature> = from.take(SAMPLE_MAX).map(|(_, signature)| &**signature).collect();
        let bar = progress::waiting("learning");
        let shape = Shape {
            nodes: self.nodes,
            each: self.partitions_per_node,
            tau: self.tau,
            dimensions: self.dimensions,
        };
        let layout = self.layout.learn(&sample, shape)?;
        let control = Layout::learned(&sample, Shape { dimensions: 1, ..shape })?;
        let [load, control_load] = [&layout, &control].map(|layout| layout.measure(signatures(&contents)));
        bar.finish_and_clear();
        if let Some(out) = &assignments {
            out.write(|out| write_assignments(&layout, &contents, out))?;
        }
        if let Some(out) = &map_file {
            out.write(|out| Ok(serde_json::to_writer(out, &layout)?))?;
        }
        let dealt =
            MappingLoad::dealt(self.nodes as usize, contents.keys().map(|content| stable_hash64(&content.0)));
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
        summary.warnings = warnings(&summary, &layout, shape);
        let on_stdout =
            [&assignments, &map_file].iter().any(|file| matches!(file, Some(Destination::Standard)));
        if on_stdout {
            summary.print(&mut io::stderr().lock())?;
        } else {
            Output { json: self.json }.print(&summary, |out| summary.print(out))?;
        }
        known_input.map_or(Ok(()), |input| input.verdict(self.inputs.strict, 0))?;
        Ok(input.verdict(self.inputs.strict, 0)?)
    }
}

/// Each distinct content that is live after the last input.
fn read(inputs: &InputArgs) -> anyhow::Result<(Contents, Tally)> {
    let mut newest: HashMap<PageUrl, (Timestamp, Option<Arc<Signature>>)> = HashMap::new();
    let tally = extracted::pages(inputs, false, |pages| {
        for page in pages {
            let content = match page.body {
                Body::Content(signature) => Some(signature),
                Body::Redirect(_) | Body::Dead => None,
            };
            let known = newest.get(&page.url).map(|(fetched_at, _)| *fetched_at);
            if known.is_none_or(|known| known <= page.fetched_at) {
                newest.insert(page.url, (page.fetched_at, content));
            }
        }
        Ok(())
    })?;
    let mut contents = Contents::new();
    let live = newest.into_iter().filter_map(|(url, (_, signature))| Some((url, signature?)));
    for (url, signature) in live.filter(|(_, signature)| signature.tokens() > 0) {
        contents
            .entry(signature.content())
            .and_modify(|(first, _)| {
                if url < *first {
                    first.clone_from(&url);
                }
            })
            .or_insert((url, signature));
    }
    Ok((contents, tally))
}

fn signatures(contents: &Contents) -> impl Iterator<Item = &Signature> {
    contents.values().map(|(_, signature)| &**signature)
}

/// How far the contents are from those that a map was learned from.
fn drift(layout: &Layout, contents: &Contents) -> Option<Drift> {
    let Layout::Learned(plan) = layout else { return None };
    let map = plan.map();
    let lengths: Vec<_> = signatures(contents).map(|signature| map.lexicon().lengths(signature)).collect();
    map.sample().drift(&map.measure(&lengths))
}

fn write_assignments(layout: &Layout, contents: &Contents, out: &mut dyn Write) -> anyhow::Result<()> {
    let mut by_url: Vec<&(PageUrl, Arc<Signature>)> = contents.values().collect();
    by_url.sort_unstable_by_key(|(url, _)| url);
    let mut contacts = Vec::new();
    for (url, signature) in by_url {
        let place = layout.place(signature, &mut contacts);
        let line = Assignment { url, partition: place.partition, node: place.node, contacts: &contacts };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
