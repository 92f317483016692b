//! The packed set of 40-bit hashes: 5 bytes per hash, little-endian, strictly ascending.

use super::SHINGLE_BITS;

/// The number of bytes of one packed hash.
pub(super) const ENTRY_BYTES: usize = SHINGLE_BITS as usize / 8;

const MASK: u64 = (1 << SHINGLE_BITS) - 1;

/// Appends the packed form of sorted hashes.
pub(super) fn pack(sorted: &[u64], out: &mut Vec<u8>) {
    let start = out.len();
    let end = start + sorted.len() * ENTRY_BYTES;
    // Each hash is written as 8 bytes. The next hash overwrites the last 3 of them, which are zero.
    out.resize(end + 3, 0);
    for (at, hash) in (start..end).step_by(ENTRY_BYTES).zip(sorted) {
        out[at..at + 8].copy_from_slice(&hash.to_le_bytes());
    }
    out.truncate(end);
}

/// The first `len` entries of a packed set.
///
/// At least 3 bytes must follow them, so that each entry can be read as 8 bytes. In a signature the checksum
/// follows.
#[inline]
pub(super) fn entries(packed: &[u8], len: usize) -> impl ExactSizeIterator<Item = u64> + '_ {
    (0..len).map(|at| load(packed, at))
}

/// The index of the first of `len` entries that is not greater than the entry before it. At least 3 bytes
/// must follow the entries, as for [`entries`].
pub(super) fn first_out_of_order(packed: &[u8], len: usize) -> Option<usize> {
    (1..len).find(|at| load(packed, at - 1) >= load(packed, *at))
}

/// The number of merges that [`shared`] interleaves.
const LANES: usize = 4;

/// The number of entries that two packed sets of `a_len` and `b_len` entries share. At least 3 bytes must
/// follow each set, as for [`entries`].
///
/// The merge step has no data-dependent branch. Real sets interleave at random, and a mispredicted branch
/// costs more than the step itself. The remaining cost is the latency of loading the entries for the next
/// step. To hide this latency, the sets are cut into [`LANES`] parts whose merges take steps in turn.
pub(super) fn shared(a: &[u8], a_len: usize, b: &[u8], b_len: usize) -> u32 {
    let mut lanes = [Lane::default(); LANES];
    let (mut a_from, mut b_from) = (0, 0);
    for (lane, number) in lanes.iter_mut().zip(1..) {
        let a_to = a_len * number / LANES;
        let b_to = if a_to == a_len { b_len } else { lower_bound(b, b_from, b_len, load(a, a_to)) };
        *lane = Lane { a: a_from, a_to, b: b_from, b_to, count: 0 };
        (a_from, b_from) = (a_to, b_to);
    }
    // Repeatedly run as many steps as every lane can take without reaching its end.
    loop {
        let steps = lanes.iter().map(|lane| (lane.a_to - lane.a).min(lane.b_to - lane.b)).min().unwrap_or(0);
        if steps == 0 {
            break;
        }
        for _ in 0..steps {
            lanes.iter_mut().for_each(|lane| lane.step(a, b));
        }
    }
    for lane in &mut lanes {
        while lane.a < lane.a_to && lane.b < lane.b_to {
            lane.step(a, b);
        }
    }
    lanes.iter().map(|lane| lane.count).sum()
}

/// A merge of entries `a .. a_to` of one set with `b .. b_to` of the other.
#[derive(Clone, Copy, Default)]
struct Lane {
    a: usize,
    a_to: usize,
    b: usize,
    b_to: usize,
    count: u32,
}

impl Lane {
    #[inline]
    fn step(&mut self, a: &[u8], b: &[u8]) {
        let (x, y) = (load(a, self.a), load(b, self.b));
        self.count += u32::from(x == y);
        self.a += usize::from(x <= y);
        self.b += usize::from(y <= x);
    }
}

/// The first index in `from .. to` whose entry is at least `hash`, or `to` if all entries are smaller.
fn lower_bound(packed: &[u8], mut from: usize, mut to: usize, hash: u64) -> usize {
    while from < to {
        let middle = from + (to - from) / 2;
        if load(packed, middle) < hash {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// The entry at index `at`.
#[inline]
fn load(packed: &[u8], at: usize) -> u64 {
    match packed[at * ENTRY_BYTES..].first_chunk() {
        Some(bytes) => u64::from_le_bytes(*bytes) & MASK,
        None => 0,
    }
}
