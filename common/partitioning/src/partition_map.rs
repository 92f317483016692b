//! The published cut of length-vector space into partitions.

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

use super::balance;
use super::cut::{DEPTH_MAX, Node};
use super::{BoundingSpace, Bounds, LengthVector, Lexicon, MappingError, MappingLoad, Sample};
use doppel_model::Tau;
use doppel_model::signature::Signature;

/// The most partitions of a map.
pub const PARTITIONS_MAX: usize = 4_096;

/// A lexicon and the cuts over the features of its lengths. Partitions are numbered from 0 so that
/// neighbouring boxes have neighbouring numbers.
///
/// ```
/// use doppel_partitioning::PartitionMap;
/// use doppel_model::Tau;
/// use doppel_model::signature::Builder;
///
/// let contents: Vec<_> = (10..300).map(|n| Builder::new().build(&vec![n << 52; n as usize])).collect();
/// let map = PartitionMap::learn(&contents, 4, Tau::DEFAULT, 3, 1)?;
/// let lengths = map.lexicon().lengths(&contents[0]);
/// let mut probed_partitions = Vec::new();
/// map.probed_partitions(&lengths, &mut probed_partitions);
/// assert!(probed_partitions.contains(&map.home(&lengths)));
/// # Ok::<(), doppel_partitioning::MappingError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(try_from = "PartitionMapDocument", into = "PartitionMapDocument")]
pub struct PartitionMap {
    version: u64,
    tau: Tau,
    lexicon: Lexicon,
    nodes: Vec<Node>,
    bounds: Vec<Bounds>,
    sample: Sample,
}

impl PartitionMap {
    /// The map of one partition, version 0, with an unlearned lexicon.
    ///
    /// # Errors
    /// When `dimensions` is out of range.
    pub fn one(dimensions: usize, tau: Tau) -> Result<Self, MappingError> {
        Self::over(Lexicon::unlearned(dimensions)?, vec![Node::Leaf(0)], tau, 0)
    }

    /// A map of at most `partitions` partitions for collections like `sample`, with a lexicon learned
    /// from it. A function of its arguments alone. There are fewer partitions where the sample does not
    /// have that many different length vectors.
    ///
    /// # Errors
    /// When `dimensions` or `partitions` is out of range.
    pub fn learn<S: Borrow<Signature>>(
        sample: &[S],
        partitions: usize,
        tau: Tau,
        dimensions: usize,
        version: u64,
    ) -> Result<Self, MappingError> {
        if !(1..=PARTITIONS_MAX).contains(&partitions) {
            return Err(MappingError::Partitions(partitions));
        }
        let (map, _) = Self::learn_parts(sample, (partitions as u32, 1), tau, dimensions, version)?;
        Ok(map)
    }

    /// The same for so many parts, each of so many partitions; and the part of each partition.
    pub(super) fn learn_parts<S: Borrow<Signature>>(
        sample: &[S],
        (parts, each): (u32, u32),
        tau: Tau,
        dimensions: usize,
        version: u64,
    ) -> Result<(Self, Vec<u32>), MappingError> {
        let lexicon = Lexicon::learn(sample, dimensions, version)?;
        let lengths: Vec<LengthVector> = sample.iter().map(|s| lexicon.lengths(s.borrow())).collect();
        let spaces: Vec<BoundingSpace> = lengths.iter().map(|l| BoundingSpace::new(*l, tau)).collect();
        let (nodes, owners) = balance::learn(&lengths, &spaces, dimensions, (parts, each));
        let mut map = Self::over(lexicon, nodes, tau, version)?;
        map.sample = Sample::of(&lengths, dimensions, map.measure(&lengths));
        Ok((map, owners))
    }

    pub(super) fn over(
        lexicon: Lexicon,
        nodes: Vec<Node>,
        tau: Tau,
        version: u64,
    ) -> Result<Self, MappingError> {
        let mut bounds = Vec::new();
        let end = leaves(&nodes, 0, &Bounds::all(lexicon.dimensions()), 0, &mut bounds)?;
        if end != nodes.len() {
            return Err(MappingError::Cuts(format!("this goes on after node {end}")));
        }
        if bounds.len() > PARTITIONS_MAX {
            return Err(MappingError::Partitions(bounds.len()));
        }
        Ok(Self { version, tau, lexicon, nodes, bounds, sample: Sample::default() })
    }

