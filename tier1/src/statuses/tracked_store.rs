//! A store that updates the status table with every commit.

use std::sync::Arc;

use super::StatusTable;
use super::changes::EntryChange;
use crate::storage::store::{Store, StoreError, Write};

/// A store and the table of its rows. All writers of the range must write to this store.
pub(crate) struct TrackedStore {
    store: Arc<dyn Store>,
    table: Arc<StatusTable>,
}

impl TrackedStore {
    pub(crate) fn new(store: Arc<dyn Store>, table: Arc<StatusTable>) -> Self {
        Self { store, table }
    }
}

impl Store for TrackedStore {
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

    /// Commits to the store, then to the table. If the commit fails, its entries stay left to the rows,
    /// because it is unknown which rows were written.
    fn commit(&self, writes: Vec<Write>) -> Result<(), StoreError> {
        let secret = self.table.key;
        let changes = writes.iter().filter_map(|(key, row)| EntryChange::of(secret, key, row.as_deref()));
        let changes: Vec<EntryChange> = changes.collect();
        self.table.leave_to_rows(&changes);
        self.store.commit(writes)?;
        self.table.apply(changes);
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
