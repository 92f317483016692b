//! Number of differing bits of pairs that are the same, and of pairs that are not.
//!
//! The paper judged an equal number of pairs at each distance. To be comparable, precision up to k is here
//! the mean of the shares at distances 1 to k, and not a share of all pairs up to k. Recall is relative to
//! distances 1 to 10.

use doppel_model::PageUrl;
use doppel_terminal::output::known;
use serde::Serialize;

use crate::ground_truth::labelled::{Pair, Truth};
use crate::ground_truth::score;
use crate::report::{Table, percent};

/// Largest distance that has a row of its own. The last row counts all larger distances.
pub(crate) const DISTANCE_MAX: u32 = 10;

/// Numbers of pairs at one distance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct AtDistance {
    pub(crate) distance: u32,
    pub(crate) same: u64,
    pub(crate) other: u64,
    pub(crate) undecided: u64,
    /// Total weight of the [`Truth::Same`] pairs.
    same_weight: f64,
    /// Total weight of the [`Truth::Other`] pairs.
    other_weight: f64,
}

impl AtDistance {
    fn share(&self) -> Option<f64> {
        score::share(self.same_weight, self.same_weight + self.other_weight)
    }
}

/// Counts the pairs at distances 1 to 10, and last the pairs further apart. A pair is left out if one of its
/// pages has no fingerprint.
pub(crate) fn of_pairs(
    pairs: &[Pair],
    mut fingerprint: impl FnMut(&PageUrl) -> Option<u64>,
) -> Vec<AtDistance> {
    let row = |distance| AtDistance { distance, ..AtDistance::default() };
    let mut rows: Vec<AtDistance> = (1..=DISTANCE_MAX + 1).map(row).collect();
    for pair in pairs {
        let (Some(a), Some(b)) = (fingerprint(&pair.a), fingerprint(&pair.b)) else { continue };
        let distance = (a ^ b).count_ones().min(DISTANCE_MAX + 1);
        let Some(row) = rows.iter_mut().find(|row| row.distance == distance) else { continue };
        match pair.truth {
            Truth::Same => {
                row.same += 1;
                row.same_weight += pair.weight;
            }
            Truth::Other => {
                row.other += 1;
                row.other_weight += pair.weight;
            }
            Truth::Undecided => row.undecided += 1,
        }
    }
    rows
}

/// Computes precision and recall for k from 1 to 10, as if each distance had an equal number of pairs.
pub(crate) fn curves(rows: &[AtDistance]) -> (Vec<Option<f64>>, Vec<Option<f64>>) {
    let shares: Vec<Option<f64>> =
        rows.iter().filter(|row| row.distance <= DISTANCE_MAX).map(AtDistance::share).collect();
    let all: f64 = shares.iter().flatten().sum();
    let (mut precision, mut recall, mut sum, mut some) = (Vec::new(), Vec::new(), 0.0, 0);
    for share in shares {
        if let Some(share) = share {
            sum += share;
            some += 1;
        }
        precision.push((some > 0).then(|| sum / f64::from(some)));
        recall.push((all > 0.0).then(|| sum / all));
    }
    (precision, recall)
}

pub(crate) fn table(truth: &str, rows: &[AtDistance]) -> Table {
    let title = format!(
        "{truth} by the bits that differ; shares by weight, precision and recall as if each distance had as many pairs"
    );
    let head =
        ["distance", "same", "other", "undecided", "same, %", "precision up to it, %", "recall up to it, %"];
    let mut table = Table::new(&title, head);
    let (precision, recall) = curves(rows);
    for (at, row) in rows.iter().enumerate() {
        let is_far = row.distance > DISTANCE_MAX;
        let distance = if is_far { format!("{} or more", row.distance) } else { row.distance.to_string() };
        let of = |curve: &[Option<f64>]| known(curve.get(at).copied().flatten(), percent);
        table.row([
            distance,
            row.same.to_string(),
            row.other.to_string(),
            row.undecided.to_string(),
            known(row.share(), percent),
            of(&precision),
            of(&recall),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_distance_weighs_the_same() {
        let url = |number: u64| PageUrl::parse(&format!("http://h/{number}")).unwrap();
        // The fingerprint of page n is n; page 0 has none.
        let fingerprint = |page: &PageUrl| {
            page.as_str()["http://h/".len()..].parse().ok().filter(|number: &u64| *number > 0)
        };
        let pair = |a, b, truth| Pair { a: url(a), b: url(b), truth, weight: 1.0 };
        let mut pairs = vec![pair(8, 9, Truth::Same); 30];
        pairs.extend([pair(8, 11, Truth::Same), pair(8, 11, Truth::Other), pair(8, 0, Truth::Same)]);
        pairs.extend([pair(1, 2047 * 2 + 1, Truth::Other), pair(8, 9, Truth::Undecided)]);
        let rows = of_pairs(&pairs, fingerprint);
        assert_eq!((rows[0].distance, rows[0].same, rows[0].other, rows[0].undecided), (1, 30, 0, 1));
        assert_eq!((rows[1].same, rows[1].other, rows[10].other), (1, 1, 1));
        let (precision, recall) = curves(&rows);
        assert_eq!((precision[0], precision[1], precision[9]), (Some(1.0), Some(0.75), Some(0.75)));
        assert!((recall[0].unwrap() - 2.0 / 3.0).abs() < 1e-12 && recall[9] == Some(1.0));
    }
}
