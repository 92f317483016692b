//! One pass over a batch of orders: store, then look, then answer.
//!
//! All stores and removals come first, in order, then all looks (G4): whatever two pages arrive
//! together, the later look finds both stored. The index is locked in slices, so that a probe from
//! outside waits for a slice and never for a pass.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use doppel_common::api::{IndexCommand, Look, LookResult, Pair};
use doppel_common::model::{ContentHash, PageId};
use doppel_common::signature::Signature;
use rayon::prelude::*;

use crate::index::Index;
use crate::search::{Found, Partner, Scratch};
use crate::service::Shared;
use crate::tables::{Place, Standing};

/// Orders stored under one lock.
const STORE_SLICE: usize = 64;

/// Looks per thread whose findings are taken in together.
const LOOKS_PER_THREAD: usize = 16;

/// A look that is asked for.
struct Wanted {
    page: PageId,
    content: ContentHash,
    look: Look,
    /// Its signature, where the order brought it.
    signature: Option<Arc<Signature>>,
}

/// What a look gives.
enum Looked {
    Compared(Found, Vec<Pair>),
    Copied(Vec<Pair>),
    /// The page does not have the content (any more).
    Void,
}

/// Carries out a batch.
pub(crate) fn run(shared: &Shared, commands: Vec<IndexCommand>) {
    let wanted = store(shared, commands);
    recover(shared, &wanted);
    let results = compare(shared, &wanted);
    if !results.is_empty() && !shared.stopping.load(Ordering::Relaxed) {
        (shared.answer)(results);
    }
}

/// Stores and removes; returns the looks.
fn store(shared: &Shared, commands: Vec<IndexCommand>) -> Vec<Wanted> {
    let mut wanted = Vec::new();
    let mut commands = commands.into_iter().peekable();
    while commands.peek().is_some() {
        let mut index = shared.write();
        for command in commands.by_ref().take(STORE_SLICE) {
            match command {
                IndexCommand::Put { page, signature, look } => {
                    index.put(page, &signature);
                    let content = signature.content();
                    wanted.extend(look.map(|look| Wanted {
                        page,
                        content,
                        look,
                        signature: Some(signature),
                    }));
                }
                IndexCommand::Remove { page, content } => index.remove(page, content),
                IndexCommand::Look { page, content, look } => {
                    wanted.push(Wanted { page, content, look, signature: None });
                }
            }
        }
    }
    wanted
}

/// A look at a page that was put long ago should find it. Where it does not, and tier 1 still says that the
/// page has this content, the index has missed an order: it is made good.
fn recover(shared: &Shared, wanted: &[Wanted]) {
    let late = wanted.iter().filter(|wanted| wanted.signature.is_none());
    let index = shared.read();
    let missing: Vec<&Wanted> = late.filter(|w| index.tables.standing(w.page, w.content).is_none()).collect();
    let fetch = Arc::clone(&index.fetch);
    drop(index);
    for wanted in missing {
        if let Some(signature) = fetch(wanted.page).filter(|s| s.content() == wanted.content) {
            tracing::warn!(page = ?wanted.page, "a page to look at was not in the index; it is now");
            shared.write().put(wanted.page, &signature);
        }
    }
}

fn compare(shared: &Shared, wanted: &[Wanted]) -> Vec<LookResult> {
    number(shared, wanted);
    let mut results = Vec::with_capacity(wanted.len());
    let chunk = shared.pool.as_ref().map_or(1, |pool| pool.current_num_threads() * LOOKS_PER_THREAD);
    let mut scratch = Scratch::default();
    for wanted in wanted.chunks(chunk) {
        if shared.stopping.load(Ordering::Relaxed) {
            break;
        }
        let index = shared.read();
        let looked: Vec<Looked> = match &shared.pool {
            None => wanted.iter().map(|wanted| look(&index, wanted, &mut scratch)).collect(),
            Some(pool) => pool.install(|| {
                wanted
                    .par_iter()
                    .map_init(Scratch::default, |scratch, wanted| look(&index, wanted, scratch))
                    .collect()
            }),
        };
        drop(index);
        let mut index = shared.write();
        for (looked, wanted) in looked.into_iter().zip(wanted) {
            let pairs = match looked {
                Looked::Void => continue,
                Looked::Copied(pairs) => pairs,
                Looked::Compared(found, pairs) => {
                    index.learn(&found);
                    pairs
                }
            };
            let ticket = wanted.look.ticket;
            results.push(LookResult { page: wanted.page, content: wanted.content, ticket, pairs });
        }
    }
    results
}

/// Gives every look of the pass its turn.
fn number(shared: &Shared, wanted: &[Wanted]) {
    let mut index = shared.write();
    for wanted in wanted {
        if let Some(Standing::First(place)) = index.tables.standing(wanted.page, wanted.content) {
            index.tables.take_turn(place);
        }
    }
}

fn look(index: &Index, wanted: &Wanted, scratch: &mut Scratch) -> Looked {
    match index.tables.standing(wanted.page, wanted.content) {
        Some(Standing::First(place)) => {
            let mut fetched = None;
            let signature = match &wanted.signature {
                Some(signature) => Arc::clone(signature),
                None => match index.read(place, None, &mut Vec::new()) {
                    None => return Looked::Void,
                    Some(read) => {
                        fetched = read.fetched.then(|| (place, Arc::clone(&read.signature)));
                        read.signature
                    }
                },
            };
            let mut found = index.look(&signature, Some(place), scratch);
            found.fetched.extend(fetched);
            let pairs = pairs(index, &found.partners);
            Looked::Compared(found, pairs)
        }
        Some(Standing::Copy(place)) => Looked::Copied(vec![copy(index, place)]),
        // Without tokens it is nobody's duplicate, and was not stored.
        None if wanted.signature.as_ref().is_some_and(|s| s.tokens() == 0) => Looked::Copied(Vec::new()),
        None => Looked::Void,
    }
}

/// Compares a signature that is not stored.
pub(crate) fn probe(index: &Index, signature: &Signature) -> Vec<Pair> {
    if signature.tokens() == 0 {
        return Vec::new();
    }
    match index.tables.find(signature.content()) {
        Some(place) => vec![copy(index, place)],
        None => pairs(index, &index.look(signature, None, &mut Scratch::default()).partners),
    }
}

fn pairs(index: &Index, partners: &[Partner]) -> Vec<Pair> {
    let pair = |partner: &Partner| {
        let columns = &index.tables.partition(partner.place).columns;
        let slot = partner.place.slot;
        Pair {
            page: columns.page(slot),
            content: columns.content(slot),
            shared: partner.shared,
            shingles: columns.total(slot),
        }
    };
    partners.iter().map(pair).collect()
}

/// The pair of a content with itself, by way of its first page.
fn copy(index: &Index, place: Place) -> Pair {
    let columns = &index.tables.partition(place).columns;
    let (page, content, shingles) =
        (columns.page(place.slot), columns.content(place.slot), columns.total(place.slot));
    Pair { page, content, shared: shingles, shingles }
}
