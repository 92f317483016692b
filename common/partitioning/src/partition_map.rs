//! The partition map: a lexicon, and the cuts of length-vector space into partitions.

pub(crate) mod balance;
pub(crate) mod cut;

use std::borrow::Borrow;

use serde::{Deserialize, Serialize};

use doppel_model::Tau;
use doppel_model::signature::Signature;

use crate::bounding_space::{BoundingSpace, Bounds};
use crate::error::MappingError;
use crate::length_vector::LengthVector;
use crate::lexicon::Lexicon;
use crate::limits::{PARTITIONS_MAX, PlanSize};
use crate::load::MappingLoad;
use crate::partition_index::PartitionIndex;
use crate::sample::MapSample;
use cut::{CutNode, DEPTH_MAX};

/// A leaf whose position is not known yet.
const UNNUMBERED: CutNode = CutNode::Leaf(PartitionIndex(0));

/// A lexicon, and the cuts over the features of its length vectors. Partitions are numbered from 0 so that
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
#[serde(try_from = "StoredPartitionMap", into = "StoredPartitionMap")]
pub struct PartitionMap {
    version: u64,
    tau: Option<Tau>,
    lexicon: Lexicon,
    nodes: Vec<CutNode>,
    bounds: Vec<Bounds>,
    sample: MapSample,
}

impl PartitionMap {
    /// The map with one partition and an unlearned lexicon, version 0.
    ///
    /// # Errors
    /// When `dimensions` is out of range.
    pub fn one(dimensions: usize, tau: impl Into<Option<Tau>>) -> Result<Self, MappingError> {
        Self::from_nodes(
            Lexicon::unlearned(dimensions)?,
            vec![CutNode::Leaf(PartitionIndex(0))],
            tau.into(),
            0,
        )
    }

    /// Learns a map of at most `partitions` partitions for collections like `sample`, together with a
    /// lexicon. The result depends only on the arguments. There are fewer partitions if the sample does not
    /// have enough different length vectors.
    ///
    /// # Errors
    /// When `dimensions` or `partitions` is out of range.
    pub fn learn<S: Borrow<Signature>>(
        sample: &[S],
        partitions: usize,
        tau: impl Into<Option<Tau>>,
        dimensions: usize,
        version: u64,
    ) -> Result<Self, MappingError> {
        if !(1..=PARTITIONS_MAX).contains(&partitions) {
            return Err(MappingError::Partitions(partitions));
        }
        let size = PlanSize { nodes: partitions as u32, each: 1 };
        let (map, _) = Self::learn_parts(sample, size, tau.into(), dimensions, version)?;
        Ok(map)
    }

    /// Like [`learn`](Self::learn), for the partitions of all nodes. Also returns the number of the node of
    /// each partition.
    pub(super) fn learn_parts<S: Borrow<Signature>>(
        sample: &[S],
        size: PlanSize,
        tau: Option<Tau>,
        dimensions: usize,
        version: u64,
    ) -> Result<(Self, Vec<u32>), MappingError> {
        let lexicon = Lexicon::learn(sample, dimensions, version)?;
        let lengths: Vec<LengthVector> = sample.iter().map(|s| lexicon.lengths(s.borrow())).collect();
        let spaces: Vec<BoundingSpace> = lengths.iter().map(|l| BoundingSpace::new(*l, tau)).collect();
        let (nodes, owners) = balance::learn(&lengths, &spaces, dimensions, size);
        let mut map = Self::from_nodes(lexicon, nodes, tau, version)?;
        map.sample = MapSample::of(&lengths, dimensions, map.measure(&lengths));
        Ok((map, owners))
    }

    pub(super) fn from_nodes(
        lexicon: Lexicon,
        nodes: Vec<CutNode>,
        tau: Option<Tau>,
        version: u64,
    ) -> Result<Self, MappingError> {
        let mut bounds = Vec::new();
        let end = collect_bounds(&nodes, 0, &Bounds::all(lexicon.dimensions()), 0, &mut bounds)?;
        if end != nodes.len() {
            return Err(MappingError::Cuts(format!(
                "the list continues at entry {end}, after the end of the tree"
            )));
        }
        if bounds.len() > PARTITIONS_MAX {
            return Err(MappingError::Partitions(bounds.len()));
        }
        Ok(Self { version, tau, lexicon, nodes, bounds, sample: MapSample::default() })
    }

    /// The version of the map. It increases whenever the cuts change.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The threshold above which the probed partitions contain all near-duplicates. `None` if contents are
    /// compared in all partitions.
    #[must_use]
    pub fn tau(&self) -> Option<Tau> {
        self.tau
    }

