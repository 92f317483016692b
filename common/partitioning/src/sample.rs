//! What a map was learned from, and how far other data are from it.

use serde::{Deserialize, Serialize};

use super::{LengthVector, MappingLoad};

/// Share of later contents beyond which they are called unlike the sample.
const UNLIKE: f64 = 0.1;

/// The contents that a map was learned from.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sample {
    /// Their number.
    pub contents: u64,
    /// For each feature of their length vectors, the total first: least, quartiles and greatest value, in
    /// shingles. Empty where there are no contents.
    pub features: Vec<[i64; 5]>,
    /// What the map made of them; empty once boxes were split or joined.
    pub load: MappingLoad,
}

/// How differently later contents lie in the partitions of a map from those it was learned from.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Drift {
    /// The share of the later contents that would have to lie in other partitions for the shares of all
    /// partitions to be the sample's (the total variation distance), 0 to 1.
    pub distance: f64,
    /// About what chance alone makes of it, for samples of these sizes.
    pub chance: f64,
}

impl Sample {
    /// Of contents of these lengths, in so many dimensions.
    pub(super) fn of(lengths: &[LengthVector], dimensions: usize, load: MappingLoad) -> Self {
        let summary = |feature| {
            let mut values: Vec<i64> = lengths.iter().map(|lengths| lengths.feature(feature)).collect();
            values.sort_unstable();
            let last = values.len().checked_sub(1)?;
            Some([0, 1, 2, 3, 4].map(|quarter| values[last * quarter / 4]))
        };
        let features = (0..dimensions).filter_map(summary).collect();
        Self { contents: lengths.len() as u64, features, load }
    }

    /// Features, by number, that are the same for all contents and so tell none of them apart.
    pub fn constant_features(&self) -> impl Iterator<Item = usize> + '_ {
        let constant = |(number, values): (usize, &[i64; 5])| (values[0] == values[4]).then_some(number);
        self.features.iter().enumerate().filter_map(constant)
    }

    /// How far later contents are from the sample, by what the same map makes of them. None where either are
    /// none, or the map has other partitions than it was learned with.
    #[must_use]
    pub fn drift(&self, later: &MappingLoad) -> Option<Drift> {
        let (known, later) = (&self.load.stored, &later.stored);
        let count = |stored: &[u64]| stored.iter().sum::<u64>() as f64;
        let (n, m) = (count(known), count(later));
        if n == 0.0 || m == 0.0 || known.len() != later.len() {
            return None;
        }
        let pairs = || known.iter().zip(later).map(|(a, b)| (*a as f64, *b as f64));
        let distance = pairs().map(|(a, b)| (a / n - b / m).abs()).sum::<f64>() / 2.0;
        // The difference of two shares of a partition that has the share p of both is about normal with the
        // variance p (1 / n + 1 / m); the mean of its absolute value is sqrt(2 / pi) deviations.
        let deviation = |(a, b): (f64, f64)| ((a + b) / (n + m) * (1.0 / n + 1.0 / m)).sqrt();
        let chance = pairs().map(deviation).sum::<f64>() / (2.0 * std::f64::consts::PI).sqrt();
        Some(Drift { distance, chance: chance.min(1.0) })
    }
}

impl Drift {
    /// Whether more than a tenth of the later contents lie elsewhere, beyond what chance makes of it.
    #[must_use]
    pub fn is_unlike(&self) -> bool {
        self.distance - self.chance > UNLIKE
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use doppel_model::stable_hash64;

    fn load(stored: Vec<u64>) -> MappingLoad {
        MappingLoad { received: stored.clone(), stored }
    }

    #[test]
    fn what_chance_makes_of_a_deal_is_expected() {
        let deal = |from: u64, count: u64| {
            MappingLoad::dealt(64, (from..from + count).map(|i| stable_hash64(&i.to_le_bytes())))
        };
        for count in [500, 2_000, 50_000] {
            let sample = Sample::of(&[], 1, deal(0, 3_000));
            let drift = sample.drift(&deal(10_000_000, count)).unwrap();
            assert!((0.85..1.15).contains(&(drift.distance / drift.chance)), "{count} {drift:?}");
            assert!(!drift.is_unlike());
        }
    }

    #[test]
    fn what_lies_elsewhere_is_told() {
        let sample = Sample::of(&[], 1, load(vec![100; 10]));
        let drift = sample.drift(&load([vec![300; 3], vec![100; 1], vec![0; 6]].concat())).unwrap();
        assert!((drift.distance - 0.6).abs() < 1e-9 && drift.is_unlike(), "{drift:?}");
        assert_eq!(sample.drift(&load(vec![0; 10])), None);
        assert_eq!(sample.drift(&load(vec![5; 11])), None);
        assert_eq!(Sample::default().drift(&load(Vec::new())), None);
    }

    #[test]
    fn features_are_summed_up() {
        let lengths: Vec<LengthVector> =
            (1..=9).map(|n| LengthVector::new(&[2 * n, n]).unwrap()).rev().collect();
        let sample = Sample::of(&lengths, 2, MappingLoad::default());
        assert_eq!(sample.features, [[2, 6, 10, 14, 18], [0; 5]]);
        assert_eq!((sample.contents, sample.constant_features().collect::<Vec<_>>()), (9, vec![1]));
        assert_eq!(Sample::of(&[], 2, MappingLoad::default()).features.len(), 0);
    }
}
