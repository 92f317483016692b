//! The mapping of the paper *Clustering and Load Balancing Optimization for Redundant Content Removal* (WWW
//! 2012), for comparison with [`PartitionMap`](crate::PartitionMap).
//!
//! The dictionary is divided into N sub-dictionaries of about equal weight. A content has a length in each of
//! them. Every dimension is cut on its own, into intervals with about equal numbers of contents (`slicing`).
//! A box of the grid is one interval of each dimension. A node has one or more boxes. Boxes are distributed
//! in descending order of their contents, each to the node with the fewest contents.
//!
//! A content with lengths L_i is stored in the box of its lengths. It is compared on all nodes with a box
//! that meets the interval (L_i tau / rho, L_i rho / tau) in every dimension.
//!
//! Differences from the paper:
//! - A length is a number of distinct shingles by their first word, not of tokens, because stored signatures
//!   have shingles only.
//! - A length of 0 counts as 1 in a bound. Its literal interval would be empty, and the content would not be
//!   compared even with a copy of itself. This holds for both contents of a pair, so the relation stays
//!   symmetric.
//!
//! **Pairs may be lost** if N > 1: near-duplicates may differ in one sub-dictionary only, by more than rho
//! allows there. For N = 1 and rho = 1 the interval is exact for the Jaccard coefficient.

mod rho;
mod slicing;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use serde::Serialize;

use doppel_model::signature::{BUCKETS, Signature, bucket};
use doppel_model::{NodeId, Tau};

use crate::error::MappingError;
use crate::limits::{DIMENSIONS_MAX, NODES_MAX, PARTITIONS_MAX, PlanSize};
use crate::load::MappingLoad;
use crate::partition_index::PartitionIndex;

pub use rho::Rho;

/// The number of distinct shingles of a content in each sub-dictionary of a [`PaperMap`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PaperLengths([u32; DIMENSIONS_MAX]);

impl PaperLengths {
    /// The lengths in the first `dimensions` sub-dictionaries, at most [`DIMENSIONS_MAX`]. A map with fewer
    /// sub-dictionaries has lengths of 0 behind them.
    #[must_use]
    pub fn first(&self, dimensions: usize) -> &[u32] {
        &self.0[..dimensions.min(DIMENSIONS_MAX)]
    }
}

/// A grid of boxes, and the node of each box.
///
/// ```
/// use doppel_partitioning::{PaperMap, PlanSize, Rho};
/// use doppel_model::Tau;
/// use doppel_model::signature::Builder;
///
/// let contents: Vec<_> = (10..300).map(|n| Builder::new().build(&vec![n << 52; n as usize])).collect();
/// let map = PaperMap::learn(&contents, PlanSize { nodes: 4, each: 8 }, Tau::DEFAULT, 2, Rho::new(1.1)?)?;
/// let lengths = map.lengths(&contents[0]);
/// let mut probed = Vec::new();
/// map.probed(&lengths, &mut probed);
/// assert!(probed.contains(&map.node(map.home(&lengths))));
/// # Ok::<(), doppel_partitioning::MappingError>(())
/// ```
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PaperMap {
    tau: Tau,
    rho: Rho,
    nodes: u32,
    /// The sub-dictionary of each bucket of first words.
    sub_dictionaries: Vec<u8>,
    /// For each dimension, the least lengths of all coarse intervals but the first, in ascending order.
    cuts: Vec<Vec<u32>>,
    /// For each dimension, the wanted number of coarse intervals.
    intervals: Vec<u32>,
    /// The node of each box.
    boxes: Vec<NodeId>,
}

