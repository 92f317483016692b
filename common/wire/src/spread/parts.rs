//! Nodes that have the shards of a collection: lists are split by node, and answers put together in the order of the list.
//!
//! Owners may change while a list is split. The owner of a shard is therefore looked up once for a list: what is about one
//! page goes to one node, in order.

use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use doppel_model::{PageId, ShardId};

use super::owners::Owners;

/// Nodes that answer with `E` when they do not.
pub(super) struct Nodes<T: ?Sized, E> {
    nodes: Vec<Arc<T>>,
    pub(super) owners: Arc<dyn Owners>,
    /// The one that has last answered what any may.
    answering: AtomicUsize,
    /// That there is no answer, and why.
    unavailable: fn(String) -> E,
}

/// What one node is asked about.
struct Part<I> {
    /// The place of each item in the whole list.
    places: Vec<usize>,
    items: Vec<I>,
}

/// The place of a node, or the shard whose owner is not known.
type Owner = Result<usize, ShardId>;

/// What came of a part: the places of its items, and the answer.
pub(super) type Answered<R> = (Vec<usize>, R);

impl<T: ?Sized + Send + Sync, E: Send> Nodes<T, E> {
    pub(super) fn new(nodes: Vec<Arc<T>>, owners: Arc<dyn Owners>, unavailable: fn(String) -> E) -> Self {
        Self { nodes, owners, answering: AtomicUsize::new(0), unavailable }
    }

    /// The node of a shard.
    pub(super) fn of_shard(&self, shard: ShardId) -> Result<&T, E> {
        self.node(self.place(shard).ok_or_else(|| self.no_owner(shard))?)
    }

    /// The node of a page.
    pub(super) fn of_page(&self, page: PageId) -> Result<&T, E> {
        self.of_shard(page.shard(self.owners.shards()))
    }

    /// The place of a shard's node. A shard that there is not has no rows anywhere: the first node says so.
    fn place(&self, shard: ShardId) -> Option<usize> {
        if shard.0 < self.owners.shards() { self.owners.of_shard(shard) } else { Some(0) }
    }

    fn no_owner(&self, shard: ShardId) -> E {
        self.unavailable(format!("no owner of shard {} is known", shard.0))
    }

    fn node(&self, node: usize) -> Result<&T, E> {
        self.nodes
            .get(node)
            .map(|node| &**node)
            .ok_or_else(|| self.unavailable(format!("there is no node {node}")))
    }

    pub(super) fn unavailable(&self, why: String) -> E {
        (self.unavailable)(why)
    }

    /// Asks one node, and the next one as long as the answer is that it cannot be reached.
    pub(super) fn any<'a, R, F: From<E>>(
        &'a self,
        ask: impl Fn(&'a T) -> Result<R, F>,
        is_away: impl Fn(&F) -> bool,
    ) -> Result<R, F> {
        let first = self.answering.load(Ordering::Relaxed);
        let mut failed = None;
        for node in (0..self.nodes.len()).map(|after| (first + after) % self.nodes.len()) {
            match ask(self.node(node)?) {
                Ok(answer) => {
                    self.answering.store(node, Ordering::Relaxed);
                    return Ok(answer);
                }
                Err(error) if is_away(&error) => failed = Some(error),
                // What is wrong may be wrong with that node alone: it is not asked first from now on.
                Err(error) => return Err(error),
            }
        }
        Err(failed.unwrap_or_else(|| self.unavailable("there are no nodes".to_owned()).into()))
    }

    /// Asks each node about its items, all at the same time, and waits for all of them. Tells what came of each part; after
    /// those of the nodes come items without a known owner, as parts that failed.
    pub(super) fn each_part<I: Send, R: Send>(
        &self,
        items: Vec<I>,
        page: impl Fn(&I) -> PageId,
        ask: impl Fn(&T, Vec<I>) -> Result<R, E> + Sync,
    ) -> Vec<Answered<Result<R, E>>> {
        let shard = |item: &I| page(item).shard(self.owners.shards());
        self.each_part_at(items, shard, |shard| self.place(shard), ask)
    }

