//! Many queries at once: tables of the queries, and one scan of what is stored (Manku et al., section 3.3).
//!
//! A block of stored fingerprints goes through one table after the other, each of which passes few of them, and looks
//! these up among the queries with the same leading bits. Chunks are scanned in parallel, and the pairs are sorted, so
//! that threads do not matter.
//!
//! Invariant: each query and stored fingerprint within the distance are a pair, and each pair is reported once.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::arrangement::{Arrangement, Group, groups};
use crate::compressed::Compressed;
use crate::design::Design;
use crate::error::HammingError;
use crate::limits::QUERIES_MAX;
use crate::quarters::{Quarters, QuartersPassed};
use crate::query_table::{BLOCK, LARGE, Places, QueryTable};

/// Stored fingerprints of one task of a parallel scan.
const CHUNK: usize = 1 << 18;
/// The same if they are arranged, which pays the more, the more there are.
const CHUNK_ARRANGED: usize = 1 << 21;
/// Compressed blocks of a task. A block holds more than 128 fingerprints, or they are few.
const BLOCKS: usize = CHUNK / 256;
const BLOCKS_ARRANGED: usize = CHUNK_ARRANGED / 256;
/// A query and a stored fingerprint within the distance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// The place of the query in the batch.
    pub query: u32,
    /// The place of the fingerprint among the stored ones.
    pub stored: u64,
}

/// Queries that are answered together.
#[derive(Debug)]
pub struct Batch {
    design: Design,
    tables: Vec<QueryTable>,
    quarters: Option<Quarters>,
    /// If the tables are larger than the cache.
    groups: Option<Vec<Group>>,
}

impl Batch {
    /// A batch with the design that suits its number of queries.
    pub fn new(width: u32, distance: u32, queries: &[u64]) -> Result<Self, HammingError> {
        // A bitmap must be able to tell the queries from others: a few more leading bits than there are of queries.
        let enough = queries.len().max(1).ilog2() + 2;
        let designs = (0..=enough.min(width)).rev().map(|leading| Design::optimal(width, distance, leading));
        let fallback = || Design::new(width, distance, &[]);
        Self::with_design(designs.flatten().next().map_or_else(fallback, Ok)?, queries)
    }

    /// A batch with a given design.
    pub fn with_design(design: Design, queries: &[u64]) -> Result<Self, HammingError> {
        if queries.len() > QUERIES_MAX {
            return Err(HammingError::Queries);
        }
        queries.iter().try_for_each(|&query| design.check(query))?;
        let groups = if queries.len() < LARGE { None } else { groups(&design) };
        let quarters = if groups.is_none() { Quarters::new(&design, queries) } else { None };
        let piece =
            |number: usize| groups.iter().flatten().find(|g| g.tables.contains(&number)).map(|g| g.shift);
        let table = |(number, layout)| QueryTable::new(layout, queries, piece(number));
        let tables = design.layouts().par_iter().enumerate().map(table).collect();
        Ok(Self { design, tables, quarters, groups })
    }

    /// The design.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// All pairs with stored fingerprints, sorted, with the threads of rayon; fails if there are more than `limit`.
    pub fn scan(&self, stored: &[u64], limit: usize) -> Result<Vec<Pair>, HammingError> {
        let size = if self.groups.is_some() { CHUNK_ARRANGED } else { CHUNK };
        let chunks: Vec<usize> = (0..stored.len()).step_by(size).collect();
        self.scan_chunks(chunks, limit, |scanner, start| {
            scanner.scan(&stored[start..stored.len().min(start + size)], start as u64);
        })
    }

