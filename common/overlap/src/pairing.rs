//! Finds the pairs of documents, or of hosts, that share enough fingerprints, by one of the two methods of
//! Shivakumar and Garcia-Molina (1998).
//!
//! `by_sort` sorts all pairs. `coarse` counts pairs by hash bucket first. Unless the caller gives parameters,
//! `pilot` chooses them. Both methods pass the same pairs in the same order. This module runs a method and
//! measures its time, memory, and disk space.

mod by_sort;
mod coarse;
mod counters;
pub(crate) mod method;
pub(crate) mod pair_source;
mod pilot;
mod recount;

use std::time::Instant;

use crate::pairing::method::{PairSink, PairingMethod, PairingStatistics};
use crate::pairing::pair_source::PairSource;
use crate::{Budget, BudgetPeaks, OverlapError};

/// Passes each pair that shares at least `min_shared` fingerprints, but at least one, to `sink`. Pairs ascend
/// by the smaller number of the pair, then by the greater number. Returns statistics of the pairing.
pub(crate) fn pairs(
    method: PairingMethod,
    source: PairSource<'_>,
    min_shared: u8,
    budget: &Budget,
    sink: &mut PairSink<'_>,
) -> Result<PairingStatistics, OverlapError> {
    let begin = Instant::now();
    let _ = budget.peaks();
    let min_shared = min_shared.max(1);
    let work = match method {
        PairingMethod::Sort => {
            PairingStatistics { scans: 1, ..by_sort::pairs(source, min_shared, budget, sink)? }
        }
        PairingMethod::Coarse(parameters) => coarse::pairs(source, min_shared, parameters, budget, sink)?,
    };
    let BudgetPeaks { memory_bytes, disk_bytes } = budget.peaks();
    Ok(PairingStatistics { seconds: begin.elapsed().as_secs_f64(), memory_bytes, disk_bytes, ..work })
}
