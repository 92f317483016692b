//! The status table of a range: in memory what is mostly asked of a page, so that a question takes neither rows nor a thread
//! that may block.
//!
//! | module | what |
//! |---|---|
//! | `entry` | what is kept of a page, and of a group |
//! | `slots` | the hash table |
//! | `secret` | hashes that stand for URLs and contents |
//! | `changes` | what the rows of a commit change |
//! | `watched` | a store whose commits the table follows |
//! | `snapshot` | the table on disk |
//! | `fill` | a start: the table is filled from its snapshot, or from the rows |
//! | `answer` | advice from the entries of page, group and winner |
//!
//! Invariants:
//! - Whoever looks at the table sees each page and group as the rows have it at that very moment, or else nothing of it:
//!   before a commit counts, what it changes is left to the rows, until the table has it.
//! - A duplicate of the winner, or a secondary page, is told only if page, group and winner, looked at together, say that it was
//!   compared with the present winner and that both have the contents of then (G5). Whatever else there is to look at is
//!   left to the rows.
//! - A page is told to be unknown only when the table has all pages.
//!
//! Two URLs of one id, which is 128 bits of a hash, are two pages, and so the answers by rows compare the URL on record.
//! Here 32 bits of a hash under a secret key do, and 64 bits stand for the content of a winner: URLs that are made to have
//! one id are still taken for one another once in 2^32 cases, and contents once in 2^64.

mod answer;
mod changes;
mod entry;
mod fill;
mod secret;
mod slots;
mod snapshot;
#[cfg(test)]
mod tests;
mod watched;

use std::collections::HashSet;
use std::hash::RandomState;
use std::io;
use std::path::Path;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use doppel_model::{GroupId, PageId, PageUrl};

pub(crate) use answer::Statuses;
pub(crate) use fill::Fill;
pub(crate) use secret::SecretKey;
pub(crate) use snapshot::{Basis, Snapshot, damage};
pub(crate) use watched::Watched;

use changes::Change;
use entry::{Alone, Group, Grouped, Page, Told};
use slots::Slots;

/// Entries changed before readers have their turn: some microseconds.
const CHANGES_AT_ONCE: usize = 64;

/// The table of a range.
pub(crate) struct StatusTable {
    key: SecretKey,
    entries: RwLock<Entries>,
}

/// What is in it.
struct Entries {
    alone: Slots<Alone>,
    grouped: Slots<Grouped>,
    groups: Slots<Group>,
    /// Bytes of the URLs of winners.
    url_bytes: usize,
    /// Changes taken.
    changed: u64,
    coverage: Coverage,
}

/// How much of the rows the table has.
enum Coverage {
    /// It is being filled. This was changed since the piece that comes next was read.
    Filling(HashSet<Key>),
    Complete,
    /// Rows could not be read.
    Partial,
}

/// What an entry is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Key {
    Page(PageId),
    Group(GroupId),
}

impl StatusTable {
    /// `key` is the same for all ranges, which look at each other's entries.
    pub(crate) fn new(key: SecretKey) -> Self {
        Self { key, entries: RwLock::new(Entries::new()) }
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let entries = self.entries();
        let Entries { alone, grouped, groups, url_bytes, .. } = &*entries;
        (alone.bytes() + grouped.bytes() + groups.bytes() + url_bytes) as u64
    }

    /// How many pages and groups have changed since the start, each as often as it has; none while the table does not have
    /// all of them.
    pub(crate) fn changed(&self) -> Option<u64> {
        let entries = self.entries();
        entries.is_complete().then_some(entries.changed)
    }

    /// Pages and groups.
    pub(crate) fn len(&self) -> usize {
        let entries = self.entries();
        entries.alone.len() + entries.grouped.len() + entries.groups.len()
    }