    /// The same with compressed fingerprints, each at its place in their order.
    pub fn scan_compressed(&self, stored: &Compressed, limit: usize) -> Result<Vec<Pair>, HammingError> {
        // What is not arranged is scanned as soon as it is decoded, while it is in the cache.
        let (blocks, piece) =
            if self.groups.is_some() { (BLOCKS_ARRANGED, usize::MAX) } else { (BLOCKS, 2 * BLOCK) };
        let chunks: Vec<usize> = (0..stored.blocks()).step_by(blocks).collect();
        self.scan_chunks(chunks, limit, |scanner, start| {
            let mut decoded = Vec::new();
            let (end, mut first) = (stored.blocks().min(start + blocks), stored.block_start(start));
            for block in start..end {
                stored.decode_block(block, &mut decoded);
                if decoded.len() >= piece || block + 1 == end {
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
    ) -> Result<Vec<Pair>, HammingError> {
        let found = AtomicUsize::new(0);
        let too_many = || HammingError::Pairs { limit };
        let scan_chunk = |start| {
            let mut scanner = Scanner { batch: self, found: &found, limit, pairs: Vec::new() };
            scan(&mut scanner, start);
            if found.load(Ordering::Relaxed) > limit { Err(too_many()) } else { Ok(scanner.pairs) }
        };
        let pairs: Vec<Vec<Pair>> = chunks.into_par_iter().map(scan_chunk).collect::<Result<_, _>>()?;
        let mut pairs = pairs.concat();
        pairs.par_sort_unstable();
        Ok(pairs)
    }
}

/// Scans one chunk.
struct Scanner<'a> {
    batch: &'a Batch,
    /// Pairs of all chunks.
    found: &'a AtomicUsize,
    limit: usize,
    pairs: Vec<Pair>,
}

impl Scanner<'_> {
    /// Collects the pairs of a chunk, until there are too many.
    fn scan(&mut self, stored: &[u64], start: u64) {
        match &self.batch.groups {
            Some(groups) => self.scan_arranged(groups, stored, start),
            None => self.scan_in_order(stored, start),
        }
    }

    fn scan_in_order(&mut self, stored: &[u64], start: u64) {
        let Batch { tables, quarters, .. } = self.batch;
        let (mut passed, mut of_quarters) = ([0; BLOCK], QuartersPassed::default());
        let mut places = Places::default();
        for (number, block) in stored.chunks(BLOCK).enumerate() {
            let start = start + (number * BLOCK) as u64;
            if let Some(quarters) = quarters {
                quarters.filter(block, &mut of_quarters);
            }
            for (number, table) in tables.iter().enumerate() {
                let passed = match quarters {
                    Some(_) => of_quarters.of(number),
                    None => table.filter(block, &mut passed),
                };
                if !self.look_up(number, block, passed, &mut places, |at| start + u64::from(at)) {
                    return;
                }
            }
        }
    }

    fn scan_arranged(&mut self, groups: &[Group], stored: &[u64], start: u64) {
        let (mut passed, mut places) = ([0; BLOCK], Places::default());
        let mut arrangement = Arrangement::default();
        for group in groups {
            arrangement.arrange(stored, group.shift);
            for (part, at_in_chunk) in arrangement.parts() {
                for &number in &group.tables {
                    for (block, at_in_chunk) in part.chunks(BLOCK).zip(at_in_chunk.chunks(BLOCK)) {
                        let passed = self.batch.tables[number].filter(block, &mut passed);
                        let place = |at: u16| start + u64::from(at_in_chunk[usize::from(at)]);
                        if !self.look_up(number, block, passed, &mut places, place) {
                            return;
                        }
                    }
                }
            }
        }
    }

    /// Collects the pairs that a table finds first in a block; false if there are too many.
    #[inline]
    fn look_up(
        &mut self,
        number: usize,
        block: &[u64],
        passed: &[u16],
        places: &mut Places,
        stored: impl Fn(u16) -> u64,
    ) -> bool {
        let (Batch { design, tables, .. }, before) = (self.batch, self.pairs.len());
        let few =
            tables[number].look_up(block, passed, design.distance(), places, |at, query, difference| {
                if design.is_first(number, difference) {
                    self.pairs.push(Pair { query, stored: stored(at) });
                }
                self.pairs.len() <= self.limit
            });
        let found = self.pairs.len() - before;
        // What one chunk finds counts for all of them.
        found == 0 || (self.found.fetch_add(found, Ordering::Relaxed) + found <= self.limit && few)
    }
}
