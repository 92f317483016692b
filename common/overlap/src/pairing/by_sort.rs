//! Sort-based pairing (section 2.1 of Shivakumar and Garcia-Molina, 1998). Writes each pair of documents or
//! hosts once for every fingerprint that the pair shares. After sorting, equal pairs are adjacent and can be
//! counted.
//!
//! The number of written records grows with the square of the number of documents or hosts that share a
//! fingerprint.

use crate::budget::Budget;
use crate::error::OverlapError;
use crate::external_sort::sorter::Sorter;
use crate::pairing::method::{PairSink, PairingStatistics};
use crate::pairing::pair_source::{PairSource, unpack_pair};

/// Passes each pair that shares at least `min_shared` fingerprints to `sink`, in ascending order.
pub(crate) fn pairs(
    source: PairSource<'_>,
    min_shared: u8,
    budget: &Budget,
    sink: &mut PairSink<'_>,
) -> Result<PairingStatistics, OverlapError> {
    let mut work = PairingStatistics::default();
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
