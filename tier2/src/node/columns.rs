//! The entries of a partition, a column per field.
//!
//! An entry is a content. Its *insertion sequence* is a number that grows with every entry stored on the node and is
//! never used twice, so it names the entry for as long as it lives and orders entries by age. Slots
//! are used again.

mod bitmaps;
mod stored;

use doppel_model::parity;
use doppel_model::{ContentHash, InsertSeq, PageId};
use doppel_partitioning::LengthVector;

use bitmaps::Bitmaps;

/// A partner that the entry's own search has reported, and through which it is linked to its cluster: see
/// [`search`](super::search).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Center {
    /// The partner's insertion sequence, or [`UNKNOWN`](Self::UNKNOWN) or [`NONE`](Self::NONE).
    pub(crate) insert_seq: InsertSeq,
    /// At least the Jaccard distance to it, 1 - J, in 255ths.
    pub(crate) distance: u8,
}

impl Center {
    /// The entry was not searched for yet.
    pub(crate) const UNKNOWN: Self = Self { insert_seq: InsertSeq(0), distance: 0 };
    /// The entry was searched for and has no such partner that is older.
    pub(crate) const NONE: Self = Self { insert_seq: InsertSeq(1), distance: 0 };

    /// Whether there is a center.
    pub(crate) fn is_entry(self) -> bool {
        self.insert_seq >= FIRST_INSERT_SEQ
    }
}

/// Insertion sequences start here; below are the marks of [`Center`].
pub(crate) const FIRST_INSERT_SEQ: InsertSeq = InsertSeq(2);

/// The insertion sequence of a free slot.
const VACANT: InsertSeq = InsertSeq(0);

/// Bits of the marks of an entry.
const COMPARABLE: u8 = 1;
const IS_CENTER: u8 = 2;
const UNCLAIMED: u8 = 4;

/// Where a signature is: in the signature file, or where tier 1 keeps it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record {
    /// Of its first byte in the file, or what tier 1 names the place.
    pub(crate) offset: u64,
    /// Its length.
    pub(crate) bytes: u32,
}

impl Record {
    /// The record of a signature that is not kept.
    pub(crate) const NOWHERE: Self = Self { offset: u64::MAX, bytes: 0 };
}

/// What is kept of a content in memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<'e> {
    pub(crate) content: ContentHash,
    pub(crate) lengths: LengthVector,
    pub(crate) bitmap: &'e [u64],
    pub(crate) record: Record,
    pub(crate) insert_seq: InsertSeq,
    /// The page that is named for the content in answers, and that searches for it.
    pub(crate) page: PageId,
    /// Whether it has enough tokens to be a duplicate by similarity: then it is in the bands.
    pub(crate) comparable: bool,
}

/// The columns. All have one field per slot; a free slot has the insertion sequence [`VACANT`].
#[derive(Debug)]
pub(crate) struct Columns {
    dimensions: usize,
    content: Vec<ContentHash>,
    lengths: Vec<u32>,
    bitmaps: Bitmaps,
    offset: Vec<u64>,
    bytes: Vec<u32>,
    insert_seq: Vec<InsertSeq>,
    center: Vec<InsertSeq>,
    distance: Vec<u8>,
    second_center: Vec<InsertSeq>,
    second_distance: Vec<u8>,
    query_order: Vec<u32>,
    page: Vec<PageId>,
    marks: Vec<u8>,
    free: Vec<u32>,
}

/// Makes room for `more` items, by an eighth and not by doubling: columns are most of the memory.
pub(crate) fn make_room<T>(column: &mut Vec<T>, more: usize) {
    if column.capacity() - column.len() < more {
        column.reserve_exact(more.max(column.len() / 8).max(16));
    }
}

/// Adds an item the same way.
pub(crate) fn push<T>(column: &mut Vec<T>, value: T) {
    make_room(column, 1);
    column.push(value);
}

