//! A partition: the entries of one box of length-vector space, and the tables that find them.

use std::io;

use doppel_model::{ContentHash, PageId, PartitionId};
use doppel_partitioning::Bounds;
use doppel_protocol::index_node::HostedPartition;
use doppel_snapshot::{Reader, Unreadable, Writer};
use hashbrown::HashSet;

use super::bands::{BandKeys, BandTables};
use super::columns::{Columns, Entry};
use super::pages::Pages;
use crate::seed::Seeded;

/// What a partition is used for at present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// It is the home of its box.
    Serving,
    /// It is being filled for the next plan, and nobody searches it.
    Incoming,
    /// It was the home under the last plan, and is being dropped.
    Outgoing,
    /// There is nothing in it; its index is used again.
    Free,
}

/// Entries, their tables and their load.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) state: State,
    /// Its id in the plan.
    pub(crate) id: PartitionId,
    /// Its box.
    pub(crate) bounds: Bounds,
    /// Slots below this one were dropped.
    pub(crate) dropped_to: u32,
    /// Contents that changed since they were copied to the next plan's partitions; none while it is not copied.
    pub(crate) changed: Option<HashSet<ContentHash, Seeded>>,
    pub(crate) columns: Columns,
    pub(crate) bands: BandTables,
    pub(crate) pages: Pages,
    /// Searches that reached it.
    pub(crate) received: u64,
    /// Exact comparisons made in it.
    pub(crate) comparisons: u64,
}

impl Partition {
    pub(crate) fn new(hosted: HostedPartition, state: State, dimensions: usize) -> Self {
        Self {
            state,
            id: hosted.id,
            bounds: hosted.bounds,
            dropped_to: 0,
            changed: None,
            columns: Columns::new(dimensions),
            bands: BandTables::new(),
            pages: Pages::default(),
            received: 0,
            comparisons: 0,
        }
    }

    pub(crate) fn write(&self, out: &mut Writer) -> io::Result<()> {
        out.number(self.received)?;
        out.number(self.comparisons)?;
        self.columns.write(out)?;
        self.bands.write(out)?;
        self.pages.write(out)
    }

    /// The partition as a snapshot has it.
    pub(crate) fn read(hosted: HostedPartition, input: &mut Reader) -> Result<Self, Unreadable> {
        Ok(Self {
            received: input.number()?,
            comparisons: input.number()?,
            columns: Columns::read(input)?,
            bands: BandTables::read(input)?,
            pages: Pages::read(input)?,
            ..Self::new(hosted, State::Serving, 1)
        })
    }

    /// Something is said of the entry in `slot` that a copy of it must know.
    pub(crate) fn note(&mut self, slot: u32) {
        if let Some(changed) = &mut self.changed {
            changed.insert(self.columns.content(slot));
        }
    }

    /// Stores an entry that is younger than all others. One that is not comparable has no `band_keys`.
    pub(crate) fn insert(&mut self, entry: &Entry<'_>, band_keys: &BandKeys) -> u32 {
        let slot = self.columns.insert(entry);
        self.bands.insert(band_keys, slot);
        self.note(slot);
        slot
    }

    /// Adds a page to an entry; the first one, where nobody has claimed it yet.
    pub(crate) fn add_page(&mut self, slot: u32, page: PageId) {
        if self.columns.is_unclaimed(slot) {
            self.columns.claim(slot, page);
        } else if self.columns.page(slot) != page && self.pages.insert(slot, page) {
            self.note(slot);
        }
    }

    /// Takes a further page from an entry.
    pub(crate) fn remove_page(&mut self, slot: u32, page: PageId) {
        if self.pages.remove(slot, page) {
            self.note(slot);
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
