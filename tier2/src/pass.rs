//! One pass over a batch of orders: store, then look, then answer.
//!
//! All stores and removals come first, in order, then all looks (G4): whatever two pages arrive
//! together, the later look finds both stored, on whatever nodes. The cluster is locked for one order at a time, so
//! that a probe from outside never waits for a pass. A pass is made under one plan from its beginning to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::{IndexCommand, Look, LookResult, Pair};
use rayon::prelude::*;

use crate::cluster::{Address, Cluster};
use crate::index::Index;
use crate::search::{Found, Partner, Scratch};
use crate::service::Shared;
use crate::tables::{Place, Standing};

/// Looks per thread whose findings are taken in together. They do not know of each other's centers, so
/// each compares the others of its cluster among them.
const LOOKS_PER_THREAD: usize = 4;

/// Copies that the first page of a content names at most. Every copy names the first page by itself, so
/// this is only for those that looked before it was the first one.
const COPIES_MAX: usize = 1_000;

/// A look that is asked for.
struct Wanted {
    page: PageId,
    content: ContentHash,
    look: Look,
    /// Its signature, where the order brought it.
    signature: Option<Arc<Signature>>,
    /// The node of its content, and how it is made; none where the page does not have the content (any more).
    standing: Option<(u32, Standing)>,
}

/// What a look gives.
struct Looked {
    pairs: Vec<Pair>,
    /// What the nodes are to take in, where it was compared.
    found: Vec<(u32, Found)>,
}

/// Carries out a batch.
pub(crate) fn run(shared: &Shared, commands: Vec<IndexCommand>) {
    let (mut wanted, again) = store(shared, commands);
    recover(shared, &wanted);
    take_turns(shared, &mut wanted);
    let mut results = compare(shared, &wanted);
    results.extend(again);
    if !results.is_empty() && !shared.stopping.load(Ordering::Relaxed) {
        (shared.answer)(results);
    }
}

/// Stores and removes; returns the looks, and the wishes for others: where the first page of a content leaves,
/// its copies have named nobody else, and its own answer may not have been taken.
fn store(shared: &Shared, commands: Vec<IndexCommand>) -> (Vec<Wanted>, Vec<LookResult>) {
    let (mut wanted, mut again) = (Vec::new(), Vec::new());
    for command in commands {
        std::thread::yield_now();
        match command {
            IndexCommand::Put { page, signature, look } => {
                shared.write().put(page, &signature);
                let content = signature.content();
                let signature = Some(signature);
                wanted.extend(look.map(|look| Wanted { page, content, look, signature, standing: None }));
            }
            IndexCommand::Remove { page, content } => {
                let next = remove(shared, page, content);
                let wish = |page| LookResult { page, content, ticket: Look::AGAIN, pairs: Vec::new() };
                again.extend(next.map(wish));
            }
            IndexCommand::Look { page, content, look } => {
                wanted.push(Wanted { page, content, look, signature: None, standing: None });
            }
        }
    }
    (wanted, again)
}

/// Takes a content from a page; the page that is its first one now, where that has changed.
fn remove(shared: &Shared, page: PageId, content: ContentHash) -> Option<PageId> {
    let cluster = shared.read();
    let node = cluster.find(content)?.node;
    let tags = cluster.node(node).tags_to_remove(page, content);
    drop(cluster);
    shared.write().node_mut(node).remove(page, content, tags)
}

/// A look at a page that was put long ago should find it. Where it does not, and tier 1 still says that the
/// page has this content, the index has missed an order: it is made good.
fn recover(shared: &Shared, wanted: &[Wanted]) {
    let late = wanted.iter().filter(|wanted| wanted.signature.is_none());
    let cluster = shared.read();
    let missing: Vec<&Wanted> = late.filter(|w| !cluster.has(w.page, w.content)).collect();
    let fetch = Arc::clone(&cluster.fetch);
    drop(cluster);
    for wanted in missing {
        if let Some(signature) = fetch(wanted.page).filter(|s| s.content() == wanted.content) {
            tracing::warn!(page = ?wanted.page, "a page to look at was not in the index; it is now");
            shared.write().put(wanted.page, &signature);
        }
    }
}

