//! The sort-based way, section 2.1: every pair that shares a fingerprint is written, once for each; sorted, those of a pair are
//! side by side and are counted. What is written grows with the square of how often a fingerprint comes.

use crate::sorter::Sorter;
use crate::source::{Source, parted};
use crate::way::{Each, Work};
use crate::{Budget, OverlapError};

/// Hands over the pairs that share at least so many, in order.
pub(crate) fn pairs(
    source: Source<'_>,
    least: u8,
    budget: &Budget,
    each: &mut Each<'_>,
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
        if shared >= u32::from(least) {
            work.pairs += 1;
            let (a, b) = parted(pair);
            each(a, b, shared)?;
        }
        Ok(())
    })?;
    Ok(work)
}
