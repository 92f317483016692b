//! The snapshot of a new range. It is written together with the rows, so the first start need not read them.
//!
//! Each thread that writes rows also calls [`take`](ThreadEntries::take) for each row. The snapshot gets the entries
//! that a table would derive from these rows. So it needs no table, and memory for at most 4,096 entries a thread.
//!
//! Invariant: the snapshot misses no page if every row of a page or group is taken once.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use doppel_snapshot::SnapshotWriter;

use super::changes::EntryChange;
use super::entry::{GroupEntry, GroupedPage, PageEntry, UngroupedPage};
use super::secret::SecretKey;
use super::snapshot::{ALONE, BLOCK, Basis, GROUPED, GROUPS, SNAPSHOT, UNFINISHED, begin, blocks};
use crate::storage::store::StoreError;

/// A snapshot that is being written with the rows of a new range.
pub(crate) struct NewStatusSnapshot {
    key: SecretKey,
    /// Directory of the range.
    dir: PathBuf,
    out: Mutex<SnapshotWriter<File>>,
}

/// Entries of the rows of one thread that are not written yet.
pub(crate) struct ThreadEntries<'s> {
    snapshot: &'s NewStatusSnapshot,
    ungrouped: Vec<UngroupedPage>,
    grouped: Vec<GroupedPage>,
    groups: Vec<GroupEntry>,
}

impl NewStatusSnapshot {
    /// Creates the file in the directory of the range. The snapshots of all ranges must have the same key.
    pub(crate) fn create(dir: &Path, basis: Basis, key: SecretKey) -> Result<Self, StoreError> {
        let out = File::create(dir.join(UNFINISHED)).and_then(|file| begin(file, basis, key));
        let out = out.map_err(|error| StoreError::of_file("write a snapshot", dir, &error))?;
        Ok(Self { key, dir: dir.to_owned(), out: Mutex::new(out) })
    }

    /// Begins the entries of a thread.
    pub(crate) fn entries(&self) -> ThreadEntries<'_> {
        ThreadEntries { snapshot: self, ungrouped: Vec::new(), grouped: Vec::new(), groups: Vec::new() }
    }

    /// Completes the file after all entries are written. The snapshot is on disk on return.
    pub(crate) fn finish(self) -> Result<(), StoreError> {
        let Self { dir, out, .. } = self;
        let out = out.into_inner().unwrap_or_else(PoisonError::into_inner);
        let put = out
            .finish()
            .and_then(|file| doppel_snapshot::put(&file, &dir.join(UNFINISHED), &dir.join(SNAPSHOT)));
        put.map_err(|error| StoreError::of_file("write a snapshot", &dir, &error))
    }
}

impl ThreadEntries<'_> {
    /// Takes a row. Rows that have no entry are ignored.
    pub(crate) fn take(&mut self, key: &[u8], row: &[u8]) -> Result<(), StoreError> {
        match EntryChange::of(self.snapshot.key, key, Some(row)) {
            Some(EntryChange::Page(_, Some(PageEntry::Ungrouped(page)))) => self.ungrouped.push(page),
            Some(EntryChange::Page(_, Some(PageEntry::Grouped(page)))) => self.grouped.push(page),
            Some(EntryChange::Group(_, Some(group))) => self.groups.push(group),
            Some(EntryChange::Page(_, None) | EntryChange::Group(_, None)) | None => return Ok(()),
        }
        let count = self.ungrouped.len() + self.grouped.len() + self.groups.len();
        if count >= BLOCK { self.write() } else { Ok(()) }
    }

    /// Writes the remaining entries.
    pub(crate) fn finish(mut self) -> Result<(), StoreError> {
        self.write()
    }

    fn write(&mut self) -> Result<(), StoreError> {
        let mut out = self.snapshot.out.lock().unwrap_or_else(PoisonError::into_inner);
        let written = blocks(&mut out, ALONE, &self.ungrouped)
            .and_then(|()| blocks(&mut out, GROUPED, &self.grouped))
            .and_then(|()| blocks(&mut out, GROUPS, &self.groups));
        drop(out);
        self.ungrouped.clear();
        self.grouped.clear();
        self.groups.clear();
        written.map_err(|error| StoreError::of_file("write a snapshot", &self.snapshot.dir, &error))
    }
}
