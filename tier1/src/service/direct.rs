//! The ranges of one process to each other: a post is a task for the other writer, a read goes to its store.

use std::sync::Arc;

use crossbeam::channel::bounded;
use doppel_model::RangeId;

use super::owner::Owner;
use super::task::Task;
use crate::peers::{PeerError, Peers, Post, PostAnswer, READ_BYTES};
use crate::store::StoreError;
use crate::txn::Row;

/// All ranges of a collection, in one process.
pub(super) struct Direct {
    owners: Vec<Arc<Owner>>,
}

impl Direct {
    pub(super) fn new(owners: Vec<Arc<Owner>>) -> Self {
        Self { owners }
    }

    fn owner(&self, range: RangeId) -> Result<&Owner, PeerError> {
        self.owners.get(usize::from(range.0)).map(|owner| &**owner).ok_or(PeerError::Unreachable(range))
    }
}

impl Peers for Direct {
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError> {
        let to = post.to;
        let (reply, answer) = bounded(1);
        let task = Task::Posted { post, reply };
        self.owner(to)?.tasks.send(task).map_err(|_| PeerError::Unreachable(to))?;
        Ok(answer)
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        let owner = self.owner(range)?;
        let (mut rows, mut bytes) = (Vec::with_capacity(keys.len()), 0);
        for key in keys {
            let row = owner.store.get(key)?;
            bytes += row.as_ref().map_or(0, Vec::len);
            rows.push(row);
            if bytes >= READ_BYTES {
                break;
            }
        }
        Ok(rows)
    }

    fn scan(&self, range: RangeId, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Row>, PeerError> {
        let (mut rows, mut bytes) = (Vec::new(), 0);
        self.owner(range)?.store.range(from, to, &mut |key, value| {
            bytes += key.len() + value.len();
            rows.push((key.to_vec(), value.to_vec()));
            rows.len() < limit && bytes < READ_BYTES
        })?;
        Ok(rows)
    }
}

impl From<StoreError> for PeerError {
    fn from(error: StoreError) -> Self {
        Self::Refused(error.into())
    }
}
