//! Answers many queries at once: builds tables of the queries, and scans the stored fingerprints once (Manku
//! et al., section 3.3).
//!
//! A block of stored fingerprints passes through one table after another. Each table filters out most of the
//! block, and looks up the others among the queries with equal leading bits. Threads scan chunks in parallel.
//! The pairs are sorted at the end, so the result does not depend on the number of threads.
//!
//! Invariant: each pair of a query and a stored fingerprint within the distance is reported exactly once.

mod arrangement;
mod quarters;
mod query_table;

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::compressed::CompressedFingerprints;
use crate::design::Design;
use crate::error::HammingError;
use crate::limits::QUERIES_MAX;
use arrangement::{Arrangement, TableGroup, groups};
use quarters::{PassedQuarters, Quarters};
use query_table::{BLOCK, BucketRanges, LARGE_BATCH, QueryTable};

/// Number of stored fingerprints that one task of a parallel scan processes.
const CHUNK: usize = 1 << 18;
/// Like [`CHUNK`], but for a scan that rearranges its chunks. Rearranging pays off more in larger chunks.
const CHUNK_ARRANGED: usize = 1 << 21;
/// Number of compressed blocks that one task processes. It is computed as if a block held 256 fingerprints. A
/// block holds more than 128 fingerprints, unless there are few fingerprints.
const BLOCKS: usize = CHUNK / 256;
/// Like [`BLOCKS`], but for a scan that rearranges its chunks.
const BLOCKS_ARRANGED: usize = CHUNK_ARRANGED / 256;

/// A query and a stored fingerprint within the distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct NearPair {
    /// Index of the query in the batch.
    pub query: u32,
    /// Index of the stored fingerprint in the input of the scan.
    pub stored: u64,
}

/// Queries that one scan answers together.
#[derive(Debug)]
pub struct QueryBatch {
    design: Design,
    tables: Vec<QueryTable>,
    quarters: Option<Quarters>,
    /// Groups of tables. A scan rearranges its chunks once for each group. `None` if the tables fit into the
    /// cache, or a table has too few adjacent leading bits.
    groups: Option<Vec<TableGroup>>,
}

impl QueryBatch {
    /// Creates a batch with a design that suits the number of queries. Returns an error if the width, the
    /// distance, or a query is out of range, or if there are too many queries.
    pub fn new(width: u32, distance: u32, queries: &[u64]) -> Result<Self, HammingError> {
        // A bitmap must separate the queries from other fingerprints. That takes two leading bits more than
        // the base-2 logarithm of the number of queries.
        let wanted = queries.len().max(1).ilog2() + 2;
        let designs = (0..=wanted.min(width)).rev().map(|leading| Design::optimal(width, distance, leading));
        let fallback = || Design::new(width, distance, &[]);
        Self::with_design(designs.flatten().next().map_or_else(fallback, Ok)?, queries)
    }

    /// Creates a batch with a given design. Returns an error if a query is out of range, or if there are too
    /// many queries.
    pub fn with_design(design: Design, queries: &[u64]) -> Result<Self, HammingError> {
        if queries.len() > QUERIES_MAX {
            return Err(HammingError::Queries);
        }
        queries.iter().try_for_each(|&query| design.check(query))?;
        let groups = if queries.len() < LARGE_BATCH { None } else { groups(&design) };
        let quarters = if groups.is_none() { Quarters::new(&design, queries) } else { None };
        let piece =
            |number: usize| groups.iter().flatten().find(|g| g.tables.contains(&number)).map(|g| g.shift);
        let table = |(number, layout)| QueryTable::new(layout, queries, piece(number));
        let tables = design.layouts().par_iter().enumerate().map(table).collect();
        Ok(Self { design, tables, quarters, groups })
    }

    /// The design of the tables.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// Finds all pairs of a query and a fingerprint in `stored` within the distance, in sorted order. Scans
    /// in parallel on the rayon thread pool. Returns an error if there are more than `limit` pairs.
    pub fn scan(&self, stored: &[u64], limit: usize) -> Result<Vec<NearPair>, HammingError> {
        let size = if self.groups.is_some() { CHUNK_ARRANGED } else { CHUNK };
        let chunks: Vec<usize> = (0..stored.len()).step_by(size).collect();
        self.scan_chunks(chunks, limit, |scanner, start| {
            scanner.scan(&stored[start..stored.len().min(start + size)], start as u64);
        })
    }

