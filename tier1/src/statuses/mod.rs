//! The status table of a range: in memory what is mostly asked of a page, so that a question takes neither rows nor a thread
//! that may block.
//!
//! | module | what |
//! |---|---|
//! | `entry` | what is kept of a page, and of a group |
//! | `slots` | the hash table |
//! | `changes` | what the rows of a commit change |
//! | `watched` | a store whose commits the table follows |
//! | `fill` | a start: the table is filled from the rows |
//! | `answer` | advice from the entries of page, group and winner |
//!
//! Invariants:
//! - Whoever looks at the table sees each page and group as the rows have it at that very moment, or else nothing of it:
//!   before a commit counts, what it changes is left to the rows, until the table has it.
//! - A duplicate, or a member that is not one, is told only if page, group and winner, looked at together, say that it was
//!   compared with the present winner and that both have the contents of then (G5). Whatever else there is to look at is
//!   left to the rows.
//! - A page is told to be unknown only when the table has all pages.
//!
//! Two URLs of one id are two pages, and so the answers by rows compare the URL on record. Here 32 bits of its hash do,
//! under a secret key of the process, and 64 bits stand for the content of a winner: URLs and contents made to collide are
//! taken for one another once in 2^32 and 2^64 cases.

mod answer;
mod changes;
mod entry;
mod fill;
mod slots;
#[cfg(test)]
mod tests;
mod watched;

use std::collections::HashSet;
use std::hash::RandomState;
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError};

use doppel_model::{GroupId, PageId, PageUrl};

pub(crate) use answer::Statuses;
pub(crate) use fill::Fill;
pub(crate) use watched::Watched;

use changes::Change;
use entry::{Alone, Group, Grouped, Page, Told};
use slots::{Entry as _, Slots};

/// Entries changed before readers have their turn: some microseconds.
const CHANGES_AT_ONCE: usize = 64;

/// The table of a range.
pub(crate) struct StatusTable {
    /// Its key is secret.
    hasher: RandomState,
    entries: RwLock<Entries>,
}

/// What is in it.
struct Entries {
    alone: Slots<Alone>,
    grouped: Slots<Grouped>,
    groups: Slots<Group>,
    /// Bytes of the URLs of winners.
    url_bytes: usize,
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
    /// `hasher` is the same for all ranges, which look at each other's entries.
    pub(crate) fn new(hasher: RandomState) -> Self {
        let entries = RwLock::new(Entries::new(&hasher));
        Self { hasher, entries }
    }

    /// Bytes in memory.
    pub(crate) fn bytes(&self) -> u64 {
        let entries = self.entries.read().unwrap_or_else(PoisonError::into_inner);
        let Entries { alone, grouped, groups, url_bytes, .. } = &*entries;
        (alone.bytes() + grouped.bytes() + groups.bytes() + url_bytes) as u64
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
        *self.change() = Entries::new(&self.hasher);
    }
}

impl Entries {
    fn new(hasher: &RandomState) -> Self {
        Self {
            alone: Slots::new(hasher.clone()),
            grouped: Slots::new(hasher.clone()),
            groups: Slots::new(hasher.clone()),
            url_bytes: 0,
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
        self.note(change.key());
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
            self.take(change);
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
        match page {
            Page::Alone(page) => {
                let id = page.id();
                self.alone.put(page);
                self.grouped.remove(id);
            }
            Page::Grouped(page) => {
                let id = page.id();
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
