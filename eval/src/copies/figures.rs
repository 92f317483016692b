//! Precision and recall by weight, and thresholds by cross-validation.
//!
//! Pairs of one family depend on each other. The bootstrap of the intervals therefore draws families, and the
//! folds of the cross-validation never split a family.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use doppel_model::Random;
use serde::Serialize;

use super::pairs::Pair;
use crate::ground_truth::score::Score;

/// Number of samples of the bootstrap.
const SAMPLES: usize = 1_000;

/// Number of folds into which the families are distributed.
const FOLDS: usize = 10;

const SEED: u64 = 1;

/// Share of a weight. `None` if the whole is 0.
type Share = Option<f64>;

/// Precision and recall, each with the bounds of its interval.
#[derive(Debug, Serialize)]
pub(super) struct Figures {
    pub(super) precision: Share,
    pub(super) precision_interval: Option<(f64, f64)>,
    pub(super) recall: Share,
    pub(super) recall_interval: Option<(f64, f64)>,
    /// Numbers of accepted pairs: correct and incorrect.
    pub(super) accepted: (usize, usize),
}

/// Result of a cross-validation. The figures of a pair rest on a threshold that other pairs chose.
#[derive(Debug, Serialize)]
pub(super) struct CrossValidation {
    pub(super) figures: Figures,
    /// Number of folds that chose each threshold, by the threshold in hundredths.
    pub(super) thresholds: BTreeMap<u32, usize>,
}

/// Smallest threshold to try for a policy, in hundredths.
pub(super) const POLICY_LEAST: u32 = 50;

/// Thresholds to try, in steps of 0.05. `least` is the first threshold, in hundredths.
pub(super) fn thresholds(least: u32) -> impl Iterator<Item = f64> {
    (least..100).step_by(5).map(|hundredths| f64::from(hundredths) / 100.0)
}

fn shares<'p>(pairs: impl Iterator<Item = (&'p Pair, bool)>) -> (Share, Share) {
    let mut score = Score::default();
    pairs.for_each(|(Pair { pair, .. }, accepted)| score.add(pair.truth, accepted, pair.weight));
    (score.precision(), score.recall())
}

fn interval(mut values: Vec<f64>) -> Option<(f64, f64)> {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| values.get((part * (values.len() as f64 - 1.0)).round() as usize).copied();
    at(0.025).zip(at(0.975))
}

/// Figures of `pairs`. `accepted` says which pairs a method accepts.
pub(super) fn with_intervals(pairs: &[&Pair], accepted: &[bool]) -> Figures {
    let all = || pairs.iter().copied().zip(accepted.iter().copied());
    let (precision, recall) = shares(all());
    let mut families: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (number, pair) in pairs.iter().enumerate() {
        families.entry(pair.family).or_default().push(number);
    }
    let families: Vec<Vec<usize>> = families.into_values().collect();
    let mut random = Random::new(SEED);
    let (mut precisions, mut recalls) = (Vec::new(), Vec::new());
    for _ in 0..SAMPLES {
        let sample = (0..families.len()).flat_map(|_| &families[random.index(families.len())]);
        let (precision, recall) = shares(sample.map(|number| (pairs[*number], accepted[*number])));
        precisions.extend(precision);
        recalls.extend(recall);
    }
    let count =
        |is_copy: bool| all().filter(|(pair, accepted)| *accepted && pair.is_copy() == is_copy).count();
    Figures {
        precision,
        precision_interval: interval(precisions),
        recall,
        recall_interval: interval(recalls),
        accepted: (count(true), count(false)),
    }
}