impl PaperMap {
    /// Learns a grid of `each` boxes for each of `nodes` nodes, for collections like `sample`. Boxes stay
    /// empty if a dimension has fewer fine intervals than wanted, or if no content has such lengths. The
    /// result depends only on the arguments.
    ///
    /// # Errors
    /// If `nodes`, the number of all boxes, or `dimensions` is out of range.
    pub fn learn<S: Borrow<Signature>>(
        sample: &[S],
        PlanSize { nodes, each }: PlanSize,
        tau: Tau,
        dimensions: usize,
        rho: Rho,
    ) -> Result<Self, MappingError> {
        if !(1..=NODES_MAX).contains(&nodes) {
            return Err(MappingError::Nodes(nodes));
        }
        let boxes = u64::from(nodes) * u64::from(each);
        if !(1..=PARTITIONS_MAX as u64).contains(&boxes) {
            return Err(MappingError::Partitions(usize::try_from(boxes).unwrap_or(usize::MAX)));
        }
        if !(1..=DIMENSIONS_MAX).contains(&dimensions) {
            return Err(MappingError::Dimensions(dimensions));
        }
        let intervals = sides(nodes * each, dimensions);
        let sub_dictionaries = balance_sub_dictionaries(sample, dimensions);
        let mut map =
            Self { tau, rho, nodes, sub_dictionaries, cuts: Vec::new(), intervals, boxes: Vec::new() };
        let lengths: Vec<PaperLengths> = sample.iter().map(|s| map.lengths(s.borrow())).collect();
        let cuts = |(dimension, parts): (usize, &u32)| {
            slicing::coarse_intervals(
                lengths.iter().map(|lengths| lengths.0[dimension]).collect(),
                *parts,
                tau,
            )
        };
        map.cuts = map.intervals.iter().enumerate().map(cuts).collect();
        let mut stored = vec![0; boxes as usize];
        lengths.iter().for_each(|lengths| stored[map.home(lengths).index()] += 1);
        map.boxes = distribute_boxes(&stored, nodes);
        Ok(map)
    }

    /// Number of sub-dictionaries of the map.
    #[must_use]
    pub fn dimensions(&self) -> usize {
        self.intervals.len()
    }

    /// Number of boxes of the map.
    #[must_use]
    pub fn boxes(&self) -> usize {
        self.boxes.len()
    }

    /// Number of nodes of the map.
    #[must_use]
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The node of a box.
    #[must_use]
    pub fn node(&self, number: PartitionIndex) -> NodeId {
        self.boxes.get(number.index()).copied().unwrap_or_default()
    }

    /// Computes the lengths of a content.
    #[must_use]
    pub fn lengths(&self, signature: &Signature) -> PaperLengths {
        let mut lengths = [0; DIMENSIONS_MAX];
        for hash in signature.set() {
            lengths[usize::from(self.sub_dictionaries[bucket(hash)])] += 1;
        }
        PaperLengths(lengths)
    }

    /// The box that stores contents with these lengths.
    #[must_use]
    pub fn home(&self, lengths: &PaperLengths) -> PartitionIndex {
        let sides = self.cuts.iter().zip(&self.intervals).zip(lengths.0);
        let row = |home, ((cuts, count), length): ((&Vec<u32>, &u32), u32)| {
            home * count + slicing::interval_index(cuts, length)
        };
        PartitionIndex(sides.fold(0, row))
    }

    /// Writes the nodes on which contents with these lengths are compared to `out`, in ascending order.
    pub fn probed(&self, lengths: &PaperLengths, out: &mut Vec<NodeId>) {
        out.clear();
        out.extend(self.probed_boxes(lengths).into_iter().map(|number| self.node(number)));
        out.sort_unstable();
        out.dedup();
    }

    /// The boxes that can contain partners of contents with these lengths, in ascending order.
    fn probed_boxes(&self, lengths: &PaperLengths) -> Vec<PartitionIndex> {
        let mut out = vec![0];
        for ((cuts, count), length) in self.cuts.iter().zip(&self.intervals).zip(lengths.0) {
            let (least, most) = self.partner_lengths(length);
            let (first, last) = (slicing::interval_index(cuts, least), slicing::interval_index(cuts, most));
            let before = out.len();
            for i in 0..before {
                let row = out[i] * count;
                out.extend(row + first..=row + last);
            }
            out.drain(..before);
        }
        out.into_iter().map(PartitionIndex).collect()
    }

