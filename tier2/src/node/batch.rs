//! A batch of searches: all roles first, then a few searches at a time.
//!
//! The lock is held for a few searches, and to take in what they found, so that a probe never waits for a batch.

use std::sync::Arc;

use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::Pair;
use doppel_protocol::index_node::{
    BATCH_MAX, CallContext, NodeError, NodeSearch, SearchBatch, SearchLimits, SearchOutcome,
};
use rayon::prelude::*;

use super::core::Core;
use super::decoded::{Decoded, Shared};
use super::fetched::{Fetched, Wanted, with_known};
use super::found::{Found, Partner};
use super::interrupted::Interrupted;
use super::roles::QueryRole;
use super::search::{Scratch, Subject};
use super::tables::EntryRef;
use super::{LocalNode, bounded, lock};

/// Searches per thread whose findings are taken in together. They do not know of each other's centers, so
/// each compares the others of its cluster among them.
const SEARCHES_PER_THREAD: usize = 4;

/// Copies that the first page of a content names at most. Every copy names the first page by itself, so
/// this is only for those that were searched for before it was the first one.
const COPIES_MAX: usize = 1_000;

/// A search, and how it is made; no role where the page does not have the content (any more).
struct Planned {
    search: NodeSearch,
    role: Option<QueryRole>,
    /// Where it continues, if it was interrupted before.
    interrupted: Option<Interrupted>,
    /// The cost at which it is interrupted.
    limit: Option<u64>,
}

/// What a search gives.
struct SearchAnswer {
    outcome: SearchOutcome,
    /// What the node is to take in, where it was compared.
    found: Option<Found>,
    /// Where it continues, if it was interrupted.
    interrupted: Option<Interrupted>,
}

impl LocalNode {
    pub(super) fn search_batch(
        &self,
        call: CallContext,
        batch: SearchBatch,
    ) -> Result<Vec<SearchOutcome>, NodeError> {
        let SearchBatch { pass, searches } = batch;
        bounded(searches.len(), BATCH_MAX)?;
        let count = searches.len();
        let mut planned: Vec<Planned> =
            searches.into_iter().map(|search| self.plan(search, pass.as_ref())).collect();
        let pool = self.config.pool.as_ref().filter(|_| planned.len() > 1);
        let threads = pool.map_or(1, |pool| pool.current_num_threads());
        let together = pool.map_or(1, |_| threads * SEARCHES_PER_THREAD);
        let cost_max = pass.map_or(u64::MAX, |limits| limits.call.saturating_mul(threads as u64));
        let mut results = Vec::with_capacity(count);
        let (mut scratch, mut cost) = (Scratch::default(), 0);
        // A single search reads nothing twice.
        let decoded = if count > 1 { Decoded::default() } else { Decoded::none() };
        // What no page has any more is not asked for again.
        let mut known = Fetched::default();
        while results.len() < count && cost < cost_max {
            self.check_running()?;
            let some = &planned[results.len()..count.min(results.len() + together)];
            let answers = with_known(&*self.source, &mut known, |fetched| {
                let core = self.read();
                let shared = Shared { fetched, decoded: &decoded };
                let answers: Vec<Result<SearchAnswer, Vec<Wanted>>> = match pool {
                    None => some.iter().map(|one| answer(&core, one, shared, &mut scratch)).collect(),
                    Some(pool) => pool.install(|| {
                        let each = |scratch: &mut Scratch, one| answer(&core, one, shared, scratch);
                        some.par_iter().map_init(Scratch::default, each).collect()
                    }),
                };
                all(answers)
            })?;
            known.retain(|_, signature| signature.is_none());
            if pass.is_none() {
                // The plan may be another one since the search began.
                self.check_fed(call)?;
                results.extend(answers.into_iter().map(|answer| answer.outcome));
                continue;
            }
            let mut core = self.write();
            let mut interrupted_searches = lock(&self.interrupted);
            for (SearchAnswer { outcome, found, interrupted }, one) in answers.into_iter().zip(some) {
                if let Some(found) = found {
                    core.learn(&found);
                    cost += found.cost;
                }
                if let Some(interrupted) = interrupted {
                    interrupted_searches.insert(one.search.content(), interrupted);
                }
                results.push(outcome);
            }
        }
        self.leave(planned.split_off(results.len()));
        results.resize(count, SearchOutcome::Unfinished { begun: false });
        Ok(results)
    }

    /// Decides how a search is made, and the order of those that compare.
    fn plan(&self, search: NodeSearch, pass: Option<&SearchLimits>) -> Planned {
        let Some(limits) = pass else {
            return Planned { search, role: None, interrupted: None, limit: None };
        };
        let content = search.content();
        let mut core = self.write();
        let mut interrupted_searches = lock(&self.interrupted);
        let limit = interrupted_searches.has_room().then_some(limits.search);
        let (role, interrupted) = match &search {
            NodeSearch::Own { page, .. } => {
                let is_current = |search: &Interrupted| core.is_current(search, *page, content);
                match interrupted_searches.take_if(content, true, is_current) {
                    // It keeps its query order.
                    Some(interrupted) => (core.first_role(&interrupted), Some(interrupted)),
                    None => (core.tables.take_role(*page, content), None),
                }
            }
            NodeSearch::Foreign { .. } => (None, interrupted_searches.take_if(content, false, |_| true)),
        };
        Planned { search, role, interrupted, limit }
    }

