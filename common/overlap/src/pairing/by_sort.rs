//! Sort-based pairing (section 2.1 of the paper). Writes each pair of documents once for every fingerprint
//! that the pair shares. After sorting, equal pairs are adjacent and can be counted.
//!
//! The number of written records grows with the square of the number of documents that share a fingerprint.

use crate::sorter::Sorter;
use crate::source::{Source, unpack_pair};
use crate::way::{PairSink, Work};
use crate::{Budget, OverlapError};

/// Passes each pair that shares at least `min_shared` fingerprints to `sink`, in ascending order.
pub(crate) fn pairs(
    source: Source<'_>,
    min_shared: u8,
    budget: &Budget,
    sink: &mut PairSink<'_>,
) -> Result<Work, OverlapError> {
    let mut work = Work::default();
    let room = budget.free().saturating_sub(source.sorted.scan_bytes());
    let mut sorter = Sorter::new(budget, room, false)?;
    source.pairs(|pair| {
        work.occurrences += 1;
        sorter.push(pair)
    })?;
    let sorted = sorter.finish()?;
    sorted.scan()?.counted(|pair, shared| {
        work.candidates += 1;
        if shared >= u32::from(min_shared) {
            work.pairs += 1;
            let (a, b) = unpack_pair(pair);
            sink(a, b, shared)?;
        }
        Ok(())
    })?;
    Ok(work)
}
