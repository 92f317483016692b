//! Cuts the space into parts with about equal work.
//!
//! The work of a part is to compare what it receives with what it stores. Parts that store the same amount do
//! not receive the same amount: where pages are similar, most of a box is within reach of its neighbours. A
//! search ends when the slowest part has answered. So this module gives the busiest parts less to store, and
//! the other parts a little more. It cuts the space several times, each time with weights derived from what
//! the parts received in the previous round. It keeps the cuts with the least work for the busiest part.

use super::cut::{CutContents, CutNode, CutTree};
use crate::bounding_space::BoundingSpace;
use crate::length_vector::LengthVector;
use crate::limits::PlanSize;

/// How much more than the mean a part may be given to store, relative to the mean, to relieve busier parts.
const STORED_ABOVE_MEAN_MAX: f64 = 0.01;

/// Cuts whose fullest part stores more than this multiple of the mean are used only if there is no
/// alternative.
const IMBALANCE_MAX: f64 = 1.1;

/// The number of times that the space is cut.
const ROUNDS: usize = 6;

/// Cuts the whole space into one part for each node, and each part into one box for each partition of a node,
/// like [`grow`](super::cut::grow). In several dimensions, balances the work of the parts. In one dimension,
/// balances storage instead.
pub(crate) fn learn(
    lengths: &[LengthVector],
    spaces: &[BoundingSpace],
    dimensions: usize,
    PlanSize { nodes: parts, each: boxes_per_part }: PlanSize,
) -> (Vec<CutNode>, Vec<u32>) {
    let even = vec![1.0; lengths.len()];
    let contents = CutContents { lengths, spaces, weights: &even, dimensions };
    let mut weights = even.clone();
    let mut best = even.clone();
    let mut least = None;
    let rounds = if dimensions > 1 && parts > 1 { ROUNDS } else { 0 };
    for _ in 0..rounds {
        let tree = CutTree::build(CutContents { weights: &weights, ..contents }, parts, 1);
        let score = score(&tree, parts);
        if least.is_none_or(|least| score < least) {
            least = Some(score);
            best.clone_from(&weights);
        }
        weights = reweighted(&weights, &tree);
    }
    let tree = CutTree::build(CutContents { weights: &best, ..contents }, parts, boxes_per_part);
    (tree.nodes, tree.owners)
}

/// Rates a tree; lower is better. First the number of contents in the fullest part if that is too full, then
/// the work of the busiest part.
fn score(tree: &CutTree<'_>, parts: u32) -> (usize, usize) {
    let fullest = tree.parts.iter().map(|part| part.stored).max().unwrap_or(0);
    let mean = tree.homes.len() as f64 / f64::from(parts);
    let over = if fullest as f64 > IMBALANCE_MAX * mean { fullest } else { 0 };
    (over, tree.parts.iter().map(|part| part.stored * part.received).max().unwrap_or(0))
}

/// New weights: on a logarithmic scale, halfway from the old weights to the number of contents that each
/// content's part received. If all parts had equal weight, stored times received would then be equal, except
/// that a part may store at most [`STORED_ABOVE_MEAN_MAX`] more than the mean.
fn reweighted(weights: &[f64], tree: &CutTree<'_>) -> Vec<f64> {
    let received = |part: &u32| tree.parts[*part as usize].received.max(1) as f64;
    let mut sorted: Vec<f64> = tree.homes.iter().map(received).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    // Weights are relative to a floor. The more contents are at the floor, the closer the mean weight is to
    // it.
    let count = sorted.len() as f64;
    let mean = |least: f64| sorted.iter().map(|received| received.max(least)).sum::<f64>() / count;
    let at = sorted.partition_point(|least| mean(*least) > (1.0 + STORED_ABOVE_MEAN_MAX) * least);
    let least = sorted.get(at).copied().unwrap_or(1.0);
    let weight = |(weight, part): (&f64, &u32)| (weight * (received(part) / least).max(1.0)).sqrt();
    weights.iter().zip(&tree.homes).map(weight).collect()
}
