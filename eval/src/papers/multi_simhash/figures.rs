//! Precision, recall and F of queries, their macro averages, and the spread of the averages over sets of
//! queries.
//!
//! A query does not count among its results. A query without results has no precision, and does not count in
//! the average precision; its recall is 0 and counts. As in the paper, F is computed from the two averages.

use doppel_model::pairwise::Policy;
use serde::Serialize;

use super::distances::{DISTANCES, Distances};

/// Macro averages of one set of queries at one threshold.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Average {
    precision: Option<f64>,
    recall: f64,
    f: f64,
    /// Mean number of wrong texts that a query finds: among pieces of pages, and among recombined texts.
    wrong: (f64, f64),
}

/// Mean, deviation and range of a figure over the sets of queries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(super) struct Spread {
    pub(super) mean: f64,
    /// Standard deviation between sets.
    pub(super) deviation: f64,
    pub(super) least: f64,
    pub(super) most: f64,
}

/// Figures at one threshold.
#[derive(Debug, Clone, Copy, Serialize)]
pub(super) struct ThresholdFigures {
    /// Threshold of the distance. Texts at smaller distances count as near-duplicates.
    pub(super) below: usize,
    /// Average precision. `None` if no query of any set finds anything.
    pub(super) precision: Option<Spread>,
    pub(super) recall: Spread,
    pub(super) f: Spread,
    /// Mean number of wrong texts that a query finds: other pieces of pages and their copies in `wrong_real`,
    /// and recombined texts in `wrong_recombined`.
    pub(super) wrong_real: f64,
    pub(super) wrong_recombined: f64,
}

/// Figures of a policy at all thresholds.
#[derive(Debug, Serialize)]
pub(super) struct PolicyFigures {
    pub(super) policy: Policy,
    pub(super) thresholds: Vec<ThresholdFigures>,
    /// Threshold with the largest mean of F.
    pub(super) best: usize,
    /// Smallest and largest of the best thresholds of the sets.
    pub(super) best_of_sets: (usize, usize),
    /// Best threshold among pieces of pages alone.
    pub(super) real_best: usize,
    /// F at `real_best` among pieces of pages alone.
    pub(super) real_f: Spread,
}

impl Spread {
    fn of(figures: &[f64]) -> Option<Self> {
        let count = figures.len() as f64;
        let mean = figures.iter().sum::<f64>() / count;
        let squares: f64 = figures.iter().map(|figure| (figure - mean).powi(2)).sum();
        // This is the deviation of a sample, so one figure has none.
        let deviation = if figures.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        let least = figures.iter().copied().reduce(f64::min)?;
        let most = figures.iter().copied().reduce(f64::max)?;
        Some(Self { mean, deviation, least, most })
    }
}

fn average(queries: &[Distances], below: usize, with_recombined: bool) -> Average {
    let upto = |counts: &[u32; DISTANCES]| f64::from(counts[..below].iter().sum::<u32>());
    let (mut precision, mut some, mut recall, mut wrong) = (0.0, 0.0, 0.0, (0.0, 0.0));
    for query in queries {
        let found = upto(&query.copies);
        let (real, recombined) = (upto(&query.real), upto(&query.recombined));
        let all = found + real + if with_recombined { recombined } else { 0.0 };
        if all > 0.0 {
            precision += found / all;
            some += 1.0;
        }
        recall += found / f64::from(query.copies.iter().sum::<u32>()).max(1.0);
        wrong = (wrong.0 + real, wrong.1 + recombined);
    }
    let count = (queries.len() as f64).max(1.0);
    let (precision, recall) = ((some > 0.0).then(|| precision / some), recall / count);
    let both = precision.unwrap_or(0.0) + recall;
    let f = if both > 0.0 { 2.0 * precision.unwrap_or(0.0) * recall / both } else { 0.0 };
    Average { precision, recall, f, wrong: (wrong.0 / count, wrong.1 / count) }
}

/// Returns the threshold with the largest F, or 0 if every F is 0. `of` yields the thresholds with their F.
/// The first of equally good thresholds wins.
fn best(of: impl Iterator<Item = (usize, f64)>) -> usize {
    of.fold((0, 0.0), |best, (below, f)| if f > best.1 { (below, f) } else { best }).0
}

