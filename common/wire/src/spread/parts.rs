//! Splits lists by the nodes that own the shards, calls the nodes in parallel, and merges the answers in the
//! order of the list.
//!
//! Owners may change while a list is split. Therefore the owner of a shard is looked up only once per list,
//! and all items of a page go to one node, in order.

use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use doppel_model::{PageId, ShardId};

use super::owners::OwnerLookup;

/// Nodes of tier 1. If no node answers, a call fails with an `E`.
pub(super) struct Nodes<T: ?Sized, E> {
    nodes: Vec<Arc<T>>,
    pub(super) owners: Arc<dyn OwnerLookup>,
    /// Index of the node that last answered a call that any node can answer.
    preferred: AtomicUsize,
    /// Creates the error for a call that no node answers, with the reason.
    unavailable: fn(String) -> E,
}

/// The part of a list that one node receives.
struct Part<I> {
    /// Position of each item in the whole list.
    positions: Vec<usize>,
    items: Vec<I>,
}

/// Index of the owner's node, or the shard if its owner is unknown.
type Owner = Result<usize, ShardId>;

/// Result of a part: the positions of its items, and the answer.
pub(super) type PartAnswer<R> = (Vec<usize>, R);

impl<T: ?Sized + Send + Sync, E: Send> Nodes<T, E> {
    pub(super) fn new(
        nodes: Vec<Arc<T>>,
        owners: Arc<dyn OwnerLookup>,
        unavailable: fn(String) -> E,
    ) -> Self {
        Self { nodes, owners, preferred: AtomicUsize::new(0), unavailable }
    }

    /// Returns the node that owns a shard.
    pub(super) fn of_shard(&self, shard: ShardId) -> Result<&T, E> {
        self.node(self.node_index(shard).ok_or_else(|| self.no_owner(shard))?)
    }

    /// Returns the node that owns a page.
    pub(super) fn of_page(&self, page: PageId) -> Result<&T, E> {
        self.of_shard(page.shard(self.owners.shards()))
    }

    /// Returns the index of a shard's owner. A shard outside the collection has no rows anywhere, so any node
    /// can say so; the first node is chosen.
    fn node_index(&self, shard: ShardId) -> Option<usize> {
        if shard.0 < self.owners.shards() { self.owners.of_shard(shard) } else { Some(0) }
    }

    fn no_owner(&self, shard: ShardId) -> E {
        self.unavailable(format!("no owner of shard {} is known", shard.0))
    }

    fn node(&self, node: usize) -> Result<&T, E> {
        self.nodes
            .get(node)
            .map(|node| &**node)
            .ok_or_else(|| self.unavailable(format!("the list of nodes has no node {node}")))
    }

    pub(super) fn unavailable(&self, reason: String) -> E {
        (self.unavailable)(reason)
    }

