//! The registry of ranges: which ones this process owns, and how every other one is reached.
//!
//! A post to a range of this process becomes a task for its writer, and a read goes to its store. Towards
//! another process both are calls. Ranges begin and end while the process runs. A caller that has found an
//! owner keeps it for one call; the owner itself says when it has ended.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use crossbeam::channel::bounded;
use doppel_model::RangeId;
use doppel_protocol::RangeMap;
use doppel_protocol::range_owner::{PostDone, RangeDirectory, RangeOwner};

use super::owner::Owner;
use crate::peers::{PeerError, Peers, Post, PostAnswer};
use crate::replica::Replica;
use crate::txn::Row;

/// How each range that another process owns is reached, if owners are fixed.
pub type OtherRanges = BTreeMap<RangeId, Arc<dyn RangeOwner>>;

/// Owners by range. `None` for every range that this process does not own.
type ByRange = Vec<Option<Arc<Owner>>>;

/// All ranges of a collection.
pub(super) struct Ranges {
    owners: RwLock<ByRange>,
    /// One lock for each range, held while the range begins or ends.
    changing: Vec<Mutex<()>>,
    /// Replicas of this process, by range, as long as the [`Keeper`](crate::Keeper) keeps them.
    replicas: RwLock<Vec<Weak<Replica>>>,
    pub(super) directory: Arc<dyn RangeDirectory>,
}

/// The owners of this process. They do not change while this value is kept.
pub(super) struct Owners<'r>(RwLockReadGuard<'r, ByRange>);

impl Owners<'_> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Owner>> {
        self.0.iter().flatten().filter(|owner| !owner.is_stopping())
    }
}

impl Ranges {
    /// Creates the registry of a process that owns no range yet.
    pub(super) fn new(map: RangeMap, directory: Arc<dyn RangeDirectory>) -> Self {
        let owners = RwLock::new(map.ranges().map(|_| None).collect());
        let changing = map.ranges().map(|_| Mutex::default()).collect();
        let replicas = RwLock::new(map.ranges().map(|_| Weak::new()).collect());
        Self { owners, changing, replicas, directory }
    }

    /// Registers a replica of this process. The registry does not keep it alive.
    pub(super) fn has_replica(&self, replica: &Arc<Replica>) {
        let mut replicas = self.replicas.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = replicas.get_mut(usize::from(replica.range().0)) {
            *place = Arc::downgrade(replica);
        }
    }

    /// The replica of a range, if this process has one.
    pub(super) fn replica(&self, range: RangeId) -> Option<Arc<Replica>> {
        let replicas = self.replicas.read().unwrap_or_else(PoisonError::into_inner);
        replicas.get(usize::from(range.0))?.upgrade()
    }

    /// The owners of this process. The caller must not wait for anything while it keeps the result.
    pub(super) fn owners(&self) -> Owners<'_> {
        Owners(self.owners.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// All owners, to keep. Unlike [`owners`](Self::owners) it includes ownerships that were deposed and not
    /// yet ended.
    pub(super) fn all(&self) -> Vec<Arc<Owner>> {
        self.owners().0.iter().flatten().map(Arc::clone).collect()
    }

    /// The owner of a range, if this process owns it.
    pub(super) fn here(&self, range: RangeId) -> Option<Arc<Owner>> {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        let owner = owners.get(usize::from(range.0))?.as_ref()?;
        (!owner.is_stopping()).then(|| Arc::clone(owner))
    }

    /// Like [`here`](Self::here), but also checks that the owner may answer at present.
    pub(super) fn own(&self, range: RangeId) -> Result<Arc<Owner>, PeerError> {
        let owner = self.here(range).ok_or(PeerError::NotOwner(range))?;
        owner.check()?;
        Ok(owner)
    }

    /// Another process that owns the range.
    pub(super) fn other(&self, range: RangeId) -> Result<Arc<dyn RangeOwner>, PeerError> {
        let other = self.directory.owner(range);
        other.ok_or_else(|| PeerError::unreachable(range, "no owner of it is known"))
    }

    /// Whether other processes own ranges, or may come to own some.
    pub(super) fn has_others(&self) -> bool {
        self.directory.has_others()
    }

    /// Waits until no other thread begins or ends the range. No other thread does while the result is kept.
    pub(super) fn changing(&self, range: RangeId) -> Option<MutexGuard<'_, ()>> {
        let changing = self.changing.get(usize::from(range.0))?;
        Some(changing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a range can begin here: this process neither owns it nor still has a deposed ownership of it.
    pub(super) fn is_free(&self, range: RangeId) -> bool {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        owners.get(usize::from(range.0)).is_some_and(Option::is_none)
    }

    /// Registers the owner of a range.
    pub(super) fn put(&self, owner: &Arc<Owner>) {
        if let Some(place) = self.write().get_mut(usize::from(owner.id.0)) {
            *place = Some(Arc::clone(owner));
        }
    }

    /// Takes a range out of the registry. Callers no longer find it.
    pub(super) fn take(&self, range: RangeId) -> Option<Arc<Owner>> {
        self.write().get_mut(usize::from(range.0))?.take()
    }

    fn write(&self) -> RwLockWriteGuard<'_, ByRange> {
        self.owners.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers for Ranges {
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError> {
        let to = post.to;
        let (reply, answer) = bounded(1);
        // A caller that gave up waiting has dropped its end of the channel.
        let done: PostDone = Box::new(move |answer| drop(reply.send(answer)));
        match self.here(to) {
            Some(owner) => owner.post(post, done),
            None => self.other(to)?.post(post.encoded()?, done),
        }
        Ok(answer)
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        match self.here(range) {
            Some(owner) => owner.rows(keys),
            None => self.other(range)?.rows(range, keys),
        }
    }

    fn scan(&self, range: RangeId, from: &[u8], to: &[u8], limit: usize) -> Result<Vec<Row>, PeerError> {
        match self.here(range) {
            Some(owner) => owner.scan(from, to, limit),
            None => self.other(range)?.scan(range, from, to, limit),
        }
    }
}
