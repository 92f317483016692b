//! How evenly a map spreads a collection, and what it saves in communication.

use serde::{Deserialize, Serialize};

use doppel_model::stable_hash64;

/// What a map makes of some contents.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MappingLoad {
    /// Contents stored in each partition.
    pub stored: Vec<u64>,
    /// Contents received for comparison by each partition.
    pub received: Vec<u64>,
}

impl MappingLoad {
    /// So many contents dealt to `parts` at random, always in the same way: the imbalance of that is chance alone, the
    /// noise floor of a map's.
    #[must_use]
    pub fn at_random(parts: usize, contents: u64) -> Self {
        Self::dealt(parts, (0..contents).map(|number| stable_hash64(&number.to_le_bytes())))
    }

    /// Contents dealt to `parts` by hashes of theirs.
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

    /// Largest over mean number of contents per partition; 1 is even, and 1 where there are none.
    #[must_use]
    pub fn imbalance(&self) -> f64 {
        imbalance(&self.stored)
    }

    /// How many times less than all pairs the busiest has to compare, if everything it receives is compared with
    /// everything it has: contents squared over the largest product of stored and received. 0 where there are none.
    #[must_use]
    pub fn speed_up(&self) -> f64 {
        let contents: u64 = self.stored.iter().sum();
        let work = self.stored.iter().zip(&self.received).map(|(stored, received)| stored * received);
        work.max().filter(|most| *most > 0).map_or(0.0, |most| (contents * contents) as f64 / most as f64)
    }

    /// Share of fan-out saved against comparing every content in every partition, 0 to 1.
    #[must_use]
    pub fn fan_out_saved(&self) -> f64 {
        fan_out_saved(self.stored.iter().sum(), self.received.iter().sum(), self.received.len())
            .unwrap_or(0.0)
    }
}

/// Share of fan-out saved by so many searches against sending each of them to all of so many parts; none without
/// searches.
#[must_use]
pub fn fan_out_saved(searches: u64, fan_out: u64, parts: usize) -> Option<f64> {
    let broadcast = searches as f64 * parts as f64;
    (broadcast > 0.0).then(|| 1.0 - fan_out as f64 / broadcast)
}

/// Largest over mean; 1 where there is nothing.
fn imbalance(counts: &[u64]) -> f64 {
    let sum: u64 = counts.iter().sum();
    match counts.iter().max() {
        Some(max) if sum > 0 => *max as f64 * counts.len() as f64 / sum as f64,
        _ => 1.0,
    }
}
