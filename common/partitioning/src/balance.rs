//! Parts with equal work.
//!
//! What a part has to do is to compare what it receives with what it stores. Parts that store the same do not
//! receive the same: where pages are alike, most of a box is within reach of its neighbours. The slowest part
//! keeps all waiting, so it is given less to store, and the others a little more: a space is cut a few times,
//! each time by weights that come of what the parts received before, and the cuts with the least work of the
//! busiest part are taken.

use super::cut::{Contents, Node, Tree};
use super::{BoundingSpace, LengthVector};

/// How much more than the mean a part is given to store, so that busier ones have less.
const ROOM: f64 = 0.01;

/// Cuts with a fuller part than this, over the mean, are taken only where there are no others.
const FULLEST: f64 = 1.1;

/// How often the space is cut.
const ROUNDS: usize = 6;

/// Cuts the whole space into boxes for `parts` parts and each of these into `each`, as
/// [`grow`](super::cut::grow) does, with the work of parts balanced. In one dimension all parts have the same
/// to store, as near as can be.
pub(super) fn learn(
    lengths: &[LengthVector],
    spaces: &[BoundingSpace],
    dimensions: usize,
    (parts, each): (u32, u32),
) -> (Vec<Node>, Vec<u32>) {
    let even = vec![1.0; lengths.len()];
    let contents = Contents { lengths, spaces, weights: &even, dimensions };
    let mut weights = even.clone();
    let mut best = even.clone();
    let mut least = None;
    let rounds = if dimensions > 1 && parts > 1 { ROUNDS } else { 0 };
    for _ in 0..rounds {
        let tree = Tree::grown(Contents { weights: &weights, ..contents }, parts, 1);
        let score = score(&tree, parts);
        if least.is_none_or(|least| score < least) {
            least = Some(score);
            best.clone_from(&weights);
        }
        weights = shifted(&weights, &tree);
    }
    let tree = Tree::grown(Contents { weights: &best, ..contents }, parts, each);
    (tree.nodes, tree.owners)
}

/// Less is better: contents in a part that is too full, and the work of the busiest.
fn score(tree: &Tree<'_>, parts: u32) -> (usize, usize) {
    let fullest = tree.parts.iter().map(|part| part.stored).max().unwrap_or(0);
    let mean = tree.homes.len() as f64 / f64::from(parts);
    let over = if fullest as f64 > FULLEST * mean { fullest } else { 0 };
    (over, tree.parts.iter().map(|part| part.stored * part.received).max().unwrap_or(0))
}

/// The weights, moved half the way, on a logarithmic scale, to what the contents' parts received: with parts
/// of equal weight, stored times received would be equal then, up to parts that have [`ROOM`] more than the
/// mean.
fn shifted(weights: &[f64], tree: &Tree<'_>) -> Vec<f64> {
    let received = |part: &u32| tree.parts[*part as usize].received.max(1) as f64;
    let mut sorted: Vec<f64> = tree.homes.iter().map(received).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    // The more contents have the least weight, the less the mean weight is above it.
    let count = sorted.len() as f64;
    let mean = |least: f64| sorted.iter().map(|received| received.max(least)).sum::<f64>() / count;
    let at = sorted.partition_point(|least| mean(*least) > (1.0 + ROOM) * least);
    let least = sorted.get(at).copied().unwrap_or(1.0);
    let weight = |(weight, part): (&f64, &u32)| (weight * (received(part) / least).max(1.0)).sqrt();
    weights.iter().zip(&tree.homes).map(weight).collect()
}
