//! Runs one of the two pairing methods and measures time, memory, and disk space.

use std::time::Instant;

use crate::source::Source;
use crate::way::{PairSink, Way, Work};
use crate::{Budget, OverlapError, by_sort, coarse};

/// Passes each pair that shares at least `min_shared` fingerprints to `sink`. Pairs ascend by the smaller
/// number, then by the greater number.
pub(crate) fn pairs(
    way: Way,
    source: Source<'_>,
    min_shared: u8,
    budget: &Budget,
    sink: &mut PairSink<'_>,
) -> Result<Work, OverlapError> {
    let begin = Instant::now();
    let _ = budget.peaks();
    let min_shared = min_shared.max(1);
    let work = match way {
        Way::Sort => Work { scans: 1, ..by_sort::pairs(source, min_shared, budget, sink)? },
        Way::Coarse(parameters) => coarse::pairs(source, min_shared, parameters, budget, sink)?,
    };
    let (memory_bytes, disk_bytes) = budget.peaks();
    Ok(Work { seconds: begin.elapsed().as_secs_f64(), memory_bytes, disk_bytes, ..work })
}
