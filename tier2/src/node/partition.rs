//! A partition: the entries of one box in the space of length vectors, and the tables that find them.

pub(crate) mod buckets;
pub(crate) mod candidates;
pub(crate) mod columns;
pub(crate) mod families;
pub(crate) mod local_index;
pub(crate) mod pages;

use std::io;

use doppel_model::{ContentHash, PageId, PartitionId};
use doppel_partitioning::Bounds;
use doppel_protocol::index_node::HostedPartition;
use doppel_snapshot::{SnapshotError, SnapshotReader, SnapshotWriter};
use hashbrown::HashSet;

use crate::seed::Seeded;
use candidates::{CandidateTables, EntryKeys};
use columns::{ColumnEntry, Columns};
use families::Families;
use pages::FurtherPages;

/// What a partition is used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartitionState {
    /// The partition is the home of its box, and searches read it.
    Serving,
    /// The partition is being filled for the next plan. No search reads it.
    Incoming,
    /// The partition served under the previous plan, and is being dropped.
    Outgoing,
    /// The partition is empty. Its index is reused for another partition.
    Free,
}

/// The entries of a partition, their tables, and their load.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) state: PartitionState,
    /// The id in the plan.
    pub(crate) id: PartitionId,
    /// The box.
    pub(crate) bounds: Bounds,
    /// First slot that has not been dropped. All slots before it have been dropped.
    pub(crate) dropped_to: u32,
    /// Contents that have changed since they were copied to partitions of the next plan. `None` if the
    /// partition is not being copied.
    pub(crate) changed: Option<HashSet<ContentHash, Seeded>>,
    pub(crate) columns: Columns,
    pub(crate) candidates: CandidateTables,
    pub(crate) families: Families,
    pub(crate) pages: FurtherPages,
    /// Number of searches that reached the partition.
    pub(crate) received: u64,
    /// Number of exact comparisons in the partition.
    pub(crate) comparisons: u64,
}

impl Partition {
    pub(crate) fn new(hosted: HostedPartition, state: PartitionState, dimensions: usize) -> Self {
        Self {
            state,
            id: hosted.id,
            bounds: hosted.bounds,
            dropped_to: 0,
            changed: None,
            columns: Columns::new(dimensions),
            candidates: CandidateTables::new(),
            families: Families::default(),
            pages: FurtherPages::default(),
            received: 0,
            comparisons: 0,
        }
    }

    pub(crate) fn write(&self, out: &mut SnapshotWriter) -> io::Result<()> {
        out.number(self.received)?;
        out.number(self.comparisons)?;
        self.columns.write(out)?;
        self.candidates.write(out)?;
        self.families.write(out)?;
        self.pages.write(out)
    }

    /// Reads a partition from a snapshot.
    pub(crate) fn read(hosted: HostedPartition, input: &mut SnapshotReader) -> Result<Self, SnapshotError> {
        Ok(Self {
            received: input.number()?,
            comparisons: input.number()?,
            columns: Columns::read(input)?,
            candidates: CandidateTables::read(input)?,
            families: Families::read(input)?,
            pages: FurtherPages::read(input)?,
            ..Self::new(hosted, PartitionState::Serving, 1)
        })
    }

    /// Notes a change of the entry in `slot` that a copy of the entry must have.
    pub(crate) fn note_change(&mut self, slot: u32) {
        if let Some(changed) = &mut self.changed {
            changed.insert(self.columns.content(slot));
        }
    }

    /// Stores an entry that is younger than all others. `keys` is empty if the entry is not comparable.
    pub(crate) fn insert(&mut self, entry: &ColumnEntry<'_>, keys: &EntryKeys) -> u32 {
        let slot = self.columns.insert(entry);
        self.candidates.insert(keys, slot);
        self.note_change(slot);
        slot
    }

    /// Adds a page to an entry. If no page has claimed the entry yet, the page becomes its first.
    pub(crate) fn add_page(&mut self, slot: u32, page: PageId) {
        if self.columns.is_unclaimed(slot) {
            self.columns.claim(slot, page);
        } else if self.columns.page(slot) != page && self.pages.insert(slot, page) {
            self.note_change(slot);
        }
    }

    /// Removes a further page from an entry.
    pub(crate) fn remove_page(&mut self, slot: u32, page: PageId) {
        if self.pages.remove(slot, page) {
            self.note_change(slot);
        }
    }

    /// Makes a further page of an entry its first page.
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

    /// Whether the entry has this page.
    pub(crate) fn has_page(&self, slot: u32, page: PageId) -> bool {
        self.columns.page(slot) == page || self.pages.contains(slot, page)
    }

    /// All pages of an entry, the first page first.
    pub(crate) fn pages_of(&self, slot: u32) -> impl Iterator<Item = PageId> + '_ {
        std::iter::once(self.columns.page(slot)).chain(self.pages.of(slot))
    }

    /// Memory held, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.columns.bytes()
            + self.candidates.bytes()
            + self.families.bytes()
            + self.pages.bytes()
    }
}