    /// Like [`scan`](Self::scan), but takes compressed fingerprints. [`NearPair::stored`] is the index of a
    /// fingerprint in the compressed sequence.
    pub fn scan_compressed(
        &self,
        stored: &CompressedFingerprints,
        limit: usize,
    ) -> Result<Vec<NearPair>, HammingError> {
        // Without rearranging, each slice is scanned right after it is decoded, while it is still in the
        // cache.
        let (blocks, slice) =
            if self.groups.is_some() { (BLOCKS_ARRANGED, usize::MAX) } else { (BLOCKS, 2 * BLOCK) };
        let chunks: Vec<usize> = (0..stored.blocks()).step_by(blocks).collect();
        self.scan_chunks(chunks, limit, |scanner, start| {
            let mut decoded = Vec::new();
            let (end, mut first) = (stored.blocks().min(start + blocks), stored.block_start(start));
            for block in start..end {
                stored.decode_block(block, &mut decoded);
                if decoded.len() >= slice || block + 1 == end {
                    scanner.scan(&decoded, first as u64);
                    first += decoded.len();
                    decoded.clear();
                }
            }
        })
    }

    fn scan_chunks(
        &self,
        chunks: Vec<usize>,
        limit: usize,
        scan: impl Fn(&mut Scanner<'_>, usize) + Sync,
    ) -> Result<Vec<NearPair>, HammingError> {
        let pair_count = AtomicUsize::new(0);
        let too_many = || HammingError::Pairs { limit };
        let scan_chunk = |start| {
            let mut scanner = Scanner { batch: self, pair_count: &pair_count, limit, pairs: Vec::new() };
            scan(&mut scanner, start);
            if pair_count.load(Ordering::Relaxed) > limit { Err(too_many()) } else { Ok(scanner.pairs) }
        };
        let pairs: Vec<Vec<NearPair>> = chunks.into_par_iter().map(scan_chunk).collect::<Result<_, _>>()?;
        let mut pairs = pairs.concat();
        pairs.par_sort_unstable();
        Ok(pairs)
    }
}

/// Collects the pairs of one chunk of stored fingerprints.
struct Scanner<'a> {
    batch: &'a QueryBatch,
    /// Number of pairs that all chunks have found so far.
    pair_count: &'a AtomicUsize,
    limit: usize,
    pairs: Vec<NearPair>,
}

impl Scanner<'_> {
    /// Collects the pairs of `stored`: a chunk, or a part of it. `start` is the index of the first
    /// fingerprint among all stored fingerprints. Stops early when all chunks together exceed the limit.
    fn scan(&mut self, stored: &[u64], start: u64) {
        match &self.batch.groups {
            Some(groups) => self.scan_arranged(groups, stored, start),
            None => self.scan_in_order(stored, start),
        }
    }

    fn scan_in_order(&mut self, stored: &[u64], start: u64) {
        let QueryBatch { tables, quarters, .. } = self.batch;
        let (mut passed, mut passed_quarters) = ([0; BLOCK], PassedQuarters::default());
        let mut ranges = BucketRanges::default();
        for (number, block) in stored.chunks(BLOCK).enumerate() {
            let start = start + (number * BLOCK) as u64;
            if let Some(quarters) = quarters {
                quarters.filter(block, &mut passed_quarters);
            }
            for (number, table) in tables.iter().enumerate() {
                let passed = match quarters {
                    Some(_) => passed_quarters.for_table(number),
                    None => table.filter(block, &mut passed),
                };
                if !self.look_up(number, block, passed, &mut ranges, |at| start + u64::from(at)) {
                    return;
                }
            }
        }
    }

    fn scan_arranged(&mut self, groups: &[TableGroup], stored: &[u64], start: u64) {
        let (mut passed, mut ranges) = ([0; BLOCK], BucketRanges::default());
        let mut arrangement = Arrangement::default();
        for group in groups {
            arrangement.arrange(stored, group.shift);
            for (part, positions) in arrangement.parts() {
                for &number in &group.tables {
                    for (block, positions) in part.chunks(BLOCK).zip(positions.chunks(BLOCK)) {
                        let passed = self.batch.tables[number].filter(block, &mut passed);
                        let index = |at: u16| start + u64::from(positions[usize::from(at)]);
                        if !self.look_up(number, block, passed, &mut ranges, index) {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Collects the pairs that the table `number` finds in a block, except the pairs that an earlier table
    /// finds. Returns false if there are too many pairs.
    #[inline]
    fn look_up(
        &mut self,
        number: usize,
        block: &[u64],
        passed: &[u16],
        ranges: &mut BucketRanges,
        stored: impl Fn(u16) -> u64,
    ) -> bool {
        let (QueryBatch { design, tables, .. }, before) = (self.batch, self.pairs.len());
        let within_limit =
            tables[number].look_up(block, passed, design.distance(), ranges, |at, query, difference| {
                if design.is_first(number, difference) {
                    self.pairs.push(NearPair { query, stored: stored(at) });
                }
                self.pairs.len() <= self.limit
            });
        let found = self.pairs.len() - before;
        // The limit applies to all chunks together.
        found == 0
            || (self.pair_count.fetch_add(found, Ordering::Relaxed) + found <= self.limit && within_limit)
    }
}