    /// Leaves searches that were not begun for another call.
    fn leave(&self, planned: Vec<Planned>) {
        for Planned { search, role, interrupted, .. } in planned.into_iter().rev() {
            if let Some(interrupted) = interrupted {
                lock(&self.interrupted).insert(search.content(), interrupted);
            } else if let Some(role) = role {
                self.write().tables.take_back(role);
            }
        }
    }
}

impl Core {
    /// Whether an interrupted search is the one for a page that is still the first of its content, which has not begun anew.
    fn is_current(&self, interrupted: &Interrupted, page: PageId, content: ContentHash) -> bool {
        interrupted.own.is_some_and(|(entry, insert_seq)| {
            let is_there = self.tables.find(content) == Some(entry);
            is_there
                && self.tables.is_alive(entry, insert_seq)
                && self.tables.partition(entry).columns.page(entry.slot) == page
        })
    }

    /// The role that an interrupted search has had from its beginning.
    fn first_role(&self, interrupted: &Interrupted) -> Option<QueryRole> {
        let before = interrupted.before;
        interrupted.own.map(|(entry, _)| {
            let earlier = self.tables.partition(entry).columns.query_order(entry.slot);
            QueryRole::First { entry, before, earlier }
        })
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
    shared: Shared<'_>,
    scratch: &mut Scratch,
) -> Result<SearchAnswer, Vec<Wanted>> {
    std::thread::yield_now();
    let without = |outcome| Ok(SearchAnswer { outcome, found: None, interrupted: None });
    let (interrupted, limit) = (planned.interrupted.as_ref(), planned.limit);
    match (&planned.search, planned.role) {
        (NodeSearch::Own { .. }, None) => without(SearchOutcome::Absent),
        (NodeSearch::Own { .. }, Some(QueryRole::Copy(entry))) => {
            without(SearchOutcome::Copy(copy(core, entry)))
        }
        (NodeSearch::Own { signature, .. }, Some(QueryRole::First { entry, before, .. })) => {
            own(core, signature.as_ref(), (entry, before), (interrupted, limit), shared, scratch)
        }
        (NodeSearch::Foreign { signature, lengths }, _) => {
            if let Some(entry) = core.tables.find(signature.content()) {
                return without(SearchOutcome::Copy(copy(core, entry)));
            }
            let subject = Subject { signature, lengths: *lengths, own: None, interrupted, limit };
            let (found, interrupted) = core.search(subject, shared, scratch)?;
            if interrupted.is_some() {
                let outcome = SearchOutcome::Unfinished { begun: true };
                return Ok(SearchAnswer { outcome, found: Some(found), interrupted });
            }
            let (pairs, probed) = (pairs(core, &found).collect(), found.probed_partitions.len() as u32);
            let outcome = SearchOutcome::Compared { pairs, probed, subject: None };
            Ok(SearchAnswer { outcome, found: Some(found), interrupted: None })
        }
    }
}

/// Compares a page that is stored here, the first one of its content.
fn own(
    core: &Core,
    signature: Option<&Arc<Signature>>,
    (entry, before): (EntryRef, Option<PageId>),
    (interrupted, limit): (Option<&Interrupted>, Option<u64>),
    shared: Shared<'_>,
    scratch: &mut Scratch,
) -> Result<SearchAnswer, Vec<Wanted>> {
    let (signature, was_fetched) = match signature {
        Some(signature) => (Arc::clone(signature), false),
        None => match core.read(entry, shared.fetched, &mut Vec::new()).map_err(|wanted| vec![wanted])? {
            Some(read) => (read.signature, read.fetched),
            None => {
                return Ok(SearchAnswer { outcome: SearchOutcome::Absent, found: None, interrupted: None });
            }
        },
    };
    let partition = core.tables.partition(entry);
    let lengths = partition.columns.vector(entry.slot);
    let subject = Subject { signature: &signature, lengths, own: Some(entry), interrupted, limit };
    let (mut found, interrupted) = core.search(subject, shared, scratch)?;
    if was_fetched {
        found.fetched.push((entry, Arc::clone(&signature)));
    }
    if let Some(interrupted) = interrupted {
        return Ok(SearchAnswer {
            outcome: SearchOutcome::Unfinished { begun: true },
            found: Some(found),
            interrupted: Some(Interrupted { before, ..interrupted }),
        });
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
    Ok(SearchAnswer { outcome, found: Some(found), interrupted: None })
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
