//! Measures how evenly a map distributes a collection, and how much fan-out it saves.

use serde::{Deserialize, Serialize};

use doppel_model::stable_hash64;

/// The load of each partition (or node) for a set of contents.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingLoad {
    /// The number of contents that each partition stores.
    pub stored: Vec<u64>,
    /// The number of contents that each partition receives for comparison.
    pub received: Vec<u64>,
}

impl MappingLoad {
    /// Distributes `contents` contents to `parts` partitions at random, always in the same way. The imbalance
    /// of this load is due to chance alone; it is the noise floor for the imbalance of a map.
    #[must_use]
    pub fn at_random(parts: usize, contents: u64) -> Self {
        Self::dealt(parts, (0..contents).map(|number| stable_hash64(&number.to_le_bytes())))
    }

    /// Distributes contents to `parts` partitions by their hashes. The result has no received contents.
    #[must_use]
    pub fn dealt(parts: usize, hashes: impl IntoIterator<Item = u64>) -> Self {
        let mut stored = vec![0; parts];
        for hash in hashes {
            if let Some(part) = hash.checked_rem(parts as u64) {
                stored[part as usize] += 1;
            }
        }
        Self { stored, received: Vec::new() }
    }

    /// The largest number of contents per partition divided by the mean. 1 is even. Also 1 if there are no
    /// contents.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        imbalance(&self.stored)
    }

    /// The factor by which partitioning reduces the work of the busiest partition, relative to comparing all
    /// pairs. The work of a partition is the product of what it stores and what it receives. The factor is
    /// the square of the number of contents divided by the largest such product. 0 if there are no contents.
    #[must_use]
    pub fn speed_up(&self) -> f64 {
        let contents: u64 = self.stored.iter().sum();
        let work = self.stored.iter().zip(&self.received).map(|(stored, received)| stored * received);
        work.max().filter(|most| *most > 0).map_or(0.0, |most| (contents * contents) as f64 / most as f64)
    }

    /// The share of fan-out saved, compared to searching every content in every partition, 0 to 1.
    #[must_use]
    pub fn fan_out_saved(&self) -> f64 {
        fan_out_saved(self.stored.iter().sum(), self.received.iter().sum(), self.received.len())
            .unwrap_or(0.0)
    }
}

/// The share of fan-out that was saved, compared to sending each of the `searches` to all `parts` parts.
/// `None` if there were no searches.
#[must_use]
pub fn fan_out_saved(searches: u64, fan_out: u64, parts: usize) -> Option<f64> {
    let broadcast = searches as f64 * parts as f64;
    (broadcast > 0.0).then(|| 1.0 - fan_out as f64 / broadcast)
}

/// The maximum divided by the mean; 1 if all counts are 0.
fn imbalance(counts: &[u64]) -> f64 {
    let sum: u64 = counts.iter().sum();
    match counts.iter().max() {
        Some(max) if sum > 0 => *max as f64 * counts.len() as f64 / sum as f64,
        _ => 1.0,
    }
}
