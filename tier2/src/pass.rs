//! One pass over a batch of orders: store, then search, then answer.
//!
//! All stores and removals come first, in order, then all searches (G4): whatever two pages arrive
//! together, the later search finds both stored, on whatever nodes. The cluster is locked for one order at a time, so
//! that a probe from outside never waits for a pass. A pass is made under one plan from its beginning to its end.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::{IndexCommand, Pair, Search, SearchResult};
use rayon::prelude::*;

use crate::cluster::{Address, Cluster};
use crate::index::Index;
use crate::search::{Found, Partner, Scratch};
use crate::service::Shared;
use crate::tables::{EntryRef, QueryRole};

/// Searches per thread whose findings are taken in together. They do not know of each other's centers, so
/// each compares the others of its cluster among them.
const SEARCHES_PER_THREAD: usize = 4;

/// Copies that the first page of a content names at most. Every copy names the first page by itself, so
/// this is only for those that searched before it was the first one.
const COPIES_MAX: usize = 1_000;

/// A search that is asked for.
struct Wanted {
    page: PageId,
    content: ContentHash,
    search: Search,
    /// Its signature, where the order brought it.
    signature: Option<Arc<Signature>>,
    /// The node of its content, and how it is made; none where the page does not have the content (any more).
    role: Option<(u32, QueryRole)>,
}

/// What a search gives.
struct Searched {
    pairs: Vec<Pair>,
    /// What the nodes are to take in, where it was compared.
    found: Vec<(u32, Found)>,
}

/// Carries out a batch.
pub(crate) fn run(shared: &Shared, commands: Vec<IndexCommand>) {
    let _pass = tracing::debug_span!("pass", orders = commands.len()).entered();
    let (mut wanted, again) = store(shared, commands);
    recover(shared, &wanted);
    assign_roles(shared, &mut wanted);
    let span = tracing::debug_span!("search", searches = wanted.len());
    let mut results = span.in_scope(|| compare(shared, &wanted));
    results.extend(again);
    if !results.is_empty() && !shared.stopping.load(Ordering::Relaxed) {
        (shared.answer)(results);
    }
}

/// Stores and removes; returns the searches, and the requests for others: where the first page of a content leaves,
/// its copies have named nobody else, and its own answer may not have been taken.
fn store(shared: &Shared, commands: Vec<IndexCommand>) -> (Vec<Wanted>, Vec<SearchResult>) {
    let (mut wanted, mut again) = (Vec::new(), Vec::new());
    for command in commands {
        std::thread::yield_now();
        match command {
            IndexCommand::Put { page, signature, search } => {
                shared.write().put(page, &signature);
                let content = signature.content();
                let signature = Some(signature);
                wanted.extend(search.map(|search| Wanted { page, content, search, signature, role: None }));
            }
            IndexCommand::Remove { page, content } => {
                let next = remove(shared, page, content);
                let request = |page| SearchResult { page, content, ticket: Search::AGAIN, pairs: Vec::new() };
                again.extend(next.map(request));
            }
            IndexCommand::Search { page, content, search } => {
                wanted.push(Wanted { page, content, search, signature: None, role: None });
            }
        }
    }
    (wanted, again)
}

/// Takes a content from a page; the page that is its first one now, where that has changed.
fn remove(shared: &Shared, page: PageId, content: ContentHash) -> Option<PageId> {
    let cluster = shared.read();
    let node = cluster.find(content)?.node;
    let band_keys = cluster.node(node).band_keys_to_remove(page, content);
    drop(cluster);
    shared.write().node_mut(node).remove(page, content, band_keys)
}

/// A search for a page that was put long ago should find it. Where it does not, and tier 1 still says that the
/// page has this content, the index has missed an order: it is made good.
fn recover(shared: &Shared, wanted: &[Wanted]) {
    let deferred = wanted.iter().filter(|wanted| wanted.signature.is_none());
    let cluster = shared.read();
    let missing: Vec<&Wanted> = deferred.filter(|w| !cluster.has(w.page, w.content)).collect();
    let fetch = Arc::clone(&cluster.fetch);
    drop(cluster);
    for wanted in missing {
        if let Some(signature) = fetch(wanted.page).filter(|s| s.content() == wanted.content) {
            tracing::warn!(page = ?wanted.page, "a page to search for was not in the index; it is now");
            shared.write().put(wanted.page, &signature);
        }
    }
}

