//! A start: the table is filled from its snapshot, or from the rows, piece by piece, while commits go on. They win: what has
//! changed since a piece was read is not taken from it.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use doppel_model::ShardId;

use super::changes::Change;
use super::snapshot::Snapshot;
use super::{CHANGES_AT_ONCE, Coverage, Entries, Key, StatusTable};
use crate::database::EachWritten;
use crate::key::{self, Kind};
use crate::store::{Store, StoreError};

/// How far the table of a range is filled.
pub(crate) struct Fill {
    table: Arc<StatusTable>,
    /// What the table begins from.
    saved: Option<Saved>,
    /// What is left to read of the rows: from, to.
    left: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// The piece that was read and is not yet in the table.
    read: Vec<Change>,
}

/// A snapshot, and what rows say that were written since.
struct Saved {
    snapshot: Snapshot,
    since: HashMap<Key, Change>,
}

impl Fill {
    /// From the rows, over the shards of a range.
    pub(crate) fn new(table: Arc<StatusTable>, run: Range<ShardId>) -> Self {
        Self { table, saved: None, left: rows_of(run), read: Vec::new() }
    }

    /// Begins from a snapshot of the range. `since` gives the rows that were written after its moment up to now, in order,
    /// or says that they are not known; then nothing changes. True when the table is filled from the snapshot.
    ///
    /// # Errors
    /// Those of `since`.
    pub(crate) fn begin_from(
        &mut self,
        snapshot: Snapshot,
        since: impl FnOnce(&mut EachWritten<'_>) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        // The table notes from now on what changes, so nothing is missed between the two.
        self.table.note_changes();
        let secret = self.table.key;
        let mut written = HashMap::new();
        let is_known = since(&mut |key, row| {
            written.extend(Change::of(secret, key, row).map(|change| (change.key(), change)));
        })?;
        if is_known {
            self.saved = Some(Saved { snapshot, since: written });
        }
        Ok(is_known)
    }

    /// Reads up to so many rows, or a block of the snapshot. The table notes from now on what changes.
    ///
    /// # Errors
    /// When the store fails. The table stays as it is then, and what it does not have is left to the rows. The same rows are read
    /// by the next call.
    pub(crate) fn read(&mut self, store: &dyn Store, rows: usize) -> Result<(), StoreError> {
        match self.saved.take() {
            Some(saved) => {
                self.read_saved(saved);
                Ok(())
            }
            None => self.read_rows(store, rows),
        }
    }

    fn read_saved(&mut self, Saved { mut snapshot, mut since }: Saved) {
        match snapshot.next() {
            Ok(Some(entries)) => {
                let entries = entries.into_iter().filter(|entry| !since.contains_key(&entry.key()));
                self.read.extend(entries);
                self.saved = Some(Saved { snapshot, since });
            }
            Ok(None) => {
                self.read.extend(since.drain().map(|(_, change)| change));
                self.left.clear();
            }
            // What it has so far is true. What is missing is read from the rows.
            Err(error) => {
                tracing::warn!(%error, "a snapshot of the status table breaks off; the rows are read");
            }
        }
    }

    fn read_rows(&mut self, store: &dyn Store, rows: usize) -> Result<(), StoreError> {
        self.table.note_changes();
        let Some((from, to)) = self.left.pop_front() else { return Ok(()) };
        let (mut count, mut last) = (0, Vec::new());
        let read = store.range(&from, &to, &mut |key, row| {
            self.read.extend(Change::of(self.table.key, key, Some(row)));
            count += 1;
            last = key.to_vec();
            count < rows
        });
        if read.is_err() {
            // What has changed is not noted until they are read again.
            self.table.change().coverage = Coverage::Partial;
            self.read.clear();
            self.left.push_front((from, to));
        } else if count >= rows {
            self.left.push_front((key::after(&last), to));
        }
        read
    }

    /// Puts the piece in the table. Whether there is more to read; otherwise the table is complete.
    pub(crate) fn put(&mut self) -> bool {
        self.put_with(Entries::fill_in)
    }

    /// A mistake for the simulation to plant: what was read is put over what has changed since.
    #[cfg(feature = "simulation")]
    pub(crate) fn put_over(&mut self) -> bool {
        self.put_with(Entries::take)
    }

    fn put_with(&mut self, put: impl Fn(&mut Entries, Change)) -> bool {
        let mut read = std::mem::take(&mut self.read).into_iter().peekable();
        while read.peek().is_some() {
            let mut entries = self.table.change();
            read.by_ref().take(CHANGES_AT_ONCE).for_each(|change| put(&mut entries, change));
        }
        let is_over = self.saved.is_none() && self.left.is_empty();
        if is_over {
            self.table.change().coverage = Coverage::Complete;
        }
        !is_over
    }
}

fn rows_of(run: Range<ShardId>) -> VecDeque<(Vec<u8>, Vec<u8>)> {
    let shards = (run.start.0..run.end.0).map(ShardId);
    shards.flat_map(|shard| [Kind::Group, Kind::Page].map(|kind| key::all(shard, kind))).collect()
}

impl StatusTable {
    /// Notes from now on what changes.
    fn note_changes(&self) {
        self.change().coverage = Coverage::Filling(HashSet::new());
    }
}