    /// The lexicon, which maps words to sub-dictionaries.
    #[must_use]
    pub fn lexicon(&self) -> &Lexicon {
        &self.lexicon
    }

    /// Number of partitions of the map.
    #[must_use]
    pub fn partitions(&self) -> usize {
        self.bounds.len()
    }

    /// The box of each partition.
    #[must_use]
    pub fn bounds(&self) -> &[Bounds] {
        &self.bounds
    }

    /// Statistics of the sample from which the map was learned.
    #[must_use]
    pub fn sample(&self) -> &MapSample {
        &self.sample
    }

    /// The partition that stores contents with these lengths.
    #[must_use]
    pub fn home(&self, lengths: &LengthVector) -> PartitionIndex {
        let mut node = 0;
        loop {
            match self.nodes[node] {
                CutNode::Leaf(partition) => return partition,
                CutNode::Cut { feature, at, right } => {
                    node = if lengths.feature(feature) <= at { node + 1 } else { right };
                }
            }
        }
    }

    /// Writes the partitions in which contents with these lengths are compared to `out`, in ascending order.
    pub fn probed_partitions(&self, lengths: &LengthVector, out: &mut Vec<PartitionIndex>) {
        out.clear();
        self.for_each_probed(lengths, |partition| out.push(partition));
    }

    /// Calls `each` with the partitions in which contents with these lengths are compared, in ascending
    /// order.
    pub(super) fn for_each_probed(&self, lengths: &LengthVector, mut each: impl FnMut(PartitionIndex)) {
        let space = BoundingSpace::new(*lengths, self.tau);
        self.probe(&space, 0, &Bounds::all(self.lexicon.dimensions()), &mut each);
    }

    fn probe(
        &self,
        space: &BoundingSpace,
        node: usize,
        bounds: &Bounds,
        each: &mut impl FnMut(PartitionIndex),
    ) {
        if !space.meets(bounds) {
            return;
        }
        match self.nodes[node] {
            CutNode::Leaf(partition) => each(partition),
            CutNode::Cut { feature, at, right } => {
                let (left_bounds, right_bounds) = bounds.split(feature, at);
                self.probe(space, node + 1, &left_bounds, each);
                self.probe(space, right, &right_bounds, each);
            }
        }
    }

    pub(super) fn set_version(&mut self, version: u64) {
        self.version = version;
    }

    /// Cuts the box of a partition in two. The numbers of later partitions increase by one.
    pub(super) fn split(
        &mut self,
        partition: PartitionIndex,
        feature: usize,
        at: i64,
    ) -> Result<(), MappingError> {
        let count = self.partitions();
        if count >= PARTITIONS_MAX {
            return Err(MappingError::Partitions(count + 1));
        }
        let leaf = self.leaf(partition)?;
        if feature >= self.lexicon.dimensions() || at.abs() >= Bounds::UNLIMITED {
            return Err(MappingError::Cut(feature, at));
        }
        let mut nodes = self.nodes.clone();
        nodes.splice(leaf..=leaf, [CutNode::Cut { feature, at, right: 0 }, UNNUMBERED, UNNUMBERED]);
        self.replace(&nodes)
    }

    /// Joins the boxes of a partition and the next one. The numbers of later partitions decrease by one.
    pub(super) fn join(&mut self, partition: PartitionIndex) -> Result<(), MappingError> {
        if !self.is_joinable(partition) {
            return Err(MappingError::Sibling(partition));
        }
        let leaf = self.leaf(partition)?;
        let mut nodes = self.nodes.clone();
        nodes.splice(leaf - 1..=leaf + 1, [UNNUMBERED]);
        self.replace(&nodes)
    }

    /// Whether a partition and the next one are the two sides of one cut.
    #[must_use]
    pub fn is_joinable(&self, partition: PartitionIndex) -> bool {
        let Ok(leaf) = self.leaf(partition) else { return false };
        let above = leaf.checked_sub(1).and_then(|above| self.nodes.get(above));
        matches!(above, Some(CutNode::Cut { right, .. }) if *right == leaf + 1)
            && matches!(self.nodes.get(leaf + 1), Some(CutNode::Leaf(_)))
    }

    fn leaf(&self, partition: PartitionIndex) -> Result<usize, MappingError> {
        let leaf = self.nodes.iter().position(|node| *node == CutNode::Leaf(partition));
        leaf.ok_or(MappingError::Place(partition))
    }

