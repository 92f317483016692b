//! `doppel plan`: how a collection would lie on so many machines.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use doppel_common::api::Body;
use doppel_common::mapping::{self, LengthVector, MappingLoad, PARTITIONS_MAX};
use doppel_common::model::{ContentHash, PageUrl, Tau, Timestamp, stable_hash64};
use doppel_common::signature::Signature;
use serde::Serialize;

use crate::args::{self, InputArgs};
use crate::destination::Destination;
use crate::extracted;
use crate::output::{Output, count, table};
use crate::progress;

/// Contents that a map is learned from, at most: those with the least hashes.
const SAMPLE_MAX: usize = 50_000;

/// Learn a partition map from crawls and show what it makes of them.
///
/// Takes each distinct content that is live after the last input once; redirects and dead pages are left
/// out. A content is stored on one node and compared on the nodes that may hold a near-duplicate of it; none is
/// ever missed, whatever the map. The same inputs give the same map.
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
    /// Partitions of a node, fewer where that would be more than 4096 in all: a node's partitions can move one by one.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=4096))]
    partitions_per_node: u32,
    /// The threshold: pages are near-duplicates when their Jaccard coefficient is above it, 0.5 to 0.9999.
    #[arg(long, value_name = "TAU", default_value_t = Tau::DEFAULT)]
    tau: Tau,
    /// Dimensions of the length vector, 1 to 8.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = args::dimensions)]
    dimensions: usize,
    /// Write a line of JSON for every content to this file, sorted by URL: one of its URLs, the partition and node it
    /// is stored on, and the nodes it is compared on; `-` is standard output.
    #[arg(long, value_name = "FILE")]
    assignments: Option<PathBuf>,
    /// Write the map to this file as JSON.
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Print the summary as JSON.
    #[arg(long)]
    json: bool,
}

/// What a map makes of the contents.
#[derive(Debug, Serialize)]
struct Figures {
    dimensions: usize,
    partitions: usize,
    /// Most over mean stored on a node.
    imbalance: f64,
    /// Share of sends saved against comparing everything everywhere.
    sends_saved: f64,
    /// All pairs over the work of the busiest node (stored x received).
    speed_up: f64,
}

