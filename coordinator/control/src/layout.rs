//! How contents lie on nodes: by a learned plan, or by the paper's grid.

use clap::{Args, ValueEnum};
use doppel_model::signature::Signature;
use doppel_model::{NodeId, Tau};
use doppel_partitioning::{
    MappingError, MappingLoad, PARTITIONS_MAX, PaperMap, PartitionIndex, Plan, PlanSize, Rho,
};
use doppel_terminal::exit::Failure;
use doppel_terminal::output::plural;
use serde::Serialize;

/// Contents of a node below which its load is mostly chance.
const NODE_MIN: usize = 100;
/// What the figure `speed_up` is, for people.
pub const SPEED_UP: &str = "speed-up: all pairs over the work (stored x received) of the busiest node";
/// Rho unless told otherwise.
pub const RHO_DEFAULT: &str = "1.1";
/// The largest delta and epsilon, in percent, that alone leave rho in its range.
const TOLERANCE_MAX: u8 = 81;

/// Which mapping, and its tolerances.
#[derive(Debug, Clone, Args)]
pub struct LayoutArgs {
    /// How contents are mapped to nodes.
    #[arg(long, value_enum, default_value_t = Mapping::Learned)]
    pub mapping: Mapping,
    /// Of the paper's mapping: by how much the interval of a length is widened, 1 to 10 [default there: 1.1].
    #[arg(long, value_name = "RHO", default_value_if("mapping", "paper", RHO_DEFAULT),
        conflicts_with_all = ["delta", "epsilon"], allow_negative_numbers = true)]
    rho: Option<Rho>,
    /// Of the paper's mapping, in place of rho: by what share the mean length of a page's sub-documents may differ
    /// from one of them, 0 to 0.81. Rho is (1 + delta) (1 + epsilon) / ((1 - delta) (1 - epsilon)), and 10 at most.
    #[arg(long, value_name = "SHARE", requires = "epsilon", value_parser = share::<TOLERANCE_MAX>,
        allow_negative_numbers = true)]
    delta: Option<f64>,
    /// Of the paper's mapping, with delta: by what share the number of distinct shingles may differ from the length,
    /// 0 to 0.81.
    #[arg(long, value_name = "SHARE", requires = "delta", value_parser = share::<TOLERANCE_MAX>,
        allow_negative_numbers = true)]
    epsilon: Option<f64>,
}

/// A share from 0 to so many percent.
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
    /// The paper's: each dimension cut for itself, a grid of boxes that are dealt to the nodes; pairs may be lost.
    Paper,
}

/// Nodes, partitions of a node, threshold and dimensions.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Nodes that share the contents.
    pub nodes: u32,
    /// Partitions of a node, or boxes of the paper's grid; fewer where there would be too many in all.
    pub each: u32,
    /// The threshold.
    pub tau: Tau,
    /// Dimensions of the length vector.
    pub dimensions: usize,
}

/// A mapping that was learned.
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
    /// Its node.
    pub node: NodeId,
}

impl LayoutArgs {
    /// Rho of the paper's mapping; none for a learned one.
    ///
    /// # Errors
    /// [`Failure::Usage`] when the options do not go together.
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
                        "--delta {delta} and --epsilon {epsilon} make a rho above 10; give a smaller one of them"
                    ))
                })
            }
            (Mapping::Paper, rho, ..) => Ok(rho),
        }
    }
}

/// A warning where so many contents are so few on some of these numbers of nodes that their load is mostly
/// chance. On one node there is no imbalance.
pub fn few(contents: usize, what: &str, nodes: &[u32]) -> Option<String> {
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

/// What ends a run whose source has nothing that lies on a node.
pub fn no_content(source: &str) -> Failure {
    Failure::BadInput(format!("no live page of {source} has a text, so there is nothing to map"))
}

impl Shape {
    /// Nodes, and partitions of a node.
    fn size(self) -> PlanSize {
        let most = PARTITIONS_MAX as u32 / self.nodes.max(1);
        PlanSize { nodes: self.nodes, each: self.each.min(most).max(1) }
    }
}

impl ContentLayout {
    /// Learns joint cuts from a sample.
    ///
    /// # Errors
    /// When the shape is out of range.
    pub fn learned(sample: &[&Signature], shape: Shape) -> Result<Self, MappingError> {
        let Shape { tau, dimensions, .. } = shape;
        Ok(Self::Learned(Box::new(Plan::learn(sample, shape.size(), tau, dimensions, 1)?)))
    }

    /// Learns the paper's grid from a sample.
    ///
    /// # Errors
    /// When the shape is out of range.
    pub fn paper(sample: &[&Signature], shape: Shape, rho: Rho) -> Result<Self, MappingError> {
        let Shape { tau, dimensions, .. } = shape;
        Ok(Self::Paper(PaperMap::learn(sample, shape.size(), tau, dimensions, rho)?))
    }

    /// Dimensions of the length vector.
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

    /// Where a content is stored; writes the nodes it is compared on to `probed_nodes`, ascending.
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

    /// What it makes of contents, by node.
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
    fn rho_is_of_the_papers_mapping() {
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
    fn few_contents_are_told() {
        assert_eq!(few(400, "", &[1, 2, 4]), None);
        assert_eq!(few(1, "", &[1]), None);
        let text = few(399, " to learn from", &[1, 2, 4, 8]).unwrap();
        assert!(
            text.starts_with("399 contents to learn from are fewer than 100 a node on 4, 8 nodes"),
            "{text}"
        );
        assert!(few(1, "", &[2]).unwrap().starts_with("1 content is fewer"));
    }
}
