//! Counts of measured pairs: by similarity, by reason, and by cutoff of the combination.

use std::collections::BTreeMap;

use doppel_terminal::output::share;
use serde::Serialize;

use super::measures::{Algorithm, BITS, MeasuredPair, Measures, SUPERSHINGLES};
use crate::ground_truth::score::Score;
use crate::ground_truth::variants::Reason;

/// Pairs of one range of similarity.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) least: u32,
    pub(super) most: u32,
    pub(super) pairs: u64,
    pub(super) share: f64,
    /// Mean similarity of the pairs by the measure that does not define the range.
    pub(super) other_mean: f64,
    pub(super) judged: Score,
    pub(super) transplants: Score,
}

/// Pairs that differ for one reason, and how many of them each algorithm finds.
#[derive(Debug, Serialize)]
pub(super) struct ReasonCounts {
    pub(super) reason: Reason,
    /// Numbers of pairs on one site and on two sites.
    pub(super) pairs: [u64; 2],
    /// Numbers of pairs that each algorithm finds, on one site and on two sites.
    pub(super) found: Vec<[u64; 2]>,
    pub(super) mean_b: f64,
    pub(super) mean_c: f64,
}

/// Scores of a combination: the pairs that B finds and whose projections agree in at least `bits` bits.
#[derive(Debug, Serialize)]
pub(super) struct Cutoff {
    pub(super) bits: u32,
    /// Share of the found pairs that are the same. Undecided pairs count as found, as in the paper.
    pub(super) precision: Option<f64>,
    /// R of the paper: the found `Truth::Same` pairs, as a share of the `Truth::Same` pairs that B alone
    /// finds.
    pub(super) recall: Option<f64>,
    /// Score among the pairs that B finds.
    pub(super) score: Score,
}

/// Counts the pairs whose similarity is in a band, and scores the pairs of known truth in this band.
pub(super) fn row(
    pairs: &[Measures],
    (least, most): (u32, u32),
    of: impl Fn(Measures) -> u32,
    other: impl Fn(Measures) -> f64,
    (judged, transplants): (&[MeasuredPair<'_>], &[MeasuredPair<'_>]),
) -> Row {
    let is_in = |measures| (least..=most).contains(&of(measures));
    let own: Vec<Measures> = pairs.iter().copied().filter(|measures| is_in(*measures)).collect();
    let score = |pairs: &[MeasuredPair<'_>]| {
        let mut score = Score::default();
        for MeasuredPair { pair, measures } in pairs.iter().filter(|pair| is_in(pair.measures)) {
            let _: &Measures = measures;
            score.add(pair.truth, true, pair.weight);
        }
        score
    };
    Row {
        least,
        most,
        pairs: own.len() as u64,
        share: share(own.len() as u64, pairs.len() as u64),
        other_mean: own.iter().map(|measures| other(*measures)).sum::<f64>() / own.len().max(1) as f64,
        judged: score(judged),
        transplants: score(transplants),
    }
}

