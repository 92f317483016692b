//! A batch of searches: first all roles are assigned, then a few searches at a time are made.
//!
//! The lock on the tables is held only for a few searches, and to store what they found. So a probe never
//! waits for a whole batch.

use std::sync::Arc;

use doppel_model::pairwise::Similarity;
use doppel_model::signature::Signature;
use doppel_model::{ContentHash, PageId};
use doppel_protocol::VerifiedPartner;
use doppel_protocol::index_node::{
    BATCH_ORDERS_MAX, CallContext, NodeError, NodeSearch, SearchBatch, SearchLimits, SearchOutcome,
};
use rayon::prelude::*;

use super::core::Core;
use super::search::findings::{FoundPartner, SearchFindings};
use super::search::interruption::InterruptedSearch;
use super::search::{SearchScratch, Subject};
use super::signatures::fetch::{FetchedSignatures, MissingSignature, all_or_missing, with_fetched_before};
use super::signatures::signature_cache::{SharedSignatures, SignatureCache};
use super::tables::EntryRef;
use super::tables::roles::QueryRole;
use super::{LocalNode, check_limit, lock};

/// Number of searches per thread between two updates of the tables. Searches of one step do not know each
/// other's centers. So each compares its page with the others of its cluster in that step.
const SEARCHES_PER_THREAD: usize = 4;

/// Most copies that the answer for the first page of a content lists, besides the page that was first before. Each copy names
/// the first page in its own answer, so the list needs only the copies that were searched for earlier.
const COPIES_MAX: usize = 1_000;

/// A search and how it is made. It has no role if the page does not have the content any more, or another
/// node stores it.
struct PlannedSearch {
    search: NodeSearch,
    role: Option<QueryRole>,
    /// Where the search continues, if it was interrupted before.
    interrupted: Option<InterruptedSearch>,
    /// The cost at which the search is interrupted.
    limit: Option<u64>,
}

/// The result of one search on this node.
struct SearchAnswer {
    outcome: SearchOutcome,
    /// Findings to store in the tables, if the search compared entries.
    findings: Option<SearchFindings>,
    /// Where the search continues, if it was interrupted.
    interrupted: Option<InterruptedSearch>,
}

impl LocalNode {
    pub(super) fn search_batch(
        &self,
        call: CallContext,
        batch: SearchBatch,
    ) -> Result<Vec<SearchOutcome>, NodeError> {
        let SearchBatch { pass, searches } = batch;
        check_limit(searches.len(), BATCH_ORDERS_MAX)?;
        let count = searches.len();
        let mut planned: Vec<PlannedSearch> =
            searches.into_iter().map(|search| self.plan_search(search, pass.as_ref())).collect();
        let pool = self.config.pool.as_ref().filter(|_| planned.len() > 1);
        let threads = pool.map_or(1, |pool| pool.current_num_threads());
        let together = pool.map_or(1, |_| threads * SEARCHES_PER_THREAD);
        let cost_max = pass.map_or(u64::MAX, |limits| limits.call.saturating_mul(threads as u64));
        let mut results = Vec::with_capacity(count);
        let (mut scratch, mut cost) = (SearchScratch::default(), 0);
        // A single search reads no signature twice, so it needs no cache.
        let cache = if count > 1 { SignatureCache::default() } else { SignatureCache::disabled() };
        // Contents that no page has any more. They are not requested again.
        let mut known = FetchedSignatures::default();
        while results.len() < count && cost < cost_max {
            self.check_running()?;
            let chunk = &planned[results.len()..count.min(results.len() + together)];
            let answers = with_fetched_before(&*self.source, &mut known, |fetched| {
                let core = self.read();
                let shared = SharedSignatures { fetched, cache: &cache };
                let answers: Vec<Result<SearchAnswer, Vec<MissingSignature>>> = match pool {
                    None => chunk.iter().map(|one| make_search(&core, one, shared, &mut scratch)).collect(),
                    Some(pool) => pool.install(|| {
                        let each =
                            |scratch: &mut SearchScratch, one| make_search(&core, one, shared, scratch);
                        chunk.par_iter().map_init(SearchScratch::default, each).collect()
                    }),
                };
                all_or_missing(answers)
            })?;
            known.retain(|_, signature| signature.is_none());
            if pass.is_none() {
                // The plan may have changed since the probe began.
                self.check_fed(call)?;
                results.extend(answers.into_iter().map(|answer| answer.outcome));
                continue;
            }
            let mut core = self.write();
            let mut interrupted_searches = lock(&self.interrupted);
            for (SearchAnswer { outcome, findings, interrupted }, one) in answers.into_iter().zip(chunk) {
                if let Some(findings) = findings {
                    core.learn(&findings);
                    cost += findings.cost;
                }
                if let Some(interrupted) = interrupted {
                    interrupted_searches.insert(one.search.content(), interrupted);
                }
                results.push(outcome);
            }
        }
        self.put_off(planned.split_off(results.len()));
        results.resize(count, SearchOutcome::Unfinished { begun: false });
        Ok(results)
    }

