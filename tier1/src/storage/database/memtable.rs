//! Rows in memory: rows that are in the log and not yet in the store of rows. They are the rows of recent
//! commits, and the rows that are being moved.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::rows::key;
use crate::storage::log::SequencedPosition;
use crate::storage::store::{Store, StoreError, Write};

/// Number of rows, and their size in bytes, from which rows are moved.
const ROWS_LARGE: usize = 128_000;
const BYTES_LARGE: usize = 48 << 20;

/// Maximum number of rows that a piece takes from each source.
const WINDOW_ROWS: usize = 256;

/// The value of a row.
pub(super) type Row = Vec<u8>;

/// Rows by key. `None` means that the row was deleted.
pub(super) type Rows = BTreeMap<Vec<u8>, Option<Row>>;

/// Rows that are not yet in the store of rows.
#[derive(Debug, Default)]
pub(super) struct Memtable {
    rows: Rows,
    bytes: usize,
    /// Position of the last commit whose rows are here.
    last: SequencedPosition,
    /// Rows that are being moved, and the position of their last commit.
    moving: Option<(Arc<Rows>, SequencedPosition)>,
}

impl Memtable {
    /// Adds the rows of a commit.
    pub(super) fn insert(&mut self, writes: Vec<Write>, last: SequencedPosition) {
        for (key, row) in writes {
            self.bytes += key.len() + row.as_ref().map_or(0, Vec::len);
            self.rows.insert(key, row);
        }
        self.last = last;
    }

    /// Returns the row of a key if it is in memory. `Some(None)` means that the row was deleted.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Row>> {
        let moving = || self.moving.as_ref().and_then(|(rows, _)| rows.get(key));
        self.rows.get(key).or_else(moving).cloned()
    }

    /// Returns whether it is time to move rows.
    pub(super) fn is_large(&self) -> bool {
        self.rows.len() >= ROWS_LARGE || self.bytes >= BYTES_LARGE
    }

    /// Returns whether the next commit must wait until rows were moved.
    pub(super) fn is_full(&self) -> bool {
        let much = self.rows.len() >= 2 * ROWS_LARGE || self.bytes >= 2 * BYTES_LARGE;
        much || self.moving.is_some() && self.is_large()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.moving.is_none()
    }

    /// Sets the rows of all commits so far aside, to be moved. If a failed move has left rows, returns these
    /// instead.
    pub(super) fn begin_move(&mut self) -> Option<(Arc<Rows>, SequencedPosition)> {
        if self.moving.is_none() && !self.rows.is_empty() {
            self.moving = Some((Arc::new(std::mem::take(&mut self.rows)), self.last));
            self.bytes = 0;
        }
        self.moving.clone()
    }

    /// Returns whether rows are set aside, because a move is under way or has failed.
    pub(super) fn has_set_aside(&self) -> bool {
        self.moving.is_some()
    }

    /// Forgets the rows that were set aside, because the store of rows has them.
    pub(super) fn end_move(&mut self) {
        self.moving = None;
    }

    /// Returns the first rows of a range.
    pub(super) fn window(&self, from: &[u8], to: &[u8]) -> Window {
        let mut rows = Rows::new();
        let mut end = to.to_vec();
        for some in self.moving.iter().map(|(rows, _)| &**rows).chain([&self.rows]) {
            let mut between = some.range::<[u8], _>((Bound::Included(from), Bound::Excluded(to)));
            let first = between.by_ref().take(WINDOW_ROWS).map(|(key, row)| (key.clone(), row.clone()));
            rows.extend(first);
            if let Some((key, _)) = between.next() {
                end = end.min(key.clone());
            }
        }
        rows.split_off(&end);
        Window { rows, end }
    }
}

/// Some rows in the order of their keys, and the key at which the next piece begins.
pub(super) struct Piece {
    pub(super) rows: Vec<(Vec<u8>, Row)>,
    pub(super) end: Vec<u8>,
}

/// The rows in memory up to the key `end`.
pub(super) struct Window {
    rows: Rows,
    end: Vec<u8>,
}

impl Window {
    /// Adds the rows of a store, and returns the result as a piece.
    pub(super) fn merge_with(
        mut self,
        store: &dyn Store,
        from: &[u8],
        to: &[u8],
    ) -> Result<Piece, StoreError> {
        debug_assert!(&*self.end <= to);
        let mut stored = Rows::new();
        store.range(from, &self.end, &mut |key, row| {
            stored.insert(key.to_vec(), Some(row.to_vec()));
            stored.len() < WINDOW_ROWS
        })?;
        if stored.len() == WINDOW_ROWS
            && let Some((last, _)) = stored.last_key_value()
        {
            self.end = key::after(last);
            self.rows.split_off(&self.end);
        }
        stored.append(&mut self.rows);
        let rows = stored.into_iter().filter_map(|(key, row)| Some((key, row?))).collect();
        Ok(Piece { rows, end: self.end })
    }
}
