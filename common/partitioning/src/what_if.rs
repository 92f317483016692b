//! Estimates the load of a collection for other numbers of sub-dictionaries and nodes.
//!
//! Learning a plan for each combination would take minutes. But the halves of the dictionary are found one
//! after another, and the boxes for 128 nodes, assigned to nodes in runs, also serve for fewer nodes. So one
//! lexicon and one tree per number of dimensions suffice, and every content is looked up once in each tree.
//! The cuts balance storage. A learned plan also balances the work of the nodes, so its `speed_up` is
//! slightly better than the one estimated here.

use std::borrow::Borrow;
use std::thread;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use doppel_model::Tau;
use doppel_model::signature::Signature;

use crate::bounding_space::BoundingSpace;
use crate::error::MappingError;
use crate::length_vector::LengthVector;
use crate::lexicon::Lexicon;
use crate::load::MappingLoad;
use crate::partition_index::PartitionIndex;
use crate::partition_map::PartitionMap;
use crate::partition_map::cut::grow;

/// The numbers of sub-dictionaries that are evaluated.
const DIMENSIONS: [usize; 4] = [1, 2, 3, 4];

/// The numbers of nodes that are evaluated. Each is twice the previous one.
const NODES: [u32; 7] = [2, 4, 8, 16, 32, 64, 128];

/// The number of boxes in a tree per node of the largest number of nodes. A node gets neighbouring boxes with
/// about its share.
const BOXES: u32 = 4;

/// The maximum number of contents from which the cuts are learned.
const LEARNED_MAX: usize = 25_000;

/// The estimated load for one number of sub-dictionaries and nodes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIf {
    /// The number N of sub-dictionaries.
    pub dimensions: u32,
    /// The number of nodes.
    pub nodes: u32,
    /// The largest number of contents per node divided by the mean; 1 is even.
    pub imbalance: f64,
    /// The imbalance of the same number of contents distributed at random to as many nodes.
    pub imbalance_floor: f64,
    /// The share of fan-out saved, compared to searching every content on every node, 0 to 1.
    pub fan_out_saved: f64,
    /// The number of all pairs divided by the work of the busiest node (stored times received).
    pub speed_up: f64,
}

