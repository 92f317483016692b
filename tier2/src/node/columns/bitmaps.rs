//! Parity bitmaps of the entries of a partition, each as long as its set needs.
//!
//! Bitmaps of one length are in one column. An entry's is named by 32 bits: its length, and its place in that column.

use std::io;

use doppel_model::parity::{WORDS_MAX, WORDS_MIN};

use super::{make_room, push};
use crate::node::codec::{Reader, Unreadable, Writer};

/// Lengths: every power of two between the limits.
const LENGTHS: usize = (WORDS_MAX / WORDS_MIN).ilog2() as usize + 1;

/// Bits of a name below the length.
const PLACE_BITS: u32 = 29;

/// The bitmaps, by slot.
#[derive(Debug, Default)]
pub(crate) struct Bitmaps {
    names: Vec<u32>,
    lengths: [OfLength; LENGTHS],
}

/// The bitmaps of one length.
#[derive(Debug, Default)]
struct OfLength {
    words: Vec<u64>,
    free: Vec<u32>,
}

impl Bitmaps {
    /// Stores the bitmap of a slot that has none, the next one at most. The words are a power of two between the limits.
    pub(crate) fn insert(&mut self, slot: u32, bitmap: &[u64]) {
        debug_assert!(bitmap.len().is_power_of_two());
        let length = (bitmap.len() / WORDS_MIN).max(1).ilog2();
        let of_length = &mut self.lengths[length as usize];
        let place = match of_length.free.pop() {
            Some(place) => {
                of_length.words[place as usize * bitmap.len()..][..bitmap.len()].copy_from_slice(bitmap);
                place
            }
            None => {
                let place = of_length.words.len() / bitmap.len();
                make_room(&mut of_length.words, bitmap.len());
                of_length.words.extend_from_slice(bitmap);
                place as u32
            }
        };
        let name = length << PLACE_BITS | place;
        match self.names.get_mut(slot as usize) {
            Some(known) => *known = name,
            None => push(&mut self.names, name),
        }
    }

    /// The slot has no bitmap any more.
    pub(crate) fn remove(&mut self, slot: u32) {
        let (length, place) = split(self.names[slot as usize]);
        self.lengths[length].free.push(place as u32);
    }

    /// The bitmap of a slot.
    #[inline]
    pub(crate) fn get(&self, slot: u32) -> &[u64] {
        let (length, place) = split(self.names[slot as usize]);
        let words = WORDS_MIN << length;
        &self.lengths[length].words[place * words..][..words]
    }

    pub(crate) fn write(&self, out: &mut Writer) -> io::Result<()> {
        out.column(&self.names)?;
        self.lengths.iter().try_for_each(|one| {
            out.column(&one.words)?;
            out.column(&one.free)
        })
    }

    pub(crate) fn read(input: &mut Reader) -> Result<Self, Unreadable> {
        let mut bitmaps = Self { names: input.column()?, ..Self::default() };
        for one in &mut bitmaps.lengths {
            (one.words, one.free) = (input.column()?, input.column()?);
        }
        Ok(bitmaps)
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = |one: &OfLength| 8 * one.words.capacity() + 4 * one.free.capacity();
        4 * self.names.capacity() + self.lengths.iter().map(bytes).sum::<usize>()
    }
}

#[inline]
fn split(name: u32) -> (usize, usize) {
    ((name >> PLACE_BITS) as usize, (name & ((1 << PLACE_BITS) - 1)) as usize)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_slot_has_what_was_stored_last(
            steps in prop::collection::vec((0..40_u32, 0..LENGTHS as u32, any::<u64>()), 1..200),
        ) {
            let (mut bitmaps, mut model): (Bitmaps, Vec<Option<Vec<u64>>>) = Default::default();
            for (slot, length, word) in steps {
                let slot = slot.min(model.len() as u32);
                match model.get_mut(slot as usize) {
                    Some(known @ Some(_)) => {
                        bitmaps.remove(slot);
                        *known = None;
                    }
                    free => {
                        let bitmap = vec![word; WORDS_MIN << length];
                        bitmaps.insert(slot, &bitmap);
                        match free {
                            Some(known) => *known = Some(bitmap),
                            None => model.push(Some(bitmap)),
                        }
                    }
                }
                for (slot, expected) in (0..).zip(&model) {
                    prop_assert!(expected.as_ref().is_none_or(|expected| bitmaps.get(slot) == expected));
                }
            }
        }
    }
}
