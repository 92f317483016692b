//! Pairs documents in one way or the other, and measures it.

use std::time::Instant;

use crate::source::Source;
use crate::way::{Each, Way, Work};
use crate::{Budget, OverlapError, by_sort, coarse};

/// Hands over the pairs that share at least so many, ascending by the smaller number and the greater one.
pub(crate) fn pairs(
    way: Way,
    source: Source<'_>,
    least: u8,
    budget: &Budget,
    each: &mut Each<'_>,
) -> Result<Work, OverlapError> {
    let begin = Instant::now();
    let _ = budget.peaks();
    let least = least.max(1);
    let work = match way {
        Way::Sort => Work { scans: 1, ..by_sort::pairs(source, least, budget, each)? },
        Way::Coarse(parameters) => coarse::pairs(source, least, parameters, budget, each)?,
    };
    let (memory_bytes, disk_bytes) = budget.peaks();
    Ok(Work { seconds: begin.elapsed().as_secs_f64(), memory_bytes, disk_bytes, ..work })
}