/// Estimates the load for 1 to 4 sub-dictionaries and 2 to 128 nodes, in this order. The result depends only
/// on the sample and its order.
///
/// # Errors
/// Never for the numbers of dimensions and nodes that this function evaluates.
pub fn what_if<S: Borrow<Signature>>(sample: &[S], tau: Tau) -> Result<Vec<WhatIf>, MappingError> {
    let dimensions_max = DIMENSIONS[DIMENSIONS.len() - 1];
    let lexicon = Lexicon::learn(sample, dimensions_max, 0)?;
    let lengths: Vec<LengthVector> = sample.iter().map(|one| lexicon.lengths(one.borrow())).collect();
    let floors = NODES.map(|nodes| MappingLoad::at_random(nodes as usize, sample.len() as u64).imbalance());
    let estimate = |dimensions| {
        let loads = loads(&lengths, dimensions, tau)?;
        let row = |((load, nodes), floor): ((&MappingLoad, u32), f64)| WhatIf {
            dimensions: dimensions as u32,
            nodes,
            imbalance: load.imbalance(),
            imbalance_floor: floor,
            fan_out_saved: load.fan_out_saved(),
            speed_up: load.speed_up(),
        };
        Ok(loads.iter().zip(NODES).zip(floors).map(row).collect::<Vec<_>>())
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let mut rows = Vec::with_capacity(DIMENSIONS.len() * NODES.len());
    for batch in DIMENSIONS.chunks(threads) {
        let parts: Vec<Result<Vec<WhatIf>, MappingError>> = thread::scope(|scope| {
            let others: Vec<_> = batch[1..].iter().map(|n| scope.spawn(|| estimate(*n))).collect();
            let first = estimate(batch[0]);
            // If a thread panicked, its panic continues here.
            let joined =
                others.into_iter().map(|one| one.join().unwrap_or_else(|e| std::panic::resume_unwind(e)));
            std::iter::once(first).chain(joined).collect()
        });
        for part in parts {
            rows.extend(part?);
        }
    }
    Ok(rows)
}

/// The load for each number of nodes. Only the first `dimensions` lengths of each content are used.
fn loads(lengths: &[LengthVector], dimensions: usize, tau: Tau) -> Result<Vec<MappingLoad>, MappingError> {
    let lengths: Vec<LengthVector> = lengths
        .iter()
        .map(|one| LengthVector::new(&one.as_slice()[..dimensions]))
        .collect::<Result<_, _>>()?;
    match dimensions {
        // There are few different lengths, so boundaries for more nodes would be unnecessarily bad for fewer.
        // Learning separate boundaries is fast.
        1 => NODES
            .iter()
            .map(|nodes| Ok(loads_with_one_tree(&lengths, (1, 1), tau, &[*nodes])?.remove(0)))
            .collect(),
        _ => loads_with_one_tree(&lengths, (dimensions, BOXES), tau, &NODES),
    }
}

/// The load for each element of `numbers`, which are ascending numbers of nodes. The cuts are made for the
/// last number.
fn loads_with_one_tree(
    lengths: &[LengthVector],
    (dimensions, boxes): (usize, u32),
    tau: Tau,
    numbers: &[u32],
) -> Result<Vec<MappingLoad>, MappingError> {
    let step = lengths.len().div_ceil(LEARNED_MAX).max(1);
    let learned: Vec<LengthVector> = lengths.iter().copied().step_by(step).collect();
    let spaces: Vec<BoundingSpace> = learned.iter().map(|one| BoundingSpace::new(*one, tau)).collect();
    let nodes_max = numbers.last().copied().unwrap_or(1);
    let (tree, _) = grow(&learned, &spaces, dimensions, nodes_max * boxes, 1);
    let map = PartitionMap::from_nodes(Lexicon::unlearned(dimensions)?, tree, Some(tau), 0)?;
    let homes: Vec<PartitionIndex> = lengths.iter().map(|vector| map.home(vector)).collect();
    let with = |nodes: &u32| {
        let zero = vec![0; *nodes as usize];
        (assignments(&homes, map.partitions(), *nodes), MappingLoad { stored: zero.clone(), received: zero })
    };
    let mut loads: Vec<(Vec<usize>, MappingLoad)> = numbers.iter().map(with).collect();
    let mut probed_partitions = Vec::new();
    for (vector, home) in lengths.iter().zip(&homes) {
        map.probed_partitions(vector, &mut probed_partitions);
        for (assignments, load) in &mut loads {
            load.stored[assignments[home.index()]] += 1;
            // Partitions ascend, and so do their nodes.
            let mut last = None;
            for node in probed_partitions.iter().map(|partition| assignments[partition.index()]) {
                if last.replace(node) != Some(node) {
                    load.received[node] += 1;
                }
            }
        }
    }
    Ok(loads.into_iter().map(|(_, load)| load).collect())
}

/// Assigns neighbouring partitions to the same node, such that the fullest node has as few contents as
/// possible.
fn assignments(homes: &[PartitionIndex], partitions: usize, nodes: u32) -> Vec<usize> {
    let mut stored = vec![0u64; partitions];
    homes.iter().for_each(|home| stored[home.index()] += 1);
    // Fills one node after another with at most `capacity` contents.
    let fill = |capacity: u64| -> Vec<usize> {
        let (mut node, mut has) = (0, 0);
        let assignment = |stored: &u64| {
            if has + stored > capacity && has > 0 {
                (node, has) = (node + 1, 0);
            }
            has += stored;
            node
        };
        stored.iter().map(assignment).collect()
    };
    let fits = |capacity: u64| fill(capacity).last().is_none_or(|last| *last < nodes as usize);
    let (mut least, mut capacity) = (stored.iter().copied().max().unwrap_or(0), homes.len() as u64);
    while least < capacity {
        let middle = least.midpoint(capacity);
        if fits(middle) {
            capacity = middle;
        } else {
            least = middle + 1;
        }
    }
    fill(capacity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Plan, PlanSize};
    use doppel_model::signature::Builder;
    use doppel_model::stable_hash64;

    fn hash(a: u64, b: u64) -> u64 {
        stable_hash64(&[a.to_le_bytes(), b.to_le_bytes()].concat())
    }

    /// Texts of a few topics and of many lengths.
    fn pages(count: u64) -> Vec<Signature> {
        let mut builder = Builder::new();
        let page = |n: u64| {
            let word = |i: u64| hash(n % 7, hash(n, i) % 300);
            let tokens: Vec<u64> = (0..20 + hash(n, 1 << 32) % 400).map(word).collect();
            builder.build(&tokens)
        };
        (0..count).map(page).collect()
    }

    #[test]
    fn estimates_agree_with_learned_plans() {
        let pages = pages(3_000);
        let rows = what_if(&pages, Tau::DEFAULT).unwrap();
        assert_eq!(rows.len(), 28);
        assert_eq!(rows, what_if(&pages, Tau::DEFAULT).unwrap());
        for row in rows {
            let dimensions = row.dimensions as usize;
            let plan =
                Plan::learn(&pages, PlanSize { nodes: row.nodes, each: 1 }, Tau::DEFAULT, dimensions, 1)
                    .unwrap();
            let lengths: Vec<LengthVector> = pages.iter().map(|p| plan.map().lexicon().lengths(p)).collect();
            let load = plan.measure(&lengths);
            assert!(
                (row.fan_out_saved - load.fan_out_saved()).abs() < 0.05,
                "estimated {row:?}, learned {}",
                load.fan_out_saved()
            );
            assert!(
                row.imbalance < load.imbalance() + 0.1,
                "estimated {row:?}, learned {}",
                load.imbalance()
            );
            let ratio = row.speed_up / load.speed_up();
            assert!((0.6..1.2).contains(&ratio), "estimated {row:?}, learned {}", load.speed_up());
            assert!(row.imbalance_floor > 1.0);
        }
    }

    #[test]
    fn few_or_equal_contents_give_finite_estimates() {
        for pages in [Vec::new(), pages(1), pages(10), vec![pages(1).remove(0); 500]] {
            let rows = what_if(&pages, Tau::DEFAULT).unwrap();
            assert_eq!(rows.len(), 28);
            for row in rows {
                assert!(row.imbalance >= 1.0 && row.imbalance <= f64::from(row.nodes), "{row:?}");
                assert!((0.0..=1.0).contains(&row.fan_out_saved), "{row:?}");
                assert!(row.speed_up.is_finite(), "{row:?}");
            }
        }
    }
}
