//! The fastest filter of a batch, for the paper's design with four tables, where each table leads with 16 of
//! 64 bits.
//!
//! One pass over a block does the work of four [`QueryTable`](crate::batch::query_table::QueryTable) filters.
//! The positions of the four quarters are known at compile time. The bitmaps take 32 KiB in total, so they
//! fit into the first-level cache.
//!
//! Invariant: a table passes exactly the fingerprints whose 16 leading bits in this table equal the leading
//! bits of a query.

use crate::batch::query_table::BLOCK;
use crate::design::Design;

/// Number of 64-bit words in the bitmap of a quarter.
const WORDS: usize = 1 << 10;
/// Number of low bits of a 16-bit entry that hold a position in a block. The four bits above tell which of
/// the four tables pass the fingerprint.
const POSITION_BITS: u32 = BLOCK.ilog2();
const _: () = assert!(
    BLOCK.is_power_of_two() && POSITION_BITS + 4 <= u16::BITS,
    "a position and four bits fit into 16 bits"
);

/// For each quarter of a fingerprint, the most significant first, a bitmap of the 16-bit values that the
/// queries have in this quarter.
#[derive(Debug)]
pub(crate) struct Quarters {
    bitmaps: Box<[[u64; WORDS]; 4]>,
}

/// The positions of the fingerprints that each table passes. The memory is reused for the next block.
pub(crate) struct PassedQuarters {
    /// An entry for each fingerprint that any table passes; see [`POSITION_BITS`].
    any: [u16; BLOCK],
    by_table: [[u16; BLOCK]; 4],
    counts: [usize; 4],
}

impl Default for PassedQuarters {
    fn default() -> Self {
        Self { any: [0; BLOCK], by_table: [[0; BLOCK]; 4], counts: [0; 4] }
    }
}

impl PassedQuarters {
    /// The positions that one table passes.
    pub(crate) fn for_table(&self, table: usize) -> &[u16] {
        &self.by_table[table][..self.counts[table]]
    }
}

/// The 16 bits of a fingerprint that are its leading bits in a table, as a number.
#[inline(always)]
fn quarter(fingerprint: u64, table: usize) -> usize {
    (fingerprint >> (48 - 16 * table) & 0xffff) as usize
}

impl Quarters {
    /// Creates the bitmaps of the queries. `None` if the design does not consist of the four quarters.
    pub(crate) fn new(design: &Design, queries: &[u64]) -> Option<Self> {
        let masks = design.layouts().iter().map(crate::design::TableLayout::mask);
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

    /// Computes which fingerprints of a block each table passes.
    pub(crate) fn filter(&self, block: &[u64], passed: &mut PassedQuarters) {
        let mut passed_any = 0;
        for (at, &fingerprint) in (0u16..).zip(block) {
            let is_set = |table: usize| {
                let value = quarter(fingerprint, table);
                (self.bitmaps[table][value / 64] >> (value % 64) & 1) as u16
            };
            let tables = is_set(0) | is_set(1) << 1 | is_set(2) << 2 | is_set(3) << 3;
            // Always write the position, but only keep it if a bit is set. This avoids a branch.
            passed.any[passed_any % BLOCK] = at | tables << POSITION_BITS;
            passed_any += usize::from(tables != 0);
        }
        let mut counts = [0; 4];
        for &entry in &passed.any[..passed_any.min(BLOCK)] {
            for (table, count) in counts.iter_mut().enumerate() {
                passed.by_table[table][*count % BLOCK] = entry % BLOCK as u16;
                *count += usize::from(entry >> (POSITION_BITS + table as u32) & 1);
            }
        }
        passed.counts = counts;
    }
}
