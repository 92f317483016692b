//! How contents are mapped to nodes: by a learned plan, or by the grid of the paper.

use clap::{Args, ValueEnum};
use doppel_model::signature::Signature;
use doppel_model::{NodeId, Tau};
use doppel_partitioning::{
    MappingError, MappingLoad, PARTITIONS_MAX, PaperMap, PartitionIndex, Plan, PlanSize, Rho,
};
use doppel_terminal::exit::Failure;
use doppel_terminal::output::plural;
use serde::Serialize;

/// Number of contents of a node below which its load is mostly chance.
const NODE_MIN: usize = 100;
/// Explanation of the figure `speed_up` for a human reader.
pub const SPEED_UP: &str = "speed-up: all pairs over the work (stored x received) of the busiest node";
/// Default of `--rho` for the paper's mapping.
pub const RHO_DEFAULT: &str = "1.1";
/// The largest delta and epsilon, in percent, that alone leave rho in its range.
const TOLERANCE_MAX: u8 = 81;

/// Options that choose a mapping and its tolerances.
#[derive(Debug, Clone, Args)]
pub struct LayoutArgs {
    /// How contents are mapped to nodes.
    #[arg(long, value_enum, default_value_t = Mapping::Learned)]
    pub mapping: Mapping,
    /// For --mapping paper: factor by which the interval of lengths in which a content looks for
    /// near-duplicates is wider at each end, 1 to 10. A larger factor loses fewer pairs and compares more
    /// [default with --mapping paper: 1.1].
    #[arg(long, value_name = "RHO", default_value_if("mapping", "paper", RHO_DEFAULT),
        conflicts_with_all = ["delta", "epsilon"], allow_negative_numbers = true)]
    rho: Option<Rho>,
    /// For --mapping paper, in place of --rho: how unevenly the words of a page may be spread over the parts
    /// of the dictionary, 0 to 0.81. Given as the share by which the mean length of a page over all parts may
    /// differ from its length in one part. Rho is then (1 + delta) (1 + epsilon) / ((1 - delta) (1 -
    /// epsilon)), at most 10.
    #[arg(long, value_name = "SHARE", requires = "epsilon", value_parser = share::<TOLERANCE_MAX>,
        allow_negative_numbers = true)]
    delta: Option<f64>,
    /// For --mapping paper, together with --delta: share by which the number of distinct shingles of a page
    /// may differ from its number of words, 0 to 0.81.
    #[arg(long, value_name = "SHARE", requires = "delta", value_parser = share::<TOLERANCE_MAX>,
        allow_negative_numbers = true)]
    epsilon: Option<f64>,
}

/// Reads a share from 0 to `MOST` percent, written as a fraction.
fn share<const MOST: u8>(text: &str) -> Result<f64, String> {
    let most = f64::from(MOST) / 100.0;
    text.parse()
        .ok()
        .filter(|share| (0.0..=most).contains(share))
        .ok_or_else(|| format!("a share from 0 to {most} is expected"))
}

/// A kind of mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Mapping {
    /// Joint cuts learned from a sample, with the exact bound: no pair is lost.
    Learned,
    /// The grid of the paper "Clustering and Load Balancing Optimization for Redundant Content Removal" (WWW
    /// 2012): each dimension is cut on its own, and the boxes are dealt to the nodes. Pairs may be lost.
    Paper,
}

/// The size of a mapping: nodes, partitions of a node, threshold and dimensions.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Number of nodes that share the contents.
    pub nodes: u32,
    /// Partitions of a node, or boxes of the paper's grid. Reduced if there would be too many in all.
    pub each: u32,
    /// Threshold of the policy.
    pub tau: Tau,
    /// Number of dimensions of the length vector.
    pub dimensions: usize,
}

/// A mapping of contents to nodes that was learned from a sample.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum ContentLayout {
    /// Joint cuts.
    Learned(Box<Plan>),
    /// The paper's grid.
    Paper(PaperMap),
}

/// Where a content is stored.
#[derive(Debug, Clone, Copy)]
pub struct ContentHome {
    /// The partition, or the box of the grid.
    pub partition: PartitionIndex,
    /// The node that has the partition.
    pub node: NodeId,
}

impl LayoutArgs {
    /// Rho of the paper's mapping; `None` for a learned mapping.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the options contradict each other.
    pub fn rho(&self) -> Result<Option<Rho>, Failure> {
        match (self.mapping, self.rho, self.delta, self.epsilon) {
            (Mapping::Learned, None, None, None) => Ok(None),
            (Mapping::Learned, rho, ..) => {
                let given = if rho.is_some() { "--rho is" } else { "--delta and --epsilon are" };
                Err(Failure::Usage(format!("{given} for the paper's mapping only; add --mapping paper")))
            }
            (Mapping::Paper, _, Some(delta), Some(epsilon)) => {
                let rho = Rho::of(delta, epsilon).map(Some);
                rho.map_err(|_| {
                    Failure::Usage(format!(
                        "--delta {delta} and --epsilon {epsilon} make a rho above 10; make one of them smaller"
                    ))
                })
            }
            (Mapping::Paper, rho, ..) => Ok(rho),
        }
    }
}

