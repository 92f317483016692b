//! `doppel-eval mapping`: measures how evenly mappings distribute contents to nodes, the work that they
//! cause, and the pairs that they lose.
//!
//! The bound of the learned mapping and of the control is exact. If either loses a pair, the measurement
//! fails.

mod distinct_contents;
mod later;
mod report;
mod tolerance;

use std::time::Instant;

use clap::Args;
use doppel_control::layout::{self, ContentLayout, RHO_DEFAULT, Shape};
use doppel_model::signature::Signature;
use doppel_model::{NodeId, Tau};
use doppel_node::args;
use doppel_partitioning::{MappingLoad, Rho};
use doppel_terminal::progress;
use rayon::prelude::*;
use serde::Serialize;

use crate::papers::clustering::replay::{Replay, ReplayArgs};
use distinct_contents::{DistinctContents, LengthBin};
use later::LaterData;
use tolerance::Tolerance;

/// Measure mappings of contents to nodes: balance, fan-out, work, and pairs lost.
///
/// Takes each distinct content that is live after the last input once. For each number of nodes three
/// mappings are learned from all contents and applied to them. Ours: learned cuts, exact bound. The control:
/// one dimension, cut at equal depth as well as possible, exact bound. The paper's: each dimension cut
/// separately from fine intervals, a grid of boxes that are dealt to the nodes, intervals widened by rho. All
/// have the same numbers of partitions, or boxes, per node. Separate exact code finds every pair of contents
/// for which F is true; a pair is lost if the mapping does not compare it. Rho is sampled as in the paper,
/// and swept. Then mappings are learned from a random part of the contents, and ten data sets are made from
/// the rest. The command fails if ours or the control loses a pair.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  doppel-eval mapping crawl/round-*.warc.gz
  doppel-eval mapping --tau 0.8 --nodes 4,16 --splits 0 pages.jsonl
  doppel-eval mapping --markdown --plot mapping.svg --dimensions 1,3 crawl/round-*.warc.gz")]
pub(crate) struct Mapping {
    #[command(flatten)]
    replay: ReplayArgs,
    /// Thresholds.
    #[arg(long, value_name = "TAU,...", value_delimiter = ',', default_value = "0.8,0.9")]
    tau: Vec<Tau>,
    /// Numbers of nodes, 1 to 4096.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "2,4,8,16,32,64",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    nodes: Vec<u32>,
    /// Numbers of dimensions: ours uses those from 2 on, the paper's those up to 4.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,2,3,4,8", value_parser = args::dimensions)]
    dimensions: Vec<usize>,
    /// Partitions per node, or boxes for the paper's; fewer if there would be more than 4096 in all.
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "1,8,16",
        value_parser = clap::value_parser!(u32).range(1..=4096))]
    partitions_per_node: Vec<u32>,
    /// The factor by which the paper's intervals are widened, 1 to 10.
    #[arg(long, value_name = "RHO", default_value = RHO_DEFAULT)]
    rho: Rho,
    /// Values of rho for a sweep on the most nodes with the most boxes.
    #[arg(
        long,
        value_name = "RHO,...",
        value_delimiter = ',',
        default_value = "1,1.05,1.1,1.15,1.2,1.25,1.3"
    )]
    rho_sweep: Vec<Rho>,
    /// Number of nodes for the later data sets.
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=4096))]
    later_nodes: u32,
    /// Share of the contents, in percent, from which the mapping for the later data sets is learned. The
    /// smaller the sample, the less a map knows about later data. With too small a sample no mapping can be
    /// as even on later data as a random distribution.
    #[arg(long, value_name = "PERCENT", default_value_t = 80, value_parser = clap::value_parser!(u8).range(1..=99))]
    learned_percent: u8,
    /// Number of random splits, 0 for none. The figures of later data sets are means over the splits.
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=10_000))]
    splits: u32,
    /// Seed of the splits.
    #[arg(long, value_name = "N", default_value_t = 7)]
    seed: u64,
}

/// Maximum number of dimensions of the paper's mapping.
const PAPERS_DIMENSIONS_MAX: usize = 4;