    /// Decides how a search is made, and gives it a query order.
    fn plan_search(&self, search: NodeSearch, pass: Option<&SearchLimits>) -> PlannedSearch {
        let Some(limits) = pass else {
            return PlannedSearch { search, role: None, interrupted: None, limit: None };
        };
        let content = search.content();
        let mut core = self.write();
        let mut interrupted_searches = lock(&self.interrupted);
        let limit = interrupted_searches.has_room().then_some(limits.search);
        let (role, interrupted) = match &search {
            NodeSearch::Own { page, .. } => {
                let is_current = |search: &InterruptedSearch| core.is_current(search, *page, content);
                match interrupted_searches.take_if(content, true, is_current) {
                    // A resumed search keeps its query order.
                    Some(interrupted) => (core.resumed_role(&interrupted), Some(interrupted)),
                    None => (core.tables.assign_role(*page, content), None),
                }
            }
            NodeSearch::Foreign { .. } => (None, interrupted_searches.take_if(content, false, |_| true)),
        };
        PlannedSearch { search, role, interrupted, limit }
    }

    /// Undoes the planning of searches that did not get their turn. Keeps the state of an interrupted search
    /// for a later call, and takes back the role of any other search.
    fn put_off(&self, planned: Vec<PlannedSearch>) {
        for PlannedSearch { search, role, interrupted, .. } in planned.into_iter().rev() {
            if let Some(interrupted) = interrupted {
                lock(&self.interrupted).insert(search.content(), interrupted);
            } else if let Some(role) = role {
                self.write().tables.revoke_role(role);
            }
        }
    }
}

impl Core {
    /// Whether an interrupted search can continue for a page: the page is still the first of its content, and
    /// the entry has not begun anew.
    fn is_current(&self, interrupted: &InterruptedSearch, page: PageId, content: ContentHash) -> bool {
        interrupted.own.is_some_and(|(entry, insert_seq)| {
            let is_there = self.tables.find(content) == Some(entry);
            is_there
                && self.tables.is_alive(entry, insert_seq)
                && self.tables.partition(entry).columns.page(entry.slot) == page
        })
    }

    /// The role that an interrupted search had when it began.
    fn resumed_role(&self, interrupted: &InterruptedSearch) -> Option<QueryRole> {
        let before = interrupted.before;
        interrupted.own.map(|(entry, _)| {
            let earlier = self.tables.partition(entry).columns.query_order(entry.slot);
            QueryRole::First { entry, before, earlier }
        })
    }
}

