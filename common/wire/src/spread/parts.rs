//! Nodes that have the shards of a collection: lists are split by node, and answers put together in the order of the list.

use std::collections::BTreeMap;
use std::io;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{Builder, scope};

use doppel_model::{PageId, ShardId};

/// Nodes that answer with `E` when they do not.
pub(super) struct Nodes<T: ?Sized, E> {
    nodes: Vec<Arc<T>>,
    /// The node of each shard.
    of_shard: Vec<usize>,
    shards: u16,
    /// The one that has last answered what any may.
    answering: AtomicUsize,
    /// That there is no answer, and why.
    unavailable: fn(String) -> E,
}

/// What one node is asked about.
struct Part<I> {
    node: usize,
    /// The place of each item in the whole list.
    places: Vec<usize>,
    items: Vec<I>,
}

/// What came of a part: the places of its items, and the answer.
pub(super) type Answered<R> = (Vec<usize>, R);

impl<T: ?Sized + Send + Sync, E: Send> Nodes<T, E> {
    pub(super) fn new(nodes: Vec<Arc<T>>, of_shard: Vec<usize>, unavailable: fn(String) -> E) -> Self {
        let shards = u16::try_from(of_shard.len()).unwrap_or(u16::MAX);
        Self { nodes, of_shard, shards, answering: AtomicUsize::new(0), unavailable }
    }

    /// The node of a shard. A shard that there is not has no rows anywhere: the first node says so.
    pub(super) fn of_shard(&self, shard: ShardId) -> Result<&T, E> {
        self.node(self.of_shard.get(usize::from(shard.0)).copied().unwrap_or(0))
    }

    /// The node of a page.
    pub(super) fn of_page(&self, page: PageId) -> Result<&T, E> {
        self.of_shard(page.shard(self.shards))
    }

    fn node(&self, node: usize) -> Result<&T, E> {
        self.nodes
            .get(node)
            .map(|node| &**node)
            .ok_or_else(|| self.unavailable(format!("there is no node {node}")))
    }

    fn unavailable(&self, why: String) -> E {
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
                Err(error) if is_away(&error) => failed = Some(error),
                answer => {
                    self.answering.store(node, Ordering::Relaxed);
                    return answer;
                }
            }
        }
        Err(failed.unwrap_or_else(|| self.unavailable("there are no nodes".to_owned()).into()))
    }

    /// Asks each node about its items, all at the same time, and waits for all of them. When one fails, what the others have
    /// done is done all the same.
    pub(super) fn each<I: Send, R: Send>(
        &self,
        items: Vec<I>,
        page: impl Fn(&I) -> PageId,
        ask: impl Fn(&T, Vec<I>) -> Result<R, E> + Sync,
    ) -> Result<Vec<Answered<R>>, E> {
        let mut parts = self.split(items, page);
        let Some(own) = parts.pop() else { return Ok(Vec::new()) };
        let ask = |Part { node, places, items }: Part<I>| Ok((places, ask(self.node(node)?, items)?));
        let ask = &ask;
        scope(|scope| {
            let others: Vec<_> = parts
                .into_iter()
                .map(|part| Builder::new().name("spread".to_owned()).spawn_scoped(scope, move || ask(part)))
                .collect();
            let own = ask(own);
            let answers = others.into_iter().map(|other: io::Result<_>| match other {
                Ok(other) => other.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(error) => Err(self.unavailable(format!("no thread for a call: {error}"))),
            });
            answers.chain([own]).collect()
        })
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

    fn split<I>(&self, items: Vec<I>, page: impl Fn(&I) -> PageId) -> Vec<Part<I>> {
        let mut parts: BTreeMap<usize, Part<I>> = BTreeMap::new();
        for (place, item) in items.into_iter().enumerate() {
            let shard = page(&item).shard(self.shards);
            let node = self.of_shard.get(usize::from(shard.0)).copied().unwrap_or(0);
            let part =
                parts.entry(node).or_insert_with(|| Part { node, places: Vec::new(), items: Vec::new() });
            part.places.push(place);
            part.items.push(item);
        }
        parts.into_values().collect()
    }
}
