//! Reading rows. A range of rows is read in pieces. Between two pieces, others may write to the database or
//! reopen it.

use std::sync::Arc;

use super::handle::DatabaseHandle;
use super::memtable::{Piece, Row};
use super::{Inner, checkpoint, is_signature, signature_id_of};
use crate::storage::store::{Store, StoreError, Write};

/// The rows of a database, read without filling the row cache.
pub(super) struct Uncached(pub(super) Arc<DatabaseHandle>);

/// Receives a key and a stored row. Returns whether to continue.
type StoredRowVisitor<'e> = dyn FnMut(&[u8], &[u8]) -> Result<bool, StoreError> + 'e;

/// Receives a key and a row. Returns whether to continue.
type RowVisitor<'e> = dyn FnMut(&[u8], &[u8]) -> bool + 'e;

impl Inner {
    /// Returns a row as it is stored: the row of a signature has its id. With `keep`, the row cache keeps the
    /// row.
    pub(super) fn row(&self, key: &[u8], keep: bool) -> Result<Option<Row>, StoreError> {
        if let Some(row) = self.memtable().get(key) {
            return Ok(row);
        }
        if keep { self.row_cache.get(&*self.rows, key) } else { self.rows.get(key) }
    }

    /// Returns a row, with the bytes of a signature. With `keep`, the row cache keeps the row.
    pub(super) fn get(&self, key: &[u8], keep: bool) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(row) = self.row(key, keep)? else { return Ok(None) };
        if !is_signature(key) {
            return Ok(Some(row));
        }
        match self.signatures.read(signature_id_of(key, &row)?) {
            Ok(bytes) => Ok(Some(bytes)),
            // The page may have got another content since, and the old signature may be gone.
            Err(error) => match self.row(key, keep)? {
                Some(now) if now == row => Err(error),
                Some(now) => self.signatures.read(signature_id_of(key, &now)?).map(Some),
                None => Ok(None),
            },
        }
    }

    /// Calls `each` with the first rows of a range, as they are stored. Returns the key at which the next
    /// piece begins; `None` if there are no more rows or `each` has returned `false`.
    fn raw_piece(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut StoredRowVisitor<'_>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let from = from.max(checkpoint::AFTER);
        if from >= to {
            return Ok(None);
        }
        // Read the rows in memory first. A row that is moved meanwhile is then read twice instead of missed.
        let window = self.memtable().window(from, to);
        let Piece { rows, end } = window.merge_with(&*self.rows, from, to)?;
        for (key, row) in &rows {
            if !each(key, row)? {
                return Ok(None);
            }
        }
        Ok(Some(end))
    }

    /// Calls `each` with all rows of a range, as they are stored.
    pub(super) fn raw_range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut StoredRowVisitor<'_>,
    ) -> Result<(), StoreError> {
        let mut next = self.raw_piece(from, to, each)?;
        while let Some(from) = next {
            next = self.raw_piece(&from, to, each)?;
        }
        Ok(())
    }

    /// Like [`raw_piece`](Self::raw_piece), but passes the bytes of signatures.
    pub(super) fn piece(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut RowVisitor<'_>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.raw_piece(from, to, &mut |key, row| {
            if !is_signature(key) {
                return Ok(each(key, row));
            }
            match self.signatures.read(signature_id_of(key, row)?) {
                Ok(bytes) => Ok(each(key, &bytes)),
                Err(_) => match self.get(key, false) {
                    Ok(row) => Ok(row.is_none_or(|bytes| each(key, &bytes))),
                    // Pass the id instead of the bytes. A reader of all rows then finds this row damaged and
                    // continues.
                    Err(error) => {
                        tracing::error!(%error, "cannot read a signature");
                        Ok(each(key, row))
                    }
                },
            }
        })
    }
}

impl DatabaseHandle {
    /// Calls `each` with the rows of a range. Holds the open database for one piece at a time, so that it can
    /// be reopened during a long read.
    pub(super) fn range(&self, from: &[u8], to: &[u8], each: &mut RowVisitor<'_>) -> Result<(), StoreError> {
        let mut next = self.current()?.inner.piece(from, to, each)?;
        while let Some(from) = next {
            next = self.current()?.inner.piece(&from, to, each)?;
        }
        Ok(())
    }
}

impl Store for Uncached {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.current()?.inner.get(key, false)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.0.range(from, to, each)
    }

    /// Always fails. The machine reads from this store, and the range commits to the database itself.
    fn commit(&self, _: Vec<Write>) -> Result<(), StoreError> {
        Err(StoreError::Engine("these rows are read-only".to_owned()))
    }
}