    /// Calls one node, then the next as long as `is_away` accepts the error.
    pub(super) fn any<'a, R, F: From<E>>(
        &'a self,
        ask: impl Fn(&'a T) -> Result<R, F>,
        is_away: impl Fn(&F) -> bool,
    ) -> Result<R, F> {
        let first = self.preferred.load(Ordering::Relaxed);
        let mut failed = None;
        for node in (0..self.nodes.len()).map(|after| (first + after) % self.nodes.len()) {
            match ask(self.node(node)?) {
                Ok(answer) => {
                    self.preferred.store(node, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error) if is_away(&error) => failed = Some(error),
                // The error may concern this node alone, so this node does not become the preferred one.
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| self.unavailable("the list of nodes is empty".to_owned()).into()))
    }

    /// Calls each owner with its items, all in parallel, and waits for all of them. Returns the result of
    /// each part. Items without a known owner follow as failed parts.
    pub(super) fn each_part<I: Send, R: Send>(
        &self,
        items: Vec<I>,
        page: impl Fn(&I) -> PageId,
        ask: impl Fn(&T, Vec<I>) -> Result<R, E> + Sync,
    ) -> Vec<PartAnswer<Result<R, E>>> {
        let shard = |item: &I| page(item).shard(self.owners.shards());
        self.each_part_at(items, shard, |shard| self.node_index(shard), ask)
    }

    /// Like [`each_part`](Self::each_part), but `node_of` chooses the node for each shard.
    pub(super) fn each_part_at<I: Send, R: Send>(
        &self,
        items: Vec<I>,
        shard: impl Fn(&I) -> ShardId,
        node_of: impl Fn(ShardId) -> Option<usize>,
        ask: impl Fn(&T, Vec<I>) -> Result<R, E> + Sync,
    ) -> Vec<PartAnswer<Result<R, E>>> {
        let (mut owned, mut failed) = (Vec::new(), Vec::new());
        for (owner, Part { positions, items }) in split(items, shard, node_of) {
            match owner {
                Ok(node) => owned.push((node, positions, items)),
                Err(shard) => failed.push((positions, Err(self.no_owner(shard)))),
            }
        }
        let Some((node, positions, items)) = owned.pop() else { return failed };
        let ask = |node, items| ask(self.node(node)?, items);
        let ask = &ask;
        scope(|scope| {
            let begin = |(node, positions, items)| {
                let thread = Builder::new().name("spread".to_owned());
                (positions, thread.spawn_scoped(scope, move || ask(node, items)))
            };
            let others: Vec<_> = owned.into_iter().map(begin).collect();
            let own = (positions, ask(node, items));
            let answers = others.into_iter().map(|(positions, other): (_, io::Result<_>)| {
                let answer = match other {
                    Ok(other) => other.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    Err(error) => Err(self.unavailable(format!("cannot start a thread for a call: {error}"))),
                };
                (positions, answer)
            });
            answers.chain([own]).chain(failed).collect()
        })
    }

    /// Like [`each_part`](Self::each_part), but the whole call fails if a part fails. The effects of the
    /// other parts remain.
    pub(super) fn each<I: Send, R: Send>(
        &self,
        items: Vec<I>,
        page: impl Fn(&I) -> PageId,
        ask: impl Fn(&T, Vec<I>) -> Result<R, E> + Sync,
    ) -> Result<Vec<PartAnswer<R>>, E> {
        let parts = self.each_part(items, page, ask);
        parts.into_iter().map(|(positions, answer)| Ok((positions, answer?))).collect()
    }

    /// Like [`each`](Self::each), for calls with one answer per item. Returns the answers in the order of the
    /// items.
    pub(super) fn each_in_order<I: Send, O: Send>(
        &self,
        items: Vec<I>,
        page: impl Fn(&I) -> PageId,
        ask: impl Fn(&T, Vec<I>) -> Result<Vec<O>, E> + Sync,
    ) -> Result<Vec<O>, E> {
        let mut positioned = Vec::with_capacity(items.len());
        for (positions, answers) in self.each(items, page, ask)? {
            if positions.len() != answers.len() {
                let reason =
                    format!("a node returned {} answers for {} pages", answers.len(), positions.len());
                return Err(self.unavailable(reason));
            }
            positioned.extend(positions.into_iter().zip(answers));
        }
        positioned.sort_unstable_by_key(|(position, _)| *position);
        Ok(positioned.into_iter().map(|(_, answer)| answer).collect())
    }
}

/// Splits items by owner. Parts of shards without a known owner come last.
fn split<I>(
    items: Vec<I>,
    shard: impl Fn(&I) -> ShardId,
    node_of: impl Fn(ShardId) -> Option<usize>,
) -> BTreeMap<Owner, Part<I>> {
    let mut owners: BTreeMap<ShardId, Owner> = BTreeMap::new();
    let mut parts: BTreeMap<Owner, Part<I>> = BTreeMap::new();
    for (at, item) in items.into_iter().enumerate() {
        let shard = shard(&item);
        let owner = *owners.entry(shard).or_insert_with(|| node_of(shard).ok_or(shard));
        let part = parts.entry(owner).or_insert_with(|| Part { positions: Vec::new(), items: Vec::new() });
        part.positions.push(at);
        part.items.push(item);
    }
    parts
}
