//! State of the index's router, in rows of the first shard. The machine stores it as bytes and does not
//! interpret it.

use doppel_protocol::IndexStateItem;

use super::Machine;
use crate::rows::key;
use crate::rows::record::encode;
use crate::storage::store::StoreError;

impl Machine<'_, '_> {
    /// Stores an item, and replaces its old value. Deletes the item if `bytes` is `None`.
    pub(super) fn keep_index_state(
        &mut self,
        item: IndexStateItem,
        bytes: Option<&[u8]>,
    ) -> Result<(), StoreError> {
        let key = key::index_state(item);
        match bytes {
            Some(bytes) => self.txn.put(key, encode(&bytes)?),
            None => self.txn.delete(key),
        }
        Ok(())
    }
}
