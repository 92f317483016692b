//! Reading rows. A range of rows is read in pieces, between which others may write, or open the database anew.

use std::sync::Arc;

use super::place::Place;
use super::unmoved::{Piece, Row};
use super::{Inner, id_of, is_signature, position};
use crate::store::{Store, StoreError, Write};

/// The rows of a database, read without keeping them for the next reader.
pub(super) struct Uncached(pub(super) Arc<Place>);

/// Takes a key and a row as it is stored, and says whether to go on.
type EachRow<'e> = dyn FnMut(&[u8], &[u8]) -> Result<bool, StoreError> + 'e;

/// Takes a key and a row, and says whether to go on.
type Each<'e> = dyn FnMut(&[u8], &[u8]) -> bool + 'e;

impl Inner {
    /// A row as it is stored.
    pub(super) fn row(&self, key: &[u8], keep: bool) -> Result<Option<Row>, StoreError> {
        if let Some(row) = self.unmoved().get(key) {
            return Ok(row);
        }
        if keep { self.recent.get(&*self.rows, key) } else { self.rows.get(key) }
    }

    /// A row. With `keep` it comes from memory the next time.
    pub(super) fn get(&self, key: &[u8], keep: bool) -> Result<Option<Vec<u8>>, StoreError> {
        let Some(row) = self.row(key, keep)? else { return Ok(None) };
        if !is_signature(key) {
            return Ok(Some(row));
        }
        match self.signatures.read(id_of(key, &row)?) {
            Ok(bytes) => Ok(Some(bytes)),
            // The page may have another content since, and this one may be gone.
            Err(error) => match self.row(key, keep)? {
                Some(now) if now == row => Err(error),
                Some(now) => self.signatures.read(id_of(key, &now)?).map(Some),
                None => Ok(None),
            },
        }
    }

    /// Calls `each` with the first of the rows as they are stored. Where the others begin; none when there are none, or none is
    /// wanted.
    fn raw_piece(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut EachRow<'_>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        let from = from.max(position::AFTER);
        if from >= to {
            return Ok(None);
        }
        // What is in memory first: what is moved in between is then read twice, and not missed.
        let window = self.unmoved().window(from, to);
        let Piece { rows, end } = window.over(&*self.rows, from, to)?;
        for (key, row) in &rows {
            if !each(key, row)? {
                return Ok(None);
            }
        }
        Ok(Some(end))
    }

    /// Calls `each` with the rows as they are stored.
    pub(super) fn raw_range(&self, from: &[u8], to: &[u8], each: &mut EachRow<'_>) -> Result<(), StoreError> {
        let mut next = self.raw_piece(from, to, each)?;
        while let Some(from) = next {
            next = self.raw_piece(&from, to, each)?;
        }
        Ok(())
    }

    /// The same as [`raw_piece`](Self::raw_piece), with the bytes of signatures.
    pub(super) fn piece(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut Each<'_>,
    ) -> Result<Option<Vec<u8>>, StoreError> {
        self.raw_piece(from, to, &mut |key, row| {
            if !is_signature(key) {
                return Ok(each(key, row));
            }
            match self.signatures.read(id_of(key, row)?) {
                Ok(bytes) => Ok(each(key, &bytes)),
                Err(_) => match self.get(key, false) {
                    Ok(row) => Ok(row.is_none_or(|bytes| each(key, &bytes))),
                    // The id in its place is no signature, so whoever reads all rows finds this one damaged and goes on.
                    Err(error) => {
                        tracing::error!(%error, "a signature cannot be read");
                        Ok(each(key, row))
                    }
                },
            }
        })
    }
}

impl Place {
    /// Calls `each` with the rows of a range. What is open is held for one piece at a time, so that it can be opened anew while
    /// somebody reads all of it.
    pub(super) fn range(&self, from: &[u8], to: &[u8], each: &mut Each<'_>) -> Result<(), StoreError> {
        let mut next = self.live()?.inner.piece(from, to, each)?;
        while let Some(from) = next {
            next = self.live()?.inner.piece(&from, to, each)?;
        }
        Ok(())
    }
}

impl Store for Uncached {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.live()?.inner.get(key, false)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.0.range(from, to, each)
    }

    /// The machine reads here, and its driver writes to the database itself.
    fn commit(&self, _: Vec<Write>) -> Result<(), StoreError> {
        Err(StoreError::Engine("these rows are for reading".to_owned()))
    }
}
