//! The registry of ranges: which ones this process owns, and how every other one is reached.
//!
//! A post to a range of this process becomes a task for its writer, and a read goes to its store. Towards
//! another process both are calls. Ranges begin and end while the process runs. A caller that has found an
//! owner keeps it for one call; the owner itself says when it has ended.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use crossbeam::channel::bounded;
use doppel_contract::Backlog;
use doppel_model::RangeId;
use doppel_protocol::RangeMap;
use doppel_protocol::range_owner::{PostCallback, RangeDirectory, RangeOwner};

use crate::peers::{PeerError, Peers, Post, PostAnswer};
use crate::replica::Replica;
use crate::service::ownership::owner::Owner;
use doppel_protocol::range_owner::EncodedRow;

/// How each range that another process owns is reached, if owners are fixed.
pub type OtherRanges = BTreeMap<RangeId, Arc<dyn RangeOwner>>;

/// Owners by range. `None` for every range that this process does not own.
type ByRange = Vec<Option<Arc<Owner>>>;

/// All ranges of a collection.
pub(in crate::service) struct RangeRegistry {
    owners: RwLock<ByRange>,
    /// Set when the process stops, for good.
    stopping: AtomicBool,
    /// One lock for each range, held while the range begins or ends.
    changing: Vec<Mutex<()>>,
    /// Replicas of this process, by range, as long as the [`Keeper`](crate::Keeper) keeps them.
    replicas: RwLock<Vec<Weak<Replica>>>,
    pub(in crate::service) directory: Arc<dyn RangeDirectory>,
}

/// The owners of this process. They do not change while this value is kept.
pub(in crate::service) struct Owners<'r>(RwLockReadGuard<'r, ByRange>);

impl Owners<'_> {
    pub(in crate::service) fn iter(&self) -> impl Iterator<Item = &Arc<Owner>> {
        self.0.iter().flatten().filter(|owner| !owner.is_stopping())
    }
}

impl RangeRegistry {
    /// Creates the registry of a process that owns no range yet.
    pub(in crate::service) fn new(map: RangeMap, directory: Arc<dyn RangeDirectory>) -> Self {
        let owners = RwLock::new(map.ranges().map(|_| None).collect());
        let changing = map.ranges().map(|_| Mutex::default()).collect();
        let replicas = RwLock::new(map.ranges().map(|_| Weak::new()).collect());
        Self { owners, stopping: AtomicBool::new(false), changing, replicas, directory }
    }

    /// Registers a replica of this process. The registry does not keep it alive.
    pub(in crate::service) fn register_replica(&self, replica: &Arc<Replica>) {
        let mut replicas = self.replicas.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = replicas.get_mut(usize::from(replica.range().0)) {
            *place = Arc::downgrade(replica);
        }
    }

    /// The replica of a range, if this process has one.
    pub(in crate::service) fn replica(&self, range: RangeId) -> Option<Arc<Replica>> {
        let replicas = self.replicas.read().unwrap_or_else(PoisonError::into_inner);
        replicas.get(usize::from(range.0))?.upgrade()
    }

