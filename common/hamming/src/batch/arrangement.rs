//! Reorders stored fingerprints by a few of their bits, for batches that are larger than the cache.
//!
//! If the tables of the queries do not fit into the cache, each look-up waits for memory. To avoid that, a
//! scan first sorts a chunk of the stored fingerprints by [`PIECE_BITS`] bits, the *piece*. The piece
//! consists of leading bits that several tables share. Fingerprints with equal pieces then access only a
//! small part of each of these tables, and that part stays in the cache. Tables with a common piece form a
//! group, and the scan reorders the chunk once for each group.
//!
//! Invariants: every table is in exactly one group, and the piece of the group is among the leading bits of
//! the table. An arrangement contains each fingerprint of the chunk once, with its position in the chunk.

use crate::design::Design;

/// Number of bits in a *piece*: the adjacent bits by which a scan reorders the stored fingerprints.
pub(crate) const PIECE_BITS: u32 = 8;
const PARTS: usize = 1 << PIECE_BITS;

/// Tables whose leading bits include a common piece of [`PIECE_BITS`] adjacent bits.
#[derive(Debug)]
pub(crate) struct TableGroup {
    /// Position of the lowest bit of the piece in a fingerprint.
    pub(crate) shift: u32,
    /// Indexes of the tables in the design.
    pub(crate) tables: Vec<usize>,
}

/// Extracts the piece of a fingerprint: [`PIECE_BITS`] bits, of which the lowest is at position `shift`.
#[inline]
pub(crate) fn piece(fingerprint: u64, shift: u32) -> usize {
    (fingerprint >> shift) as usize % PARTS
}

/// Divides the tables of a design into groups with a common piece. `None` if a table has fewer than
/// [`PIECE_BITS`] adjacent leading bits.
pub(crate) fn groups(design: &Design) -> Option<Vec<TableGroup>> {
    let masks: Vec<u64> = design.layouts().iter().map(crate::design::TableLayout::mask).collect();
    let mut remaining: Vec<usize> = (0..masks.len()).collect();
    let mut groups = Vec::new();
    while !remaining.is_empty() {
        let has = |table: usize, shift: u32| piece(masks[table], shift) == PARTS - 1;
        let with = |shift: u32| remaining.iter().filter(|&&table| has(table, shift)).count();
        let shift = (0..=design.width().checked_sub(PIECE_BITS)?).max_by_key(|&shift| with(shift))?;
        let tables: Vec<usize> = remaining.extract_if(.., |table| has(*table, shift)).collect();
        if tables.is_empty() {
            return None;
        }
        groups.push(TableGroup { shift, tables });
    }
    Some(groups)
}

/// A chunk of fingerprints, sorted by their pieces. The memory is reused for the next chunk.
#[derive(Default)]
pub(crate) struct Arrangement {
    fingerprints: Vec<u64>,
    positions: Vec<u32>,
    starts: Vec<usize>,
}

impl Arrangement {
    /// Sorts a chunk of at most 2^32 fingerprints by the piece at position `shift`.
    pub(crate) fn arrange(&mut self, chunk: &[u64], shift: u32) {
        let mut next = [0usize; PARTS];
        chunk.iter().for_each(|&fingerprint| next[piece(fingerprint, shift)] += 1);
        self.starts.clear();
        let mut sum = 0;
        for next in &mut next {
            self.starts.push(sum);
            sum += std::mem::replace(next, sum);
        }
        self.starts.push(sum);
        self.fingerprints.resize(chunk.len(), 0);
        self.positions.resize(chunk.len(), 0);
        for (position, &fingerprint) in (0u32..).zip(chunk) {
            let next = &mut next[piece(fingerprint, shift)];
            self.fingerprints[*next] = fingerprint;
            self.positions[*next] = position;
            *next += 1;
        }
    }

    /// The fingerprints with each value of the piece, and their positions in the chunk.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&[u64], &[u32])> {
        self.starts.windows(2).map(|part| {
            let range = part[0]..part[1];
            (&self.fingerprints[range.clone()], &self.positions[range])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_is_in_exactly_one_group() {
        for splits in [&[5][..], &[4], &[6], &[4, 4]] {
            let design = Design::new(64, 3, splits).unwrap();
            let groups = groups(&design).unwrap();
            let mut tables = Vec::new();
            for group in &groups {
                for &table in &group.tables {
                    assert_eq!(design.layouts()[table].mask() >> group.shift & 0xff, 0xff);
                    tables.push(table);
                }
            }
            tables.sort_unstable();
            assert!(tables.into_iter().eq(0..design.layouts().len()));
        }
        // In this design, any two of five blocks form a table. After four groups, one for each of four
        // blocks, no table is left.
        assert_eq!(groups(&Design::new(64, 3, &[5]).unwrap()).unwrap().len(), 4);
        assert!(groups(&Design::new(64, 3, &[]).unwrap()).is_none());
        assert!(groups(&Design::new(7, 1, &[2]).unwrap()).is_none());
        assert!(groups(&Design::new(64, 2, &[16]).unwrap()).is_some());
    }

    #[test]
    fn an_arrangement_contains_every_position_once() {
        let chunk: Vec<u64> = (0..5_000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut arrangement = Arrangement::default();
        for shift in [0, 13, 56] {
            arrangement.arrange(&chunk, shift);
            let mut positions = Vec::new();
            for (part, (fingerprints, in_chunk)) in arrangement.parts().enumerate() {
                assert!(fingerprints.iter().all(|&fingerprint| piece(fingerprint, shift) == part));
                assert!(in_chunk.iter().map(|&position| &chunk[position as usize]).eq(fingerprints));
                positions.extend_from_slice(in_chunk);
            }
            positions.sort_unstable();
            assert!(positions.into_iter().eq(0..5_000));
        }
    }
}
