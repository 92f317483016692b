//! The status table of a range. It keeps in memory what most questions about a page need, so that an answer
//! reads no rows and needs no thread that may block.
//!
//! | module | responsibility |
//! |---|---|
//! | `entry` | entries of pages and groups |
//! | `entry_table` | the hash table of entries |
//! | `secret` | hashes that stand for URLs and contents |
//! | `changes` | how the rows of a commit change entries |
//! | `tracked_store` | a store that updates the table with every commit |
//! | `snapshot` | the table on disk |
//! | `new_snapshot` | the snapshot of a new range, which is written with its rows |
//! | `fill` | filling the table at a start, from its snapshot or from the rows |
//! | `answer` | advice from the entries of page, group and winner |
//!
//! Invariants:
//! - An entry agrees with the rows at every moment, or sends readers to the rows. Before a commit counts, the
//!   entries that it changes send readers to the rows, until the table has the change.
//! - The table reports a duplicate of the winner, or a secondary page, only after looking at page, group and
//!   winner together. They must show that the page was compared with the present winner, and that both have
//!   the same contents as then (G5). All other cases are left to the rows.
//! - The table reports a page as unknown only if it has all pages.
//!
//! A page id has 128 bits of a hash, so two URLs with one id are possible. Answers from rows compare the URL
//! on record. The table compares 32 bits of a hash under a secret key, and 64 bits for the content of a
//! winner. So if somebody constructs URLs with one id, the table still confuses them in one of 2^32 cases,
//! and contents in one of 2^64.

mod answer;
mod changes;
mod entry;
mod entry_table;
mod fill;
mod new_snapshot;
mod secret;
mod snapshot;
#[cfg(test)]
mod tests;
mod tracked_store;

use std::collections::HashSet;
use std::hash::RandomState;
use std::io;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use doppel_model::{GroupId, PageId, PageUrl};

pub(crate) use answer::Statuses;
pub(crate) use fill::Fill;
pub(crate) use new_snapshot::NewStatusSnapshot;
pub(crate) use secret::SecretKey;
pub(crate) use snapshot::{Basis, Snapshot, damage};
pub(crate) use tracked_store::TrackedStore;

use changes::EntryChange;
use entry::{EntryStatus, GroupEntry, GroupedPage, PageEntry, UngroupedPage};
use entry_table::EntryTable;

/// Number of entries that are changed before readers get their turn. It takes some microseconds.
const CHANGES_AT_ONCE: usize = 64;

/// The status table of a range.
pub(crate) struct StatusTable {
    key: SecretKey,
    entries: RwLock<Entries>,
}

/// Entries of a status table.
struct Entries {
    ungrouped: EntryTable<UngroupedPage>,
    grouped: EntryTable<GroupedPage>,
    groups: EntryTable<GroupEntry>,
    /// Total length of the winners' URLs in bytes.
    url_bytes: usize,
    /// Number of changes applied.
    changed: u64,
    coverage: Coverage,
}

/// Which rows the table covers.
enum Coverage {
    /// The table is being filled. The set contains the keys that have changed since the next piece was read.
    Filling(HashSet<EntryKey>),
    Complete,
    /// Rows could not be read, so the table lacks some.
    Partial,
}

/// Identifies an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum EntryKey {
    Page(PageId),
    Group(GroupId),
}

impl StatusTable {
    /// Creates an empty table. All ranges must use the same key, because their tables compare entries with
    /// each other.
    pub(crate) fn new(key: SecretKey) -> Self {
        Self { key, entries: RwLock::new(Entries::new()) }
    }