#[derive(Debug, Serialize)]
struct Summary {
    tau: Tau,
    nodes: u32,
    contents: usize,
    sample: usize,
    /// Imbalance of the same contents dealt at random.
    imbalance_floor: f64,
    plan: Figures,
    /// One dimension, equal numbers of contents: what the others are held against.
    control: Figures,
    /// By node.
    load: MappingLoad,
    warnings: Vec<String>,
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
        let (contents, input) = self.contents()?;
        let sample: Vec<&Signature> =
            contents.values().take(SAMPLE_MAX).map(|(_, signature)| &**signature).collect();
        let bar = progress::waiting("learning");
        let plan = self.learn(&sample, self.dimensions)?;
        let lengths = lengths(&plan, &contents);
        let load = plan.measure(&lengths);
        let control = self.learn(&sample, 1)?;
        let control_load = control.measure(&self::lengths(&control, &contents));
        bar.finish_and_clear();
        if let Some(out) = &assignments {
            out.write(|out| write_assignments(&plan, &contents, &lengths, out))?;
        }
        if let Some(out) = &map_file {
            out.write(|out| Ok(serde_json::to_writer(out, &plan)?))?;
        }
        let dealt =
            MappingLoad::dealt(self.nodes as usize, contents.keys().map(|content| stable_hash64(&content.0)));
        let summary = Summary {
            tau: self.tau,
            nodes: self.nodes,
            contents: contents.len(),
            sample: sample.len(),
            imbalance_floor: dealt.imbalance(),
            plan: figures(&plan, &load),
            control: figures(&control, &control_load),
            warnings: warnings(&contents, self.nodes, &plan),
            load,
        };
        let on_stdout =
            [&assignments, &map_file].iter().any(|file| matches!(file, Some(Destination::Standard)));
        if on_stdout {
            summary.print(&mut io::stderr().lock())?;
        } else {
            Output { json: self.json }.print(&summary, |out| summary.print(out))?;
        }
        Ok(input.verdict(self.inputs.strict, 0)?)
    }

    /// Each distinct content that is live after the last input.
    fn contents(&self) -> anyhow::Result<(Contents, crate::crawl::Tally)> {
        let mut newest: HashMap<PageUrl, (Timestamp, Option<Arc<Signature>>)> = HashMap::new();
        let tally = extracted::pages(&self.inputs, false, |pages| {
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

    fn learn(&self, sample: &[&Signature], dimensions: usize) -> anyhow::Result<mapping::Plan> {
        let each = self.partitions_per_node.min(PARTITIONS_MAX as u32 / self.nodes).max(1);
        Ok(mapping::Plan::learn(sample, (self.nodes, each), self.tau, dimensions, 1)?)
    }
}

fn lengths(plan: &mapping::Plan, contents: &Contents) -> Vec<LengthVector> {
    contents.values().map(|(_, signature)| plan.map().lexicon().lengths(signature)).collect()
}

fn figures(plan: &mapping::Plan, load: &MappingLoad) -> Figures {
    Figures {
        dimensions: plan.map().lexicon().dimensions(),
        partitions: plan.map().partitions(),
        imbalance: load.imbalance(),
        sends_saved: load.sends_saved(),
        speed_up: load.speed_up(),
    }
}

/// What should be known before the figures are believed.
fn warnings(contents: &Contents, nodes: u32, plan: &mapping::Plan) -> Vec<String> {
    let mut warnings = Vec::new();
    let (number, nodes) = (contents.len(), nodes as usize);
    if number < 100 * nodes {
        warnings.push(format!("{number} contents are fewer than 100 a node; imbalance is mostly chance"));
    }
    if plan.map().partitions() < nodes {
        warnings.push(format!(
            "the contents have too few different lengths for {nodes} nodes; {} partitions were made",
            plan.map().partitions()
        ));
    }
    warnings
}

fn write_assignments(
    plan: &mapping::Plan,
    contents: &Contents,
    lengths: &[LengthVector],
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    let mut lines: Vec<(&PageUrl, &LengthVector)> =
        contents.values().map(|(url, _)| url).zip(lengths).collect();
    lines.sort_unstable_by_key(|(url, _)| *url);
    let mut contacts = Vec::new();
    for (url, lengths) in lines {
        let partition = plan.map().home(lengths);
        plan.contacts(lengths, &mut contacts);
        let line = Assignment { url, partition, node: plan.node(partition), contacts: &contacts };
        serde_json::to_writer(&mut *out, &line)?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

impl Summary {
    fn print(&self, out: &mut dyn Write) -> io::Result<()> {
        let Self { contents, nodes, tau, sample, imbalance_floor, .. } = self;
        writeln!(out, "{} distinct contents on {nodes} nodes, tau {tau}", count(*contents as u64))?;
        if sample < contents {
            writeln!(out, "learned from {} of them", count(*sample as u64))?;
        }
        writeln!(out)?;
        let head = ["dimensions", "partitions", "imbalance", "sends saved", "times less work"];
        let row = |figures: &Figures, note: &str| {
            let Figures { dimensions, partitions, imbalance, sends_saved, speed_up } = figures;
            vec![
                format!("{dimensions}{note}"),
                partitions.to_string(),
                format!("{imbalance:.3}"),
                format!("{:.1} %", 100.0 * sends_saved),
                format!("{speed_up:.0}"),
            ]
        };
        let rows = [head.map(str::to_owned).to_vec(), row(&self.plan, ""), row(&self.control, " (control)")];
        table(out, &rows)?;
        writeln!(out, "\nimbalance is most over mean; {imbalance_floor:.3} if dealt at random")?;
        for warning in &self.warnings {
            writeln!(out, "warning: {warning}")?;
        }
        Ok(())
    }
}
