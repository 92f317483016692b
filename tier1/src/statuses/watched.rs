//! A store whose commits the status table follows.

use std::sync::Arc;

use super::StatusTable;
use super::changes::Change;
use crate::store::{Store, StoreError, Write};

/// The store, and the table of its rows. Whoever writes rows writes them here.
pub(crate) struct Watched {
    store: Arc<dyn Store>,
    table: Arc<StatusTable>,
}

impl Watched {
    pub(crate) fn new(store: Arc<dyn Store>, table: Arc<StatusTable>) -> Self {
        Self { store, table }
    }
}

impl Store for Watched {
    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.store.get(key)
    }

    fn range(
        &self,
        from: &[u8],
        to: &[u8],
        each: &mut dyn FnMut(&[u8], &[u8]) -> bool,
    ) -> Result<(), StoreError> {
        self.store.range(from, to, each)
    }

    /// What a commit that fails would have changed stays with the rows: what is there of it is not known.
    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let secret = self.table.key;
        let changes = writes.iter().filter_map(|(key, row)| Change::of(secret, key, row.as_deref()));
        let changes: Vec<Change> = changes.collect();
        self.table.leave_to_rows(&changes);
        self.store.commit(writes)?;
        self.table.take(changes);
        Ok(())
    }

    fn settle(&self) -> Result<(), StoreError> {
        self.store.settle()
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.store.flush()
    }

    fn bytes_on_disk(&self) -> u64 {
        self.store.bytes_on_disk()
    }
}