    /// Number of the map; grows whenever the cuts change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The threshold whose partners the probed partitions cover.
    #[must_use]
    pub fn tau(&self) -> Tau {
        self.tau
    }

    /// Words to sub-dictionaries.
    #[must_use]
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Number of partitions.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.bounds.len()
    }

    /// The box of each partition.
    #[must_use]
    pub fn bounds(&self) -> &[Bounds] {
        &self.bounds
    }

    /// What the map was learned from.
    #[must_use]
    pub fn sample(&self) -> &Sample {
        &self.sample
    }

    /// The partition that stores contents of these lengths.
    #[must_use]
    pub fn home(&self, lengths: &LengthVector) -> u32 {
        let mut node = 0;
        loop {
            match self.nodes[node] {
                Node::Leaf(partition) => return partition,
                Node::Cut { feature, at, right } => {
                    node = if lengths.feature(feature) <= at { node + 1 } else { right };
                }
            }
        }
    }

    /// Writes the partitions that contents of these lengths are compared in to `out`, ascending.
    pub fn probed_partitions(&self, lengths: &LengthVector, out: &mut Vec<u32>) {
        out.clear();
        let space = BoundingSpace::new(*lengths, self.tau);
        self.reach(&space, 0, &Bounds::all(self.lexicon.dimensions()), out);
    }

    fn reach(&self, space: &BoundingSpace, node: usize, bounds: &Bounds, out: &mut Vec<u32>) {
        if !space.meets(bounds) {
            return;
        }
        match self.nodes[node] {
            Node::Leaf(partition) => out.push(partition),
            Node::Cut { feature, at, right } => {
                let (left_bounds, right_bounds) = bounds.split(feature, at);
                self.reach(space, node + 1, &left_bounds, out);
                self.reach(space, right, &right_bounds, out);
            }
        }
    }

    pub(super) fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    /// Cuts a partition's box in two. Later partitions move up by one number.
    pub(super) fn split(&mut self, partition: u32, feature: usize, at: i64) -> Result<(), MappingError> {
        let count = self.partitions();
        if count >= PARTITIONS_MAX {
            return Err(MappingError::Partitions(count + 1));
        }
        let leaf = self.leaf(partition)?;
        if feature >= self.lexicon.dimensions() || at.abs() >= Bounds::UNLIMITED {
            return Err(MappingError::Cut(feature, at));
        }
        let mut nodes = self.nodes.clone();
        nodes.splice(leaf..=leaf, [Node::Cut { feature, at, right: 0 }, Node::Leaf(0), Node::Leaf(0)]);
        self.replace(&nodes)
    }

    /// Makes one box of a partition's and the next one's. Later partitions move down by one number.
    pub(super) fn join(&mut self, partition: u32) -> Result<(), MappingError> {
        if !self.is_joinable(partition) {
            return Err(MappingError::Sibling(partition));
        }
        let leaf = self.leaf(partition)?;
        let mut nodes = self.nodes.clone();
        nodes.splice(leaf - 1..=leaf + 1, [Node::Leaf(0)]);
        self.replace(&nodes)
    }

    /// Whether a partition and the next one are the two sides of one cut.
    #[must_use]
    pub fn is_joinable(&self, partition: u32) -> bool {
        let Ok(leaf) = self.leaf(partition) else { return false };
        let above = leaf.checked_sub(1).and_then(|above| self.nodes.get(above));
        matches!(above, Some(Node::Cut { right, .. }) if *right == leaf + 1)
            && matches!(self.nodes.get(leaf + 1), Some(Node::Leaf(_)))
    }

    fn leaf(&self, partition: u32) -> Result<usize, MappingError> {
        let leaf = self.nodes.iter().position(|node| *node == Node::Leaf(partition));
        leaf.ok_or(MappingError::Partition(partition))
    }

    /// Takes another tree in preorder; the numbers in it are given anew.
    fn replace(&mut self, nodes: &[Node]) -> Result<(), MappingError> {
        let cuts: Vec<Option<Cut>> = nodes.iter().map(Node::cut).collect();
        let nodes = tree(&cuts, self.lexicon.dimensions())?;
        let mut bounds = Vec::with_capacity(self.bounds.len() + 1);
        leaves(&nodes, 0, &Bounds::all(self.lexicon.dimensions()), 0, &mut bounds)?;
        (self.nodes, self.bounds) = (nodes, bounds);
        self.sample.load = MappingLoad::default();
        Ok(())
    }

    /// What the map makes of contents of these lengths.
    #[must_use]
    pub fn measure(&self, lengths: &[LengthVector]) -> MappingLoad {
        let zero = vec![0; self.partitions()];
        let mut load = MappingLoad { stored: zero.clone(), received: zero };
        let mut probed_partitions = Vec::new();
        for vector in lengths {
            load.stored[self.home(vector) as usize] += 1;
            self.probed_partitions(vector, &mut probed_partitions);
            probed_partitions.iter().for_each(|partition| load.received[*partition as usize] += 1);
        }
        load
    }
}

