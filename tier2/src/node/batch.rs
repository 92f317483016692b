//! A batch of searches: all roles first, then a few searches at a time.
//!
//! The lock is held for a few searches, and to take in what they found, so that a probe never waits for a batch.

use std::sync::Arc;

use doppel_model::PageId;
use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;
use doppel_partitioning::LengthVector;
use doppel_protocol::Pair;
use doppel_protocol::index_node::{
    BATCH_MAX, CallContext, NodeError, NodeSearch, SearchBatch, SearchOutcome,
};
use rayon::prelude::*;

use super::core::Core;
use super::fetched::{Fetched, Wanted, with_fetched};
use super::found::{Found, Partner};
use super::roles::QueryRole;
use super::search::{Scratch, Subject};
use super::tables::EntryRef;
use super::{LocalNode, bounded};

/// Searches per thread whose findings are taken in together. They do not know of each other's centers, so
/// each compares the others of its cluster among them.
const SEARCHES_PER_THREAD: usize = 4;

/// Copies that the first page of a content names at most. Every copy names the first page by itself, so
/// this is only for those that were searched for before it was the first one.
const COPIES_MAX: usize = 1_000;

/// A search, and how it is made; none where the page does not have the content (any more).
struct Planned {
    search: NodeSearch,
    role: Option<QueryRole>,
}

/// What a search gives.
struct SearchAnswer {
    outcome: SearchOutcome,
    /// What the node is to take in, where it was compared.
    found: Option<Found>,
}

impl LocalNode {
    pub(super) fn search_batch(
        &self,
        call: CallContext,
        batch: SearchBatch,
    ) -> Result<Vec<SearchOutcome>, NodeError> {
        let SearchBatch { pass, searches } = batch;
        bounded(searches.len(), BATCH_MAX)?;
        let planned: Vec<Planned> = searches.into_iter().map(|search| self.plan(search, pass)).collect();
        let pool = self.config.pool.as_ref().filter(|_| planned.len() > 1);
        let together = pool.map_or(1, |pool| pool.current_num_threads() * SEARCHES_PER_THREAD);
        let mut results = Vec::with_capacity(planned.len());
        let mut scratch = Scratch::default();
        for some in planned.chunks(together) {
            self.check_running()?;
            let answers = with_fetched(&*self.source, |fetched| {
                let core = self.read();
                let answers: Vec<Result<SearchAnswer, Vec<Wanted>>> = match pool {
                    None => some.iter().map(|one| answer(&core, one, fetched, &mut scratch)).collect(),
                    Some(pool) => pool.install(|| {
                        let each = |scratch: &mut Scratch, one| answer(&core, one, fetched, scratch);
                        some.par_iter().map_init(Scratch::default, each).collect()
                    }),
                };
                all(answers)
            })?;
            if !pass {
                // The plan may be another one since the search began.
                self.check_fed(call)?;
                results.extend(answers.into_iter().map(|answer| answer.outcome));
                continue;
            }
            let mut core = self.write();
            for SearchAnswer { outcome, found } in answers {
                found.iter().for_each(|found| core.learn(found));
                results.push(outcome);
            }
        }
        Ok(results)
    }

    /// Decides how a search is made, and the order of those that compare.
    fn plan(&self, search: NodeSearch, pass: bool) -> Planned {
        let role = match &search {
            NodeSearch::Own { page, content, .. } if pass => self.write().tables.take_role(*page, *content),
            NodeSearch::Own { .. } | NodeSearch::Foreign { .. } => None,
        };
        Planned { search, role }
    }
}

/// All answers, or all that is wanted for them.
fn all(answers: Vec<Result<SearchAnswer, Vec<Wanted>>>) -> Result<Vec<SearchAnswer>, Vec<Wanted>> {
    let (mut found, mut wanted) = (Vec::with_capacity(answers.len()), Vec::new());
    for answer in answers {
        match answer {
            Ok(answer) => found.push(answer),
            Err(more) => wanted.extend(more),
        }
    }
    if wanted.is_empty() { Ok(found) } else { Err(wanted) }
}

