//! Agreement of two partitions of the same pages into groups: the system's and the baseline's.

use std::collections::HashMap;
use std::hash::Hash;

use doppel_terminal::output::share;
use serde::Serialize;

/// Degree to which the system's groups agree with the baseline's.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Agreement {
    pub(crate) pages: u64,
    /// Number of pairs of pages that share a group by the system.
    pub(crate) system_pairs: u64,
    /// Number of pairs of pages that share a group by the baseline.
    pub(crate) baseline_pairs: u64,
    /// Number of pairs of pages that share a group by both.
    pub(crate) common_pairs: u64,
    /// Relative error of precision: the share of the system's pairs that the baseline does not have.
    pub(crate) rep: f64,
    /// Relative error of recall: the share of the baseline's pairs that the system does not have.
    pub(crate) rer: f64,
    /// B-cubed precision (Bagga, Baldwin: "Entity-Based Cross-Document Coreferencing Using the Vector Space
    /// Model", 1998). For each page, precision is the share of its group by the system that is also in its
    /// group by the baseline. The figure is the mean over the pages.
    pub(crate) bcubed_precision: f64,
    /// B-cubed recall: like `bcubed_precision`, with system and baseline exchanged.
    pub(crate) bcubed_recall: f64,
}

impl Agreement {
    /// Compares the labels of each page: the system's and the baseline's. Equal labels mean one group.
    pub(crate) fn of<S: Hash + Eq + Clone, B: Hash + Eq + Clone>(
        pages: impl IntoIterator<Item = (S, B)>,
    ) -> Self {
        let mut common: HashMap<(S, B), u64> = HashMap::new();
        for labels in pages {
            *common.entry(labels).or_default() += 1;
        }
        let (mut system, mut baseline) = (HashMap::<S, u64>::new(), HashMap::<B, u64>::new());
        for ((s, b), pages) in &common {
            *system.entry(s.clone()).or_default() += pages;
            *baseline.entry(b.clone()).or_default() += pages;
        }
        let pairs = |n: &u64| n * n.saturating_sub(1) / 2;
        let pages: u64 = common.values().sum();
        let system_pairs = system.values().map(pairs).sum();
        let baseline_pairs = baseline.values().map(pairs).sum();
        let common_pairs = common.values().map(pairs).sum();
        // Each of the n pages with equal labels shares its group with the n pages.
        let mean = |group: &dyn Fn(&(S, B)) -> u64| {
            let of = |(labels, n): (&(S, B), &u64)| (n * n) as f64 / group(labels) as f64;
            if pages == 0 { 1.0 } else { common.iter().map(of).sum::<f64>() / pages as f64 }
        };
        Self {
            pages,
            system_pairs,
            baseline_pairs,
            common_pairs,
            rep: share(system_pairs - common_pairs, system_pairs),
            rer: share(baseline_pairs - common_pairs, baseline_pairs),
            bcubed_precision: mean(&|(s, _)| system[s]),
            bcubed_recall: mean(&|(_, b)| baseline[b]),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_wrong_page_in_a_group_costs_precision_and_recall() {
        // The system: {a b c} {d}; the baseline: {a b} {c d}.
        let agreement = Agreement::of([(1, 1), (1, 1), (1, 2), (2, 2)]);
        assert_eq!((agreement.system_pairs, agreement.baseline_pairs, agreement.common_pairs), (3, 2, 1));
        assert!((agreement.rep - 2.0 / 3.0).abs() < 1e-12 && (agreement.rer - 0.5).abs() < 1e-12);
        // By hand: precision (2/3 + 2/3 + 1/3 + 1) / 4, recall (1 + 1 + 1/2 + 1/2) / 4.
        assert!((agreement.bcubed_precision - 8.0 / 12.0).abs() < 1e-12);
        assert!((agreement.bcubed_recall - 0.75).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn pairs_equal_a_count_one_by_one(labels in prop::collection::vec((0u8..5, 0u8..5), 0..40)) {
            let agreement = Agreement::of(labels.iter().copied());
            let (mut system, mut baseline, mut common) = (0, 0, 0);
            for (i, a) in labels.iter().enumerate() {
                for b in &labels[..i] {
                    system += u64::from(a.0 == b.0);
                    baseline += u64::from(a.1 == b.1);
                    common += u64::from(a == b);
                }
            }
            prop_assert_eq!(
                (agreement.system_pairs, agreement.baseline_pairs, agreement.common_pairs),
                (system, baseline, common)
            );
            let count = |keep: &dyn Fn(&(u8, u8)) -> bool| labels.iter().filter(|l| keep(l)).count() as f64;
            let precision: f64 = labels.iter().map(|l| count(&|m| m == l) / count(&|m| m.0 == l.0)).sum();
            let expected = if labels.is_empty() { 1.0 } else { precision / labels.len() as f64 };
            prop_assert!((agreement.bcubed_precision - expected).abs() < 1e-9);
        }
    }
}
