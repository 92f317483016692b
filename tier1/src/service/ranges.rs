//! The way to every range: to one of this process, a post is a task for its writer, and a read goes to its store; to
//! another process, both are calls.
//!
//! Ranges come and go while the process runs. Whoever has found an owner here keeps it for one call; its threads say
//! themselves when they have ended.

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

/// The ranges that other processes own, and how each is reached, where owners are fixed.
pub type OtherRanges = BTreeMap<RangeId, Arc<dyn RangeOwner>>;

/// By range; none of those that are not of this process.
type ByRange = Vec<Option<Arc<Owner>>>;

/// All ranges of a collection.
pub(super) struct Ranges {
    owners: RwLock<ByRange>,
    /// Held while a range begins or ends.
    changing: Vec<Mutex<()>>,
    /// The replicas of this process, by range, as long as their keeper has them.
    replicas: RwLock<Vec<Weak<Replica>>>,
    pub(super) directory: Arc<dyn RangeDirectory>,
}

/// The ranges of this process, which do not change while this is kept.
pub(super) struct Owners<'r>(RwLockReadGuard<'r, ByRange>);

impl Owners<'_> {
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<Owner>> {
        self.0.iter().flatten().filter(|owner| !owner.is_stopping())
    }
}

impl Ranges {
    /// None of them is of this process yet.
    pub(super) fn new(map: RangeMap, directory: Arc<dyn RangeDirectory>) -> Self {
        let owners = RwLock::new(map.ranges().map(|_| None).collect());
        let changing = map.ranges().map(|_| Mutex::default()).collect();
        let replicas = RwLock::new(map.ranges().map(|_| Weak::new()).collect());
        Self { owners, changing, replicas, directory }
    }

    /// This process has a replica, for as long as somebody else keeps it.
    pub(super) fn has_replica(&self, replica: &Arc<Replica>) {
        let mut replicas = self.replicas.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = replicas.get_mut(usize::from(replica.range().0)) {
            *place = Arc::downgrade(replica);
        }
    }

    /// The replica of a range that this process has.
    pub(super) fn replica(&self, range: RangeId) -> Option<Arc<Replica>> {
        let replicas = self.replicas.read().unwrap_or_else(PoisonError::into_inner);
        replicas.get(usize::from(range.0))?.upgrade()
    }

    /// The ranges of this process. Nothing is to be waited for while this is kept.
    pub(super) fn owners(&self) -> Owners<'_> {
        Owners(self.owners.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The same to keep, and with them those that were deposed and are still to be ended.
    pub(super) fn all(&self) -> Vec<Arc<Owner>> {
        self.owners().0.iter().flatten().map(Arc::clone).collect()
    }

    /// The range, where this process owns it.
    pub(super) fn here(&self, range: RangeId) -> Option<Arc<Owner>> {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        let owner = owners.get(usize::from(range.0))?.as_ref()?;
        (!owner.is_stopping()).then(|| Arc::clone(owner))
    }

    /// The same for whoever wants an answer of it: it may not have one at present.
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

    /// Whether other processes have ranges at all, or may have some.
    pub(super) fn has_others(&self) -> bool {
        self.directory.has_others()
    }

    /// Waits until nobody else begins or ends the range; nobody does while this is kept.
    pub(super) fn changing(&self, range: RangeId) -> Option<MutexGuard<'_, ()>> {
        let changing = self.changing.get(usize::from(range.0))?;
        Some(changing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a range can begin here: it is not of this process, and not on its way to its end.
    pub(super) fn is_free(&self, range: RangeId) -> bool {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        owners.get(usize::from(range.0)).is_some_and(Option::is_none)
    }

    /// Makes a range one of this process.
    pub(super) fn put(&self, owner: &Arc<Owner>) {
        if let Some(place) = self.write().get_mut(usize::from(owner.id.0)) {
            *place = Some(Arc::clone(owner));
        }
    }

    /// The range is not of this process any more.
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
        // Whoever gave up waiting does not want the answer any more.
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
