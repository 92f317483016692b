//! Joint cuts of length-vector space: a k-d tree (Bentley, CACM 18(9), 1975).
//!
//! Features are not independent, so cuts made for each on its
//! own leave many boxes empty and others overfull. Here each box is cut for itself: among the boundaries
//! of all features that give each side its share of the box's contents within [`TOLERANCE`], the one that
//! the fewest bounding spaces cross.

use super::{BoundingSpace, Bounds, LengthVector};

/// How far from the wanted share of a box's contents a cut may be.
const TOLERANCE: f64 = 0.0075;

/// Boundaries tried per feature.
const BOUNDARIES_MAX: usize = 12;

/// Bounding spaces that a boundary is tried on.
const SPACES_MAX: usize = 4_096;

/// Cuts above one another. Halving makes 12 of them for the most partitions a map may have; only very
/// lopsided samples need more.
pub(super) const DEPTH_MAX: usize = 64;

/// A node of the tree. The left child of a cut follows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Node {
    /// Vectors with `feature` at most `at` are to the left.
    Cut { feature: usize, at: i64, right: usize },
    /// The number of a partition.
    Leaf(u32),
}

/// Cuts the whole space into at most `parts` boxes of about as many of `lengths` each, and each of these into `each`
/// boxes again. Contents of one vector are never parted, so there may be fewer boxes; each of them then counts
/// for as many parts as its share is worth. Gives the tree, and the part of every leaf: from 0, in ascending order.
pub(super) fn grow(
    lengths: &[LengthVector],
    spaces: &[BoundingSpace],
    dimensions: usize,
    parts: u32,
    each: u32,
) -> (Vec<Node>, Vec<u32>) {
    let mut tree = Tree { lengths, spaces, dimensions, nodes: Vec::new(), owners: Vec::new(), each };
    let mut home: Vec<usize> = (0..lengths.len()).collect();
    let contacts = home.clone();
    tree.grow(&Bounds::all(dimensions), &mut home, contacts, Wanted { parts, owner: None }, 0);
    (tree.nodes, tree.owners)
}

/// What a box is to be cut into.
#[derive(Clone, Copy)]
struct Wanted {
    parts: u32,
    /// The part whose boxes these are; none above the parts.
    owner: Option<u32>,
}

struct Tree<'s> {
    lengths: &'s [LengthVector],
    spaces: &'s [BoundingSpace],
    dimensions: usize,
    nodes: Vec<Node>,
    /// The part of each leaf.
    owners: Vec<u32>,
    /// Boxes of a part.
    each: u32,
}

/// A boundary of a feature.
#[derive(Clone, Copy)]
struct Boundary {
    feature: usize,
    at: i64,
    /// Part of the contents to its left.
    share: f64,
}

impl Tree<'_> {
    /// Grows the node of a box: `home` has its vector in it, `contacts` may have partners in it.
    fn grow(
        &mut self,
        bounds: &Bounds,
        home: &mut [usize],
        contacts: Vec<usize>,
        wanted: Wanted,
        depth: usize,
    ) {
        let Wanted { parts, owner } = wanted;
        let cut =
            if parts > 1 && depth < DEPTH_MAX { self.choose(bounds, home, &contacts, parts) } else { None };
        let Some(cut) = cut else {
            let next = self.owners.last().map_or(0, |last| last + 1);
            match owner {
                None if self.each > 1 => {
                    let wanted = Wanted { parts: self.each, owner: Some(next) };
                    self.grow(bounds, home, contacts, wanted, depth);
                }
                _ => {
                    self.nodes.push(Node::Leaf(self.owners.len() as u32));
                    self.owners.push(owner.unwrap_or(next));
                }
            }
            return;
        };
        let (left, right) = bounds.split(cut.feature, cut.at);
        let (left_contacts, right_contacts) =
            (self.meeting(&left, &contacts), self.meeting(&right, &contacts));
        drop(contacts);
        home.sort_unstable_by_key(|i| (self.lengths[*i].feature(cut.feature), *i));
        let middle = home.partition_point(|i| self.lengths[*i].feature(cut.feature) <= cut.at);
        let (left_home, right_home) = home.split_at_mut(middle);
        let left_parts = ((f64::from(parts) * cut.share).round() as u32).clamp(1, parts - 1);

        let node = self.nodes.len();
        self.nodes.push(Node::Leaf(0));
        let left_wanted = Wanted { parts: left_parts, owner };
        self.grow(&left, left_home, left_contacts, left_wanted, depth + 1);
        self.nodes[node] = Node::Cut { feature: cut.feature, at: cut.at, right: self.nodes.len() };
        let right_wanted = Wanted { parts: parts - left_parts, owner };
        self.grow(&right, right_home, right_contacts, right_wanted, depth + 1);
    }

    fn meeting(&self, bounds: &Bounds, contacts: &[usize]) -> Vec<usize> {
        contacts.iter().copied().filter(|i| self.spaces[*i].meets(bounds)).collect()
    }

    /// The best boundary of all features; none where all vectors are equal.
    fn choose(
        &self,
        bounds: &Bounds,
        home: &mut [usize],
        contacts: &[usize],
        parts: u32,
    ) -> Option<Boundary> {
        let wanted = f64::from(parts / 2) / f64::from(parts);
        let off = |boundary: &Boundary| (boundary.share - wanted).abs();
        let mut boundaries = Vec::new();
        for feature in 0..self.dimensions {
            let all = self.boundaries(feature, home);
            let mut near: Vec<Boundary> = all.iter().copied().filter(|b| off(b) <= TOLERANCE).collect();
            if near.is_empty() {
                near.extend(all.into_iter().min_by(|a, b| off(a).total_cmp(&off(b))));
            }
            let step = near.len().div_ceil(BOUNDARIES_MAX).max(1);
            boundaries.extend(near.into_iter().step_by(step));
        }
        if boundaries.iter().any(|b| off(b) <= TOLERANCE) {
            boundaries.retain(|b| off(b) <= TOLERANCE);
        } else {
            // Heavy points everywhere: as even as it can be had.
            return boundaries.into_iter().min_by(|a, b| off(a).total_cmp(&off(b)));
        }
        boundaries.into_iter().min_by_key(|b| self.received(bounds, *b, contacts))
    }

    /// Every boundary of a feature between two contents, from left to right.
    fn boundaries(&self, feature: usize, home: &mut [usize]) -> Vec<Boundary> {
        let value = |i: &usize| self.lengths[*i].feature(feature);
        home.sort_unstable_by_key(|i| (value(i), *i));
        let count = home.len() as f64;
        let ends = home.windows(2).enumerate().filter(|(_, pair)| value(&pair[0]) < value(&pair[1]));
        ends.map(|(i, pair)| Boundary { feature, at: value(&pair[0]), share: (i + 1) as f64 / count })
            .collect()
    }

    /// Contents received by both sides together, over a part of `contacts`.
    fn received(&self, bounds: &Bounds, boundary: Boundary, contacts: &[usize]) -> usize {
        let (left, right) = bounds.split(boundary.feature, boundary.at);
        let step = contacts.len().div_ceil(SPACES_MAX).max(1);
        let spaces = contacts.iter().step_by(step).map(|i| &self.spaces[*i]);
        spaces.map(|space| usize::from(space.meets(&left)) + usize::from(space.meets(&right))).sum()
    }
}
