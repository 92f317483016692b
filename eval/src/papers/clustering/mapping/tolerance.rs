//! Value of rho by the paper's definition: from delta and epsilon, sampled from the contents.
//!
//! In the paper, delta bounds how unevenly the words of a page fall into the sub-dictionaries. Epsilon bounds
//! the difference between the number of distinct shingles of a page and its length. The paper samples both
//! "with an approximation" that stays below the worst case, and does not define the approximation. Here
//! quantiles are measured: the delta and epsilon that a share of the contents does not exceed.

use std::sync::Arc;

use anyhow::Result;
use doppel_model::Tau;
use doppel_model::signature::Signature;
use doppel_partitioning::{PaperMap, PlanSize, Rho};
use doppel_terminal::output::known;
use serde::Serialize;

use super::Mapping;
use super::distinct_contents::DistinctContents;
use crate::report::{Table, percent};

/// Shares of the contents for which rho is computed, in percent.
const SHARES: [u8; 5] = [25, 50, 75, 90, 99];

/// Deviation of a content from the two assumptions of the paper's bound. The content's shingles are spread
/// evenly over the sub-dictionaries, and it has as many distinct shingles as tokens.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Deviation {
    /// Largest |L / (N L_i) - 1| over the N sub-dictionaries. L_i is the length in a sub-dictionary, and L is
    /// the sum of all lengths. Infinite if a length is 0.
    delta: f64,
    /// Absolute value of shingles / tokens - 1.
    epsilon: f64,
}

impl Deviation {
    /// Computes the deviation of a content. `lengths` are its lengths in the sub-dictionaries, and
    /// `signature` has its numbers of shingles and tokens. For a content without tokens, delta and epsilon
    /// are 0.
    fn of(lengths: &[u32], signature: &Signature) -> Self {
        if signature.tokens() == 0 {
            return Self { delta: 0.0, epsilon: 0.0 };
        }
        let mean = f64::from(signature.size()) / lengths.len() as f64;
        let delta = lengths.iter().map(|length| (mean / f64::from(*length) - 1.0).abs()).fold(0.0, f64::max);
        let epsilon = (f64::from(signature.size()) / f64::from(signature.tokens()) - 1.0).abs();
        Self { delta, epsilon }
    }
}

/// Delta, epsilon and rho for a share of the contents.
#[derive(Debug, Serialize)]
pub(super) struct Tolerance {
    dimensions: usize,
    /// Share of the contents that deviate no more, in percent.
    share: u8,
    /// Delta of the share. `None` if it is infinite, because a content has no word of some sub-dictionary.
    delta: Option<f64>,
    epsilon: f64,
    /// Rho for delta and epsilon. `None` if there is no such rho, or if it is above 10.
    rho: Option<Rho>,
}

impl Mapping {
    /// Computes the tolerances for each number of dimensions of the paper's mapping.
    ///
    /// # Errors
    /// If there are too many dimensions.
    pub(super) fn tolerances(&self, collection: &DistinctContents) -> Result<Vec<Tolerance>> {
        let mut tolerances = Vec::new();
        for dimensions in self.papers_dimensions() {
            // The sub-dictionaries depend neither on tau nor on the nodes.
            let size = PlanSize { nodes: 1, each: 1 };
            let map = PaperMap::learn(&collection.contents, size, Tau::DEFAULT, dimensions, self.rho)?;
            let deviation = |content: &Arc<Signature>| {
                Deviation::of(map.lengths(content).first(map.dimensions()), content)
            };
            let deviations: Vec<Deviation> = collection.contents.iter().map(deviation).collect();
            tolerances.extend(SHARES.map(|share| Tolerance::of(&deviations, dimensions, share)));
        }
        Ok(tolerances)
    }
}

impl Tolerance {
    fn of(deviations: &[Deviation], dimensions: usize, share: u8) -> Self {
        let of = |value: fn(&Deviation) -> f64| quantile(deviations.iter().map(value).collect(), share);
        let (delta, epsilon) = (of(|deviation| deviation.delta), of(|deviation| deviation.epsilon));
        Self {
            dimensions,
            share,
            delta: delta.is_finite().then_some(delta),
            epsilon,
            rho: Rho::of(delta, epsilon).ok(),
        }
    }
}

/// Returns the smallest of the values that is at least as large as `share` percent of the values. 0 if there
/// are no values.
fn quantile(mut values: Vec<f64>, share: u8) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let rank = (values.len() * usize::from(share)).div_ceil(100).max(1);
    values.get(rank - 1).copied().unwrap_or(0.0)
}

/// Makes the table of the tolerances.
pub(super) fn table(tolerances: &[Tolerance]) -> Table {
    let mut table = Table::new(
        "rho as the paper defines it, for so large a share of the contents",
        ["N", "contents, %", "delta, %", "epsilon, %", "rho"],
    );
    for Tolerance { dimensions, share, delta, epsilon, rho } in tolerances {
        table.row([
            dimensions.to_string(),
            share.to_string(),
            known(*delta, percent),
            percent(*epsilon),
            known(*rho, |rho| format!("{:.2}", rho.get())),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use doppel_model::signature::Builder;

    #[test]
    fn deviations_match_their_definition() {
        // 30 tokens, which are 30 shingles, a third of them in the first sub-dictionary.
        let tokens: Vec<u64> = (0..30).map(|n| (n % 3 + 1) << 52 | n).collect();
        let Deviation { delta, epsilon } = Deviation::of(&[10, 20], &Builder::new().build(&tokens));
        assert!(
            (delta - 0.5).abs() < 1e-12 && epsilon == 0.0,
            "15 / 10 - 1 and 1 - 15 / 20: {delta} {epsilon}"
        );
        // 40 tokens and 5 distinct shingles, all with one first word.
        let repeated = Builder::new().build(&[1 << 52; 40]);
        let Deviation { delta, epsilon } = Deviation::of(&[5, 0], &repeated);
        assert!(delta.is_infinite() && (epsilon - 35.0 / 40.0).abs() < 1e-12, "{epsilon}");
        let empty = Builder::new().build(&[]);
        assert_eq!(Deviation::of(&[0, 0], &empty), Deviation { delta: 0.0, epsilon: 0.0 });
    }

    #[test]
    fn a_quantile_is_the_smallest_value_that_its_share_does_not_exceed() {
        let values: Vec<f64> = (1..=10).rev().map(f64::from).collect();
        for (share, value) in [(1, 1.0), (10, 1.0), (11, 2.0), (50, 5.0), (90, 9.0), (99, 10.0)] {
            assert_eq!(quantile(values.clone(), share), value, "{share} %");
        }
        assert_eq!(quantile(Vec::new(), 50), 0.0);
    }

    #[test]
    fn rho_is_none_if_the_share_includes_contents_that_miss_a_sub_dictionary() {
        let deviation = |delta| Deviation { delta, epsilon: 0.0 };
        let deviations = [deviation(0.0), deviation(0.5), deviation(f64::INFINITY), deviation(f64::INFINITY)];
        let of = |share| Tolerance::of(&deviations, 2, share);
        assert_eq!((of(50).delta, of(50).rho.map(Rho::get)), (Some(0.5), Some(3.0)));
        assert_eq!((of(75).delta, of(75).rho), (None, None));
    }
}
