//! The queries of a batch by their leading bits in one layout.
//!
//! A bitmap has the values that the leading bits take among the queries, hashed. Of a block of fingerprints it passes few,
//! whose places are written to a list without a branch. Only for these the queries in the same bucket are read, and the
//! reads are begun for all of them before the first is awaited, since the queries may not fit the cache.
//!
//! Invariant: a fingerprint that shares the leading bits of a query passes, and meets that query in its bucket.

use std::hint::black_box;

use crate::arrangement::{PIECE, piece};
use crate::design::Layout;

/// Stored fingerprints that go through all tables together.
pub(crate) const BLOCK: usize = 1024;
/// Bits of the bitmap for each query, as a logarithm: an eighth of the bitmap is set, or less.
const SPARSE: u32 = 3;
/// The same where bitmaps do not fit the second cache: what passes then costs more than what the bitmap does.
const SPARSE_LARGE: u32 = 4;
/// So many queries are large.
pub(crate) const LARGE: usize = 1 << 16;
/// An odd multiplier whose product spreads the leading bits (multiply-shift hashing; Dietzfelbinger et al., 1997).
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// Where the queries are that fingerprints of a block meet; memory that is used again.
pub(crate) struct Places([(u32, u32); BLOCK]);

impl Default for Places {
    fn default() -> Self {
        Self([(0, 0); BLOCK])
    }
}

/// The queries in one layout, see the module.
#[derive(Debug)]
pub(crate) struct QueryTable {
    mask: u64,
    rotation: u32,
    multiplier: u64,
    /// The bits by which stored fingerprints are arranged, if they are, are the top of the hash.
    piece: Option<u32>,
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
    /// Sorts queries of the design's width, at most `QUERIES_MAX`, for stored fingerprints that are in order of a piece.
    pub(crate) fn new(layout: &Layout, queries: &[u64], piece: Option<u32>) -> Self {
        let log = queries.len().max(1).next_power_of_two().ilog2();
        let wanted = (log + if queries.len() < LARGE { SPARSE } else { SPARSE_LARGE }).max(6);
        // Leading bits that move together and are few are their own hash.
        let itself = layout.permutation().rotation_of(layout.mask()).filter(|_| layout.leading() <= wanted);
        let itself = itself.filter(|_| piece.is_none());
        let (rotation, multiplier, bitmap_bits) = match itself {
            Some(rotation) => (rotation, 1, layout.leading().max(6)),
            None => (0, SPREAD, wanted),
        };
        // Twice as many buckets as queries, so that few have two, or as many, where they do not fit the cache.
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
            Some(shift) => (piece(fingerprint, shift) as u64) << (64 - PIECE) | hash >> PIECE,
            None => hash,
        }
    }

    /// The places in a block of the fingerprints whose leading bits a query may have.
    pub(crate) fn filter<'a>(&self, block: &[u64], passed: &'a mut [u16; BLOCK]) -> &'a [u16] {
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

    /// Calls `hit` with the place, the number of the query and the difference of each pair, until it gives false.
    ///
    /// A pair may differ in the leading bits, too, if the hash is the same.
    pub(crate) fn look_up(
        &self,
        block: &[u64],
        passed: &[u16],
        distance: u32,
        places: &mut Places,
        mut hit: impl FnMut(u16, u32, u64) -> bool,
    ) -> bool {
        for (place, &at) in places.0.iter_mut().zip(passed) {
            let bucket = (self.hash(block[usize::from(at)]) >> self.bucket_shift) as usize;
            *place = (self.starts[bucket], self.starts[bucket + 1]);
        }
        let places = &places.0[..passed.len()];
        let first = |&(start, _): &(u32, u32)| self.queries.get(start as usize).copied().unwrap_or(0);
        black_box(places.iter().map(first).fold(0, |touched, query| touched ^ query));
        for (&(start, end), &at) in places.iter().zip(passed) {
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
