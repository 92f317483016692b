//! Many queries at once: tables of the queries, and one scan of what is stored (Manku et al., section 3.3).
//!
//! For each table a bitmap has the values that its leading bits take among the queries, by themselves or hashed. A block
//! of stored fingerprints goes through one table after the other. The bitmap, which fits the cache, passes few of them,
//! and their places are written to a list without a branch. Only these are looked up among the queries with the same
//! leading bits. A scan of chunks in parallel gives the same pairs, in the same order.
//!
//! Invariant: each query and stored fingerprint within the distance are a pair, and each pair is reported once.

use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::prelude::*;

use crate::compressed::Compressed;
use crate::design::{Design, Layout};
use crate::error::HammingError;
use crate::limits::QUERIES_MAX;

/// Stored fingerprints that go through all tables together.
const BLOCK: usize = 2048;
/// Stored fingerprints of one task of a parallel scan.
const CHUNK: usize = 1 << 18;
/// Bits of the bitmap for each query, as a logarithm: an eighth of the bitmap is set, or less.
const SPARSE: u32 = 3;
/// An odd multiplier whose product spreads the leading bits (multiply-shift hashing; Dietzfelbinger et al., 1997).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

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
        let tables = design.layouts().par_iter().map(|layout| QueryTable::new(layout, queries)).collect();
        Ok(Self { design, tables })
    }

    /// The design.
    #[must_use]
    pub fn design(&self) -> &Design {
        &self.design
    }

    /// All pairs with stored fingerprints, sorted, with the threads of rayon; fails if there are more than `limit`.
    pub fn scan(&self, stored: &[u64], limit: usize) -> Result<Vec<Pair>, HammingError> {
        let chunks: Vec<usize> = (0..stored.len()).step_by(CHUNK).collect();
        self.scan_chunks(chunks, limit, |scanner, start| {
            scanner.scan(&stored[start..stored.len().min(start + CHUNK)], start as u64);
        })
    }

    /// The same with compressed fingerprints, each at its place in their order.
    pub fn scan_compressed(&self, stored: &Compressed, limit: usize) -> Result<Vec<Pair>, HammingError> {
        // A block holds between 128 and a few thousand fingerprints.
        const BLOCKS: usize = 512;
        let chunks: Vec<usize> = (0..stored.blocks()).step_by(BLOCKS).collect();
        self.scan_chunks(chunks, limit, |scanner, start| {
            let mut decoded = Vec::with_capacity(2 * BLOCK);
            let (end, mut first) = (stored.blocks().min(start + BLOCKS), stored.block_start(start));
            for block in start..end {
                stored.decode_block(block, &mut decoded);
                if decoded.len() >= BLOCK || block + 1 == end {
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
    fn scan(&mut self, stored: &[u64], start: u64) {
        let mut passed = [0u16; BLOCK];
        for (number, block) in stored.chunks(BLOCK).enumerate() {
            let (start, before) = (start + (number * BLOCK) as u64, self.pairs.len());
            for (number, table) in self.batch.tables.iter().enumerate() {
                for &at in table.filter(block, &mut passed) {
                    if !self.look_up(number, table, block[usize::from(at)], start + u64::from(at)) {
                        return;
                    }
                }
            }
            let found = self.pairs.len() - before;
            if found > 0 && self.found.fetch_add(found, Ordering::Relaxed) + found > self.limit {
                return;
            }
        }
    }

    /// Collects the pairs that this table finds first; false if they are too many.
    #[inline]
    fn look_up(&mut self, number: usize, table: &QueryTable, fingerprint: u64, stored: u64) -> bool {
        let design = &self.batch.design;
        for at in table.same_bucket(fingerprint) {
            let difference = table.queries[at] ^ fingerprint;
            if difference.count_ones() <= design.distance() && design.is_first(number, difference) {
                self.pairs.push(Pair { query: table.numbers[at], stored });
                if self.pairs.len() > self.limit {
                    self.found.fetch_add(self.pairs.len(), Ordering::Relaxed);
                    return false;
                }
            }
        }
        true
    }
}

/// The queries by their leading bits in one layout.
#[derive(Debug)]
struct QueryTable {
    mask: u64,
    rotation: u32,
    multiplier: u64,
    /// The top bits of a hash are a bit of the bitmap, and fewer of them are a bucket.
    bitmap_shift: u32,
    bitmap: Vec<u64>,
    bucket_shift: u32,
    /// Where the queries of each bucket begin.
    starts: Vec<u32>,
    queries: Vec<u64>,
    numbers: Vec<u32>,
}

impl QueryTable {
    fn new(layout: &Layout, queries: &[u64]) -> Self {
        let log = queries.len().max(1).next_power_of_two().ilog2();
        let wanted = (log + SPARSE).max(6);
        // Leading bits that move together and are few are their own hash.
        let itself = layout.permutation().rotation_of(layout.mask()).filter(|_| layout.leading() <= wanted);
        let (rotation, multiplier, bitmap_bits) = match itself {
            Some(rotation) => (rotation, 1, layout.leading().max(6)),
            None => (0, SPREAD, wanted),
        };
        let bucket_bits = log.min(bitmap_bits).max(1);
        let mut table = Self {
            mask: layout.mask(),
            rotation,
            multiplier,
            bitmap_shift: 64 - bitmap_bits,
            bitmap: vec![0; 1 << (bitmap_bits - 6)],
            bucket_shift: 64 - bucket_bits,
            starts: vec![0; (1 << bucket_bits) + 1],
            queries: Vec::with_capacity(queries.len()),
            numbers: Vec::with_capacity(queries.len()),
        };
        let mut sorted: Vec<(u64, u32)> = queries.iter().map(|&query| table.hash(query)).zip(0..).collect();
        sorted.sort_unstable();
        for &(hash, number) in &sorted {
            let bit = hash >> table.bitmap_shift;
            table.bitmap[(bit >> 6) as usize] |= 1 << (bit & 63);
            table.starts[(hash >> table.bucket_shift) as usize + 1] += 1;
            table.queries.push(queries[number as usize]);
            table.numbers.push(number);
        }
        let mut sum = 0;
        for start in &mut table.starts {
            sum += *start;
            *start = sum;
        }
        table
    }

    #[inline]
    fn hash(&self, fingerprint: u64) -> u64 {
        (fingerprint & self.mask).rotate_left(self.rotation).wrapping_mul(self.multiplier)
    }

    /// The places of a block's fingerprints whose leading bits a query may have.
    #[inline]
    fn filter<'a>(&self, block: &[u64], passed: &'a mut [u16; BLOCK]) -> &'a [u16] {
        let (bitmap, last) = (&self.bitmap[..], self.bitmap.len() - 1);
        let mut count = 0;
        for (at, &fingerprint) in (0u16..).zip(block) {
            let bit = self.hash(fingerprint) >> self.bitmap_shift;
            // The place is written in any case, and counts only if the bit is set.
            passed[count % BLOCK] = at;
            count += (bitmap[(bit >> 6) as usize & last] >> (bit & 63) & 1) as usize;
        }
        &passed[..count.min(BLOCK)]
    }

    /// The places of the queries of a fingerprint's bucket.
    #[inline]
    fn same_bucket(&self, fingerprint: u64) -> std::ops::Range<usize> {
        let bucket = (self.hash(fingerprint) >> self.bucket_shift) as usize;
        self.starts[bucket] as usize..self.starts[bucket + 1] as usize
    }
}
