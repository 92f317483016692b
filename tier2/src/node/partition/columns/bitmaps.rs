//! Parity bitmaps of the entries of a partition. Larger sets have longer bitmaps.
//!
//! All bitmaps of the same length are in one column. A bitmap is named by 32 bits: its length, and its index
//! in that column.

use std::io;

use doppel_model::parity::{WORDS_MAX, WORDS_MIN};
use doppel_snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};

use super::make_room;

/// Number of lengths: the powers of two between the limits.
const LENGTHS: usize = (WORDS_MAX / WORDS_MIN).ilog2() as usize + 1;

/// Number of bits for the index in a name. The bits above it are for the length.
const PLACE_BITS: u32 = 29;

/// The name of a bitmap: its length and index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct BitmapName(pub(super) u32);

/// The bitmaps of all lengths.
#[derive(Debug, Default)]
pub(crate) struct Bitmaps {
    lengths: [BitmapColumn; LENGTHS],
}

/// The bitmaps of one length.
#[derive(Debug, Default)]
struct BitmapColumn {
    words: Vec<u64>,
    free: Vec<u32>,
}

impl Bitmaps {
    /// Stores a bitmap and returns its name. Its number of words must be a power of two between the limits.
    pub(crate) fn insert(&mut self, bitmap: &[u64]) -> BitmapName {
        debug_assert!(bitmap.len().is_power_of_two());
        let length = (bitmap.len() / WORDS_MIN).max(1).ilog2();
        let column = &mut self.lengths[length as usize];
        let place = match column.free.pop() {
            Some(place) => {
                column.words[place as usize * bitmap.len()..][..bitmap.len()].copy_from_slice(bitmap);
                place
            }
            None => {
                let place = column.words.len() / bitmap.len();
                make_room(&mut column.words, bitmap.len());
                column.words.extend_from_slice(bitmap);
                place as u32
            }
        };
        BitmapName(length << PLACE_BITS | place)
    }

    /// Frees the name of a bitmap.
    pub(crate) fn remove(&mut self, name: BitmapName) {
        let (length, place) = split(name);
        self.lengths[length].free.push(place as u32);
    }

    /// The bitmap with this name.
    #[inline]
    pub(crate) fn get(&self, name: BitmapName) -> &[u64] {
        let (length, place) = split(name);
        let words = WORDS_MIN << length;
        &self.lengths[length].words[place * words..][..words]
    }

    pub(crate) fn write(&self, out: &mut SnapshotWriter) -> io::Result<()> {
        self.lengths.iter().try_for_each(|one| {
            out.column(&one.words)?;
            out.column(&one.free)
        })
    }

    pub(crate) fn read(input: &mut SnapshotReader) -> Result<Self, SnapshotError> {
        let mut bitmaps = Self::default();
        for one in &mut bitmaps.lengths {
            (one.words, one.free) = (input.column()?, input.column()?);
        }
        Ok(bitmaps)
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |one: &BitmapColumn| 8 * one.words.capacity() + 4 * one.free.capacity();
        self.lengths.iter().map(bytes).sum::<usize>()
    }
}

#[inline]
fn split(BitmapName(name): BitmapName) -> (usize, usize) {
    ((name >> PLACE_BITS) as usize, (name & ((1 << PLACE_BITS) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_name_returns_its_bitmap(
            steps in prop::collection::vec((0..60_usize, 0..LENGTHS as u32, any::<u64>()), 1..200),
        ) {
            let (mut bitmaps, mut model): (Bitmaps, Vec<(BitmapName, Vec<u64>)>) = Default::default();
            for (at, length, word) in steps {
                if at < model.len() {
                    bitmaps.remove(model.swap_remove(at).0);
                } else {
                    let bitmap = vec![word; WORDS_MIN << length];
                    model.push((bitmaps.insert(&bitmap), bitmap));
                }
                for (name, expected) in &model {
                    prop_assert_eq!(bitmaps.get(*name), &**expected);
                }
            }
        }
    }
}
