//! Cutoff of the combination, chosen on one half of the labelled pairs and reported on the other: tables 11
//! and 12 of the paper.
//!
//! Pairs of one family are always in the same half, so the test half is independent of the choice.

use doppel_model::Random;
use serde::Serialize;

use super::cell;
use super::figures::{Cutoff, cutoffs};
use super::found_pairs::{self, PartScore};
use super::measures::{Algorithm, MeasuredPair};
use crate::report::Table;

/// Cutoffs of table 11.
const TABLE_11: std::ops::RangeInclusive<u32> = 351..=359;
/// Cutoff that the paper chooses, in agreeing bits.
const SOURCE_CUTOFF: u32 = 355;
/// Minimum of R (see [`Cutoff::recall`]) that the paper demands of a cutoff.
const RELATIVE_MIN: f64 = 0.8;
/// Seed by which families are distributed to the halves.
const SEED: u64 = 7;

/// Results on both halves: S1, which chooses the cutoff, and S2, which tests it.
#[derive(Debug, Serialize)]
pub(super) struct Halves {
    /// Number of pairs of each half.
    pub(super) pairs: [usize; 2],
    /// Scores on the training half S1, for every cutoff.
    pub(super) training: Vec<Cutoff>,
    /// Cutoff that S1 chooses. `None` if B finds no correct pair in S1.
    pub(super) chosen: Option<u32>,
    /// Scores on the test half S2, for the cutoff that S1 chooses and for the cutoff of the paper.
    test: Vec<Cutoff>,
    /// Scores of the algorithms on S2, with the thresholds of the paper.
    found: Vec<PartScore>,
}

impl Halves {
    /// Distributes the pairs to halves. `families` has the family of each pair.
    pub(super) fn new(pairs: &[MeasuredPair<'_>], families: &[usize]) -> Self {
        let is_training = |family: usize| Random::of(SEED, [family as u64, 0, 0]).below(2) == 0;
        let half = |first: bool| {
            let own = pairs.iter().zip(families).filter(move |(_, family)| is_training(**family) == first);
            own.map(|(pair, _)| pair).collect::<Vec<_>>()
        };
        let [first, second] = [half(true), half(false)];
        let training = cutoffs(first.iter().copied());
        let chosen = chosen(&training);
        let tried = [chosen, Some(SOURCE_CUTOFF)];
        let test = cutoffs(second.iter().copied());
        let test = test.into_iter().filter(|cutoff| tried.contains(&Some(cutoff.bits))).collect();
        let found = found_pairs::score_parts(&second, &[Algorithm::Combined, Algorithm::Control]);
        Self { pairs: [first.len(), second.len()], training, chosen, test, found }
    }

    /// Makes table 11 with the chosen cutoff, and table 12.
    pub(super) fn tables(&self, name: &str) -> [Table; 2] {
        let [first, second] = self.pairs;
        let title = format!(
            "{name}: B with a cutoff of C, on training half S1 of {first} pairs (table 11) and on test half S2 of {second}"
        );
        let head = ["half", "cutoff", "found", "correct", "precision, of all found, %", "R, %"];
        let mut table = Table::new(&title, head);
        let mut row = |half: &str, cutoff: &Cutoff| {
            let Cutoff { bits, precision, recall, score } = cutoff;
            let found = score.found + score.wrong + score.undecided;
            let counts = [u64::from(*bits), found, score.found].map(|n| n.to_string());
            let shares = [cell(*precision), cell(*recall)];
            table.row([half.to_owned()].into_iter().chain(counts).chain(shares));
        };
        self.training
            .iter()
            .filter(|cutoff| TABLE_11.contains(&cutoff.bits))
            .for_each(|cutoff| row("S1", cutoff));
        let chosen = |cutoff: &&Cutoff| Some(cutoff.bits) == self.chosen;
        self.training.iter().filter(chosen).for_each(|cutoff| row("S1, chosen", cutoff));
        for cutoff in &self.test {
            row(if chosen(&cutoff) { "S2, chosen on S1" } else { "S2, of the source" }, cutoff);
        }
        let title = format!("{name}, test half S2, with the source's thresholds (table 12)");
        [table, found_pairs::table(&title, &self.found)]
    }
}

/// Most precise cutoff that keeps R at [`RELATIVE_MIN`] or above. The smallest of equally precise cutoffs
/// wins.
fn chosen(training: &[Cutoff]) -> Option<u32> {
    let keeps = training.iter().filter(|cutoff| cutoff.recall.is_some_and(|recall| recall >= RELATIVE_MIN));
    let precise = keeps.filter_map(|cutoff| Some((cutoff.bits, cutoff.precision?)));
    let better = |best: (u32, f64), one: (u32, f64)| if one.1 > best.1 { one } else { best };
    precise.reduce(better).map(|(bits, _)| bits)
}

#[cfg(test)]
mod tests {
    use doppel_model::PageUrl;

    use super::*;
    use crate::ground_truth::labelled::{Pair, Truth};
    use crate::papers::henzinger::measures::Measures;

    #[test]
    fn the_cutoff_is_chosen_on_one_half() {
        let url = |n: u32| PageUrl::parse(&format!("http://h/{n}")).unwrap();
        // Of each ten pairs the first three are wrong, and agree in fewer bits than the last six.
        let pairs: Vec<Pair> = (0..400)
            .map(|n| {
                let truth = if n % 10 < 3 { Truth::Other } else { Truth::Same };
                Pair { a: url(n), b: url(n + 1_000), truth, weight: 1.0 }
            })
            .collect();
        let measured: Vec<_> = pairs
            .iter()
            .zip(0..)
            .map(|(pair, n)| MeasuredPair {
                pair,
                measures: Measures { b: 2, c: if n % 10 < 4 { 340 } else { 370 } },
            })
            .collect();
        let families: Vec<usize> = (0..400).map(|n| n / 2).collect();
        let halves = Halves::new(&measured, &families);
        let [first, second] = halves.pairs;
        assert!(first + second == 400 && first % 2 == 0 && (120..280).contains(&first), "{first}");
        assert_eq!(halves.chosen, Some(341));
        let of_test = |bits| halves.test.iter().find(|cutoff| cutoff.bits == bits).unwrap();
        assert_eq!((of_test(341).precision, of_test(SOURCE_CUTOFF).precision), (Some(1.0), Some(1.0)));
        assert!(of_test(341).recall.unwrap() > 0.8);
        assert_eq!(Halves::new(&[], &[]).chosen, None);
    }
}
