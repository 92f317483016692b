//! How much of the log the store of rows has: a row of its own, before all others.

use serde::{Deserialize, Serialize};

use crate::log::{LogId, Reached};
use crate::record::{decode, encode};
use crate::signatures::Noted;
use crate::store::{Store, StoreError, Write};

/// The key of the row. Every other key begins with the two bytes of a shard, so it comes after this.
const KEY: &[u8] = b"\0";

/// Where the other rows begin.
pub(super) const AFTER: &[u8] = b"\0\0";

/// The row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Applied {
    pub(super) log: LogId,
    /// The last record of which the store has the rows.
    pub(super) reached: Reached,
    /// The signatures that were there then.
    pub(super) signatures: Vec<Noted>,
    /// Their bytes after they were last compacted.
    pub(super) compacted_bytes: u64,
    /// What is not used of them is to be erased.
    pub(super) erasing: bool,
}

impl Applied {
    pub(super) fn read(store: &dyn Store) -> Result<Option<Self>, StoreError> {
        store.get(KEY)?.map(|bytes| decode(KEY, &bytes)).transpose()
    }

    pub(super) fn write(&self) -> Result<Write, StoreError> {
        Ok((KEY.to_vec(), Some(encode(self)?)))
    }
}
