//! First bit in which neighbours in sorted order differ: figure 2(a) of the paper.
//!
//! Most neighbours among n random fingerprints differ first near the log2(n)-th bit. Further positions on
//! either side are half as frequent with each step. Low positions are on the left: there neighbours agree in
//! more leading bits. If the counts of a crawl do not decay there, its fingerprints cluster.

use doppel_terminal::svg::{Panel, PlotSeries};
use serde::Serialize;

use crate::report::{Table, percent};

/// Number of positions in a row of the table.
const ROW: usize = 4;

/// Number of neighbours whose XOR has its leading 1 at one position.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct AtPosition {
    /// Position of the bit; 0 is the least significant bit.
    position: u32,
    pairs: u64,
    /// Expected number among the same number of random fingerprints.
    random: f64,
}

/// Counts neighbours by position. `sorted` has each fingerprint once.
pub(super) fn positions(sorted: &[u64]) -> Vec<AtPosition> {
    let mut pairs = [0; u64::BITS as usize];
    for two in sorted.windows(2) {
        if let Some(position) = (two[0] ^ two[1]).checked_ilog2() {
            pairs[position as usize] += 1;
        }
    }
    let of = |(position, pairs): (u32, u64)| {
        let random = expected(sorted.len() as f64, u64::BITS - 1 - position);
        AtPosition { position, pairs, random }
    };
    (0..).zip(pairs).map(of).collect()
}

/// Expected number of neighbours among n random fingerprints that agree in `common` leading bits and differ
/// in the next bit. There is one such pair of neighbours for each prefix of this length that occurs with both
/// next bits.
fn expected(n: f64, common: u32) -> f64 {
    let prefixes = f64::from(common).exp2();
    // 1 - 2^-64 is rounded to 1, so ln_1p and exp_m1 are needed.
    let some = |share: f64| -(n * (-share).ln_1p()).exp_m1();
    let (either, both) = (some(0.5 / prefixes), some(1.0 / prefixes));
    prefixes * (2.0 * either - both).max(0.0)
}

pub(super) fn table(contents: usize, all: &[AtPosition]) -> Table {
    let title = format!(
        "{contents} fingerprints of the crawl in order: position of the leading 1 in the XOR of neighbours (figure 2a; 0 is the last bit)"
    );
    let mut table = Table::new(&title, ["positions", "pairs", "% of all", "of random ones, %"]);
    let whole = all.iter().map(|at| at.pairs).sum::<u64>().max(1) as f64;
    for row in all.chunks(ROW) {
        let (pairs, random) = row.iter().fold((0, 0.0), |(a, b), at| (a + at.pairs, b + at.random));
        let ends = [row.first(), row.last()].map(|at| at.map_or(0, |at| at.position));
        table.row([
            format!("{} to {}", ends[0], ends[1]),
            pairs.to_string(),
            percent(pairs as f64 / whole),
            percent(random / whole),
        ]);
    }
    table
}

pub(super) fn panel(all: &[AtPosition]) -> Panel {
    let whole = all.iter().map(|at| at.pairs).sum::<u64>().max(1) as f64;
    let line = |name: &str, dashed, of: fn(&AtPosition) -> f64| PlotSeries {
        name: name.to_owned(),
        dashed,
        points: all.iter().map(|at| (f64::from(at.position), 100.0 * of(at) / whole)).collect(),
    };
    Panel {
        title: "Leading 1 in the XOR of neighbours".to_owned(),
        x: "position, 0 is the least significant bit".to_owned(),
        y: "% of the neighbours".to_owned(),
        series: vec![
            line("the crawl", false, |at| at.pairs as f64),
            line("random fingerprints, expected", true, |at| at.random),
        ],
        ..Panel::default()
    }
}

#[cfg(test)]
mod tests {
    use doppel_model::Random;

    use super::*;

    #[test]
    fn random_neighbours_match_the_expectation_and_clusters_do_not() {
        assert_eq!(
            positions(&[4, 5, 7, 8]).iter().map(|at| at.pairs).take(5).collect::<Vec<_>>(),
            [1, 1, 0, 1, 0]
        );
        let mut random = Random::new(3);
        let mut sorted: Vec<u64> = (0..50_000).map(|_| random.number()).collect();
        sorted.sort_unstable();
        let all = positions(&sorted);
        let sum: f64 = all.iter().map(|at| at.random).sum();
        assert!((sum - 49_999.0).abs() < 1.0, "{sum}");
        for at in &all {
            let off = (at.pairs as f64 - at.random).abs();
            assert!(off < 6.0 * at.random.sqrt() + 1.0, "{at:?}");
        }
        // Each fingerprint gets a neighbour that differs in the sixth bit.
        let mut clustered: Vec<u64> = sorted.iter().flat_map(|one| [*one, one ^ 32]).collect();
        clustered.sort_unstable();
        let at = positions(&clustered)[5];
        assert!(at.pairs == 50_000 && at.random < 1.0, "{at:?}");
    }
}
