//! Coarse counting, section 2.2, after Fang and others, *Computing Iceberg Queries Efficiently*, VLDB 1998.
//!
//! 1. A scan counts pairs in buckets of a hash function; a bitmap says which buckets have enough. With another function the
//!    pairs that passed are counted again, and so on. What passes is a superset of what shares enough.
//! 2. A scan takes those that pass all bitmaps as candidates, each once.
//! 3. A scan counts the candidates exactly. If they do not fit into memory, they are counted in several scans, some in each.
//!
//! How many counters and functions there are only decides how long it takes. The paper leaves the choice open; here a pilot
//! sample makes it (`pilot`).

use crate::counters::{Counters, FUNCTIONS_MAX, Filter};
use crate::pilot;
use crate::recount::{CANDIDATE_BYTES, Recount};
use crate::sorter::Sorter;
use crate::source::{Source, parted};
use crate::way::{Each, Parameters, Work};
use crate::{Budget, OverlapError};

/// The fewest counters.
const LOG2_MIN: u32 = 6;

/// The most: enough for any memory.
const LOG2_MAX: u32 = 40;

/// The most counters, as their logarithm, in so many bytes: half of them are counters, an eighth of the counters is a bitmap for
/// each function, and at least a quarter is left to candidates.
fn most_counters(room: u64) -> u32 {
    (room / 2).checked_ilog2().unwrap_or(0).clamp(LOG2_MIN, LOG2_MAX)
}

/// Hands over the pairs that share at least so many, in order.
pub(crate) fn pairs(
    source: Source<'_>,
    least: u8,
    parameters: Option<Parameters>,
    budget: &Budget,
    each: &mut Each<'_>,
) -> Result<Work, OverlapError> {
    let room = budget.free().saturating_sub(source.sorted.scan_bytes());
    let (mut work, most) = (Work::default(), most_counters(room));
    let parameters = match parameters {
        Some(parameters) => parameters,
        None => {
            let (estimate, scans) = pilot::estimate(source, least, room / 4, budget)?;
            work.scans = scans;
            pilot::choose(&estimate, LOG2_MIN.max(pilot::LOG2_LEAST.min(most))..=most)
        }
    };
    let counters_log2 = parameters.counters_log2.clamp(LOG2_MIN, most);
    let functions = parameters.functions.clamp(1, FUNCTIONS_MAX);
    (work.counters, work.functions) = (1 << counters_log2, functions);
    let mut filters: Vec<Filter> = Vec::new();
    for function in 0..functions {
        let mut counters = Counters::new(function, counters_log2, budget)?;
        let mut occurrences = 0;
        source.pairs(|pair| {
            occurrences += 1;
            if passes(&filters, pair) {
                counters.add(pair);
            }
            Ok(())
        })?;
        filters.push(counters.heavy(least, budget)?);
        work.occurrences = occurrences;
    }
    let candidates = candidates(source, &filters, budget)?;
    work.scans += functions + 1;
    // While some are counted, the scan of all of them stays open.
    let mut scan = candidates.scan()?;
    let free = budget.free().saturating_sub(source.sorted.scan_bytes());
    let most = ((free / CANDIDATE_BYTES) as usize).clamp(1, 1 << 30);
    loop {
        let mut some = Vec::with_capacity(most.min(candidates.len() as usize));
        while some.len() < most
            && let Some(pair) = scan.next()?
        {
            some.push(pair);
        }
        let (Some(first), Some(last)) = (some.first().copied(), some.last().copied()) else { break };
        work.candidates += some.len() as u64;
        let mut recount = Recount::new(some, budget)?;
        source.pairs(|pair| {
            if (first..=last).contains(&pair) && passes(&filters, pair) {
                recount.add(pair);
            }
            Ok(())
        })?;
        work.scans += 1;
        for (pair, shared) in recount.counted().filter(|(_, shared)| *shared >= u32::from(least)) {
            work.pairs += 1;
            let (a, b) = parted(pair);
            each(a, b, shared)?;
        }
    }
    Ok(work)
}

fn passes(filters: &[Filter], pair: u64) -> bool {
    filters.iter().all(|filter| filter.passes(pair))
}

/// The pairs that pass, each once.
fn candidates(
    source: Source<'_>,
    filters: &[Filter],
    budget: &Budget,
) -> Result<crate::sorted::Sorted<u64>, OverlapError> {
    let room = budget.free().saturating_sub(source.sorted.scan_bytes());
    // The rest is for the recount.
    let mut candidates = Sorter::new(budget, room / 3, true)?;
    source.pairs(|pair| if passes(filters, pair) { candidates.push(pair) } else { Ok(()) })?;
    candidates.finish()
}
