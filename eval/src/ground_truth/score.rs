//! Precision, recall and F1 of weighted pairs. Undecided pairs do not count, except in
//! [`Score::of_all_found`].

use doppel_terminal::output::known;
use serde::Serialize;

use crate::ground_truth::labelled::Truth;
use crate::report::percent;

/// Numbers and weights of pairs, by the truth and by the answer of an algorithm.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Score {
    /// Number of [`Truth::Same`] pairs that the algorithm found.
    pub(crate) found: u64,
    /// Number of [`Truth::Same`] pairs that the algorithm missed.
    pub(crate) missed: u64,
    /// Number of [`Truth::Other`] pairs that the algorithm wrongly found.
    pub(crate) wrong: u64,
    /// Number of [`Truth::Other`] pairs that the algorithm rightly refused.
    pub(crate) refused: u64,
    /// Number of [`Truth::Undecided`] pairs that the algorithm found.
    pub(crate) undecided: u64,
    found_weight: f64,
    missed_weight: f64,
    wrong_weight: f64,
    undecided_weight: f64,
}

impl Score {
    /// Counts a pair. `is_found` is the answer of the algorithm.
    pub(crate) fn add(&mut self, truth: Truth, is_found: bool, weight: f64) {
        match (truth, is_found) {
            (Truth::Undecided, true) => {
                self.undecided += 1;
                self.undecided_weight += weight;
            }
            (Truth::Undecided, false) => {}
            (Truth::Same, true) => {
                self.found += 1;
                self.found_weight += weight;
            }
            (Truth::Same, false) => {
                self.missed += 1;
                self.missed_weight += weight;
            }
            (Truth::Other, true) => {
                self.wrong += 1;
                self.wrong_weight += weight;
            }
            (Truth::Other, false) => self.refused += 1,
        }
    }

    /// Share of the decided found pairs that are the same. `None` if the algorithm found none.
    pub(crate) fn precision(&self) -> Option<f64> {
        share(self.found_weight, self.found_weight + self.wrong_weight)
    }

    /// Same, other and undecided pairs, each as a share of all found pairs. `None` if the algorithm found
    /// none.
    ///
    /// The first share is precision as M. Henzinger counts it.
    pub(crate) fn of_all_found(&self) -> Option<[f64; 3]> {
        let parts = [self.found_weight, self.wrong_weight, self.undecided_weight];
        let all = parts.iter().sum::<f64>();
        (all > 0.0).then(|| parts.map(|part| part / all))
    }

    /// Weight of the [`Truth::Same`] pairs found here, as a share of the weight of such pairs that `other`
    /// found.
    pub(crate) fn relative_to(&self, other: &Self) -> Option<f64> {
        share(self.found_weight, other.found_weight)
    }

    /// Share of the [`Truth::Same`] pairs that the algorithm found, by weight. `None` if there is no such
    /// pair.
    pub(crate) fn recall(&self) -> Option<f64> {
        share(self.found_weight, self.found_weight + self.missed_weight)
    }

    /// Harmonic mean of precision and recall. `None` if no pair is the same and none was wrongly found.
    pub(crate) fn f1(&self) -> Option<f64> {
        let doubled = 2.0 * self.found_weight;
        share(doubled, doubled + self.wrong_weight + self.missed_weight)
    }

    /// Formats precision, recall and F1 in percent, the first two with the pairs that they rest on.
    pub(crate) fn cells(&self) -> [String; 3] {
        let cell = |share: Option<f64>, part: u64, of: u64| {
            let share = known(share, percent);
            format!("{share} ({part} of {of})")
        };
        let Self { found, missed, wrong, .. } = *self;
        [
            cell(self.precision(), found, found + wrong),
            cell(self.recall(), found, found + missed),
            known(self.f1(), percent),
        ]
    }
}

/// Part as a share of the whole, by weight. `None` if the whole is 0.
pub(crate) fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_count_and_undecided_pairs_do_not() {
        let mut score = Score::default();
        let pairs = [
            (Truth::Same, true, 3.0),
            (Truth::Same, false, 1.0),
            (Truth::Other, true, 1.0),
            (Truth::Other, false, 9.0),
            (Truth::Undecided, true, 50.0),
        ];
        pairs.into_iter().for_each(|(truth, is_found, weight)| score.add(truth, is_found, weight));
        assert_eq!((score.precision(), score.recall(), score.f1()), (Some(0.75), Some(0.75), Some(0.75)));
        assert_eq!((score.found, score.missed, score.wrong, score.refused), (1, 1, 1, 1));
        assert_eq!(score.cells()[0], "75.00 (1 of 2)");
        let of_all = [3.0 / 54.0, 1.0 / 54.0, 50.0 / 54.0];
        assert_eq!((score.undecided, score.of_all_found()), (1, Some(of_all)));
        assert_eq!(score.relative_to(&score), Some(1.0));
        assert_eq!(Score::default().of_all_found(), None);
        assert_eq!(Score::default().precision(), None);
    }
}
