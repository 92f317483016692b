//! The entries of a partition, stored in one column per field.
//!
//! An entry is a content with its pages. Its *insertion sequence* is a number that grows with every entry
//! stored on the node and is never reused. It identifies an entry as long as the entry lives, and orders
//! entries by age. Slots, in contrast, are reused.

mod bitmaps;
mod persistence;

use doppel_model::parity;
use doppel_model::{ContentHash, InsertSeq, PageId};
use doppel_partitioning::LengthVector;

use bitmaps::{BitmapName, Bitmaps};

/// A partner that the entry's own search has reported, and that links the entry to its cluster. See
/// [`search`](crate::node::search).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Center {
    /// Insertion sequence of the partner, or that of [`UNKNOWN`](Self::UNKNOWN) or [`NONE`](Self::NONE).
    pub(crate) insert_seq: InsertSeq,
    /// Upper bound of the Jaccard distance to the partner, 1 - J, in 255ths.
    pub(crate) distance: u8,
}

impl Center {
    /// The entry has not been searched for yet.
    pub(crate) const UNKNOWN: Self = Self { insert_seq: InsertSeq(0), distance: 0 };
    /// The entry has been searched for and has no older partner that could be its center.
    pub(crate) const NONE: Self = Self { insert_seq: InsertSeq(1), distance: 0 };

    /// Whether the center is an entry, and not one of the marks for an unknown center or none.
    pub(crate) fn is_entry(self) -> bool {
        self.insert_seq >= FIRST_INSERT_SEQ
    }
}

/// Smallest insertion sequence of an entry. Smaller values have a special meaning in [`Center`].
pub(crate) const FIRST_INSERT_SEQ: InsertSeq = InsertSeq(2);

/// Insertion sequence of a free slot.
const VACANT: InsertSeq = InsertSeq(0);

/// Query order of an entry whose search is owed and has no number yet. It is greater than the query order of
/// every search of a pass, and smaller than that of every other search.
pub(crate) const OWED: u32 = u32::MAX - 2;

/// Mark of an entry that can be compared.
const COMPARABLE: u8 = 1;
/// Mark of an entry that is, or was, the center of another entry.
const IS_CENTER: u8 = 2;
/// Mark of an entry from the files that no page has claimed yet.
const UNCLAIMED: u8 = 4;

/// Where a signature is stored: in the signature file, or in the store of tier 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SignatureRecord {
    /// Position of the first byte of the signature in the file, or the position by which tier 1 reads the
    /// signature.
    pub(crate) offset: u64,
    /// Length of the signature, in bytes.
    pub(crate) bytes: u32,
}

impl SignatureRecord {
    /// The record of a signature that is stored nowhere.
    pub(crate) const NOWHERE: Self = Self { offset: u64::MAX, bytes: 0 };
}

/// A content as it is inserted into the columns.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ColumnEntry<'e> {
    pub(crate) content: ContentHash,
    pub(crate) lengths: LengthVector,
    pub(crate) bitmap: &'e [u64],
    pub(crate) record: SignatureRecord,
    pub(crate) insert_seq: InsertSeq,
    /// The first page: answers name it for the content, and its search compares the content.
    pub(crate) page: PageId,
    /// Whether the content has enough tokens to be similar to others. If so, the candidate tables contain it.
    pub(crate) comparable: bool,
}

/// The fields that a search reads of every candidate. They are side by side, because candidates are scattered
/// in memory, and each further column would cost another cache miss.
#[derive(Debug, Clone, Copy)]
struct EntryHead {
    insert_seq: InsertSeq,
    center: InsertSeq,
    second_center: InsertSeq,
    query_order: u32,
    /// Number of distinct shingles.
    total: u32,
    bitmap: BitmapName,
    distance: u8,
    second_distance: u8,
    marks: u8,
}

/// The columns. Each has one field per slot. A free slot has the insertion sequence [`VACANT`].
#[derive(Debug)]
pub(crate) struct Columns {
    dimensions: usize,
    heads: Vec<EntryHead>,
    content: Vec<ContentHash>,
    lengths: Vec<u32>,
    bitmaps: Bitmaps,
    offset: Vec<u64>,
    bytes: Vec<u32>,
    page: Vec<PageId>,
    free: Vec<u32>,
}

