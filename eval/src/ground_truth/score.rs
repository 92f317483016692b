//! Precision, recall and F1 of weighted pairs. Undecided pairs do not count, unless a figure is of all pairs.

use doppel_terminal::output::known;
use serde::Serialize;

use crate::ground_truth::labelled::Truth;
use crate::report::percent;

/// Pairs by what is true of them and what was said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Score {
    /// Pairs that are the same, and were found.
    pub(crate) found: u64,
    /// Pairs that are the same, and were not.
    pub(crate) missed: u64,
    /// Pairs that are others, and were found.
    pub(crate) wrong: u64,
    /// Pairs that are others, and were not.
    pub(crate) refused: u64,
    /// Undecided pairs that were found.
    pub(crate) undecided: u64,
    found_weight: f64,
    missed_weight: f64,
    wrong_weight: f64,
    undecided_weight: f64,
}

impl Score {
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

    /// None where nothing was found.
    pub(crate) fn precision(&self) -> Option<f64> {
        share(self.found_weight, self.found_weight + self.wrong_weight)
    }

    /// What is the same, is not, and is undecided, each as a share of all that was found; none where nothing was. The first is
    /// precision as M. Henzinger counts it.
    pub(crate) fn of_all_found(&self) -> Option<[f64; 3]> {
        let parts = [self.found_weight, self.wrong_weight, self.undecided_weight];
        let all = parts.iter().sum::<f64>();
        (all > 0.0).then(|| parts.map(|part| part / all))
    }

    /// What is the same and was found, as a share of what another found of that.
    pub(crate) fn relative_to(&self, other: &Self) -> Option<f64> {
        share(self.found_weight, other.found_weight)
    }

    /// None where there is nothing to be found.
    pub(crate) fn recall(&self) -> Option<f64> {
        share(self.found_weight, self.found_weight + self.missed_weight)
    }

    pub(crate) fn f1(&self) -> Option<f64> {
        let doubled = 2.0 * self.found_weight;
        share(doubled, doubled + self.wrong_weight + self.missed_weight)
    }

    /// Precision, recall and F1 in percent, each with the pairs that it rests on.
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

/// A part as a share of the whole, by weight; none if the whole is 0.
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
