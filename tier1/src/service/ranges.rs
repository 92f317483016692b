//! The way to every range: to one of this process, a post is a task for its writer, and a read goes to its store; to
//! another process, both are calls.

use std::collections::BTreeMap;
use std::sync::Arc;

use crossbeam::channel::bounded;
use doppel_model::RangeId;
use doppel_protocol::range_owner::{PostDone, RangeOwner};

use super::owner::Owner;
use super::task::Task;
use crate::peers::{PeerError, Peers, Post, PostAnswer, READ_BYTES};
use crate::store::StoreError;
use crate::txn::Row;

/// The ranges that other processes own, and how each is reached.
pub type OtherRanges = BTreeMap<RangeId, Arc<dyn RangeOwner>>;

/// All ranges of a collection.
pub(super) struct Ranges {
    /// By range.
    owners: Vec<Option<Arc<Owner>>>,
    others: OtherRanges,
}

impl Ranges {
    pub(super) fn new(owners: Vec<Option<Arc<Owner>>>, others: OtherRanges) -> Self {
        Self { owners, others }
    }

    /// The range, where this process owns it.
    pub(super) fn own(&self, range: RangeId) -> Result<&Arc<Owner>, PeerError> {
        let owner = self.owners.get(usize::from(range.0)).and_then(Option::as_ref);
        owner.ok_or(PeerError::NotOwner(range))
    }

    /// Another process that owns the range; none where this one does.
    pub(super) fn other(&self, range: RangeId) -> Option<&Arc<dyn RangeOwner>> {
        self.others.get(&range)
    }
}

impl Peers for Ranges {
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError> {
        let to = post.to;
        let (reply, answer) = bounded(1);
        // Whoever gave up waiting does not want the answer any more.
        let done: PostDone = Box::new(move |answer| drop(reply.send(answer)));
        if let Some(other) = self.other(to) {
            other.post(post.encoded()?, done);
        } else {
            let task = Task::Posted { post, done };
            self.own(to)?.tasks.send(task).map_err(|_| PeerError::unreachable(to, "it has ended"))?;
        }
        Ok(answer)
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        if let Some(other) = self.other(range) {
            return other.rows(range, keys);
        }
        let owner = self.own(range)?;
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
        if let Some(other) = self.other(range) {
            return other.scan(range, from, to, limit);
        }
        let (mut rows, mut bytes) = (Vec::new(), 0);
        self.own(range)?.store.range(from, to, &mut |key, value| {
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