/// Checks the subtree at `node` and collects the boxes of its leaves; returns where the subtree ends.
fn leaves(
    nodes: &[Node],
    node: usize,
    bounds: &Bounds,
    depth: usize,
    out: &mut Vec<Bounds>,
) -> Result<usize, MappingError> {
    match nodes.get(node) {
        None => Err(MappingError::Cuts("this ends early".to_owned())),
        Some(Node::Leaf(_)) => {
            out.push(*bounds);
            Ok(node + 1)
        }
        Some(_) if depth > DEPTH_MAX => Err(MappingError::Cuts("this is too deep".to_owned())),
        Some(Node::Cut { feature, at, right }) => {
            let (left_bounds, right_bounds) = bounds.split(*feature, *at);
            if leaves(nodes, node + 1, &left_bounds, depth + 1, out)? != *right {
                return Err(MappingError::Cuts(format!("the sides of node {node} do not follow each other")));
            }
            leaves(nodes, *right, &right_bounds, depth + 1, out)
        }
    }
}

/// A map as it is stored. The tree is in preorder: a cut, its left side, its right side; null is a
/// partition.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartitionMapDocument {
    version: u64,
    tau: Tau,
    lexicon: Lexicon,
    cuts: Vec<Option<Cut>>,
    sample: Sample,
}

/// Vectors whose feature is at most `at` are to the left.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cut {
    feature: usize,
    at: i64,
}

impl Node {
    fn cut(&self) -> Option<Cut> {
        match self {
            Self::Leaf(_) => None,
            Self::Cut { feature, at, .. } => Some(Cut { feature: *feature, at: *at }),
        }
    }
}

impl From<PartitionMap> for PartitionMapDocument {
    fn from(map: PartitionMap) -> Self {
        let cuts = map.nodes.iter().map(Node::cut).collect();
        Self { version: map.version, tau: map.tau, lexicon: map.lexicon, cuts, sample: map.sample }
    }
}

impl TryFrom<PartitionMapDocument> for PartitionMap {
    type Error = MappingError;

    fn try_from(document: PartitionMapDocument) -> Result<Self, MappingError> {
        let nodes = tree(&document.cuts, document.lexicon.dimensions())?;
        let map = Self::over(document.lexicon, nodes, document.tau, document.version)?;
        Ok(Self { sample: document.sample, ..map })
    }
}

/// The nodes of a tree in preorder. Where it is no tree, `right` may be anything; that is checked after.
fn tree(cuts: &[Option<Cut>], dimensions: usize) -> Result<Vec<Node>, MappingError> {
    let mut nodes: Vec<Node> = Vec::with_capacity(cuts.len());
    let mut open = Vec::new();
    let mut partitions = 0;
    for (at, cut) in cuts.iter().enumerate() {
        match cut {
            Some(cut) if cut.feature >= dimensions || cut.at.abs() >= Bounds::UNLIMITED => {
                return Err(MappingError::Cuts(format!(
                    "node {at} is over feature {} at {}",
                    cut.feature, cut.at
                )));
            }
            Some(cut) => {
                open.push(at);
                nodes.push(Node::Cut { feature: cut.feature, at: cut.at, right: 0 });
            }
            None => {
                nodes.push(Node::Leaf(partitions));
                partitions += 1;
                // A partition ends a left side; what follows is the right side of the cut above it.
                if let Some(parent) = open.pop()
                    && let Node::Cut { right, .. } = &mut nodes[parent]
                {
                    *right = at + 1;
                }
            }
        }
    }
    Ok(nodes)
}
