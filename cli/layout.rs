//! How contents lie on nodes: by a learned plan, or by the paper's grid.

use clap::{Args, ValueEnum};
use doppel_common::mapping::{MappingError, MappingLoad, PARTITIONS_MAX, PaperMap, Plan, Rho};
use doppel_common::model::Tau;
use doppel_common::signature::Signature;
use serde::Serialize;

/// Which mapping, and its tolerances.
#[derive(Debug, Clone, Args)]
pub(crate) struct LayoutArgs {
    /// How contents are mapped to nodes.
    #[arg(long, value_enum, default_value_t = Mapping::Learned)]
    pub(crate) mapping: Mapping,
    /// Of the paper's mapping: by how much the interval of a length is widened, 1 to 10.
    #[arg(long, value_name = "RHO", default_value = "1.1", conflicts_with_all = ["delta", "epsilon"])]
    rho: Rho,
    /// In place of rho: by what share near-duplicates may be less alike in one sub-dictionary than as a
    /// whole.
    #[arg(long, value_name = "SHARE", requires = "epsilon")]
    delta: Option<f64>,
    /// In place of rho, with delta: by what share a length may be wrong.
    #[arg(long, value_name = "SHARE", requires = "delta")]
    epsilon: Option<f64>,
}

/// A kind of mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mapping {
    /// Joint cuts learned from a sample, with the exact bound: no pair is lost.
    Learned,
    /// The paper's: each dimension cut for itself, a grid with one box per node; pairs may be lost.
    Paper,
}

/// Nodes, partitions of a node, threshold and dimensions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) nodes: u32,
    /// Fewer where there would be too many in all; the paper's grid has one.
    pub(crate) each: u32,
    pub(crate) tau: Tau,
    pub(crate) dimensions: usize,
}

/// A mapping that was learned.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub(crate) enum Layout {
    Learned(Box<Plan>),
    Paper(PaperMap),
}

/// Where a content is stored.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) partition: u32,
    pub(crate) node: u32,
}

impl LayoutArgs {
    /// Learns it from a sample.
    pub(crate) fn learn(&self, sample: &[&Signature], shape: Shape) -> Result<Layout, MappingError> {
        match (self.mapping, self.delta, self.epsilon) {
            (Mapping::Learned, ..) => Layout::learned(sample, shape),
            (Mapping::Paper, Some(delta), Some(epsilon)) => {
                Layout::paper(sample, shape, Rho::of(delta, epsilon)?)
            }
            (Mapping::Paper, ..) => Layout::paper(sample, shape, self.rho),
        }
    }
}

impl Layout {
    pub(crate) fn learned(sample: &[&Signature], shape: Shape) -> Result<Self, MappingError> {
        let Shape { nodes, each, tau, dimensions } = shape;
        let each = each.min(PARTITIONS_MAX as u32 / nodes.max(1)).max(1);
        Ok(Self::Learned(Box::new(Plan::learn(sample, (nodes, each), tau, dimensions, 1)?)))
    }

    pub(crate) fn paper(sample: &[&Signature], shape: Shape, rho: Rho) -> Result<Self, MappingError> {
        Ok(Self::Paper(PaperMap::learn(sample, shape.nodes, shape.tau, shape.dimensions, rho)?))
    }

    pub(crate) fn dimensions(&self) -> usize {
        match self {
            Self::Learned(plan) => plan.map().lexicon().dimensions(),
            Self::Paper(map) => map.dimensions(),
        }
    }

    pub(crate) fn partitions(&self) -> usize {
        match self {
            Self::Learned(plan) => plan.map().partitions(),
            Self::Paper(map) => map.nodes() as usize,
        }
    }

    /// Where a content is stored; writes the nodes it is compared on to `contacts`, ascending.
    pub(crate) fn place(&self, signature: &Signature, contacts: &mut Vec<u32>) -> Place {
        match self {
            Self::Learned(plan) => {
                let lengths = plan.map().lexicon().lengths(signature);
                plan.contacts(&lengths, contacts);
                let partition = plan.map().home(&lengths);
                Place { partition, node: plan.node(partition) }
            }
            Self::Paper(map) => {
                let lengths = map.lengths(signature);
                map.contacts(&lengths, contacts);
                let node = map.home(&lengths);
                Place { partition: node, node }
            }
        }
    }

    /// What it makes of contents, by node.
    pub(crate) fn measure<'s>(&self, contents: impl Iterator<Item = &'s Signature>) -> MappingLoad {
        match self {
            Self::Learned(plan) => {
                let lengths: Vec<_> = contents.map(|content| plan.map().lexicon().lengths(content)).collect();
                plan.measure(&lengths)
            }
            Self::Paper(map) => {
                map.measure(&contents.map(|content| map.lengths(content)).collect::<Vec<_>>())
            }
        }
    }
}