    /// Writes a snapshot into the directory of a range. All rows of `basis` must be in the table, or left to the rows.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn save(&self, basis: Basis, dir: &Path) -> io::Result<()> {
        snapshot::save(self, basis, dir)
    }

    /// A snapshot in memory.
    #[cfg(any(test, feature = "simulation"))]
    pub(crate) fn saved(&self, basis: Basis) -> io::Result<Vec<u8>> {
        let mut saving = snapshot::Saving::new(self, basis, Vec::new())?;
        while saving.step(self)? {}
        saving.finish()
    }

    fn entries(&self) -> RwLockReadGuard<'_, Entries> {
        self.entries.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries, unless they are being changed.
    fn look(&self) -> Option<RwLockReadGuard<'_, Entries>> {
        match self.entries.try_read() {
            Ok(entries) => Some(entries),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn change(&self) -> RwLockWriteGuard<'_, Entries> {
        self.entries.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leaves what is about to change to the rows.
    fn leave_to_rows(&self, changes: &[Change]) {
        for some in changes.chunks(CHANGES_AT_ONCE) {
            let mut entries = self.change();
            some.iter().for_each(|change| entries.leave_to_rows(change.key()));
        }
    }

    /// Takes what has changed.
    fn take(&self, changes: Vec<Change>) {
        let mut changes = changes.into_iter().peekable();
        while changes.peek().is_some() {
            let mut entries = self.change();
            changes.by_ref().take(CHANGES_AT_ONCE).for_each(|change| entries.take(change));
        }
    }

    /// Forgets everything, as a crash does.
    #[cfg(feature = "simulation")]
    pub(crate) fn clear(&self) {
        *self.change() = Entries::new();
    }
}

impl Entries {
    fn new() -> Self {
        // A page has its place in the same part of both tables, so a snapshot copies the two together.
        let hasher = RandomState::new();
        Self {
            alone: Slots::new(hasher.clone()),
            grouped: Slots::new(hasher.clone()),
            groups: Slots::new(hasher),
            url_bytes: 0,
            changed: 0,
            coverage: Coverage::Filling(HashSet::new()),
        }
    }

    fn leave_to_rows(&mut self, key: Key) {
        self.note(key);
        match key {
            Key::Page(id) => {
                if let Some(page) = self.grouped.get_mut(id) {
                    page.told = Told::Rows;
                } else if let Some(page) = self.alone.get_mut(id) {
                    page.told = Told::Rows;
                } else {
                    self.alone.put(Alone::left_to_rows(id));
                }
            }
            Key::Group(id) => self.put_group(Group { id, winner: None }),
        }
    }

    fn take(&mut self, change: Change) {
        self.changed += 1;
        self.note(change.key());
        self.put(change);
    }

    fn put(&mut self, change: Change) {
        match change {
            Change::Page(_, Some(page)) => self.put_page(page),
            Change::Page(id, None) => {
                self.alone.remove(id);
                self.grouped.remove(id);
            }
            Change::Group(_, Some(group)) => self.put_group(group),
            Change::Group(id, None) => {
                let removed = self.groups.remove(id);
                self.url_bytes -= bytes_of(removed.as_ref());
            }
        }
    }

    /// Takes what a row says that was read a while ago, unless it has changed since.
    fn fill_in(&mut self, change: Change) {
        let key = change.key();
        let is_there = match key {
            Key::Page(id) => self.alone.get(id).is_some() || self.grouped.get(id).is_some(),
            Key::Group(id) => self.groups.get(id).is_some(),
        };
        if !is_there && matches!(&self.coverage, Coverage::Filling(changed) if !changed.contains(&key)) {
            self.put(change);
        }
    }

    fn note(&mut self, key: Key) {
        if let Coverage::Filling(changed) = &mut self.coverage {
            changed.insert(key);
        }
    }

    fn is_complete(&self) -> bool {
        matches!(self.coverage, Coverage::Complete)
    }

    fn put_page(&mut self, page: Page) {
        let id = page.id();
        match page {
            Page::Alone(page) => {
                self.alone.put(page);
                self.grouped.remove(id);
            }
            Page::Grouped(page) => {
                self.grouped.put(page);
                self.alone.remove(id);
            }
        }
    }

    fn put_group(&mut self, group: Group) {
        self.url_bytes += bytes_of(Some(&group));
        let replaced = self.groups.put(group);
        self.url_bytes -= bytes_of(replaced.as_ref());
    }
}

fn bytes_of(group: Option<&Group>) -> usize {
    group.and_then(|group| group.winner.as_ref()).map_or(0, |url: &PageUrl| url.as_str().len())
}
