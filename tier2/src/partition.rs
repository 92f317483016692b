//! A partition: the entries of one box of length-vector space, and the tables that find them.

use doppel_common::model::PageId;

use crate::bands::{BandTables, Tags};
use crate::columns::{Columns, Entry};
use crate::pages::Pages;

/// Entries, their tables and their load.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) columns: Columns,
    pub(crate) bands: BandTables,
    pub(crate) pages: Pages,
    /// Looks that reached it.
    pub(crate) received: u64,
    /// Exact comparisons made in it.
    pub(crate) comparisons: u64,
}

impl Partition {
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            columns: Columns::new(dimensions),
            bands: BandTables::new(),
            pages: Pages::default(),
            received: 0,
            comparisons: 0,
        }
    }

    /// Stores an entry that is younger than all others. One that is not comparable has no `tags`.
    pub(crate) fn insert(&mut self, entry: &Entry, tags: &Tags) -> u32 {
        let slot = self.columns.insert(entry);
        self.bands.insert(tags, slot);
        slot
    }

    /// Adds a page to an entry.
    pub(crate) fn add_page(&mut self, slot: u32, page: PageId) {
        if self.columns.page(slot) != page {
            self.pages.insert(slot, page);
        }
    }

    /// Makes a further page of an entry its first one.
    pub(crate) fn put_first(&mut self, slot: u32, page: PageId) {
        let before = self.columns.page(slot);
        self.pages.remove(slot, page);
        self.pages.insert(slot, before);
        self.columns.set_page(slot, page);
    }

    /// Whether the content has more than one page.
    pub(crate) fn has_copies(&self, slot: u32) -> bool {
        self.pages.of(slot).next().is_some()
    }

    /// Whether an entry has a page.
    pub(crate) fn has_page(&self, slot: u32, page: PageId) -> bool {
        self.columns.page(slot) == page || self.pages.contains(slot, page)
    }

    /// Every page of an entry.
    pub(crate) fn pages_of(&self, slot: u32) -> impl Iterator<Item = PageId> + '_ {
        std::iter::once(self.columns.page(slot)).chain(self.pages.of(slot))
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + self.columns.bytes() + self.bands.bytes() + self.pages.bytes()
    }
}
