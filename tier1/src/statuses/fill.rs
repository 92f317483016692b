//! A start: the table is filled from the rows, piece by piece, while commits go on. They win: what has changed since a piece
//! was read is not taken from it.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use doppel_model::ShardId;

use super::changes::Change;
use super::{CHANGES_AT_ONCE, Coverage, Entries, StatusTable};
use crate::key::{self, Kind};
use crate::store::{Store, StoreError};

/// How far the table of a range is filled.
pub(crate) struct Fill {
    table: Arc<StatusTable>,
    /// What is left to read: from, to.
    left: VecDeque<(Vec<u8>, Vec<u8>)>,
    /// The piece that was read and is not yet in the table.
    read: Vec<Change>,
}

impl Fill {
    /// Over the shards of a range.
    pub(crate) fn new(table: Arc<StatusTable>, run: Range<ShardId>) -> Self {
        let shards = (run.start.0..run.end.0).map(ShardId);
        let left = shards.flat_map(|shard| [Kind::Group, Kind::Page].map(|kind| key::all(shard, kind)));
        Self { table, left: left.collect(), read: Vec::new() }
    }

    /// Reads up to so many rows. The table notes from now on what changes.
    ///
    /// # Errors
    /// When the store fails. The table stays as it is then, and what it does not have is left to the rows.
    pub(crate) fn read(&mut self, store: &dyn Store, rows: usize) -> Result<(), StoreError> {
        self.table.change().coverage = Coverage::Filling(HashSet::new());
        let Some((from, to)) = self.left.pop_front() else { return Ok(()) };
        let (mut count, mut last) = (0, Vec::new());
        let read = store.range(&from, &to, &mut |key, row| {
            self.read.extend(Change::of(&self.table.hasher, key, Some(row)));
            count += 1;
            last = key.to_vec();
            count < rows
        });
        if read.is_err() {
            self.table.change().coverage = Coverage::Partial;
        }
        if count >= rows {
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
        let is_over = self.left.is_empty();
        if is_over {
            self.table.change().coverage = Coverage::Complete;
        }
        !is_over
    }
}
