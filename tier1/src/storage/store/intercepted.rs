//! A store in memory. A test can change or refuse its commits and scans.
#![allow(unreachable_pub, reason = "the simulation hands it out")]

use super::{Memory, Store, StoreError, Write};

/// Decides what happens to each commit and scan.
pub trait Intercept: Send + Sync {
    /// Applies a commit to `rows`, the content of the store. A test may change the commit or drop it.
    ///
    /// # Errors
    /// Returns the error that the writer should get.
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        rows.commit(writes)
    }

    /// Reads rows as [`Store::range`] does.
    ///
    /// # Errors
    /// Returns the error that the reader should get.
    fn range(
        &self,
        rows: &Memory,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        rows.range(from, to, each)
    }
}

/// A store in memory whose commits and scans pass through `by`.
#[derive(Debug, Default)]
pub struct Intercepted<I> {
    /// Rows of the store.
    pub rows: Memory,
    /// Receives the commits and scans.
    pub by: I,
}

impl<I> Intercepted<I> {
    /// Creates an empty store.
    pub fn new(by: I) -> Self {
        Self { rows: Memory::default(), by }
    }
}

impl<I: Intercept> Store for Intercepted<I> {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.rows.get(key)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.by.range(&self.rows, from, to, each)
    }

    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        self.by.commit(&self.rows, writes)
    }
}