/// Settles how every search of the pass is made, and the order of those that compare.
fn assign_roles(shared: &Shared, wanted: &mut [Wanted]) {
    for wanted in wanted {
        let mut cluster = shared.write();
        let mut nodes = (0..).zip(&mut cluster.nodes);
        wanted.role = nodes.find_map(|(node, index)| {
            index.tables.take_query_order(wanted.page, wanted.content).map(|role| (node, role))
        });
    }
}

fn compare(shared: &Shared, wanted: &[Wanted]) -> Vec<SearchResult> {
    let mut results = Vec::with_capacity(wanted.len());
    let chunk = shared.pool.as_ref().map_or(1, |pool| pool.current_num_threads() * SEARCHES_PER_THREAD);
    let mut scratch = Scratch::default();
    for wanted in wanted.chunks(chunk) {
        if shared.stopping.load(Ordering::Relaxed) {
            break;
        }
        let cluster = shared.read();
        let searched: Vec<Option<Searched>> = match &shared.pool {
            None => wanted.iter().map(|wanted| search(&cluster, wanted, &mut scratch)).collect(),
            Some(pool) => pool.install(|| {
                let searches = wanted.par_iter();
                searches
                    .map_init(Scratch::default, |scratch, wanted| search(&cluster, wanted, scratch))
                    .collect()
            }),
        };
        drop(cluster);
        let mut cluster = shared.write();
        for (searched, wanted) in searched.into_iter().zip(wanted) {
            let Some(Searched { pairs, found }) = searched else { continue };
            if !found.is_empty() {
                cluster.learn(&found);
            }
            let ticket = wanted.search.ticket;
            results.push(SearchResult { page: wanted.page, content: wanted.content, ticket, pairs });
        }
    }
    results
}

fn search(cluster: &Cluster, wanted: &Wanted, scratch: &mut Scratch) -> Option<Searched> {
    std::thread::yield_now();
    let Some((node, role)) = wanted.role else {
        // Without tokens it is nobody's duplicate, and was not stored.
        let empty = wanted.signature.as_ref().is_some_and(|s| s.tokens() == 0);
        return empty.then(|| Searched { pairs: Vec::new(), found: Vec::new() });
    };
    let index = cluster.node(node);
    let (entry, before) = match role {
        QueryRole::First { entry, before } => (entry, before),
        QueryRole::Copy(entry) => {
            return Some(Searched { pairs: vec![copy(index, entry)], found: Vec::new() });
        }
    };
    let (signature, fetched) = match &wanted.signature {
        Some(signature) => (Arc::clone(signature), false),
        None => {
            let read = index.read(entry, &mut Vec::new())?;
            (read.signature, read.fetched)
        }
    };
    let mut found = cluster.search(&signature, Some(Address { node, entry }), scratch);
    if fetched && let Some((_, found)) = found.iter_mut().find(|(at, _)| *at == node) {
        found.fetched.push((entry, signature));
    }
    // It is linked to the copies as well: it may have become the first page after they searched.
    let copies = index.tables.partition(entry).pages_of(entry.slot).skip(1).take(COPIES_MAX);
    let copies = before.into_iter().chain(copies.filter(|page| Some(*page) != before));
    let same = copy(index, entry);
    let pairs = copies.map(|page| Pair { page, ..same }).chain(pairs(cluster, &found)).collect();
    Some(Searched { pairs, found })
}

/// Compares a signature that is not stored.
pub(crate) fn probe(cluster: &Cluster, signature: &Signature) -> Vec<Pair> {
    if signature.tokens() == 0 {
        return Vec::new();
    }
    match cluster.find(signature.content()) {
        Some(Address { node, entry }) => vec![copy(cluster.node(node), entry)],
        None => pairs(cluster, &cluster.search(signature, None, &mut Scratch::default())).collect(),
    }
}

fn pairs(cluster: &Cluster, found: &[(u32, Found)]) -> impl Iterator<Item = Pair> {
    let partners = found.iter().flat_map(|(node, found)| found.partners.iter().map(move |p| (*node, p)));
    partners.map(|(node, Partner { entry, shared, .. })| {
        let columns = &cluster.node(node).tables.partition(*entry).columns;
        Pair {
            page: columns.page(entry.slot),
            content: columns.content(entry.slot),
            shared: *shared,
            shingles: columns.total(entry.slot),
        }
    })
}

/// The pair of a content with itself, by way of its first page.
fn copy(index: &Index, entry: EntryRef) -> Pair {
    let columns = &index.tables.partition(entry).columns;
    let (page, content, shingles) =
        (columns.page(entry.slot), columns.content(entry.slot), columns.total(entry.slot));
    Pair { page, content, shared: shingles, shingles }
}