impl Columns {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            content: Vec::new(),
            lengths: Vec::new(),
            bitmaps: Bitmaps::default(),
            offset: Vec::new(),
            bytes: Vec::new(),
            insert_seq: Vec::new(),
            center: Vec::new(),
            distance: Vec::new(),
            second_center: Vec::new(),
            second_distance: Vec::new(),
            query_order: Vec::new(),
            page: Vec::new(),
            marks: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Stores an entry; returns its slot.
    pub(crate) fn insert(&mut self, entry: &Entry<'_>) -> u32 {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = self.insert_seq.len() as u32;
                push(&mut self.content, entry.content);
                make_room(&mut self.lengths, self.dimensions);
                self.lengths.resize(self.lengths.len() + self.dimensions, 0);
                push(&mut self.offset, 0);
                push(&mut self.bytes, 0);
                push(&mut self.insert_seq, VACANT);
                push(&mut self.center, VACANT);
                push(&mut self.distance, 0);
                push(&mut self.second_center, VACANT);
                push(&mut self.second_distance, 0);
                push(&mut self.query_order, 0);
                push(&mut self.page, entry.page);
                push(&mut self.marks, 0);
                slot
            }
        };
        let at = slot as usize;
        self.content[at] = entry.content;
        self.lengths[at * self.dimensions..][..self.dimensions].copy_from_slice(entry.lengths.as_slice());
        self.bitmaps.insert(slot, entry.bitmap);
        self.set_record(slot, entry.record);
        self.marks[at] = if entry.comparable { COMPARABLE } else { 0 };
        self.renew(slot, entry.insert_seq, entry.page);
        slot
    }

    /// Makes the entry a new one, with another page in front: nothing was ever said about it.
    pub(crate) fn renew(&mut self, slot: u32, insert_seq: InsertSeq, page: PageId) {
        let at = slot as usize;
        self.insert_seq[at] = insert_seq;
        self.page[at] = page;
        self.query_order[at] = 0;
        self.marks[at] &= !IS_CENTER;
        self.set_center(slot, Center::UNKNOWN);
        self.set_second_center(slot, Center::NONE);
    }

    /// Keeps every search from the entry: it comes after all others.
    pub(crate) fn bury(&mut self, slot: u32) {
        self.set_center(slot, Center::UNKNOWN);
        self.set_query_order(slot, u32::MAX);
        self.marks[slot as usize] &= !IS_CENTER;
    }

    /// Frees a slot.
    pub(crate) fn remove(&mut self, slot: u32) {
        self.insert_seq[slot as usize] = VACANT;
        self.bitmaps.remove(slot);
        self.free.push(slot);
    }

    /// Entries stored.
    pub(crate) fn len(&self) -> usize {
        self.insert_seq.len() - self.free.len()
    }

    /// Slots in use, in order of slot.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots_from(0)
    }

    /// The same without those below `first`.
    pub(crate) fn slots_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        (first..self.insert_seq.len() as u32).filter(|slot| self.insert_seq(*slot) >= FIRST_INSERT_SEQ)
    }

    #[inline]
    pub(crate) fn insert_seq(&self, slot: u32) -> InsertSeq {
        self.insert_seq[slot as usize]
    }

    /// Whether a slot, which there may be no more, has the entry of that insertion sequence.
    pub(crate) fn has_insert_seq(&self, slot: u32, insert_seq: InsertSeq) -> bool {
        self.insert_seq.get(slot as usize) == Some(&insert_seq)
    }

    #[inline]
    pub(crate) fn content(&self, slot: u32) -> ContentHash {
        self.content[slot as usize]
    }

    #[inline]
    pub(crate) fn lengths(&self, slot: u32) -> &[u32] {
        &self.lengths[slot as usize * self.dimensions..][..self.dimensions]
    }

    /// The length vector of an entry.
    pub(crate) fn vector(&self, slot: u32) -> LengthVector {
        LengthVector::stored(self.lengths(slot))
    }

    /// Distinct shingles.
    pub(crate) fn total(&self, slot: u32) -> u32 {
        self.lengths[slot as usize * self.dimensions]
    }

    /// How many shingles the entry and a content of `total` with this bitmap have in common at most.
    #[inline]
    pub(crate) fn shared_max(&self, slot: u32, total: u32, bitmap: &[u64]) -> u32 {
        parity::shared_max(total, self.total(slot), parity::differing(bitmap, self.bitmaps.get(slot)))
    }

    pub(crate) fn page(&self, slot: u32) -> PageId {
        self.page[slot as usize]
    }

    pub(crate) fn set_page(&mut self, slot: u32, page: PageId) {
        self.page[slot as usize] = page;
    }

    /// Whether the entry was read from a file, and no page was named yet that has its content.
    pub(crate) fn is_unclaimed(&self, slot: u32) -> bool {
        self.marks[slot as usize] & UNCLAIMED != 0
    }

    pub(crate) fn set_unclaimed(&mut self, slot: u32) {
        self.marks[slot as usize] |= UNCLAIMED;
    }

    /// Names the first page of an entry that had none.
    pub(crate) fn claim(&mut self, slot: u32, page: PageId) {
        self.marks[slot as usize] &= !UNCLAIMED;
        self.set_page(slot, page);
    }

    pub(crate) fn comparable(&self, slot: u32) -> bool {
        self.marks[slot as usize] & COMPARABLE != 0
    }

    /// Whether it is, or was, the center of an entry.
    #[inline]
    pub(crate) fn is_center(&self, slot: u32) -> bool {
        self.marks[slot as usize] & IS_CENTER != 0
    }

    pub(crate) fn set_is_center(&mut self, slot: u32) {
        self.marks[slot as usize] |= IS_CENTER;
    }

    pub(crate) fn record(&self, slot: u32) -> Record {
        Record { offset: self.offset[slot as usize], bytes: self.bytes[slot as usize] }
    }

    pub(crate) fn set_record(&mut self, slot: u32, record: Record) {
        self.offset[slot as usize] = record.offset;
        self.bytes[slot as usize] = record.bytes;
    }

    #[inline]
    pub(crate) fn center(&self, slot: u32) -> Center {
        Center { insert_seq: self.center[slot as usize], distance: self.distance[slot as usize] }
    }

    pub(crate) fn set_center(&mut self, slot: u32, center: Center) {
        self.center[slot as usize] = center.insert_seq;
        self.distance[slot as usize] = center.distance;
    }

    /// The nearest of its other partners that were centers when it was searched for.
    #[inline]
    pub(crate) fn second_center(&self, slot: u32) -> Center {
        let at = slot as usize;
        Center { insert_seq: self.second_center[at], distance: self.second_distance[at] }
    }

    pub(crate) fn set_second_center(&mut self, slot: u32, center: Center) {
        self.second_center[slot as usize] = center.insert_seq;
        self.second_distance[slot as usize] = center.distance;
    }

    /// The number of its last search, 0 before the first.
    #[inline]
    pub(crate) fn query_order(&self, slot: u32) -> u32 {
        self.query_order[slot as usize]
    }

    pub(crate) fn set_query_order(&mut self, slot: u32, query_order: u32) {
        self.query_order[slot as usize] = query_order;
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        fn of<T>(column: &Vec<T>) -> usize {
            column.capacity() * size_of::<T>()
        }
        of(&self.content)
            + of(&self.lengths)
            + self.bitmaps.bytes()
            + of(&self.offset)
            + of(&self.bytes)
            + of(&self.insert_seq)
            + of(&self.center)
            + of(&self.distance)
            + of(&self.second_center)
            + of(&self.second_distance)
            + of(&self.query_order)
            + of(&self.page)
            + of(&self.marks)
            + of(&self.free)
    }
}
