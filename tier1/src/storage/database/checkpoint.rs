//! The checkpoint: how much of the log the store of rows has. It is a row in that store, before all others.

use serde::{Deserialize, Serialize};

use crate::rows::record::{decode, encode};
use crate::storage::log::{LogId, SequencedPosition};
use crate::storage::signatures::SegmentCheckpoint;
use crate::storage::store::{Store, StoreError, Write};

/// Key of the checkpoint. Every other key begins with the two bytes of a shard number and so comes later.
const KEY: &[u8] = b"\0";

/// Smallest key that another row can have.
pub(super) const AFTER: &[u8] = b"\0\0";

/// What the store of rows and the signature files have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    pub(super) log: LogId,
    /// Last record whose rows the store has.
    pub(super) reached: SequencedPosition,
    /// Segments of signatures at that time.
    pub(super) signatures: Vec<SegmentCheckpoint>,
    /// Size of the segments in bytes after their last compaction.
    pub(super) compacted_bytes: u64,
    /// Whether unused signatures must be erased.
    pub(super) erasing: bool,
}

impl Checkpoint {
    pub(super) fn read(store: &dyn Store) -> Result<Option<Self>, StoreError> {
        store.get(KEY)?.map(|bytes| decode(KEY, &bytes)).transpose()
    }

    pub(super) fn write(&self) -> Result<Write, StoreError> {
        Ok((KEY.to_vec(), Some(encode(self)?)))
    }
}