    /// Replaces the tree by another one in preorder, and renumbers its partitions.
    fn replace(&mut self, nodes: &[CutNode]) -> Result<(), MappingError> {
        let cuts: Vec<Option<Cut>> = nodes.iter().map(CutNode::cut).collect();
        let nodes = tree(&cuts, self.lexicon.dimensions())?;
        let mut bounds = Vec::with_capacity(self.bounds.len() + 1);
        collect_bounds(&nodes, 0, &Bounds::all(self.lexicon.dimensions()), 0, &mut bounds)?;
        (self.nodes, self.bounds) = (nodes, bounds);
        self.sample.load = MappingLoad::default();
        Ok(())
    }

    /// The load of each partition for contents with these lengths.
    #[must_use]
    pub fn measure(&self, lengths: &[LengthVector]) -> MappingLoad {
        let zero = vec![0; self.partitions()];
        let mut load = MappingLoad { stored: zero.clone(), received: zero };
        for vector in lengths {
            load.stored[self.home(vector).index()] += 1;
            self.for_each_probed(vector, |partition| load.received[partition.index()] += 1);
        }
        load
    }
}

/// Checks the subtree at `node` and collects the boxes of its leaves. Returns the index after the subtree.
fn collect_bounds(
    nodes: &[CutNode],
    node: usize,
    bounds: &Bounds,
    depth: usize,
    out: &mut Vec<Bounds>,
) -> Result<usize, MappingError> {
    match nodes.get(node) {
        None => Err(MappingError::Cuts("the list ends before the tree is complete".to_owned())),
        Some(CutNode::Leaf(_)) => {
            out.push(*bounds);
            Ok(node + 1)
        }
        Some(_) if depth > DEPTH_MAX => {
            Err(MappingError::Cuts(format!("the tree has more than {DEPTH_MAX} levels")))
        }
        Some(CutNode::Cut { feature, at, right }) => {
            let (left_bounds, right_bounds) = bounds.split(*feature, *at);
            if collect_bounds(nodes, node + 1, &left_bounds, depth + 1, out)? != *right {
                return Err(MappingError::Cuts(format!("the sides of node {node} do not follow each other")));
            }
            collect_bounds(nodes, *right, &right_bounds, depth + 1, out)
        }
    }
}

/// The stored form of a map. `cuts` is the tree in preorder: a cut, its left side, its right side. Null
/// stands for a partition.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredPartitionMap {
    version: u64,
    tau: Option<Tau>,
    lexicon: Lexicon,
    cuts: Vec<Option<Cut>>,
    sample: MapSample,
}

/// A cut of the tree. Vectors whose feature is at most `at` are to the left.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cut {
    feature: usize,
    at: i64,
}

impl CutNode {
    fn cut(&self) -> Option<Cut> {
        match self {
            Self::Leaf(_) => None,
            Self::Cut { feature, at, .. } => Some(Cut { feature: *feature, at: *at }),
        }
    }
}

impl From<PartitionMap> for StoredPartitionMap {
    fn from(map: PartitionMap) -> Self {
        let cuts = map.nodes.iter().map(CutNode::cut).collect();
        Self { version: map.version, tau: map.tau, lexicon: map.lexicon, cuts, sample: map.sample }
    }
}

impl TryFrom<StoredPartitionMap> for PartitionMap {
    type Error = MappingError;

    fn try_from(stored: StoredPartitionMap) -> Result<Self, MappingError> {
        let nodes = tree(&stored.cuts, stored.lexicon.dimensions())?;
        let map = Self::from_nodes(stored.lexicon, nodes, stored.tau, stored.version)?;
        Ok(Self { sample: stored.sample, ..map })
    }
}

/// Builds the nodes from a tree in preorder. If the input is not a tree, `right` can have any value; the
/// caller checks that.
fn tree(cuts: &[Option<Cut>], dimensions: usize) -> Result<Vec<CutNode>, MappingError> {
    let mut nodes: Vec<CutNode> = Vec::with_capacity(cuts.len());
    let mut open = Vec::new();
    let mut partitions = 0;
    for (at, cut) in cuts.iter().enumerate() {
        match cut {
            Some(cut) if cut.feature >= dimensions || cut.at.abs() >= Bounds::UNLIMITED => {
                return Err(MappingError::Cuts(format!(
                    "node {at} cuts feature {} at {}, which is out of range",
                    cut.feature, cut.at
                )));
            }
            Some(cut) => {
                open.push(at);
                nodes.push(CutNode::Cut { feature: cut.feature, at: cut.at, right: 0 });
            }
            None => {
                nodes.push(CutNode::Leaf(PartitionIndex(partitions)));
                partitions += 1;
                // A partition ends a left side. The right side of the innermost open cut begins after it.
                if let Some(parent) = open.pop()
                    && let CutNode::Cut { right, .. } = &mut nodes[parent]
                {
                    *right = at + 1;
                }
            }
        }
    }
    Ok(nodes)
}
