//! The queries of a batch, indexed by their leading bits in one layout.
//!
//! A bitmap marks the hashes of the leading bits of all queries. It filters a block of fingerprints and
//! passes few of them. A branch-free loop writes the positions of the passed fingerprints to a list. Only
//! these fingerprints read the queries in their bucket. All of these reads start before the first one is
//! awaited, because the queries may not fit into the cache.
//!
//! Invariant: a fingerprint that shares the leading bits of a query passes the filter, and its bucket
//! contains that query.

use std::hint::black_box;

use crate::batch::arrangement::{PIECE_BITS, piece};
use crate::design::TableLayout;

/// Number of stored fingerprints that pass through all tables together.
pub(crate) const BLOCK: usize = 1024;
/// Base-2 logarithm of the number of bitmap bits per query. At most an eighth of the bitmap is set. If the
/// leading bits are few enough to index the bitmap themselves, the bitmap can be smaller.
const BITMAP_BITS_LOG2: u32 = 3;
/// Like [`BITMAP_BITS_LOG2`], but for a bitmap that does not fit into the second-level cache. For such a
/// bitmap, a false positive costs more time than a larger bitmap does.
const BITMAP_BITS_LOG2_LARGE: u32 = 4;
/// Minimum number of queries in a large batch, whose tables do not fit into the cache.
pub(crate) const LARGE_BATCH: usize = 1 << 16;
/// An odd multiplier for multiply-shift hashing (Dietzfelbinger et al., 1997). The product spreads the
/// leading bits.
const HASH_MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;

/// The buckets of the passed fingerprints of a block, as ranges of queries. The memory is reused for the next
/// block.
pub(crate) struct BucketRanges([(u32, u32); BLOCK]);

impl Default for BucketRanges {
    fn default() -> Self {
        Self([(0, 0); BLOCK])
    }
}

/// The queries of a batch, sorted by the hash of their leading bits in one layout. See the module
/// documentation.
#[derive(Debug)]
pub(crate) struct QueryTable {
    mask: u64,
    rotation: u32,
    multiplier: u64,
    /// Position of the lowest bit of the *piece*, the bits by which the scan reorders the stored
    /// fingerprints. If set, the piece forms the most significant bits of the hash.
    piece: Option<u32>,
    /// A hash is shifted right by this number of bits to index the bitmap.
    bitmap_shift: u32,
    bitmap: Vec<u64>,
    /// A hash is shifted right by this number of bits to index the buckets. The index of a bucket has at most
    /// as many bits as an index into the bitmap.
    bucket_shift: u32,
    /// Index of the first query of each bucket.
    starts: Vec<u32>,
    queries: Vec<u64>,
    /// Index of each query in the batch.
    numbers: Vec<u32>,
}

impl QueryTable {
    /// Creates the table of at most `QUERIES_MAX` queries that have the width of the design. `piece` is the
    /// position of the lowest bit of the piece by which the scan reorders the stored fingerprints.
    pub(crate) fn new(layout: &TableLayout, queries: &[u64], piece: Option<u32>) -> Self {
        let log = queries.len().max(1).next_power_of_two().ilog2();
        let wanted = (log
            + if queries.len() < LARGE_BATCH { BITMAP_BITS_LOG2 } else { BITMAP_BITS_LOG2_LARGE })
        .max(6);
        // If the leading bits are few and rotate together, they are their own hash.
        let own_hash = layout.permutation().rotation_of(layout.mask()).filter(|_| layout.leading() <= wanted);
        let own_hash = own_hash.filter(|_| piece.is_none());
        let (rotation, multiplier, bitmap_bits) = match own_hash {
            Some(rotation) => (rotation, 1, layout.leading().max(6)),
            None => (0, HASH_MULTIPLIER, wanted),
        };
        // Use twice as many buckets as queries, so that few buckets have two queries. If the buckets do not
        // fit into the cache, use as many buckets as queries.
        let bucket_bits = (log + u32::from(piece.is_none())).min(bitmap_bits).max(1);
        let mut table = Self {
            mask: layout.mask(),
            rotation,
            multiplier,
            piece,
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
        let hash = (fingerprint & self.mask).rotate_left(self.rotation).wrapping_mul(self.multiplier);
        match self.piece {
            Some(shift) => (piece(fingerprint, shift) as u64) << (64 - PIECE_BITS) | hash >> PIECE_BITS,
            None => hash,
        }
    }

    /// Returns the positions in the block of all fingerprints that may share the leading bits of a query.
    pub(crate) fn filter<'a>(&self, block: &[u64], passed: &'a mut [u16; BLOCK]) -> &'a [u16] {
        let (bitmap, last) = (&self.bitmap[..], self.bitmap.len() - 1);
        let mut count = 0;
        for (at, &fingerprint) in (0u16..).zip(block) {
            let bit = self.hash(fingerprint) >> self.bitmap_shift;
            // Always write the position, but only keep it if the bit is set. This avoids a branch.
            passed[count % BLOCK] = at;
            count += (bitmap[(bit >> 6) as usize & last] >> (bit & 63) & 1) as usize;
        }
        &passed[..count.min(BLOCK)]
    }

    /// Compares the passed fingerprints of a block with the queries in their buckets. Calls `hit` for each
    /// pair within `distance`, until `hit` returns false. Then this function returns false, too.
    ///
    /// `hit` receives the position of the fingerprint in the block, the index of the query in the batch, and
    /// the XOR of the fingerprint and the query. The XOR may include leading bits, because a bucket can
    /// contain queries with several values of the leading bits.
    pub(crate) fn look_up(
        &self,
        block: &[u64],
        passed: &[u16],
        distance: u32,
        ranges: &mut BucketRanges,
        mut hit: impl FnMut(u16, u32, u64) -> bool,
    ) -> bool {
        for (range, &at) in ranges.0.iter_mut().zip(passed) {
            let bucket = (self.hash(block[usize::from(at)]) >> self.bucket_shift) as usize;
            *range = (self.starts[bucket], self.starts[bucket + 1]);
        }
        let ranges = &ranges.0[..passed.len()];
        let first = |&(start, _): &(u32, u32)| self.queries.get(start as usize).copied().unwrap_or(0);
        black_box(ranges.iter().map(first).fold(0, |touched, query| touched ^ query));
        for (&(start, end), &at) in ranges.iter().zip(passed) {
            let fingerprint = block[usize::from(at)];
            for (number, query) in (start..).zip(&self.queries[start as usize..end as usize]) {
                let difference = query ^ fingerprint;
                if difference.count_ones() <= distance && !hit(at, self.numbers[number as usize], difference)
                {
                    return false;
                }
            }
        }
        true
    }
}
