//! A place in a list of candidates, by which the lists of a search are merged in the order of insertion.

use std::cmp::Ordering;

use doppel_model::InsertSeq;

use super::columns::Center;

/// A place in a list of candidates.
pub(super) struct Cursor<'i> {
    pub(super) insert_seq: InsertSeq,
    /// Its place among the probed partitions.
    pub(super) probe: u32,
    pub(super) slots: &'i [u32],
    pub(super) center: Option<Center>,
    /// Its place in `passed`.
    pub(super) counted: Option<u32>,
}

impl Ord for Cursor<'_> {
    /// The greatest is the oldest.
    fn cmp(&self, other: &Self) -> Ordering {
        other.insert_seq.cmp(&self.insert_seq)
    }
}

impl PartialOrd for Cursor<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Cursor<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.insert_seq == other.insert_seq
    }
}

impl Eq for Cursor<'_> {}