/// A warning if there are too few contents for some of these numbers of nodes, so that imbalance is mostly
/// chance. A single node has no imbalance, so it causes no warning.
pub fn warn_if_few(contents: usize, what: &str, nodes: &[u32]) -> Option<String> {
    let few = |nodes: &&u32| **nodes > 1 && contents < NODE_MIN * **nodes as usize;
    let on: Vec<String> = nodes.iter().filter(few).map(u32::to_string).collect();
    let verb = if contents == 1 { "is" } else { "are" };
    (!on.is_empty()).then(|| {
        format!(
            "{}{what} {verb} fewer than {NODE_MIN} a node on {} nodes; imbalance is mostly chance",
            plural(contents as u64, "content"),
            on.join(", ")
        )
    })
}

/// The failure of a command whose source has no content that could be mapped to a node.
pub fn no_content(source: &str) -> Failure {
    Failure::BadInput(format!("no live page of {source} has a text, so there is nothing to map"))
}

impl Shape {
    /// Number of nodes, and of partitions on each, within the limit of partitions in all.
    fn size(self) -> PlanSize {
        let most = PARTITIONS_MAX as u32 / self.nodes.max(1);
        PlanSize { nodes: self.nodes, each: self.each.min(most).max(1) }
    }
}

impl ContentLayout {
    /// Learns joint cuts from a sample.
    ///
    /// # Errors
    /// If the shape is out of range.
    pub fn learned(sample: &[&Signature], shape: Shape) -> Result<Self, MappingError> {
        let Shape { tau, dimensions, .. } = shape;
        Ok(Self::Learned(Box::new(Plan::learn(sample, shape.size(), tau, dimensions, 1)?)))
    }

    /// Learns the paper's grid from a sample.
    ///
    /// # Errors
    /// If the shape is out of range.
    pub fn paper(sample: &[&Signature], shape: Shape, rho: Rho) -> Result<Self, MappingError> {
        let Shape { tau, dimensions, .. } = shape;
        Ok(Self::Paper(PaperMap::learn(sample, shape.size(), tau, dimensions, rho)?))
    }

    /// Number of dimensions of the length vector.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        match self {
            Self::Learned(plan) => plan.map().lexicon().dimensions(),
            Self::Paper(map) => map.dimensions(),
        }
    }

    /// Number of partitions, or of boxes.
    #[must_use]
    pub fn partitions(&self) -> usize {
        match self {
            Self::Learned(plan) => plan.map().partitions(),
            Self::Paper(map) => map.boxes(),
        }
    }

    /// Returns where a content is stored. Writes the nodes on which it is compared to `probed_nodes`,
    /// ascending.
    pub fn home(&self, signature: &Signature, probed_nodes: &mut Vec<NodeId>) -> ContentHome {
        match self {
            Self::Learned(plan) => {
                let lengths = plan.map().lexicon().lengths(signature);
                plan.probed_nodes(&lengths, probed_nodes);
                let partition = plan.map().home(&lengths);
                ContentHome { partition, node: plan.node(partition) }
            }
            Self::Paper(map) => {
                let lengths = map.lengths(signature);
                map.probed(&lengths, probed_nodes);
                let partition = map.home(&lengths);
                ContentHome { partition, node: map.node(partition) }
            }
        }
    }

    /// Measures the load that contents put on each node.
    pub fn measure<'s>(&self, contents: impl Iterator<Item = &'s Signature>) -> MappingLoad {
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        layout: LayoutArgs,
    }

    fn rho(options: &str) -> Result<Option<f64>, Failure> {
        let cli = Cli::try_parse_from(["plan"].into_iter().chain(options.split_whitespace())).unwrap();
        cli.layout.rho().map(|rho| rho.map(Rho::get))
    }

    #[test]
    fn rho_is_refused_for_a_learned_mapping() {
        assert_eq!(rho("").unwrap(), None);
        assert_eq!(rho("--mapping paper").unwrap(), Some(1.1));
        assert_eq!(rho("--mapping paper --rho 1.2").unwrap(), Some(1.2));
        assert_eq!(rho("--mapping paper --delta 0.5 --epsilon 0").unwrap(), Some(3.0));
        for options in ["--rho 1.1", "--delta 0.1 --epsilon 0", "--mapping paper --delta 0.8 --epsilon 0.5"] {
            assert!(matches!(rho(options), Err(Failure::Usage(_))), "{options}");
        }
    }

    #[test]
    fn each_share_alone_may_be_as_large_as_its_range() {
        assert!(rho("--mapping paper --delta 0.81 --epsilon 0").is_ok());
        assert!(rho("--mapping paper --delta 0 --epsilon 0.81").is_ok());
    }

    #[test]
    fn too_few_contents_cause_a_warning() {
        assert_eq!(warn_if_few(400, "", &[1, 2, 4]), None);
        assert_eq!(warn_if_few(1, "", &[1]), None);
        let text = warn_if_few(399, " to learn from", &[1, 2, 4, 8]).unwrap();
        assert!(
            text.starts_with("399 contents to learn from are fewer than 100 a node on 4, 8 nodes"),
            "{text}"
        );
        assert!(warn_if_few(1, "", &[2]).unwrap().starts_with("1 content is fewer"));
    }
}
