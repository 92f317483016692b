//! The pages of a content beyond the first.
//!
//! Most contents have one page, and need no memory here. Some have thousands of pages. Adding or removing a
//! page takes constant time.

use std::io;

use doppel_model::PageId;
use doppel_snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};
use hashbrown::{HashMap, HashSet};

use crate::seed::Seeded;

/// Further pages by slot.
#[derive(Debug, Default)]
pub(crate) struct FurtherPages {
    further: HashMap<u32, HashSet<PageId, Seeded>, Seeded>,
    count: usize,
}

impl FurtherPages {
    /// Adds a page. Returns whether it was new.
    pub(crate) fn insert(&mut self, slot: u32, page: PageId) -> bool {
        let new = self.further.entry(slot).or_default().insert(page);
        self.count += usize::from(new);
        new
    }

    /// Removes a page. Returns whether it was there.
    pub(crate) fn remove(&mut self, slot: u32, page: PageId) -> bool {
        let Some(pages) = self.further.get_mut(&slot) else { return false };
        let was = pages.remove(&page);
        if pages.is_empty() {
            self.further.remove(&slot);
        }
        self.count -= usize::from(was);
        was
    }

    /// Removes and returns any further page of a slot.
    pub(crate) fn pop(&mut self, slot: u32) -> Option<PageId> {
        let page = self.of(slot).next()?;
        self.remove(slot, page);
        Some(page)
    }

    /// Removes all further pages of a slot.
    pub(crate) fn clear(&mut self, slot: u32) {
        self.count -= self.further.remove(&slot).map_or(0, |pages| pages.len());
    }

    pub(crate) fn contains(&self, slot: u32, page: PageId) -> bool {
        self.further.get(&slot).is_some_and(|pages| pages.contains(&page))
    }

    /// All further pages of a slot.
    pub(crate) fn of(&self, slot: u32) -> impl Iterator<Item = PageId> + '_ {
        self.further.get(&slot).into_iter().flatten().copied()
    }

    /// Number of further pages of all slots.
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn write(&self, out: &mut SnapshotWriter) -> io::Result<()> {
        let slots = self.further.iter().flat_map(|(slot, pages)| pages.iter().map(move |page| (slot, page)));
        out.items(self.count, slots.clone().map(|(slot, _)| *slot))?;
        out.items(self.count, slots.map(|(_, page)| *page))
    }

    pub(crate) fn read(input: &mut SnapshotReader) -> Result<Self, SnapshotError> {
        let (slots, pages) = (input.column::<u32>()?, input.column::<PageId>()?);
        let mut all = Self::default();
        slots.into_iter().zip(pages).for_each(|(slot, page)| _ = all.insert(slot, page));
        Ok(all)
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let sets = self.further.values().map(HashSet::allocation_size).sum::<usize>();
        self.further.allocation_size() + sets
    }
}
