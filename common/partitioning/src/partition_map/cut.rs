//! Joint cuts of length-vector space with a k-d tree (Bentley, CACM 18(9), 1975).
//!
//! Features are not independent. If each feature were cut on its own, many boxes would be empty and others
//! overfull. So this module cuts each box separately. Among the boundaries of all features that do not
//! overfill either side, it chooses the boundary that the fewest bounding spaces cross.

use crate::bounding_space::{BoundingSpace, Bounds};
use crate::intervals;
use crate::length_vector::LengthVector;
use crate::partition_index::PartitionIndex;

/// How far above its share a part may be, per level of cuts above it, if the contents can be separated.
const OVERLOAD: f64 = 0.005;

/// The number of boundaries tried per feature.
const BOUNDARIES_MAX: usize = 12;

/// The number of bounding spaces that each boundary is tested with.
const SPACES_MAX: usize = 4_096;

/// The largest depth of the tree. Halving needs a depth of 12 for the maximum number of partitions; only very
/// skewed samples need more.
pub(crate) const DEPTH_MAX: usize = 64;

/// A node of the tree. The left child of a cut follows it directly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum CutNode {
    /// Vectors whose `feature` is at most `at` are to the left. `right` is the index of the right child.
    Cut { feature: usize, at: i64, right: usize },
    /// A partition.
    Leaf(PartitionIndex),
}

/// The contents by which a space is cut.
#[derive(Clone, Copy)]
pub(crate) struct CutContents<'s> {
    pub(crate) lengths: &'s [LengthVector],
    pub(crate) spaces: &'s [BoundingSpace],
    /// The weight of each content, above 0.
    pub(crate) weights: &'s [f64],
    pub(crate) dimensions: usize,
}

/// Cuts the whole space into at most `parts` parts with about the same number of `lengths`, and each part
/// into `boxes_per_part` boxes. Contents with equal vectors are never separated, so there may be fewer boxes;
/// a box then counts for as many parts as its share is worth. Returns the tree, and the part of each leaf.
/// Parts are numbered from 0 and ascend.
pub(crate) fn grow(
    lengths: &[LengthVector],
    spaces: &[BoundingSpace],
    dimensions: usize,
    parts: u32,
    boxes_per_part: u32,
) -> (Vec<CutNode>, Vec<u32>) {
    let weights = vec![1.0; lengths.len()];
    let tree =
        CutTree::build(CutContents { lengths, spaces, weights: &weights, dimensions }, parts, boxes_per_part);
    (tree.nodes, tree.owners)
}

/// The target for the cuts of a box.
#[derive(Clone, Copy)]
struct CutTarget {
    parts: u32,
    /// The target weight of a part; unknown before the first cut.
    part: Option<f64>,
    /// How far above that weight a part may be after the next cut, relative to it.
    overload: f64,
    /// The part to which all boxes below belong; `None` above the level of parts.
    owner: Option<u32>,
}

impl CutTarget {
    fn new(parts: u32, owner: Option<u32>) -> Self {
        Self { parts, part: None, overload: OVERLOAD, owner }
    }

    /// The target for one side of a cut, which is worth this many parts.
    fn below(self, parts: u32) -> Self {
        Self { parts, overload: self.overload + OVERLOAD, ..self }
    }
}

/// The work of a part: the numbers of contents that it stores and receives.
#[derive(Clone, Copy)]
pub(crate) struct PartSize {
    pub(crate) stored: usize,
    pub(crate) received: usize,
}

/// A tree under construction.
pub(crate) struct CutTree<'s> {
    contents: CutContents<'s>,
    /// The nodes in preorder.
    pub(crate) nodes: Vec<CutNode>,
    /// The part of each leaf. Parts are numbered from 0 and ascend.
    pub(crate) owners: Vec<u32>,
    pub(crate) parts: Vec<PartSize>,
    /// The part of each content.
    pub(crate) homes: Vec<u32>,
    /// The number of boxes per part.
    boxes_per_part: u32,
    /// If there is only one feature: the boundaries between parts.
    intervals: Option<Vec<i64>>,
}

/// A candidate boundary of a feature.
#[derive(Clone, Copy)]
struct Boundary {
    feature: usize,
    at: i64,
    /// The number of parts to its left.
    parts: u32,
    /// How far above its share a part on the fuller side is.
    overload: f64,
}

impl<'s> CutTree<'s> {
    /// Like [`grow`], with parts of about the same weight.
    pub(crate) fn build(contents: CutContents<'s>, parts: u32, boxes_per_part: u32) -> Self {
        let mut home: Vec<usize> = (0..contents.lengths.len()).collect();
        let probing = home.clone();
        let totals = || contents.lengths.iter().map(|lengths| lengths.feature(0)).collect();
        let mut tree = Self {
            contents,
            nodes: Vec::new(),
            owners: Vec::new(),
            parts: Vec::new(),
            homes: vec![0; home.len()],
            boxes_per_part,
            intervals: (contents.dimensions == 1).then(|| intervals::equal_depth(totals(), parts)),
        };
        tree.grow(&Bounds::all(contents.dimensions), &mut home, probing, CutTarget::new(parts, None), 0);
        tree
    }

