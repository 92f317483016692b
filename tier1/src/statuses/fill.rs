//! Filling the table at a start, from its snapshot or from the rows.
//!
//! The table is filled in pieces while commits go on. A commit takes precedence: an entry that has changed
//! since a piece was read is not taken from that piece.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use doppel_model::ShardId;

use super::changes::EntryChange;
use super::snapshot::Snapshot;
use super::{CHANGES_AT_ONCE, Coverage, Entries, EntryKey, StatusTable};
use crate::rows::key::{self, RowKind};
use crate::storage::database::WriteVisitor;
use crate::storage::store::{Store, StoreError};

/// State of filling the table of a range.
pub(crate) struct Fill {
    table: Arc<StatusTable>,
    /// Snapshot to read, if there is one.
    saved: Option<SnapshotSource>,
    /// Ranges of rows that are still to be read: from, to.
    left: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// Entries that were read and are not yet in the table.
    read: Vec<EntryChange>,
}

/// A snapshot, and the changes of rows that were written after it.
struct SnapshotSource {
    snapshot: Snapshot,
    since: HashMap<EntryKey, EntryChange>,
}

impl Fill {
    /// Fills the table from the rows of a run of shards.
    pub(crate) fn new(table: Arc<StatusTable>, run: Range<ShardId>) -> Self {
        Self { table, saved: None, left: rows_of(run), read: Vec::new() }
    }

    /// Starts from a snapshot of the range. `since` must pass on the rows that were written after the
    /// snapshot, in order, and return whether it knows all of them. Returns whether the snapshot is used;
    /// otherwise nothing changes.
    ///
    /// # Errors
    /// Returns the errors of `since`.
    pub(crate) fn begin_from(
        &mut self,
        snapshot: Snapshot,
        since: impl FnOnce(&mut WriteVisitor<'_>) -> Result<bool, StoreError>,
    ) -> Result<bool, StoreError> {
        // The table records changes from now on, so no change is missed between log and commits.
        self.table.note_changes();
        let secret = self.table.key;
        let mut written = HashMap::new();
        let is_known = since(&mut |key, row| {
            written.extend(EntryChange::of(secret, key, row).map(|change| (change.key(), change)));
        })?;
        if is_known {
            self.saved = Some(SnapshotSource { snapshot, since: written });
        }
        Ok(is_known)
    }

    /// Reads up to `rows` rows, or a block of the snapshot. The table records changes from now on.
    ///
    /// # Errors
    /// Fails if the store fails. The table then stays as it is, and questions about missing entries go to the
    /// rows. The next call reads the same rows.
    pub(crate) fn read(&mut self, store: &dyn Store, rows: usize) -> Result<(), StoreError> {
        match self.saved.take() {
            Some(saved) => {
                self.read_saved(saved);
                Ok(())
            }
            None => self.read_rows(store, rows),
        }
    }

    fn read_saved(&mut self, SnapshotSource { mut snapshot, mut since }: SnapshotSource) {
        match snapshot.next() {
            Ok(Some(entries)) => {
                let entries = entries.into_iter().filter(|entry| !since.contains_key(&entry.key()));
                self.read.extend(entries);
                self.saved = Some(SnapshotSource { snapshot, since });
            }
            Ok(None) => {
                self.read.extend(since.drain().map(|(_, change)| change));
                self.left.clear();
            }
            // The entries read so far are right. Read the others from the rows.
            Err(error) => {
                tracing::warn!(%error, "a snapshot of the status table is incomplete; reading the rows instead");
            }
        }
    }

    fn read_rows(&mut self, store: &dyn Store, rows: usize) -> Result<(), StoreError> {
        self.table.note_changes();
        let Some((from, to)) = self.left.pop_front() else { return Ok(()) };
        let (mut count, mut last) = (0, Vec::new());
        let read = store.range(&from, &to, &mut |key, row| {
            self.read.extend(EntryChange::of(self.table.key, key, Some(row)));
            count += 1;
            last = key.to_vec();
            count < rows
        });
        if read.is_err() {
            // The table records no changes until these rows are read again.
            self.table.entries_mut().coverage = Coverage::Partial;
            self.read.clear();
            self.left.push_front((from, to));
        } else if count >= rows {
            self.left.push_front((key::after(&last), to));
        }
        read
    }

    /// Adds the entries read to the table. Returns whether there is more to read; otherwise the table is
    /// complete.
    pub(crate) fn put(&mut self) -> bool {
        self.put_with(Entries::fill_in)
    }

    /// Like [`put`](Self::put), but overwrites newer changes. The simulation plants this mistake.
    #[cfg(feature = "simulation")]
    pub(crate) fn put_over(&mut self) -> bool {
        self.put_with(Entries::apply)
    }

    fn put_with(&mut self, put: impl Fn(&mut Entries, EntryChange)) -> bool {
        let mut read = std::mem::take(&mut self.read).into_iter().peekable();
        while read.peek().is_some() {
            let mut entries = self.table.entries_mut();
            read.by_ref().take(CHANGES_AT_ONCE).for_each(|change| put(&mut entries, change));
        }
        let is_over = self.saved.is_none() && self.left.is_empty();
        if is_over {
            self.table.entries_mut().coverage = Coverage::Complete;
        }
        !is_over
    }
}

fn rows_of(run: Range<ShardId>) -> VecDeque<(Vec<u8>, Vec<u8>)> {
    let shards = (run.start.0..run.end.0).map(ShardId);
    shards.flat_map(|shard| [RowKind::Group, RowKind::Page].map(|kind| key::all(shard, kind))).collect()
}

impl StatusTable {
    /// Records from now on which entries change.
    fn note_changes(&self) {
        self.entries_mut().coverage = Coverage::Filling(HashSet::new());
    }
}