    /// The same with nodes that `place` chooses for the shards of the items.
    pub(super) fn each_part_at<I: Send, R: Send>(
        &self,
        items: Vec<I>,
        shard: impl Fn(&I) -> ShardId,
        place: impl Fn(ShardId) -> Option<usize>,
        ask: impl Fn(&T, Vec<I>) -> Result<R, E> + Sync,
    ) -> Vec<Answered<Result<R, E>>> {
        let (mut owned, mut failed) = (Vec::new(), Vec::new());
        for (owner, Part { places, items }) in split(items, shard, place) {
            match owner {
                Ok(node) => owned.push((node, places, items)),
                Err(shard) => failed.push((places, Err(self.no_owner(shard)))),
            }
        }
        let Some((node, places, items)) = owned.pop() else { return failed };
        let ask = |node, items| ask(self.node(node)?, items);
        let ask = &ask;
        scope(|scope| {
            let begin = |(node, places, items)| {
                let thread = Builder::new().name("spread".to_owned());
                (places, thread.spawn_scoped(scope, move || ask(node, items)))
            };
            let others: Vec<_> = owned.into_iter().map(begin).collect();
            let own = (places, ask(node, items));
            let answers = others.into_iter().map(|(places, other): (_, io::Result<_>)| {
                let answer = match other {
                    Ok(other) => other.join().unwrap_or_else(|panic| resume_unwind(panic)),
                    Err(error) => Err(self.unavailable(format!("no thread for a call: {error}"))),
                };
                (places, answer)
            });
            answers.chain([own]).chain(failed).collect()
        })
    }

    /// The same where one part that fails fails the whole. What the others have done is done all the same.
    pub(super) fn each<I: Send, R: Send>(
        &self,
        items: Vec<I>,
        page: impl Fn(&I) -> PageId,
        ask: impl Fn(&T, Vec<I>) -> Result<R, E> + Sync,
    ) -> Result<Vec<Answered<R>>, E> {
        let parts = self.each_part(items, page, ask);
        parts.into_iter().map(|(places, answer)| Ok((places, answer?))).collect()
    }

    /// The same where there is one answer for each item. They come in the order of the items.
    pub(super) fn each_in_order<I: Send, O: Send>(
        &self,
        items: Vec<I>,
        page: impl Fn(&I) -> PageId,
        ask: impl Fn(&T, Vec<I>) -> Result<Vec<O>, E> + Sync,
    ) -> Result<Vec<O>, E> {
        let mut placed = Vec::with_capacity(items.len());
        for (places, answers) in self.each(items, page, ask)? {
            if places.len() != answers.len() {
                let why = format!("{} answers about {} pages", answers.len(), places.len());
                return Err(self.unavailable(why));
            }
            placed.extend(places.into_iter().zip(answers));
        }
        placed.sort_unstable_by_key(|(place, _)| *place);
        Ok(placed.into_iter().map(|(_, answer)| answer).collect())
    }
}

/// The parts of the nodes, and then those that no node is known for.
fn split<I>(
    items: Vec<I>,
    shard: impl Fn(&I) -> ShardId,
    place: impl Fn(ShardId) -> Option<usize>,
) -> BTreeMap<Owner, Part<I>> {
    let mut owners: BTreeMap<ShardId, Owner> = BTreeMap::new();
    let mut parts: BTreeMap<Owner, Part<I>> = BTreeMap::new();
    for (at, item) in items.into_iter().enumerate() {
        let shard = shard(&item);
        let owner = *owners.entry(shard).or_insert_with(|| place(shard).ok_or(shard));
        let part = parts.entry(owner).or_insert_with(|| Part { places: Vec::new(), items: Vec::new() });
        part.places.push(at);
        part.items.push(item);
    }
    parts
}
