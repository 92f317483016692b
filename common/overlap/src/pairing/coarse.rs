//! Coarse counting (section 2.2 of Shivakumar and Garcia-Molina, 1998), after Fang and others, *Computing
//! Iceberg Queries Efficiently*, VLDB 1998.
//!
//! 1. A scan hashes every pair to a bucket and counts each pair once for every fingerprint that the pair
//!    shares. A bitmap marks the *heavy* buckets, whose count reaches the minimum number of shared
//!    fingerprints. A bitmap *passes* the pairs in its heavy buckets. Further scans with other hash functions
//!    count only the pairs that all earlier bitmaps pass. The pairs that pass all bitmaps are a superset of
//!    the wanted pairs.
//! 2. A scan collects the pairs that pass all bitmaps as candidates, each once.
//! 3. A scan counts the candidates exactly. If the candidates do not fit into memory, each of several scans
//!    counts a part of them.
//!
//! The number of counters and of hash functions changes only the running time, not the result. Shivakumar and
//! Garcia-Molina leave the choice open. This implementation chooses by a pilot sample (`pilot`).

use crate::budget::Budget;
use crate::error::OverlapError;
use crate::external_sort::sorter::Sorter;
use crate::pairing::counters::{BucketCounters, FUNCTIONS_MAX, Filter};
use crate::pairing::method::{CoarseParameters, PairSink, PairingStatistics};
use crate::pairing::pair_source::{PairSource, unpack_pair};
use crate::pairing::pilot;
use crate::pairing::recount::{CANDIDATE_BYTES, Recount};

/// Minimum number of counters, as a base-2 logarithm. The minimum holds even if memory is too small for it.
const LOG2_MIN: u32 = 6;

/// Maximum number of counters, as a base-2 logarithm. Each counter takes one byte, so the counters take at
/// most 1 TiB.
const LOG2_MAX: u32 = 40;

/// The base-2 logarithm of the largest number of counters for `room` bytes of memory, from [`LOG2_MIN`] to
/// [`LOG2_MAX`]. The counters of one byte each take at most half of the memory, whatever the number of hash
/// functions. Each of at most four hash functions ([`FUNCTIONS_MAX`]) has a bitmap of an eighth of the bytes
/// of the counters. The bitmaps thus take at most a quarter of the memory, and at least a quarter remains for
/// candidates.
fn max_counters_log2(room: u64) -> u32 {
    (room / 2).checked_ilog2().unwrap_or(0).clamp(LOG2_MIN, LOG2_MAX)
}

/// Passes each pair that shares at least `min_shared` fingerprints to `sink`, in ascending order. If
/// `parameters` is `None`, a pilot sample chooses the parameters.
pub(crate) fn pairs(
    source: PairSource<'_>,
    min_shared: u8,
    parameters: Option<CoarseParameters>,
    budget: &Budget,
    sink: &mut PairSink<'_>,
) -> Result<PairingStatistics, OverlapError> {
    let room = budget.free().saturating_sub(source.sorted.scan_bytes());
    let (mut work, log2_max) = (PairingStatistics::default(), max_counters_log2(room));
    let parameters = match parameters {
        Some(parameters) => parameters,
        None => {
            let (estimate, scans) = pilot::estimate(source, min_shared, room / 4, budget)?;
            work.scans = scans;
            pilot::choose(&estimate, LOG2_MIN.max(pilot::LOG2_TRIED_MIN.min(log2_max))..=log2_max)
        }
    };
    let counters_log2 = parameters.counters_log2.clamp(LOG2_MIN, log2_max);
    let functions = parameters.functions.clamp(1, FUNCTIONS_MAX);
    (work.counters, work.functions) = (1 << counters_log2, functions);
    let mut filters: Vec<Filter> = Vec::new();
    for function in 0..functions {
        let mut counters = BucketCounters::new(function, counters_log2, budget)?;
        let mut occurrences = 0;
        source.pairs(|pair| {
            occurrences += 1;
            if passes(&filters, pair) {
                counters.add(pair);
            }
            Ok(())
        })?;
        filters.push(counters.heavy(min_shared, budget)?);
        work.occurrences = occurrences;
    }
    let candidates = candidates(source, &filters, budget)?;
    work.scans += functions + 1;
    // The scan over all candidates stays open while each part of them is counted.
    let mut scan = candidates.scan()?;
    let free = budget.free().saturating_sub(source.sorted.scan_bytes());
    let part_max = ((free / CANDIDATE_BYTES) as usize).clamp(1, 1 << 30);
    loop {
        let mut part = Vec::with_capacity(part_max.min(candidates.len() as usize));
        while part.len() < part_max
            && let Some(pair) = scan.next()?
        {
            part.push(pair);
        }
        let (Some(first), Some(last)) = (part.first().copied(), part.last().copied()) else { break };
        work.candidates += part.len() as u64;
        let mut recount = Recount::new(part, budget)?;
        source.pairs(|pair| {
            if (first..=last).contains(&pair) && passes(&filters, pair) {
                recount.add(pair);
            }
            Ok(())
        })?;
        work.scans += 1;
        for (pair, shared) in recount.counted().filter(|(_, shared)| *shared >= u32::from(min_shared)) {
            work.pairs += 1;
            let (a, b) = unpack_pair(pair);
            sink(a, b, shared)?;
        }
    }
    Ok(work)
}

fn passes(filters: &[Filter], pair: u64) -> bool {
    filters.iter().all(|filter| filter.passes(pair))
}

/// Collects the pairs that pass all filters, and sorts them. A scan of the result passes each pair once.
fn candidates(
    source: PairSource<'_>,
    filters: &[Filter],
    budget: &Budget,
) -> Result<crate::external_sort::sorted::Sorted<u64>, OverlapError> {
    let room = budget.free().saturating_sub(source.sorted.scan_bytes());
    // The rest of the memory is for the recount.
    let mut candidates = Sorter::new(budget, room / 3, true)?;
    source.pairs(|pair| if passes(filters, pair) { candidates.push(pair) } else { Ok(()) })?;
    candidates.finish()
}
