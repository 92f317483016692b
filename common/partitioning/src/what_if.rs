//! What other numbers of sub-dictionaries and nodes would make of a collection.
//!
//! Learning a plan for each of them takes minutes. But the halves of the dictionary are found one after another, and
//! the boxes for 128 nodes, shared out in runs, serve for fewer: so there is one lexicon, one tree for each number of
//! dimensions, and every content is looked up once in each. The cuts are for equal storage; a plan that is learned
//! balances the work of the nodes as well, so it is a little better in `speed_up` than what is said here.

use std::borrow::Borrow;
use std::thread;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::cut::grow;
use super::{BoundingSpace, LengthVector, Lexicon, MappingError, MappingLoad, PartitionMap};
use doppel_model::Tau;
use doppel_model::signature::Signature;

/// Numbers of sub-dictionaries that are looked at.
const DIMENSIONS: [usize; 4] = [1, 2, 3, 4];

/// Numbers of nodes that are looked at: each twice the one before.
const NODES: [u32; 7] = [2, 4, 8, 16, 32, 64, 128];

/// Boxes of a tree, in times of the most nodes: a node gets neighbouring ones of about its share.
const BOXES: u32 = 4;

/// Contents that the cuts are learned from, at most.
const LEARNED_MAX: usize = 25_000;

/// What so many sub-dictionaries and nodes would make of a collection.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WhatIf {
    /// Sub-dictionaries, N.
    pub dimensions: u32,
    /// Nodes.
    pub nodes: u32,
    /// Most over mean of contents per node; 1 is even.
    pub imbalance: f64,
    /// The same contents dealt at random to as many nodes.
    pub imbalance_floor: f64,
    /// Share of fan-out saved against comparing every content on every node, 0 to 1.
    pub fan_out_saved: f64,
    /// All pairs over the work of the busiest node (stored times received).
    pub speed_up: f64,
}