/// How a mapping assigns contents to partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
enum Design {
    /// Grid of the paper.
    Paper,
    /// One dimension cut at equal depth, with the exact bound.
    Control,
    /// Learned cuts of the product, with the exact bound.
    Ours,
}

/// Design with a number of dimensions and of partitions per node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
struct Variant {
    design: Design,
    dimensions: usize,
    partitions_per_node: u32,
}

/// Figures of a mapping on the contents that it was learned from.
#[derive(Debug, Serialize)]
struct Run {
    tau: Tau,
    #[serde(flatten)]
    variant: Variant,
    nodes: u32,
    /// Factor by which the paper's intervals are widened.
    rho: Rho,
    /// Largest number of contents on a node, divided by the mean.
    imbalance: f64,
    /// Imbalance if the contents were distributed at random.
    imbalance_floor: f64,
    /// Share of the fan-out saved, compared with a search on every node.
    fan_out_saved: f64,
    /// Number of all pairs, divided by the work of the busiest node (stored x received).
    speed_up: f64,
    /// Number of searches for one content of a pair that do not reach the other content. A pair has two
    /// searches.
    lost: u64,
}

/// Number of pairs of contents for which F is true.
#[derive(Debug, Serialize)]
struct Pairs {
    tau: Tau,
    pairs: u64,
}

/// Figures of all mappings.
#[derive(Debug, Serialize)]
pub(crate) struct MappingResult {
    contents: usize,
    rho: Rho,
    /// Numbers of contents by length.
    lengths: Vec<LengthBin>,
    pairs: Vec<Pairs>,
    runs: Vec<Run>,
    /// Runs of the paper's mapping, by rho.
    sweep: Vec<Run>,
    /// Values of rho by the paper's definition.
    tolerances: Vec<Tolerance>,
    later_nodes: u32,
    learned_percent: u8,
    splits: u32,
    later: Vec<LaterData>,
    /// Reasons to doubt the figures.
    warnings: Vec<String>,
    seconds: f64,
}

impl Mapping {
    pub(crate) fn run(mut self) -> anyhow::Result<MappingResult> {
        let begin = Instant::now();
        self.nodes.sort_unstable();
        self.nodes.dedup();
        self.partitions_per_node.sort_unstable();
        self.partitions_per_node.dedup();
        let replay = Replay::read(&self.replay)?;
        replay.tally.verdict(self.replay.inputs.strict, 0)?;
        let collection = DistinctContents::new(&replay)?;
        let bar = progress::waiting("measuring");
        let mut pairs = Vec::new();
        let (mut runs, mut sweep) = (Vec::new(), Vec::new());
        for tau in &self.tau {
            let truth = collection.pairs(&replay, *tau);
            pairs.push(Pairs { tau: *tau, pairs: truth.len() as u64 });
            let shapes: Vec<(Variant, u32)> = self
                .variants()
                .into_iter()
                .flat_map(|variant| self.nodes.iter().map(move |nodes| (variant, *nodes)))
                .collect();
            let measured: Vec<Run> = shapes
                .into_par_iter()
                .map(|(variant, nodes)| self.measure(&collection, &truth, *tau, variant, nodes, self.rho))
                .collect::<anyhow::Result<_>>()?;
            runs.extend(measured);
            let swept: Vec<Run> = self
                .swept()
                .into_par_iter()
                .map(|(variant, nodes, rho)| self.measure(&collection, &truth, *tau, variant, nodes, rho))
                .collect::<anyhow::Result<_>>()?;
            sweep.extend(swept);
        }
        let mut later = Vec::new();
        for tau in self.tau.iter().filter(|_| self.splits > 0) {
            later.extend(later::measure(&self, &collection.contents, *tau)?);
        }
        bar.finish_and_clear();
        Ok(MappingResult {
            contents: collection.contents.len(),
            rho: self.rho,
            lengths: collection.lengths(),
            pairs,
            runs,
            sweep,
            tolerances: self.tolerances(&collection)?,
            later_nodes: self.later_nodes,
            learned_percent: self.learned_percent,
            splits: self.splits,
            later,
            warnings: self.warnings(collection.contents.len()),
            seconds: begin.elapsed().as_secs_f64(),
        })
    }