/// Counts the pairs of one reason, and the pairs that each algorithm finds.
pub(super) fn count_reason(reason: Reason, pairs: &[(Reason, MeasuredPair<'_>)]) -> ReasonCounts {
    let own: Vec<&MeasuredPair<'_>> =
        pairs.iter().filter(|(of, _)| *of == reason).map(|(_, pair)| pair).collect();
    let mean = |of: fn(&Measures) -> u32| {
        own.iter().map(|pair| f64::from(of(&pair.measures))).sum::<f64>() / own.len().max(1) as f64
    };
    let by_site = |holds: &dyn Fn(Measures) -> bool| {
        [true, false].map(|one_site| {
            let of_sites = own.iter().filter(|pair| pair.is_on_one_site() == one_site);
            of_sites.filter(|pair| holds(pair.measures)).count() as u64
        })
    };
    ReasonCounts {
        reason,
        pairs: by_site(&|_| true),
        found: Algorithm::ALL.map(|algorithm| by_site(&|measures| algorithm.holds(measures))).into(),
        mean_b: mean(|measures| measures.b),
        mean_c: mean(|measures| measures.c),
    }
}

/// Scores B with every cutoff of C. Recall is a share of the pairs that B alone finds.
pub(super) fn cutoffs<'m, 'p: 'm>(pairs: impl IntoIterator<Item = &'m MeasuredPair<'p>>) -> Vec<Cutoff> {
    let found: Vec<&MeasuredPair<'_>> = pairs.into_iter().filter(|pair| pair.measures.b >= 2).collect();
    let cutoff = |bits| {
        let mut score = Score::default();
        found.iter().for_each(|one| score.add(one.pair.truth, one.measures.c >= bits, one.pair.weight));
        Cutoff { bits, precision: score.of_all_found().map(|[same, ..]| same), recall: score.recall(), score }
    };
    (0..=BITS).map(cutoff).collect()
}

/// Pearson's correlation of the two measures. `None` if one of them does not vary.
pub(super) fn correlation(pairs: &[Measures]) -> Option<f64> {
    let n = pairs.len() as f64;
    let mean = |of: fn(&Measures) -> u32| pairs.iter().map(|m| f64::from(of(m))).sum::<f64>() / n;
    let (b, c) = (mean(|m| m.b), mean(|m| m.c));
    let (mut both, mut of_b, mut of_c) = (0.0, 0.0, 0.0);
    for measures in pairs {
        let (x, y) = (f64::from(measures.b) - b, f64::from(measures.c) - c);
        both += x * y;
        of_b += x * x;
        of_c += y * y;
    }
    (of_b * of_c > 0.0).then(|| both / (of_b * of_c).sqrt())
}

/// Counts the B-similar pairs of each C-similarity, by B-similarity from 2 on.
pub(super) fn c_by_b(pairs: &[Measures]) -> Vec<Vec<(u32, u64)>> {
    let counts = |b| {
        let mut counts = BTreeMap::new();
        pairs.iter().filter(|pair| pair.b == b).for_each(|pair| *counts.entry(pair.c).or_default() += 1);
        counts.into_iter().collect()
    };
    (2..=SUPERSHINGLES).map(counts).collect()
}

#[cfg(test)]
mod tests {
    use doppel_model::PageUrl;

    use super::*;
    use crate::ground_truth::labelled::{Pair, Truth};

    #[test]
    fn rows_cutoffs_and_correlation_are_counted() {
        let url = |n: u32| PageUrl::parse(&format!("http://h{}/{n}", n % 2)).unwrap();
        let pair = |truth, weight| Pair { a: url(0), b: url(1), truth, weight };
        let labelled = [pair(Truth::Same, 3.0), pair(Truth::Other, 1.0), pair(Truth::Same, 1.0)];
        let measures = [(2, 380), (2, 360), (1, 384)].map(|(b, c)| Measures { b, c });
        let pairs: Vec<_> =
            labelled.iter().zip(measures).map(|(pair, measures)| MeasuredPair { pair, measures }).collect();
        let of_b: Vec<Measures> = measures[..2].to_vec();
        let row = row(&of_b, (2, 2), |m| m.b, |m| f64::from(m.c), (&pairs, &[]));
        assert_eq!((row.pairs, row.share, row.other_mean), (2, 1.0, 370.0));
        assert_eq!((row.judged.precision(), row.transplants.precision()), (Some(0.75), None));
        let cutoffs = cutoffs(&pairs);
        let at = |bits: usize| (cutoffs[bits].precision, cutoffs[bits].recall);
        assert_eq!(
            (at(0), at(361), at(381)),
            ((Some(0.75), Some(1.0)), (Some(1.0), Some(1.0)), (None, Some(0.0)))
        );
        let line = [(1, 10), (2, 20), (3, 30)].map(|(b, c)| Measures { b, c });
        assert!((correlation(&line).unwrap() - 1.0).abs() < 1e-12 && correlation(&line[..1]).is_none());
        assert_eq!(c_by_b(&measures), [vec![(360, 1), (380, 1)], vec![], vec![], vec![], vec![]]);
        let found = |algorithm: Algorithm| measures.map(|m| algorithm.holds(m));
        assert_eq!(found(Algorithm::B), [true, true, false]);
        assert_eq!(found(Algorithm::C), [true, false, true]);
        assert_eq!(
            (found(Algorithm::Combined), found(Algorithm::Control)),
            ([true, true, false], [false; 3])
        );
    }
}