/// Makes room for `more` items. Grows by an eighth instead of doubling, because columns take most of the
/// memory.
pub(crate) fn make_room<T>(column: &mut Vec<T>, more: usize) {
    if column.capacity() - column.len() < more {
        column.reserve_exact(more.max(column.len() / 8).max(16));
    }
}

/// Adds an item to a column that grows by an eighth.
pub(crate) fn push<T>(column: &mut Vec<T>, value: T) {
    make_room(column, 1);
    column.push(value);
}

impl Columns {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            heads: Vec::new(),
            content: Vec::new(),
            lengths: Vec::new(),
            bitmaps: Bitmaps::default(),
            offset: Vec::new(),
            bytes: Vec::new(),
            page: Vec::new(),
            free: Vec::new(),
        }
    }

    /// Stores an entry. Returns its slot.
    pub(crate) fn insert(&mut self, entry: &ColumnEntry<'_>) -> u32 {
        let head = EntryHead {
            insert_seq: entry.insert_seq,
            center: VACANT,
            second_center: VACANT,
            query_order: 0,
            total: entry.lengths.as_slice()[0],
            bitmap: self.bitmaps.insert(entry.bitmap),
            distance: 0,
            second_distance: 0,
            marks: if entry.comparable { COMPARABLE } else { 0 },
        };
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => {
                let slot = self.heads.len() as u32;
                push(&mut self.heads, head);
                push(&mut self.content, entry.content);
                make_room(&mut self.lengths, self.dimensions);
                self.lengths.resize(self.lengths.len() + self.dimensions, 0);
                push(&mut self.offset, 0);
                push(&mut self.bytes, 0);
                push(&mut self.page, entry.page);
                slot
            }
        };
        let at = slot as usize;
        self.heads[at] = head;
        self.content[at] = entry.content;
        self.lengths[at * self.dimensions..][..self.dimensions].copy_from_slice(entry.lengths.as_slice());
        self.set_record(slot, entry.record);
        self.renew(slot, entry.insert_seq, entry.page);
        slot
    }

    /// Turns the entry into a new one with another first page. Nothing that earlier searches found about it
    /// counts any more.
    pub(crate) fn renew(&mut self, slot: u32, insert_seq: InsertSeq, page: PageId) {
        let head = &mut self.heads[slot as usize];
        head.insert_seq = insert_seq;
        head.query_order = 0;
        head.marks &= !IS_CENTER;
        self.page[slot as usize] = page;
        self.set_center(slot, Center::UNKNOWN);
        self.set_second_center(slot, Center::NONE);
    }

    /// Hides the entry from every search: its query order comes after all others.
    pub(crate) fn hide(&mut self, slot: u32) {
        self.set_center(slot, Center::UNKNOWN);
        self.set_query_order(slot, u32::MAX);
        self.heads[slot as usize].marks &= !IS_CENTER;
    }

    /// Frees a slot.
    pub(crate) fn remove(&mut self, slot: u32) {
        let head = &mut self.heads[slot as usize];
        head.insert_seq = VACANT;
        self.bitmaps.remove(head.bitmap);
        self.free.push(slot);
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.heads.len() - self.free.len()
    }

    /// Slots in use, in ascending order.
    pub(crate) fn slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.slots_from(0)
    }

    /// Like [`slots`](Self::slots), but begins at the slot `first`.
    pub(crate) fn slots_from(&self, first: u32) -> impl Iterator<Item = u32> + '_ {
        (first..self.heads.len() as u32).filter(|slot| self.insert_seq(*slot) >= FIRST_INSERT_SEQ)
    }

    #[inline]
    pub(crate) fn insert_seq(&self, slot: u32) -> InsertSeq {
        self.heads[slot as usize].insert_seq
    }

    /// Whether `slot` exists and has the entry with this insertion sequence.
    pub(crate) fn has_insert_seq(&self, slot: u32, insert_seq: InsertSeq) -> bool {
        self.heads.get(slot as usize).is_some_and(|head| head.insert_seq == insert_seq)
    }

    #[inline]
    pub(crate) fn content(&self, slot: u32) -> ContentHash {
        self.content[slot as usize]
    }

    /// The length vector of an entry.
    pub(crate) fn vector(&self, slot: u32) -> LengthVector {
        LengthVector::stored(&self.lengths[slot as usize * self.dimensions..][..self.dimensions])
    }

    /// Number of distinct shingles.
    #[inline]
    pub(crate) fn total(&self, slot: u32) -> u32 {
        self.heads[slot as usize].total
    }

    /// Upper bound of the number of shingles that the entry shares with a content of `total` shingles and
    /// this bitmap.
    #[inline]
    pub(crate) fn shared_max(&self, slot: u32, total: u32, bitmap: &[u64]) -> u32 {
        let head = &self.heads[slot as usize];
        parity::shared_max(total, head.total, parity::differing(bitmap, self.bitmaps.get(head.bitmap)))
    }

    pub(crate) fn page(&self, slot: u32) -> PageId {
        self.page[slot as usize]
    }

    pub(crate) fn set_page(&mut self, slot: u32, page: PageId) {
        self.page[slot as usize] = page;
    }

    /// Whether the entry comes from a file, and no page has claimed it yet.
    pub(crate) fn is_unclaimed(&self, slot: u32) -> bool {
        self.heads[slot as usize].marks & UNCLAIMED != 0
    }

    pub(crate) fn set_unclaimed(&mut self, slot: u32) {
        self.heads[slot as usize].marks |= UNCLAIMED;
    }

    /// Claims an entry for its first page.
    pub(crate) fn claim(&mut self, slot: u32, page: PageId) {
        self.heads[slot as usize].marks &= !UNCLAIMED;
        self.set_page(slot, page);
    }

    pub(crate) fn is_comparable(&self, slot: u32) -> bool {
        self.heads[slot as usize].marks & COMPARABLE != 0
    }

    /// Whether the entry is, or was, the center of another entry.
    #[inline]
    pub(crate) fn is_center(&self, slot: u32) -> bool {
        self.heads[slot as usize].marks & IS_CENTER != 0
    }

    pub(crate) fn set_is_center(&mut self, slot: u32) {
        self.heads[slot as usize].marks |= IS_CENTER;
    }

    pub(crate) fn record(&self, slot: u32) -> SignatureRecord {
        SignatureRecord { offset: self.offset[slot as usize], bytes: self.bytes[slot as usize] }
    }

    pub(crate) fn set_record(&mut self, slot: u32, record: SignatureRecord) {
        self.offset[slot as usize] = record.offset;
        self.bytes[slot as usize] = record.bytes;
    }

    #[inline]
    pub(crate) fn center(&self, slot: u32) -> Center {
        let head = &self.heads[slot as usize];
        Center { insert_seq: head.center, distance: head.distance }
    }

    pub(crate) fn set_center(&mut self, slot: u32, center: Center) {
        let head = &mut self.heads[slot as usize];
        (head.center, head.distance) = (center.insert_seq, center.distance);
    }

    /// The second center: the nearest of the other partners that were centers when the entry was searched
    /// for.
    #[inline]
    pub(crate) fn second_center(&self, slot: u32) -> Center {
        let head = &self.heads[slot as usize];
        Center { insert_seq: head.second_center, distance: head.second_distance }
    }

    pub(crate) fn set_second_center(&mut self, slot: u32, center: Center) {
        let head = &mut self.heads[slot as usize];
        (head.second_center, head.second_distance) = (center.insert_seq, center.distance);
    }

    /// The query order of the last search for the entry. 0 before the first, or [`OWED`].
    #[inline]
    pub(crate) fn query_order(&self, slot: u32) -> u32 {
        self.heads[slot as usize].query_order
    }

    /// Whether a search for the present first page of the entry has begun.
    pub(crate) fn is_searched(&self, slot: u32) -> bool {
        !matches!(self.query_order(slot), 0 | OWED)
    }

    pub(crate) fn set_query_order(&mut self, slot: u32, query_order: u32) {
        self.heads[slot as usize].query_order = query_order;
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        fn of<T>(column: &Vec<T>) -> usize {
            column.capacity() * size_of::<T>()
        }
        of(&self.heads)
            + of(&self.content)
            + of(&self.lengths)
            + self.bitmaps.bytes()
            + of(&self.offset)
            + of(&self.bytes)
            + of(&self.page)
            + of(&self.free)
    }
}