    /// The least and the greatest length of a partner in one dimension.
    fn partner_lengths(&self, length: u32) -> (u32, u32) {
        let wide = self.rho.get() / self.tau.as_f64();
        let positive = f64::from(length.max(1));
        // The integers strictly inside the open interval.
        let (least, most) = ((positive / wide).floor() + 1.0, (positive * wide).ceil() - 1.0);
        (if length <= 1 { 0 } else { least as u32 }, most as u32)
    }

    /// The load of each node for contents with these lengths.
    #[must_use]
    pub fn measure(&self, lengths: &[PaperLengths]) -> MappingLoad {
        let zero = vec![0; self.nodes as usize];
        let mut load = MappingLoad { stored: zero.clone(), received: zero };
        let mut probed = Vec::new();
        for lengths in lengths {
            load.stored[self.node(self.home(lengths)).index()] += 1;
            self.probed(lengths, &mut probed);
            probed.iter().for_each(|node| load.received[node.index()] += 1);
        }
        load
    }
}

/// The sides of a grid with `boxes` boxes, as equal as the prime factors of `boxes` allow, in descending
/// order.
fn sides(boxes: u32, dimensions: usize) -> Vec<u32> {
    let mut factors = Vec::new();
    let (mut rest, mut factor) = (boxes, 2);
    while rest > 1 {
        while rest.is_multiple_of(factor) {
            factors.push(factor);
            rest /= factor;
        }
        factor += 1;
    }
    let mut sides = vec![1; dimensions];
    for factor in factors.into_iter().rev() {
        if let Some(shortest) = sides.iter_mut().min() {
            *shortest *= factor;
        }
    }
    sides.sort_unstable_by_key(|side| Reverse(*side));
    sides
}

/// Chooses a node for each box, so that all nodes store about the same number of contents. Starts with the
/// fullest box. Each box goes to the node that stores the least, and among equals to the node with the fewest
/// boxes.
fn distribute_boxes(stored: &[u64], nodes: u32) -> Vec<NodeId> {
    let mut order: Vec<usize> = (0..stored.len()).collect();
    order.sort_by_key(|number| Reverse(stored[*number]));
    let mut emptiest: BinaryHeap<Reverse<(u64, u32, NodeId)>> =
        (0..nodes).map(|node| Reverse((0, 0, NodeId(node)))).collect();
    let mut nodes_of_boxes = vec![NodeId(0); stored.len()];
    for number in order {
        if let Some(Reverse((contents, boxes, node))) = emptiest.pop() {
            nodes_of_boxes[number] = node;
            emptiest.push(Reverse((contents + stored[number], boxes + 1, node)));
        }
    }
    nodes_of_boxes
}

/// Chooses a sub-dictionary for each bucket, so that all sub-dictionaries have about the same number of the
/// sample's shingles. Starts with the heaviest bucket. Each bucket goes to the lightest sub-dictionary.
fn balance_sub_dictionaries<S: Borrow<Signature>>(sample: &[S], dimensions: usize) -> Vec<u8> {
    let mut counts = vec![0_u64; BUCKETS];
    for hash in sample.iter().flat_map(|signature| signature.borrow().set()) {
        counts[bucket(hash)] += 1;
    }
    let mut order: Vec<usize> = (0..BUCKETS).collect();
    order.sort_by_key(|bucket| Reverse(counts[*bucket]));
    let mut lightest: BinaryHeap<Reverse<(u64, u8)>> =
        (0..dimensions as u8).map(|sub| Reverse((0, sub))).collect();
    let mut table = vec![0; BUCKETS];
    for bucket in order {
        if let Some(Reverse((weight, sub))) = lightest.pop() {
            table[bucket] = sub;
            // A bucket that does not occur in the sample counts as one shingle, so that such buckets are
            // spread evenly, too.
            lightest.push(Reverse((weight + counts[bucket].max(1), sub)));
        }
    }
    table
}
