//! A store in memory whose commits and scans go through a test.
#![allow(unreachable_pub, reason = "the simulation hands it out")]

use super::{Memory, Store, StoreError, Write};

/// What a test does with each commit and scan.
pub trait Intercept: Send + Sync {
    /// Takes a commit to `rows`, which the store has: as it is, otherwise, or not at all.
    ///
    /// # Errors
    /// What the writer is to be told.
    fn commit(&self, rows: &Memory, writes: Vec<Write>) -> Result<(), StoreError> {
        rows.commit(writes)
    }

    /// Reads rows, as [`Store::range`] does.
    ///
    /// # Errors
    /// What the reader is to be told.
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

/// The store.
#[derive(Debug, Default)]
pub struct Intercepted<I> {
    /// What it holds.
    pub rows: Memory,
    /// What takes its commits and scans.
    pub by: I,
}

impl<I> Intercepted<I> {
    /// An empty store.
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