impl PolicyFigures {
    /// Computes the figures at `thresholds` from the distances of each query of each set.
    pub(super) fn new(policy: Policy, sets: &[Vec<Distances>], thresholds: &[usize]) -> Self {
        let averages = |below: usize, with_recombined: bool| -> Vec<Average> {
            sets.iter().map(|queries| average(queries, below, with_recombined)).collect()
        };
        let spread = |figures: Vec<f64>| Spread::of(&figures).unwrap_or_default();
        let at = |below: usize| {
            let all = averages(below, true);
            let mean = |of: fn(&Average) -> f64| spread(all.iter().map(of).collect()).mean;
            ThresholdFigures {
                below,
                precision: Spread::of(&all.iter().filter_map(|one| one.precision).collect::<Vec<_>>()),
                recall: spread(all.iter().map(|one| one.recall).collect()),
                f: spread(all.iter().map(|one| one.f).collect()),
                wrong_real: mean(|one| one.wrong.0),
                wrong_recombined: mean(|one| one.wrong.1),
            }
        };
        let rows: Vec<ThresholdFigures> = thresholds.iter().map(|below| at(*below)).collect();
        let real = |below: &usize| {
            let f = averages(*below, false).iter().map(|one| one.f).collect();
            (*below, spread(f))
        };
        let real: Vec<(usize, Spread)> = thresholds.iter().map(real).collect();
        let real_best = best(real.iter().map(|(below, f)| (*below, f.mean)));
        let of_sets = sets
            .iter()
            .map(|queries| best(thresholds.iter().map(|below| (*below, average(queries, *below, true).f))));
        let of_sets: Vec<usize> = of_sets.collect();
        let [least, most] = [of_sets.iter().min(), of_sets.iter().max()].map(|of| of.copied().unwrap_or(0));
        Self {
            policy,
            best: best(rows.iter().map(|at| (at.below, at.f.mean))),
            thresholds: rows,
            best_of_sets: (least, most),
            real_best,
            real_f: real
                .into_iter()
                .find(|(below, _)| *below == real_best)
                .map_or(Spread::default(), |(_, f)| f),
        }
    }

    /// Figures at a measured threshold. `None` if the threshold was not measured.
    pub(super) fn at(&self, below: usize) -> Option<&ThresholdFigures> {
        self.thresholds.iter().find(|at| at.below == below)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(copies: &[(usize, u32)], real: &[(usize, u32)], recombined: &[(usize, u32)]) -> Distances {
        let mut distances = Distances::default();
        copies.iter().for_each(|(at, count)| distances.copies[*at] = *count);
        real.iter().for_each(|(at, count)| distances.real[*at] = *count);
        recombined.iter().for_each(|(at, count)| distances.recombined[*at] = *count);
        distances
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn averages_are_of_queries_and_f_is_of_averages() {
        let queries = [
            query(&[(0, 60), (3, 60)], &[(3, 20)], &[(4, 5)]),
            // The query finds nothing below 3, so it has no precision there.
            query(&[(5, 30), (20, 90)], &[], &[(5, 30)]),
        ];
        let two = average(&queries, 3, true);
        assert_eq!((two.precision, two.recall, two.wrong), (Some(1.0), 0.25, (0.0, 0.0)));
        assert!(near(two.f, 0.4));
        let six = average(&queries, 6, true);
        let precision = (120.0 / 145.0 + 0.5) / 2.0;
        assert!(near(six.precision.unwrap(), precision) && near(six.recall, 0.625));
        assert!(near(six.f, 2.0 * precision * 0.625 / (precision + 0.625)));
        assert_eq!(six.wrong, (10.0, 17.5));
        assert!(near(average(&queries, 6, false).precision.unwrap(), (120.0 / 140.0 + 1.0) / 2.0));
        let none = average(&queries, 0, true);
        assert_eq!((none.precision, none.recall, none.f), (None, 0.0, 0.0));
    }

    #[test]
    fn the_best_threshold_has_the_largest_mean_of_f() {
        let right = |at: usize| vec![query(&[(at, 100), (30, 20)], &[(at + 3, 900)], &[(at + 1, 300)])];
        let policy = Policy::MultiSimhash { words: 2, lexicons: 1, below: 3 };
        let of = PolicyFigures::new(policy, &[right(2), right(2), right(4)], &(0..32).collect::<Vec<_>>());
        assert_eq!((of.best, of.best_of_sets, of.real_best), (3, (3, 5), 5));
        let f = 2.0 * (100.0 / 120.0) / (1.0 + 100.0 / 120.0);
        let at = of.at(3).unwrap();
        assert!(near(at.f.mean, 2.0 * f / 3.0) && at.f.least == 0.0 && near(at.f.most, f));
        assert!(near(at.f.deviation, f / 3_f64.sqrt()));
        // A set in which no query finds anything has no precision.
        assert!(at.precision.is_some_and(|precision| precision.mean == 1.0 && precision.deviation == 0.0));
        assert!(of.at(0).unwrap().precision.is_none() && of.at(40).is_none());
        let mean = |wrong: f64| wrong / 3.0;
        assert!(near(of.at(5).unwrap().wrong_recombined, mean(600.0)) && of.at(5).unwrap().wrong_real == 0.0);
    }
}