/// For 1 to 4 sub-dictionaries and 2 to 128 nodes, in this order. A function of the sample and its order alone.
///
/// # Errors
/// None with the numbers of dimensions and nodes that are looked at.
pub fn what_if<S: Borrow<Signature>>(sample: &[S], tau: Tau) -> Result<Vec<WhatIf>, MappingError> {
    let most = DIMENSIONS[DIMENSIONS.len() - 1];
    let lexicon = Lexicon::learn(sample, most, 0)?;
    let lengths: Vec<LengthVector> = sample.iter().map(|one| lexicon.lengths(one.borrow())).collect();
    let floors = NODES.map(|nodes| MappingLoad::at_random(nodes as usize, sample.len() as u64).imbalance());
    let of = |dimensions| {
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
    for some in DIMENSIONS.chunks(threads) {
        let parts: Vec<Result<Vec<WhatIf>, MappingError>> = thread::scope(|scope| {
            let others: Vec<_> = some[1..].iter().map(|n| scope.spawn(|| of(*n))).collect();
            let first = of(some[0]);
            // A thread that panicked is waited for, and its panic goes on here.
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

/// What each number of nodes makes of contents of these lengths, of which the first `dimensions` count.
fn loads(lengths: &[LengthVector], dimensions: usize, tau: Tau) -> Result<Vec<MappingLoad>, MappingError> {
    let lengths: Vec<LengthVector> = lengths
        .iter()
        .map(|one| LengthVector::new(&one.as_slice()[..dimensions]))
        .collect::<Result<_, _>>()?;
    match dimensions {
        // Lengths are few, so that boundaries for more nodes are worse than need be for fewer; and quickly found.
        1 => NODES
            .iter()
            .map(|nodes| Ok(below_one_tree(&lengths, (1, 1), tau, &[*nodes])?.remove(0)))
            .collect(),
        _ => below_one_tree(&lengths, (dimensions, BOXES), tau, &NODES),
    }
}

/// The same for some numbers of nodes, ascending, by the cuts for the last of them.
fn below_one_tree(
    lengths: &[LengthVector],
    (dimensions, boxes): (usize, u32),
    tau: Tau,
    numbers: &[u32],
) -> Result<Vec<MappingLoad>, MappingError> {
    let step = lengths.len().div_ceil(LEARNED_MAX).max(1);
    let learned: Vec<LengthVector> = lengths.iter().copied().step_by(step).collect();
    let spaces: Vec<BoundingSpace> = learned.iter().map(|one| BoundingSpace::new(*one, tau)).collect();
    let most = numbers.last().copied().unwrap_or(1);
    let (tree, _) = grow(&learned, &spaces, dimensions, most * boxes, 1);
    let map = PartitionMap::over(Lexicon::unlearned(dimensions)?, tree, tau, 0)?;
    let homes: Vec<u32> = lengths.iter().map(|vector| map.home(vector)).collect();
    let with = |nodes: &u32| {
        let zero = vec![0; *nodes as usize];
        (assignments(&homes, map.partitions(), *nodes), MappingLoad { stored: zero.clone(), received: zero })
    };
    let mut loads: Vec<(Vec<usize>, MappingLoad)> = numbers.iter().map(with).collect();
    let mut probed_partitions = Vec::new();
    for (vector, home) in lengths.iter().zip(&homes) {
        map.probed_partitions(vector, &mut probed_partitions);
        for (assignments, load) in &mut loads {
            load.stored[assignments[*home as usize]] += 1;
            // Partitions ascend, and so do their nodes.
            let mut last = None;
            for node in probed_partitions.iter().map(|partition| assignments[*partition as usize]) {
                if last.replace(node) != Some(node) {
                    load.received[node] += 1;
                }
            }
        }
    }
    Ok(loads.into_iter().map(|(_, load)| load).collect())
}

/// The node of each partition: neighbours go to one node, so that the fullest has as little as may be.
fn assignments(homes: &[u32], partitions: usize, nodes: u32) -> Vec<usize> {
    let mut stored = vec![0u64; partitions];
    homes.iter().for_each(|home| stored[*home as usize] += 1);
    // Filled one after the other up to so many contents.
    let fill = |most: u64| -> Vec<usize> {
        let (mut node, mut has) = (0, 0);
        let assignment = |stored: &u64| {
            if has + stored > most && has > 0 {
                (node, has) = (node + 1, 0);
            }
            has += stored;
            node
        };
        stored.iter().map(assignment).collect()
    };
    let fits = |most: u64| fill(most).last().is_none_or(|last| *last < nodes as usize);
    let (mut least, mut most) = (stored.iter().copied().max().unwrap_or(0), homes.len() as u64);
    while least < most {
        let middle = least.midpoint(most);
        if fits(middle) {
            most = middle;
        } else {
            least = middle + 1;
        }
    }
    fill(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use doppel_model::signature::Builder;
    use doppel_model::stable_hash64;

    fn hash(a: u64, b: u64) -> u64 {
        stable_hash64(&[a.to_le_bytes(), b.to_le_bytes()].concat())
    }

    /// Texts of a few topics, of many lengths.
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
    fn what_is_said_is_what_a_plan_gives() {
        let pages = pages(3_000);
        let rows = what_if(&pages, Tau::DEFAULT).unwrap();
        assert_eq!(rows.len(), 28);
        assert_eq!(rows, what_if(&pages, Tau::DEFAULT).unwrap());
        for row in rows {
            let dimensions = row.dimensions as usize;
            let plan = Plan::learn(&pages, (row.nodes, 1), Tau::DEFAULT, dimensions, 1).unwrap();
            let lengths: Vec<LengthVector> = pages.iter().map(|p| plan.map().lexicon().lengths(p)).collect();
            let load = plan.measure(&lengths);
            assert!(
                (row.fan_out_saved - load.fan_out_saved()).abs() < 0.05,
                "{row:?} {}",
                load.fan_out_saved()
            );
            assert!(row.imbalance < load.imbalance() + 0.1, "{row:?} {}", load.imbalance());
            let ratio = row.speed_up / load.speed_up();
            assert!((0.6..1.2).contains(&ratio), "{row:?} {}", load.speed_up());
            assert!(row.imbalance_floor > 1.0);
        }
    }

    #[test]
    fn few_or_equal_contents_have_figures_too() {
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
