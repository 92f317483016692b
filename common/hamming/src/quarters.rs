//! The fastest filter of a batch: four tables of 16 bits of 64, the paper's design with four tables.
//!
//! It does in one pass over a block what four [`QueryTable`](crate::query_table::QueryTable)s do in one each. The blocks of
//! bits are at known places, and their bitmaps together have 32 KiB, which fit the first cache.
//!
//! Invariant: a table gets the places of exactly the fingerprints of which a query has its 16 bits.

use crate::design::Design;
use crate::query_table::BLOCK;

/// Words of the bitmap of a quarter.
const WORDS: usize = 1 << 10;
/// Where the bits of the tables begin in a number whose lower bits are a place in a block.
const PLACE_BITS: u32 = BLOCK.ilog2();
const _: () = assert!(BLOCK.is_power_of_two() && PLACE_BITS + 4 <= u16::BITS, "a place and four bits fit");

/// The bitmaps of the four quarters, the highest first.
#[derive(Debug)]
pub(crate) struct Quarters {
    bitmaps: Box<[[u64; WORDS]; 4]>,
}

/// The places of the fingerprints that each table passed; memory that is used again.
pub(crate) struct QuartersPassed {
    any: [u16; BLOCK],
    each: [[u16; BLOCK]; 4],
    counts: [usize; 4],
}

impl Default for QuartersPassed {
    fn default() -> Self {
        Self { any: [0; BLOCK], each: [[0; BLOCK]; 4], counts: [0; 4] }
    }
}

impl QuartersPassed {
    /// The places for one table.
    pub(crate) fn of(&self, table: usize) -> &[u16] {
        &self.each[table][..self.counts[table]]
    }
}

/// The quarter of a fingerprint that leads in a table.
#[inline(always)]
fn quarter(fingerprint: u64, table: usize) -> usize {
    (fingerprint >> (48 - 16 * table) & 0xffff) as usize
}

impl Quarters {
    /// The bitmaps of the queries, if the design is that of four quarters.
    pub(crate) fn new(design: &Design, queries: &[u64]) -> Option<Self> {
        let masks = design.layouts().iter().map(crate::design::Layout::mask);
        if !masks.eq((0..4).map(|table| 0xffff << (48 - 16 * table))) {
            return None;
        }
        let mut bitmaps = Box::new([[0; WORDS]; 4]);
        for &query in queries {
            for (table, bitmap) in bitmaps.iter_mut().enumerate() {
                let value = quarter(query, table);
                bitmap[value / 64] |= 1 << (value % 64);
            }
        }
        Some(Self { bitmaps })
    }

    /// Finds what each table passes of a block.
    pub(crate) fn filter(&self, block: &[u64], passed: &mut QuartersPassed) {
        let mut some = 0;
        for (at, &fingerprint) in (0u16..).zip(block) {
            let is_set = |table: usize| {
                let value = quarter(fingerprint, table);
                (self.bitmaps[table][value / 64] >> (value % 64) & 1) as u16
            };
            let tables = is_set(0) | is_set(1) << 1 | is_set(2) << 2 | is_set(3) << 3;
            // The place is written in any case, and counts only if a bit is set.
            passed.any[some % BLOCK] = at | tables << PLACE_BITS;
            some += usize::from(tables != 0);
        }
        let mut counts = [0; 4];
        for &one in &passed.any[..some.min(BLOCK)] {
            for (table, count) in counts.iter_mut().enumerate() {
                passed.each[table][*count % BLOCK] = one % BLOCK as u16;
                *count += usize::from(one >> (PLACE_BITS + table as u32) & 1);
            }
        }
        passed.counts = counts;
    }
}
