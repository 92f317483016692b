//! What the router of the index keeps, in rows of the first shard. To the machine these are bytes.

use doppel_protocol::IndexStateItem;

use super::Machine;
use crate::key;
use crate::record::encode;
use crate::store::StoreError;

impl Machine<'_, '_> {
    /// Keeps an item in the place of what was there; with none, nothing any more.
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
