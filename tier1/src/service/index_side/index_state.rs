//! The durable state of the index's router, which sits with the owner of the first range. The state is kept
//! in rows of that range, so all its replicas have it.
//!
//! Invariant: nothing is written for an ownership that is over. A task for a writer that has ended is
//! refused, and a commit of a deposed owner does not count in the log.

use std::sync::Arc;
use std::time::{Duration, Instant};

use doppel_model::{Epoch, RangeId};
use doppel_protocol::{INDEX_STATE_BYTES_MAX, IndexState, IndexStateError, IndexStateItem, Tier1Error};

use crate::machine::Command;
use crate::rows::key;
use crate::rows::record::decode;
use crate::service::index_side::IndexSide;
use crate::service::ownership::owner::Owner;
use crate::service::ownership::ranges::RangeRegistry;
use crate::service::writer::task::Task;

/// How long the router waits for a commit. It does nothing else in the meantime, and tries again later.
const PATIENCE: Duration = Duration::from_secs(5);

/// The durable items of a router, while this process owns the first range without a break. If it loses the
/// range and owns it again, the next router gets another value.
pub struct IndexStateRows {
    ranges: Arc<RangeRegistry>,
    range: RangeId,
    epoch: Epoch,
}

impl IndexSide {
    /// The durable items of the router of this process.
    ///
    /// # Errors
    ///
    /// If this process does not own the first range at present.
    pub(in crate::service) fn state_rows(&self) -> Result<IndexStateRows, Tier1Error> {
        let range = self.collection.map.of_shard(key::INDEX_STATE_SHARD);
        let epoch = self.ranges.answering_owner(range)?.epoch;
        Ok(IndexStateRows { ranges: Arc::clone(&self.ranges), range, epoch })
    }
}

impl IndexStateRows {
    fn owner(&self) -> Result<Arc<Owner>, IndexStateError> {
        let owner = self.ranges.answering_owner(self.range).map_err(Tier1Error::from)?;
        if owner.epoch != self.epoch {
            let why = format!(
                "this process owns range {} under a later epoch, which has another router",
                self.range
            );
            return Err(IndexStateError::Unavailable(why));
        }
        Ok(owner)
    }

    fn commit(&self, item: IndexStateItem, bytes: Option<&[u8]>) -> Result<(), IndexStateError> {
        let owner = self.owner()?;
        let size = bytes.map_or(0, <[u8]>::len);
        let commands = vec![Command::KeepIndexState { item, bytes: bytes.map(Box::from) }];
        let kept = owner.ask(size, |reply| Task::Apply { commands, may_wait: false, reply });
        Ok(kept.and_then(|kept| kept.wait_until(Instant::now() + PATIENCE)?)?)
    }
}

impl IndexState for IndexStateRows {
    fn check(&self) -> Result<(), IndexStateError> {
        self.owner().map(drop)
    }

    fn load(&self, item: IndexStateItem) -> Result<Option<Vec<u8>>, IndexStateError> {
        let key = key::index_state(item);
        let row = self.owner()?.uncached_store.get(&key);
        // A failing disk says nothing about the items, because the other replicas have them, too.
        let unread = |why: String| IndexStateError::Unavailable(why);
        let row = row.map_err(|error| unread(error.to_string()))?;
        row.map(|row| decode(&key, &row)).transpose().map_err(|error| unread(error.to_string()))
    }

    fn store(&self, item: IndexStateItem, bytes: &[u8]) -> Result<(), IndexStateError> {
        if bytes.len() > INDEX_STATE_BYTES_MAX {
            let why =
                format!("the item has {} bytes; at most {INDEX_STATE_BYTES_MAX} are possible", bytes.len());
            return Err(IndexStateError::Refused(why));
        }
        self.commit(item, Some(bytes))
    }

    fn remove(&self, item: IndexStateItem) -> Result<(), IndexStateError> {
        self.commit(item, None)
    }

    fn put_aside(&self, item: IndexStateItem) -> Result<(), IndexStateError> {
        self.commit(item, None)
    }
}