fn make_search(
    core: &Core,
    planned: &PlannedSearch,
    shared: SharedSignatures<'_>,
    scratch: &mut SearchScratch,
) -> Result<SearchAnswer, Vec<MissingSignature>> {
    std::thread::yield_now();
    let without = |outcome| Ok(SearchAnswer { outcome, findings: None, interrupted: None });
    let (interrupted, limit) = (planned.interrupted.as_ref(), planned.limit);
    match (&planned.search, planned.role) {
        (NodeSearch::Own { .. }, None) => without(SearchOutcome::Absent),
        (NodeSearch::Own { .. }, Some(QueryRole::Copy(entry))) => {
            without(SearchOutcome::Copy(copy_pair(core, entry)))
        }
        (NodeSearch::Own { signature, .. }, Some(QueryRole::First { entry, before, .. })) => {
            search_own(core, signature.as_ref(), (entry, before), (interrupted, limit), shared, scratch)
        }
        (NodeSearch::Foreign { signature, lengths }, _) => {
            if let Some(entry) = core.tables.find(signature.content()) {
                return without(SearchOutcome::Copy(copy_pair(core, entry)));
            }
            let subject = Subject { signature, lengths: *lengths, own: None, interrupted, limit };
            let (findings, interrupted) = core.search(subject, shared, scratch)?;
            if interrupted.is_some() {
                let outcome = SearchOutcome::Unfinished { begun: true };
                return Ok(SearchAnswer { outcome, findings: Some(findings), interrupted });
            }
            let (pairs, probed) = (pairs(core, &findings).collect(), findings.probed_partitions.len() as u32);
            let outcome = SearchOutcome::Compared { pairs, probed, subject: None };
            Ok(SearchAnswer { outcome, findings: Some(findings), interrupted: None })
        }
    }
}

/// Makes a search for a page that is stored here and is the first of its content.
fn search_own(
    core: &Core,
    signature: Option<&Arc<Signature>>,
    (entry, before): (EntryRef, Option<PageId>),
    (interrupted, limit): (Option<&InterruptedSearch>, Option<u64>),
    shared: SharedSignatures<'_>,
    scratch: &mut SearchScratch,
) -> Result<SearchAnswer, Vec<MissingSignature>> {
    let (signature, was_fetched) = match signature {
        Some(signature) => (Arc::clone(signature), false),
        None => match core.read(entry, shared.fetched, &mut Vec::new()).map_err(|missing| vec![missing])? {
            Some(read) => (read.signature, read.fetched),
            None => {
                return Ok(SearchAnswer {
                    outcome: SearchOutcome::Absent,
                    findings: None,
                    interrupted: None,
                });
            }
        },
    };
    let partition = core.tables.partition(entry);
    let lengths = partition.columns.vector(entry.slot);
    let subject = Subject { signature: &signature, lengths, own: Some(entry), interrupted, limit };
    let (mut findings, interrupted) = core.search(subject, shared, scratch)?;
    if was_fetched {
        findings.fetched.push((entry, Arc::clone(&signature)));
    }
    if let Some(interrupted) = interrupted {
        return Ok(SearchAnswer {
            outcome: SearchOutcome::Unfinished { begun: true },
            findings: Some(findings),
            interrupted: Some(InterruptedSearch { before, ..interrupted }),
        });
    }
    // The answer also names the copies. The page may have become the first one after they were searched for.
    let copies = partition.pages_of(entry.slot).skip(1).take(COPIES_MAX);
    let copies = before.into_iter().chain(copies.filter(|page| Some(*page) != before));
    let same = copy_pair(core, entry);
    let pairs = copies.map(|page| VerifiedPartner { page, ..same }).chain(pairs(core, &findings)).collect();
    let outcome = SearchOutcome::Compared {
        pairs,
        probed: findings.probed_partitions.len() as u32,
        subject: Some((signature, lengths)),
    };
    Ok(SearchAnswer { outcome, findings: Some(findings), interrupted: None })
}

fn pairs<'a>(core: &'a Core, findings: &'a SearchFindings) -> impl Iterator<Item = VerifiedPartner> + 'a {
    findings.partners.iter().map(|FoundPartner { entry, similarity, .. }| {
        let columns = &core.tables.partition(*entry).columns;
        VerifiedPartner {
            page: columns.page(entry.slot),
            content: columns.content(entry.slot),
            similarity: *similarity,
        }
    })
}

/// The pair of a content with itself. It names the first page of the content.
fn copy_pair(core: &Core, entry: EntryRef) -> VerifiedPartner {
    let columns = &core.tables.partition(entry).columns;
    let similarity = Similarity::of_copies(columns.total(entry.slot));
    VerifiedPartner { page: columns.page(entry.slot), content: columns.content(entry.slot), similarity }
}