    /// Returns the memory used by the table in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        let entries = self.entries();
        let Entries { ungrouped, grouped, groups, url_bytes, .. } = &*entries;
        (ungrouped.bytes() + grouped.bytes() + groups.bytes() + url_bytes) as u64
    }

    /// Returns the number of changes of pages and groups since the start. Returns `None` while the table does
    /// not have all pages and groups.
    pub(crate) fn changed(&self) -> Option<u64> {
        let entries = self.entries();
        entries.is_complete().then_some(entries.changed)
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        let entries = self.entries();
        entries.ungrouped.len() + entries.grouped.len() + entries.groups.len()
    }

    /// Writes a snapshot to the directory of a range. The table must have all rows up to `basis`, or leave
    /// them to the rows.
    ///
    /// # Errors
    /// Fails if the file cannot be written.
    pub(crate) fn save(&self, basis: Basis, dir: &Path) -> io::Result<()> {
        snapshot::save(self, basis, dir)
    }

    /// Returns the bytes of a snapshot.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn snapshot_bytes(&self, basis: Basis) -> io::Result<Vec<u8>> {
        let mut saving = snapshot::TableWriter::new(self, basis, Vec::new())?;
        while saving.step(self)? {}
        saving.finish()
    }

    fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the entries, unless they are being changed.
    fn try_entries(&self) -> Option<RwLockReadGuard<'_, Entries>> {
        match self.entries.try_read() {
            Ok(entries) => Some(entries),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn entries_mut(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes readers of entries that are about to change use the rows.
    fn leave_to_rows(&self, changes: &[EntryChange]) {
        for some in changes.chunks(CHANGES_AT_ONCE) {
            let mut entries = self.entries_mut();
            some.iter().for_each(|change| entries.leave_to_rows(change.key()));
        }
    }

    /// Applies changes to the entries.
    fn apply(&self, changes: Vec<EntryChange>) {
        let mut changes = changes.into_iter().peekable();
        while changes.peek().is_some() {
            let mut entries = self.entries_mut();
            changes.by_ref().take(CHANGES_AT_ONCE).for_each(|change| entries.apply(change));
        }
    }

    /// Removes all entries, as a crash does.
    #[cfg(feature = "simulation")]
    pub(crate) fn clear(&self) {
        *self.entries_mut() = Entries::new();
    }
}

impl Entries {
    fn new() -> Self {
        // Both tables of pages use one hasher, so a page is in the same part of both. A snapshot copies these
        // parts together.
        let hasher = RandomState::new();
        Self {
            ungrouped: EntryTable::new(hasher.clone()),
            grouped: EntryTable::new(hasher.clone()),
            groups: EntryTable::new(hasher),
            url_bytes: 0,
            changed: 0,
            coverage: Coverage::Filling(HashSet::new()),
        }
    }

    fn leave_to_rows(&mut self, key: EntryKey) {
        self.note(key);
        match key {
            EntryKey::Page(id) => {
                if let Some(page) = self.grouped.get_mut(id) {
                    page.status = EntryStatus::Rows;
                } else if let Some(page) = self.ungrouped.get_mut(id) {
                    page.status = EntryStatus::Rows;
                } else {
                    self.ungrouped.put(UngroupedPage::left_to_rows(id));
                }
            }
            EntryKey::Group(id) => self.put_group(GroupEntry { id, winner: None }),
        }
    }

    fn apply(&mut self, change: EntryChange) {
        self.changed += 1;
        self.note(change.key());
        self.put(change);
    }

    fn put(&mut self, change: EntryChange) {
        match change {
            EntryChange::Page(_, Some(page)) => self.put_page(page),
            EntryChange::Page(id, None) => {
                self.ungrouped.remove(id);
                self.grouped.remove(id);
            }
            EntryChange::Group(_, Some(group)) => self.put_group(group),
            EntryChange::Group(id, None) => {
                let removed = self.groups.remove(id);
                self.url_bytes -= bytes_of(removed.as_ref());
            }
        }
    }

    /// Adds an entry from a row that was read earlier, unless the page or group has changed since.
    fn fill_in(&mut self, change: EntryChange) {
        let key = change.key();
        let is_there = match key {
            EntryKey::Page(id) => self.ungrouped.get(id).is_some() || self.grouped.get(id).is_some(),
            EntryKey::Group(id) => self.groups.get(id).is_some(),
        };
        if !is_there && matches!(&self.coverage, Coverage::Filling(changed) if !changed.contains(&key)) {
            self.put(change);
        }
    }

    fn note(&mut self, key: EntryKey) {
        if let Coverage::Filling(changed) = &mut self.coverage {
            changed.insert(key);
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self.coverage, Coverage::Complete)
    }

    fn put_page(&mut self, page: PageEntry) {
        let id = page.id();
        match page {
            PageEntry::Ungrouped(page) => {
                self.ungrouped.put(page);
                self.grouped.remove(id);
            }
            PageEntry::Grouped(page) => {
                self.grouped.put(page);
                self.ungrouped.remove(id);
            }
        }
    }

    fn put_group(&mut self, group: GroupEntry) {
        self.url_bytes += bytes_of(Some(&group));
        let replaced = self.groups.put(group);
        self.url_bytes -= bytes_of(replaced.as_ref());
    }
}

fn bytes_of(group: Option<&GroupEntry>) -> usize {
    group.and_then(|group| group.winner.as_ref()).map_or(0, |url: &PageUrl| url.as_str().len())
}
