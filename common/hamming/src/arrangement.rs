//! Stored fingerprints in order of a few of their bits, for batches that are larger than the cache.
//!
//! When the tables of the queries do not fit the cache, each look-up waits for memory. So a chunk of the stored
//! fingerprints is first put in order of [`PIECE`] bits that lead in several tables. Then one small part of each of these
//! tables after the other is asked, and stays in the cache meanwhile. Tables that share such bits are a group, and the
//! chunk is arranged once for each group.
//!
//! Invariants: every table is in one group, and has the group's bits among its leading ones; an arrangement has each
//! fingerprint of the chunk once, with its place there.

use crate::design::Design;

/// Bits by which a chunk is arranged.
pub(crate) const PIECE: u32 = 8;
const PARTS: usize = 1 << PIECE;

/// Tables that share some leading bits.
#[derive(Debug)]
pub(crate) struct Group {
    /// Where these bits begin in a fingerprint.
    pub(crate) shift: u32,
    /// The numbers of the tables.
    pub(crate) tables: Vec<usize>,
}

/// The piece of a fingerprint.
#[inline]
pub(crate) fn piece(fingerprint: u64, shift: u32) -> usize {
    (fingerprint >> shift) as usize % PARTS
}

/// The groups of a design, or `None` if a table has no such bits in a row.
pub(crate) fn groups(design: &Design) -> Option<Vec<Group>> {
    let masks: Vec<u64> = design.layouts().iter().map(crate::design::Layout::mask).collect();
    let mut left: Vec<usize> = (0..masks.len()).collect();
    let mut groups = Vec::new();
    while !left.is_empty() {
        let has = |table: usize, shift: u32| piece(masks[table], shift) == PARTS - 1;
        let with = |shift: u32| left.iter().filter(|&&table| has(table, shift)).count();
        let shift = (0..=design.width().checked_sub(PIECE)?).max_by_key(|&shift| with(shift))?;
        let tables: Vec<usize> = left.extract_if(.., |table| has(*table, shift)).collect();
        if tables.is_empty() {
            return None;
        }
        groups.push(Group { shift, tables });
    }
    Some(groups)
}

/// A chunk in order of a piece; memory that is used again.
#[derive(Default)]
pub(crate) struct Arrangement {
    fingerprints: Vec<u64>,
    places: Vec<u32>,
    starts: Vec<usize>,
}

impl Arrangement {
    /// Arranges a chunk of at most 2^32 fingerprints.
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
        self.places.resize(chunk.len(), 0);
        for (place, &fingerprint) in (0u32..).zip(chunk) {
            let next = &mut next[piece(fingerprint, shift)];
            self.fingerprints[*next] = fingerprint;
            self.places[*next] = place;
            *next += 1;
        }
    }

    /// The fingerprints of each part, with their places in the chunk.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (&[u64], &[u32])> {
        self.starts.windows(2).map(|part| {
            let range = part[0]..part[1];
            (&self.fingerprints[range.clone()], &self.places[range])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_have_every_table_once() {
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
        // Of five blocks any two are a table; without four of them, none is left.
        assert_eq!(groups(&Design::new(64, 3, &[5]).unwrap()).unwrap().len(), 4);
        assert!(groups(&Design::new(64, 3, &[]).unwrap()).is_none());
        assert!(groups(&Design::new(7, 1, &[2]).unwrap()).is_none());
        assert!(groups(&Design::new(64, 2, &[16]).unwrap()).is_some());
    }

    #[test]
    fn an_arrangement_has_every_place_once() {
        let chunk: Vec<u64> = (0..5_000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        let mut arrangement = Arrangement::default();
        for shift in [0, 13, 56] {
            arrangement.arrange(&chunk, shift);
            let mut places = Vec::new();
            for (part, (fingerprints, at)) in arrangement.parts().enumerate() {
                assert!(fingerprints.iter().all(|&fingerprint| piece(fingerprint, shift) == part));
                assert!(at.iter().map(|&at| &chunk[at as usize]).eq(fingerprints));
                places.extend_from_slice(at);
            }
            places.sort_unstable();
            assert!(places.into_iter().eq(0..5_000));
        }
    }
}