    /// Grows the subtree of a box. `home` are the contents whose vectors are in the box; `probing` are the
    /// contents that can have near-duplicates in it.
    fn grow(
        &mut self,
        bounds: &Bounds,
        home: &mut [usize],
        probing: Vec<usize>,
        mut target: CutTarget,
        depth: usize,
    ) {
        let weight: f64 = home.iter().map(|i| self.contents.weights[*i]).sum();
        target.part.get_or_insert(weight / f64::from(target.parts));
        let cut = if depth < DEPTH_MAX { self.choose(bounds, home, &probing, target) } else { None };
        let Some(cut) = cut else {
            self.finish(bounds, home, probing, target, depth);
            return;
        };
        let (left, right) = bounds.split(cut.feature, cut.at);
        let (left_probing, right_probing) =
            (self.within_reach(&left, &probing), self.within_reach(&right, &probing));
        drop(probing);
        let value = |i: &usize| self.contents.lengths[*i].feature(cut.feature);
        home.sort_unstable_by_key(|i| (value(i), *i));
        let middle = home.partition_point(|i| value(i) <= cut.at);
        let (left_home, right_home) = home.split_at_mut(middle);

        let node = self.nodes.len();
        self.nodes.push(CutNode::Leaf(PartitionIndex(0)));
        self.grow(&left, left_home, left_probing, target.below(cut.parts), depth + 1);
        self.nodes[node] = CutNode::Cut { feature: cut.feature, at: cut.at, right: self.nodes.len() };
        self.grow(
            &right,
            right_home,
            right_probing,
            target.below(target.parts.saturating_sub(cut.parts)),
            depth + 1,
        );
    }

    /// Finishes a box that is not cut further. It becomes a leaf, or a part that is cut into its own boxes.
    fn finish(
        &mut self,
        bounds: &Bounds,
        home: &mut [usize],
        probing: Vec<usize>,
        target: CutTarget,
        depth: usize,
    ) {
        let owner = target.owner.unwrap_or_else(|| {
            let part = self.parts.len() as u32;
            self.parts.push(PartSize { stored: home.len(), received: probing.len() });
            home.iter().for_each(|i| self.homes[*i] = part);
            part
        });
        if target.owner.is_none() && self.boxes_per_part > 1 {
            self.grow(bounds, home, probing, CutTarget::new(self.boxes_per_part, Some(owner)), depth);
        } else {
            self.nodes.push(CutNode::Leaf(PartitionIndex(self.owners.len() as u32)));
            self.owners.push(owner);
        }
    }

    fn within_reach(&self, bounds: &Bounds, probing: &[usize]) -> Vec<usize> {
        std::thread::yield_now();
        probing.iter().copied().filter(|i| self.contents.spaces[*i].meets(bounds)).collect()
    }

    /// The best boundary over all features. `None` if only one part is wanted or all vectors are equal.
    fn choose(
        &self,
        bounds: &Bounds,
        home: &mut [usize],
        probing: &[usize],
        target: CutTarget,
    ) -> Option<Boundary> {
        if let (Some(intervals), None) = (&self.intervals, target.owner) {
            return intervals::middle(intervals, bounds.lo[0], bounds.hi[0]).map(|at| Boundary {
                feature: 0,
                at,
                parts: 1,
                overload: 0.0,
            });
        }
        if target.parts < 2 {
            return None;
        }
        let mut near = Vec::new();
        let mut most_even: Option<Boundary> = None;
        for feature in 0..self.contents.dimensions {
            let all = self.boundaries(feature, home, target);
            let fits = |b: &&Boundary| b.parts == target.parts / 2 && b.overload <= target.overload;
            let step = all.iter().filter(fits).count().div_ceil(BOUNDARIES_MAX).max(1);
            near.extend(all.iter().filter(fits).step_by(step).copied());
            most_even = all.into_iter().chain(most_even).min_by(|a, b| a.overload.total_cmp(&b.overload));
        }
        // If heavy points leave no boundary within the limits, take the most even one.
        near.into_iter().min_by_key(|b| self.received(bounds, *b, probing)).or(most_even)
    }

    /// Every boundary of a feature between two contents, from left to right.
    fn boundaries(&self, feature: usize, home: &mut [usize], target: CutTarget) -> Vec<Boundary> {
        std::thread::yield_now();
        let value = |i: usize| self.contents.lengths[i].feature(feature);
        home.sort_unstable_by_key(|i| (value(*i), *i));
        let all: f64 = home.iter().map(|i| self.contents.weights[*i]).sum();
        let part = target.part.unwrap_or(all);
        let mut left = 0.0;
        let mut boundaries = Vec::new();
        for pair in home.windows(2) {
            left += self.contents.weights[pair[0]];
            if value(pair[0]) < value(pair[1]) {
                let parts =
                    ((f64::from(target.parts) * left / all).round() as u32).clamp(1, target.parts - 1);
                let part_weight =
                    (left / f64::from(parts)).max((all - left) / f64::from(target.parts - parts));
                boundaries.push(Boundary {
                    feature,
                    at: value(pair[0]),
                    parts,
                    overload: part_weight / part - 1.0,
                });
            }
        }
        boundaries
    }

    /// The number of contents that both sides receive together, measured on a sample of `probing`.
    fn received(&self, bounds: &Bounds, boundary: Boundary, probing: &[usize]) -> usize {
        std::thread::yield_now();
        let (left, right) = bounds.split(boundary.feature, boundary.at);
        let step = probing.len().div_ceil(SPACES_MAX).max(1);
        let spaces = probing.iter().step_by(step).map(|i| &self.contents.spaces[*i]);
        spaces.map(|space| usize::from(space.meets(&left)) + usize::from(space.meets(&right))).sum()
    }
}