    /// Warns if there are too few contents for the numbers of nodes.
    fn warnings(&self, contents: usize) -> Vec<String> {
        let learned = contents * usize::from(self.learned_percent) / 100;
        let later = || layout::warn_if_few(learned, " to learn from", &[self.later_nodes]);
        let later = (self.splits > 0).then(later).flatten();
        layout::warn_if_few(contents, "", &self.nodes).into_iter().chain(later).collect()
    }

    /// Mappings to measure, the paper's first.
    fn variants(&self) -> Vec<Variant> {
        let with = |design, dimensions: usize| {
            let each = self.partitions_per_node.iter();
            each.map(move |each| Variant { design, dimensions, partitions_per_node: *each })
        };
        let paper = self.papers_dimensions().flat_map(|n| with(Design::Paper, n));
        let ours = self.dimensions.iter().filter(|n| **n > 1).flat_map(|n| with(Design::Ours, *n));
        paper.chain(with(Design::Control, 1)).chain(ours).collect()
    }

    fn papers_dimensions(&self) -> impl Iterator<Item = usize> {
        self.dimensions.iter().copied().filter(|n| *n <= PAPERS_DIMENSIONS_MAX)
    }

    /// Lists the runs of the sweep: the paper's mapping in each number of dimensions, with each rho. All runs
    /// have the most boxes per node and the most nodes, because such mappings lose the most pairs.
    fn swept(&self) -> Vec<(Variant, u32, Rho)> {
        let most = (self.partitions_per_node.last(), self.nodes.last());
        let (Some(each), Some(nodes)) = most else { return Vec::new() };
        let variant = |dimensions| Variant { design: Design::Paper, dimensions, partitions_per_node: *each };
        let swept = |n| self.rho_sweep.iter().map(move |rho| (variant(n), *nodes, *rho));
        self.papers_dimensions().flat_map(swept).collect()
    }

    fn learn(
        &self,
        sample: &[&Signature],
        tau: Tau,
        variant: Variant,
        nodes: u32,
        rho: Rho,
    ) -> anyhow::Result<ContentLayout> {
        let Variant { design, dimensions, partitions_per_node: each } = variant;
        let shape = Shape { nodes, each, tau, dimensions };
        Ok(match design {
            Design::Paper => ContentLayout::paper(sample, shape, rho)?,
            Design::Control | Design::Ours => ContentLayout::learned(sample, shape)?,
        })
    }

    fn measure(
        &self,
        collection: &DistinctContents,
        truth: &[(u32, u32)],
        tau: Tau,
        variant: Variant,
        nodes: u32,
        rho: Rho,
    ) -> anyhow::Result<Run> {
        let contents: Vec<&Signature> = collection.contents.iter().map(|content| &**content).collect();
        let layout = self.learn(&contents, tau, variant, nodes, rho)?;
        let load = layout.measure(contents.iter().copied());
        Ok(Run {
            tau,
            variant,
            nodes,
            rho,
            imbalance: load.imbalance(),
            imbalance_floor: MappingLoad::at_random(nodes as usize, contents.len() as u64).imbalance(),
            fan_out_saved: load.fan_out_saved(),
            speed_up: load.speed_up(),
            lost: lost(&layout, &contents, truth),
        })
    }
}

/// Counts the searches of pairs that do not reach the partner.
fn lost(layout: &ContentLayout, contents: &[&Signature], truth: &[(u32, u32)]) -> u64 {
    let mut reached = Vec::new();
    let home_and_reached = |content: &&Signature| {
        let home = layout.home(content, &mut reached);
        (home.node, reached.clone())
    };
    let nodes: Vec<(NodeId, Vec<NodeId>)> = contents.iter().map(home_and_reached).collect();
    let searches = truth.iter().flat_map(|(a, b)| [(a, b), (b, a)]);
    let missed = searches.filter(|(a, b)| {
        let (home, (_, reached)) = (nodes[**b as usize].0, &nodes[**a as usize]);
        reached.binary_search(&home).is_err()
    });
    missed.count() as u64
}