/// Chooses a threshold for each fold, from the pairs of the other folds.
///
/// The most precise threshold wins among those that reach `wanted_recall`. Of equally precise thresholds the
/// one with the most recall wins, then the smallest. If no threshold reaches `wanted_recall`, the one with
/// the most recall wins.
///
/// The opposite rule would ask for the most recall at a given precision. That rule takes the smallest
/// threshold that is just precise enough, and leaves no margin for new pairs.
pub(super) fn choose(pairs: &[&Pair], similarity: &[f64], least: u32, wanted_recall: f64) -> CrossValidation {
    let mut families: Vec<usize> = pairs.iter().map(|pair| pair.family).collect();
    families.sort_unstable();
    families.dedup();
    Random::new(SEED).shuffle(&mut families);
    let fold = |pair: &Pair| families.iter().position(|family| *family == pair.family).unwrap_or(0) % FOLDS;
    let mut accepted = vec![false; pairs.len()];
    let mut chosen: BTreeMap<u32, usize> = BTreeMap::new();
    for number in 0..FOLDS {
        let figures_at = |threshold: f64| {
            let rest = pairs.iter().zip(similarity).filter(|(pair, _)| fold(pair) != number);
            let (precision, recall) = shares(rest.map(|(pair, similarity)| (*pair, *similarity > threshold)));
            (precision.unwrap_or(0.0), recall.unwrap_or(0.0))
        };
        let best = thresholds(least).max_by(|a, b| {
            let ((p, r), (q, s)) = (figures_at(*a), figures_at(*b));
            let by_precision = if r >= wanted_recall { p.total_cmp(&q) } else { Ordering::Equal };
            let is_enough = (r >= wanted_recall).cmp(&(s >= wanted_recall));
            // `max_by` returns the last of equal elements, so the order of equal thresholds is reversed.
            is_enough.then(by_precision).then(r.total_cmp(&s)).then(b.total_cmp(a))
        });
        let threshold = best.unwrap_or(1.0);
        *chosen.entry((100.0 * threshold).round() as u32).or_default() += 1;
        for at in (0..pairs.len()).filter(|at| fold(pairs[*at]) == number) {
            accepted[at] = similarity[at] > threshold;
        }
    }
    CrossValidation { figures: with_intervals(pairs, &accepted), thresholds: chosen }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ground_truth::kind::TruthKind;
    use crate::ground_truth::labelled::{self, Truth};

    fn pair(family: usize, is_copy: bool, weight: f64) -> Pair {
        let url = |name: &str| doppel_model::PageUrl::parse(&format!("http://{name}.example/")).unwrap();
        let truth = if is_copy { Truth::Same } else { Truth::Other };
        let pair = labelled::Pair { a: url("a"), b: url("b"), truth, weight };
        Pair { pair, kind: TruthKind::JudgedOneHost, family }
    }

    #[test]
    fn shares_are_by_weight_and_intervals_are_around_them() {
        let pairs: Vec<Pair> =
            (0..40).map(|n| pair(n, n % 4 != 0, if n % 4 == 0 { 3.0 } else { 1.0 })).collect();
        let pairs: Vec<&Pair> = pairs.iter().collect();
        let all = with_intervals(&pairs, &[true; 40]);
        assert_eq!((all.precision, all.recall, all.accepted), (Some(0.5), Some(1.0), (30, 10)));
        let (low, high) = all.precision_interval.unwrap();
        assert!(0.25 < low && low < 0.5 && 0.5 < high && high < 0.75, "{low} {high}");
        let none = with_intervals(&pairs, &[false; 40]);
        assert_eq!((none.precision, none.precision_interval, none.recall), (None, None, Some(0.0)));
        // With one family, every sample is the same.
        let one: Vec<Pair> = (0..8).map(|n| pair(1, n % 2 == 0, 1.0)).collect();
        let one = with_intervals(&one.iter().collect::<Vec<_>>(), &[true; 8]);
        assert_eq!(one.precision_interval, Some((0.5, 0.5)));
    }

    #[test]
    fn a_threshold_separates_copies_from_other_pairs() {
        let pairs: Vec<Pair> = (0..60).map(|n| pair(n, n % 2 == 0, 1.0)).collect();
        let pairs: Vec<&Pair> = pairs.iter().collect();
        let similarity: Vec<f64> =
            pairs.iter().map(|pair| if pair.is_copy() { 0.83 } else { 0.72 }).collect();
        let chosen = choose(&pairs, &similarity, POLICY_LEAST, 0.75);
        assert_eq!((chosen.figures.precision, chosen.figures.recall), (Some(1.0), Some(1.0)));
        assert_eq!(chosen.thresholds, BTreeMap::from([(75, FOLDS)]));
    }

    #[test]
    fn recall_above_the_minimum_is_traded_for_precision() {
        // Of 100 copies 30 are at 0.78, the others at 0.93; two other pairs are at 0.82.
        let pairs: Vec<Pair> = (0..200).map(|n| pair(n, n % 2 == 0, 1.0)).collect();
        let similarity: Vec<f64> = (0..200)
            .map(|n| match n {
                1 | 3 => 0.82,
                _ if n % 2 == 1 => 0.58,
                _ if n < 60 => 0.78,
                _ => 0.93,
            })
            .collect();
        let pairs: Vec<&Pair> = pairs.iter().collect();
        let few = choose(&pairs, &similarity, POLICY_LEAST, 0.5);
        assert_eq!(few.thresholds, BTreeMap::from([(85, FOLDS)]));
        assert_eq!((few.figures.precision, few.figures.recall), (Some(1.0), Some(0.7)));
        let most = choose(&pairs, &similarity, POLICY_LEAST, 0.95);
        assert_eq!(most.thresholds, BTreeMap::from([(60, FOLDS)]));
        assert_eq!((most.figures.accepted, most.figures.recall), ((100, 2), Some(1.0)));
        // If the recall is out of reach, the threshold with the most recall is chosen.
        let none = choose(&pairs, &similarity, 80, 0.95);
        assert_eq!((none.figures.accepted, none.thresholds), ((70, 2), BTreeMap::from([(80, FOLDS)])));
    }
}
