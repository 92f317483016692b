//! Rows that are in the log and not yet in the store of rows: those of the last commits, and those being moved.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use crate::key;
use crate::log::Reached;
use crate::store::{Store, StoreError, Write};

/// From here on rows are moved.
const ROWS_LARGE: usize = 128_000;
const BYTES_LARGE: usize = 48 << 20;

/// Rows of a piece.
const WINDOW_ROWS: usize = 256;

/// A row.
pub(super) type Row = Vec<u8>;

/// Rows by key; none where one was deleted.
pub(super) type Rows = BTreeMap<Vec<u8>, Option<Row>>;

/// The rows.
#[derive(Debug, Default)]
pub(super) struct Unmoved {
    rows: Rows,
    bytes: usize,
    /// The last commit of which there are rows.
    last: Reached,
    /// Those that are being moved.
    moving: Option<(Arc<Rows>, Reached)>,
}

impl Unmoved {
    /// Takes the rows of a commit.
    pub(super) fn insert(&mut self, writes: Vec<Write>, last: Reached) {
        for (key, row) in writes {
            self.bytes += key.len() + row.as_ref().map_or(0, Vec::len);
            self.rows.insert(key, row);
        }
        self.last = last;
    }

    /// The row of a key, where it is here: a row that was deleted is none.
    pub(super) fn get(&self, key: &[u8]) -> Option<Option<Row>> {
        let moving = || self.moving.as_ref().and_then(|(rows, _)| rows.get(key));
        self.rows.get(key).or_else(moving).cloned()
    }

    /// Whether it is time to move them.
    pub(super) fn is_large(&self) -> bool {
        self.rows.len() >= ROWS_LARGE || self.bytes >= BYTES_LARGE
    }

    /// Whether a commit has to wait.
    pub(super) fn is_full(&self) -> bool {
        let much = self.rows.len() >= 2 * ROWS_LARGE || self.bytes >= 2 * BYTES_LARGE;
        much || self.moving.is_some() && self.is_large()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.moving.is_none()
    }

    /// Sets the rows of all commits so far aside, to be moved, unless an attempt that failed has left some: then these.
    pub(super) fn begin_to_move(&mut self) -> Option<(Arc<Rows>, Reached)> {
        if self.moving.is_none() && !self.rows.is_empty() {
            self.moving = Some((Arc::new(std::mem::take(&mut self.rows)), self.last));
            self.bytes = 0;
        }
        self.moving.clone()
    }

    /// Whether rows are set aside, to be moved or because a move has failed.
    pub(super) fn has_set_aside(&self) -> bool {
        self.moving.is_some()
    }

    /// The store of rows has those that were set aside.
    pub(super) fn moved(&mut self) {
        self.moving = None;
    }

    /// The first rows from `from` on.
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

/// Some rows in order, and where the next piece begins.
pub(super) struct Piece {
    pub(super) rows: Vec<(Vec<u8>, Row)>,
    pub(super) end: Vec<u8>,
}

/// Rows in memory, and the key up to which these are all.
pub(super) struct Window {
    rows: Rows,
    end: Vec<u8>,
}

impl Window {
    /// With those of a store in between.
    pub(super) fn over(mut self, store: &dyn Store, from: &[u8], to: &[u8]) -> Result<Piece, StoreError> {
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
