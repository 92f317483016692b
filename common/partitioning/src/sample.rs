//! Statistics of the sample from which a map was learned, and the drift of later contents.

use serde::{Deserialize, Serialize};

use crate::length_vector::LengthVector;
use crate::load::MappingLoad;

/// If more than this share of later contents lies elsewhere, they count as unlike the sample.
const UNLIKE: f64 = 0.1;

/// Statistics of the contents from which a map was learned.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MapSample {
    /// The number of contents.
    pub contents: u64,
    /// For each feature of the length vectors, the total first: minimum, quartiles and maximum, in shingles.
    /// Empty if there are no contents.
    pub features: Vec<[i64; 5]>,
    /// The load of each partition for the sample. Empty after boxes have been split or joined.
    pub load: MappingLoad,
}

/// How the distribution of later contents over the partitions differs from the distribution of the sample.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Drift {
    /// The total variation distance between the two distributions over partitions, from 0 to 1. This is the
    /// share of the later contents that would have to be in other partitions to match the sample.
    pub distance: f64,
    /// The approximate distance that chance alone gives for samples of these sizes.
    pub chance: f64,
}

impl MapSample {
    /// The statistics of contents with these lengths.
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

    /// The features, by number, that have the same value for all contents and so cannot distinguish them.
    pub fn constant_features(&self) -> impl Iterator<Item = usize> + '_ {
        let constant = |(number, values): (usize, &[i64; 5])| (values[0] == values[4]).then_some(number);
        self.features.iter().enumerate().filter_map(constant)
    }

    /// The drift of later contents, given their load under the same map. `None` if either load is empty, or
    /// if the map has been split or joined since it was learned.
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
        // If a partition has the share p of both samples, the difference of the two observed shares is
        // approximately normal with variance p (1 / n + 1 / m). The mean of its absolute value is sqrt(2 /
        // pi) standard deviations.
        let deviation = |(a, b): (f64, f64)| ((a + b) / (n + m) * (1.0 / n + 1.0 / m)).sqrt();
        let chance = pairs().map(deviation).sum::<f64>() / (2.0 * std::f64::consts::PI).sqrt();
        Some(Drift { distance, chance: chance.min(1.0) })
    }
}

impl Drift {
    /// Whether more than a tenth of the later contents lie elsewhere, in addition to what chance explains.
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
    fn random_distributions_have_the_expected_drift() {
        let deal = |from: u64, count: u64| {
            MappingLoad::dealt(64, (from..from + count).map(|i| stable_hash64(&i.to_le_bytes())))
        };
        for count in [500, 2_000, 50_000] {
            let sample = MapSample::of(&[], 1, deal(0, 3_000));
            let drift = sample.drift(&deal(10_000_000, count)).unwrap();
            assert!((0.85..1.15).contains(&(drift.distance / drift.chance)), "{count} {drift:?}");
            assert!(!drift.is_unlike());
        }
    }

    #[test]
    fn moved_contents_are_drift() {
        let sample = MapSample::of(&[], 1, load(vec![100; 10]));
        let drift = sample.drift(&load([vec![300; 3], vec![100; 1], vec![0; 6]].concat())).unwrap();
        assert!((drift.distance - 0.6).abs() < 1e-9 && drift.is_unlike(), "{drift:?}");
        assert_eq!(sample.drift(&load(vec![0; 10])), None);
        assert_eq!(sample.drift(&load(vec![5; 11])), None);
        assert_eq!(MapSample::default().drift(&load(Vec::new())), None);
    }

    #[test]
    fn features_are_summarised() {
        let lengths: Vec<LengthVector> =
            (1..=9).map(|n| LengthVector::new(&[2 * n, n]).unwrap()).rev().collect();
        let sample = MapSample::of(&lengths, 2, MappingLoad::default());
        assert_eq!(sample.features, [[2, 6, 10, 14, 18], [0; 5]]);
        assert_eq!((sample.contents, sample.constant_features().collect::<Vec<_>>()), (9, vec![1]));
        assert_eq!(MapSample::of(&[], 2, MappingLoad::default()).features.len(), 0);
    }
}
