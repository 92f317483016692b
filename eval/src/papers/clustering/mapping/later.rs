//! Balance of data that come after a mapping was learned, and the variation of this balance.
//!
//! A mapping is learned from a random part of the contents; the rest is split into ten data sets. The *floor*
//! is the imbalance by chance alone: each content goes to a random node. A mapping knows the shares of the
//! nodes only from its sample, so there is a *limit* above the floor. To compute the limit, contents get
//! random places on a line, and the line is cut into parts with equal numbers of contents of the sample.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{Random, Tau};
use doppel_partitioning::MappingLoad;
use rayon::prelude::*;
use serde::Serialize;

use super::{Design, Mapping, Variant};

/// Number of data sets in a split.
const SETS: usize = 10;
/// Number of times that the rest of a split is divided into data sets and distributed. A single time is not
/// enough, because the deviation of ten imbalances is itself uncertain by a quarter.
const DEALS: usize = 10;
/// Number of places on the line.
const LINE: usize = 1 << 53;

/// Balance of a mapping on later data sets: means over all splits.
#[derive(Debug, Serialize)]
pub(super) struct LaterData {
    pub(super) tau: Tau,
    #[serde(flatten)]
    pub(super) variant: Variant,
    /// Imbalance of the contents that the mapping was learned from.
    pub(super) learned: f64,
    /// Imbalance of the data sets under the mapping.
    pub(super) ours: Spread,
    /// Imbalance of the data sets distributed at random.
    pub(super) floor: Spread,
    /// Imbalance of the data sets at the limit: contents have random places on a line, and quantiles of the
    /// sample divide the line among the nodes.
    pub(super) limit: Spread,
}

/// Imbalance of ten data sets.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Spread {
    /// Mean imbalance of the data sets.
    pub(super) imbalance: f64,
    /// Standard deviation, divided by the mean.
    pub(super) variation: f64,
}

/// Measures the paper's mapping in one and in three dimensions, the control, and ours in three dimensions,
/// each with each number of partitions per node.
pub(super) fn measure(
    args: &Mapping,
    contents: &[Arc<Signature>],
    tau: Tau,
) -> anyhow::Result<Vec<LaterData>> {
    let variants = [(Design::Paper, 1), (Design::Paper, 3), (Design::Control, 1), (Design::Ours, 3)];
    let variants = variants.iter().flat_map(|(design, dimensions)| {
        let each = args.partitions_per_node.iter();
        each.map(|each| Variant { design: *design, dimensions: *dimensions, partitions_per_node: *each })
    });
    variants
        .map(|variant| {
            let splits: Vec<[Spread; 4]> = (0..args.splits)
                .into_par_iter()
                .map(|split| args.split(contents, tau, variant, split))
                .collect::<anyhow::Result<_>>()?;
            let mean =
                |which: usize| Spread::mean(&splits.iter().map(|split| split[which]).collect::<Vec<_>>());
            Ok(LaterData {
                tau,
                variant,
                learned: mean(0).imbalance,
                ours: mean(1),
                floor: mean(2),
                limit: mean(3),
            })
        })
        .collect()
}

impl Mapping {
    /// Measures one split. Returns four spreads: the contents that were learned from, and the later data sets
    /// under the mapping, distributed at random, and at the limit.
    fn split(
        &self,
        contents: &[Arc<Signature>],
        tau: Tau,
        variant: Variant,
        split: u32,
    ) -> anyhow::Result<[Spread; 4]> {
        let nodes = self.later_nodes as usize;
        let mut random = Random::new(self.seed << 32 | u64::from(split));
        let mut order: Vec<&Signature> = contents.iter().map(|content| &**content).collect();
        random.shuffle(&mut order);
        let (sample, rest) = order.split_at(order.len() * usize::from(self.learned_percent) / 100);
        let layout = self.learn(sample, tau, variant, self.later_nodes, self.rho)?;
        let mut probed_nodes = Vec::new();
        let mut homes: Vec<usize> =
            rest.iter().map(|content| layout.home(content, &mut probed_nodes).node.index()).collect();
        let sizes: Vec<usize> = (0..SETS).map(|set| homes.iter().skip(set).step_by(SETS).len()).collect();
        let (mut ours, mut floor, mut limit) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..DEALS {
            random.shuffle(&mut homes);
            let mut next = homes.iter().copied();
            ours.push(deal(&sizes, nodes, || next.next().unwrap_or_default()));
            floor.push(deal(&sizes, nodes, || random.index(nodes)));
            let mut line: Vec<usize> = sample.iter().map(|_| random.index(LINE)).collect();
            line.sort_unstable();
            let part = |place| line.partition_point(|known| *known < place) * nodes / (line.len() + 1);
            limit.push(deal(&sizes, nodes, || part(random.index(LINE))));
        }
        let learned = layout.measure(sample.iter().copied()).imbalance();
        Ok([
            Spread { imbalance: learned, variation: 0.0 },
            Spread::mean(&ours),
            Spread::mean(&floor),
            Spread::mean(&limit),
        ])
    }
}

/// Distributes data sets of these sizes to the nodes that `node` returns, and computes their imbalances.
fn deal(sizes: &[usize], nodes: usize, mut node: impl FnMut() -> usize) -> Spread {
    let mut imbalance =
        |size: &usize| MappingLoad::dealt(nodes, (0..*size).map(|_| node() as u64)).imbalance();
    Spread::of(&sizes.iter().map(&mut imbalance).collect::<Vec<_>>())
}

impl Spread {
    /// Computes the mean of some imbalances, and their standard deviation divided by the mean.
    fn of(values: &[f64]) -> Self {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        Self { imbalance: mean, variation: (squares / (values.len() - 1) as f64).sqrt() / mean }
    }

    fn mean(spreads: &[Self]) -> Self {
        let of = |value: fn(&Self) -> f64| spreads.iter().map(value).sum::<f64>() / spreads.len() as f64;
        Self { imbalance: of(|spread| spread.imbalance), variation: of(|spread| spread.variation) }
    }
}