    /// The owners of this process. The caller must not wait for anything while it keeps the result.
    pub(in crate::service) fn owners(&self) -> Owners<'_> {
        Owners(self.owners.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// All owners, to keep. Unlike [`owners`](Self::owners) it includes ownerships that were deposed and not
    /// yet ended.
    pub(in crate::service) fn all_owners(&self) -> Vec<Arc<Owner>> {
        self.owners().0.iter().flatten().map(Arc::clone).collect()
    }

    /// The owner of a range, if this process owns it.
    pub(in crate::service) fn local_owner(&self, range: RangeId) -> Option<Arc<Owner>> {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        let owner = owners.get(usize::from(range.0))?.as_ref()?;
        (!owner.is_stopping()).then(|| Arc::clone(owner))
    }

    /// Like [`local_owner`](Self::local_owner), but also checks that the owner may answer at present.
    pub(in crate::service) fn answering_owner(&self, range: RangeId) -> Result<Arc<Owner>, PeerError> {
        let owner = self.local_owner(range).ok_or(PeerError::NotOwner(range))?;
        owner.check()?;
        Ok(owner)
    }

    /// Another process that owns the range.
    pub(in crate::service) fn remote_owner(&self, range: RangeId) -> Result<Arc<dyn RangeOwner>, PeerError> {
        let other = self.directory.owner(range);
        other.ok_or_else(|| PeerError::unreachable(range, "no node claims it"))
    }

    /// Tells the threads of all ranges to end.
    pub(in crate::service) fn stop(&self) {
        self.stopping.store(true, Ordering::Relaxed);
    }

    /// Whether the process stops.
    pub(in crate::service) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Whether the threads of a range are to end.
    pub(in crate::service) fn is_over(&self, owner: &Owner) -> bool {
        self.is_stopping() || owner.is_stopping()
    }

    /// Whether this process owns every range at present.
    pub(in crate::service) fn owns_all(&self) -> bool {
        self.owners().iter().count() == self.changing.len()
    }

    /// Number of pages that are pending in the ranges of this process.
    pub(in crate::service) fn pending(&self) -> u64 {
        self.owners().iter().map(|owner| owner.totals().1.pending).sum()
    }

    /// Whether no work is on its way from the ranges of this process to any group. No page waits for its
    /// decision or for a search, and no message waits to be delivered.
    pub(in crate::service) fn is_quiet(&self) -> bool {
        self.owners().iter().all(|owner| {
            let Backlog { pending, deferred_searches, messages, .. } = owner.totals().1;
            pending + deferred_searches + messages == 0
        })
    }

    /// Whether other processes own ranges, or may come to own some.
    pub(in crate::service) fn has_others(&self) -> bool {
        self.directory.has_others()
    }

    /// Waits until no other thread begins or ends the range. No other thread does while the result is kept.
    pub(in crate::service) fn lock_change(&self, range: RangeId) -> Option<MutexGuard<'_, ()>> {
        let changing = self.changing.get(usize::from(range.0))?;
        Some(changing.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether a range can begin here: this process neither owns it nor still has a deposed ownership of it.
    pub(in crate::service) fn is_free(&self, range: RangeId) -> bool {
        let owners = self.owners.read().unwrap_or_else(PoisonError::into_inner);
        owners.get(usize::from(range.0)).is_some_and(Option::is_none)
    }

    /// Registers the owner of a range.
    pub(in crate::service) fn register(&self, owner: &Arc<Owner>) {
        if let Some(place) = self.write().get_mut(usize::from(owner.id.0)) {
            *place = Some(Arc::clone(owner));
        }
    }

    /// Takes a range out of the registry. Callers no longer find it.
    pub(in crate::service) fn unregister(&self, range: RangeId) -> Option<Arc<Owner>> {
        self.write().get_mut(usize::from(range.0))?.take()
    }

    fn write(&self) -> RwLockWriteGuard<'_, ByRange> {
        self.owners.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Peers for RangeRegistry {
    fn post(&self, post: Post) -> Result<PostAnswer, PeerError> {
        let to = post.to;
        let (reply, answer) = bounded(1);
        // A caller that gave up waiting has dropped its end of the channel.
        let done: PostCallback = Box::new(move |answer| drop(reply.send(answer)));
        match self.local_owner(to) {
            Some(owner) => owner.post(post, done),
            None => self.remote_owner(to)?.post(post.encoded()?, done),
        }
        Ok(answer)
    }

    fn rows(&self, range: RangeId, keys: &[Vec<u8>]) -> Result<Vec<Option<Vec<u8>>>, PeerError> {
        match self.local_owner(range) {
            Some(owner) => owner.rows(keys),
            None => self.remote_owner(range)?.rows(range, keys),
        }
    }

    fn scan(
        &self,
        range: RangeId,
        from: &[u8],
        to: &[u8],
        limit: usize,
    ) -> Result<Vec<EncodedRow>, PeerError> {
        match self.local_owner(range) {
            Some(owner) => owner.scan(from, to, limit),
            None => self.remote_owner(range)?.scan(range, from, to, limit),
        }
    }
}