fn answer(
    core: &Core,
    planned: &Planned,
    fetched: &Fetched,
    scratch: &mut Scratch,
) -> Result<SearchAnswer, Vec<Wanted>> {
    std::thread::yield_now();
    let without = |outcome| Ok(SearchAnswer { outcome, found: None });
    match (&planned.search, planned.role) {
        (NodeSearch::Own { .. }, None) => without(SearchOutcome::Absent),
        (NodeSearch::Own { .. }, Some(QueryRole::Copy(entry))) => {
            without(SearchOutcome::Copy(copy(core, entry)))
        }
        (NodeSearch::Own { signature, .. }, Some(QueryRole::First { entry, before })) => {
            own(core, signature.as_ref(), (entry, before), fetched, scratch)
        }
        (NodeSearch::Foreign { signature, lengths }, _) => {
            if let Some(entry) = core.tables.find(signature.content()) {
                return without(SearchOutcome::Copy(copy(core, entry)));
            }
            let found = search(core, signature, *lengths, None, fetched, scratch)?;
            let (pairs, probed) = (pairs(core, &found).collect(), found.probed_partitions.len() as u32);
            Ok(SearchAnswer {
                outcome: SearchOutcome::Compared { pairs, probed, subject: None },
                found: Some(found),
            })
        }
    }
}

/// Compares a page that is stored here, the first one of its content.
fn own(
    core: &Core,
    signature: Option<&Arc<Signature>>,
    (entry, before): (EntryRef, Option<PageId>),
    fetched: &Fetched,
    scratch: &mut Scratch,
) -> Result<SearchAnswer, Vec<Wanted>> {
    let (signature, was_fetched) = match signature {
        Some(signature) => (Arc::clone(signature), false),
        None => match core.read(entry, fetched, &mut Vec::new()).map_err(|wanted| vec![wanted])? {
            Some(read) => (read.signature, read.fetched),
            None => return Ok(SearchAnswer { outcome: SearchOutcome::Absent, found: None }),
        },
    };
    let partition = core.tables.partition(entry);
    let lengths = partition.columns.vector(entry.slot);
    let mut found = search(core, &signature, lengths, Some(entry), fetched, scratch)?;
    if was_fetched {
        found.fetched.push((entry, Arc::clone(&signature)));
    }
    // It is linked to the copies as well: it may have become the first page after they were searched for.
    let copies = partition.pages_of(entry.slot).skip(1).take(COPIES_MAX);
    let copies = before.into_iter().chain(copies.filter(|page| Some(*page) != before));
    let same = copy(core, entry);
    let pairs = copies.map(|page| Pair { page, ..same }).chain(pairs(core, &found)).collect();
    let outcome = SearchOutcome::Compared {
        pairs,
        probed: found.probed_partitions.len() as u32,
        subject: Some((signature, lengths)),
    };
    Ok(SearchAnswer { outcome, found: Some(found) })
}

fn search(
    core: &Core,
    signature: &Signature,
    lengths: LengthVector,
    own: Option<EntryRef>,
    fetched: &Fetched,
    scratch: &mut Scratch,
) -> Result<Found, Vec<Wanted>> {
    core.search(Subject { signature, lengths, own }, fetched, scratch)
}

fn pairs<'a>(core: &'a Core, found: &'a Found) -> impl Iterator<Item = Pair> + 'a {
    found.partners.iter().map(|Partner { entry, similarity, .. }| {
        let columns = &core.tables.partition(*entry).columns;
        Pair { page: columns.page(entry.slot), content: columns.content(entry.slot), similarity: *similarity }
    })
}

/// The pair of a content with itself, by way of its first page.
fn copy(core: &Core, entry: EntryRef) -> Pair {
    let columns = &core.tables.partition(entry).columns;
    let similarity = Similarity::of_copies(columns.total(entry.slot));
    Pair { page: columns.page(entry.slot), content: columns.content(entry.slot), similarity }
}