/// Settles how every look of the pass is made, and the order of those that compare.
fn take_turns(shared: &Shared, wanted: &mut [Wanted]) {
    for wanted in wanted {
        let mut cluster = shared.write();
        let mut nodes = (0..).zip(&mut cluster.nodes);
        wanted.standing = nodes.find_map(|(node, index)| {
            index.tables.take_turn(wanted.page, wanted.content).map(|standing| (node, standing))
        });
    }
}

fn compare(shared: &Shared, wanted: &[Wanted]) -> Vec<LookResult> {
    let mut results = Vec::with_capacity(wanted.len());
    let chunk = shared.pool.as_ref().map_or(1, |pool| pool.current_num_threads() * LOOKS_PER_THREAD);
    let mut scratch = Scratch::default();
    for wanted in wanted.chunks(chunk) {
        if shared.stopping.load(Ordering::Relaxed) {
            break;
        }
        let cluster = shared.read();
        let looked: Vec<Option<Looked>> = match &shared.pool {
            None => wanted.iter().map(|wanted| look(&cluster, wanted, &mut scratch)).collect(),
            Some(pool) => pool.install(|| {
                let looks = wanted.par_iter();
                looks.map_init(Scratch::default, |scratch, wanted| look(&cluster, wanted, scratch)).collect()
            }),
        };
        drop(cluster);
        let mut cluster = shared.write();
        for (looked, wanted) in looked.into_iter().zip(wanted) {
            let Some(Looked { pairs, found }) = looked else { continue };
            if !found.is_empty() {
                cluster.learn(&found);
            }
            let ticket = wanted.look.ticket;
            results.push(LookResult { page: wanted.page, content: wanted.content, ticket, pairs });
        }
    }
    results
}

fn look(cluster: &Cluster, wanted: &Wanted, scratch: &mut Scratch) -> Option<Looked> {
    std::thread::yield_now();
    let Some((node, standing)) = wanted.standing else {
        // Without tokens it is nobody's duplicate, and was not stored.
        let empty = wanted.signature.as_ref().is_some_and(|s| s.tokens() == 0);
        return empty.then(|| Looked { pairs: Vec::new(), found: Vec::new() });
    };
    let index = cluster.node(node);
    let (place, before) = match standing {
        Standing::First { place, before } => (place, before),
        Standing::Copy(place) => return Some(Looked { pairs: vec![copy(index, place)], found: Vec::new() }),
    };
    let (signature, fetched) = match &wanted.signature {
        Some(signature) => (Arc::clone(signature), false),
        None => {
            let read = index.read(place, &mut Vec::new())?;
            (read.signature, read.fetched)
        }
    };
    let mut found = cluster.look(&signature, Some(Address { node, place }), scratch);
    if fetched && let Some((_, found)) = found.iter_mut().find(|(at, _)| *at == node) {
        found.fetched.push((place, signature));
    }
    // It is tied to the copies as well: it may have become the first page after they looked.
    let copies = index.tables.partition(place).pages_of(place.slot).skip(1).take(COPIES_MAX);
    let copies = before.into_iter().chain(copies.filter(|page| Some(*page) != before));
    let same = copy(index, place);
    let pairs = copies.map(|page| Pair { page, ..same }).chain(pairs(cluster, &found)).collect();
    Some(Looked { pairs, found })
}

/// Compares a signature that is not stored.
pub(crate) fn probe(cluster: &Cluster, signature: &Signature) -> Vec<Pair> {
    if signature.tokens() == 0 {
        return Vec::new();
    }
    match cluster.find(signature.content()) {
        Some(Address { node, place }) => vec![copy(cluster.node(node), place)],
        None => pairs(cluster, &cluster.look(signature, None, &mut Scratch::default())).collect(),
    }
}

fn pairs(cluster: &Cluster, found: &[(u32, Found)]) -> impl Iterator<Item = Pair> {
    let partners = found.iter().flat_map(|(node, found)| found.partners.iter().map(move |p| (*node, p)));
    partners.map(|(node, Partner { place, shared, .. })| {
        let columns = &cluster.node(node).tables.partition(*place).columns;
        Pair {
            page: columns.page(place.slot),
            content: columns.content(place.slot),
            shared: *shared,
            shingles: columns.total(place.slot),
        }
    })
}

/// The pair of a content with itself, by way of its first page.
fn copy(index: &Index, place: Place) -> Pair {
    let columns = &index.tables.partition(place).columns;
    let (page, content, shingles) =
        (columns.page(place.slot), columns.content(place.slot), columns.total(place.slot));
    Pair { page, content, shared: shingles, shingles }
}
