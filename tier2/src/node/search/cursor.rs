//! Merging the candidate lists of a search in the order of insertion.

use std::cmp::Ordering;

use doppel_model::InsertSeq;

use crate::node::partition::columns::Center;

/// A position in a list of candidates.
pub(in crate::node) struct Cursor<'i> {
    pub(in crate::node) insert_seq: InsertSeq,
    /// Index of the list's partition among the probed partitions.
    pub(in crate::node) probe: u32,
    pub(in crate::node) slots: &'i [u32],
    pub(in crate::node) center: Option<Center>,
    /// Index of the bucket among the large buckets of the search.
    pub(in crate::node) large: Option<u32>,
}

impl Ord for Cursor<'_> {
    /// The greatest cursor is at the oldest entry, so that a heap yields the oldest first.
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
