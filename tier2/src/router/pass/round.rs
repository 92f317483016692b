//! A round of searches: first at home, then on other nodes, then the answers.
//!
//! The home of a page is searched first. It says whether the page is compared at all or is a copy. Then the
//! round searches every other node with a partition that meets the bounding space of the content. Those nodes
//! treat it as a content that is stored elsewhere, because insertion sequences, centers and query orders are
//! local to a node.
//!
//! A round keeps its results. If a node or tier 1 fails, the round continues when it is run again, so each
//! search gets one answer. A round uses one plan. It ends when its searches have reached their cost limit.
//! Searches without an answer then return to the queue, and keep what they have found.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, NodeId, PageId, PlanVersion};
use doppel_partitioning::{LengthVector, Plan};
use doppel_protocol::index_node::{BATCH_ORDERS_MAX, NodeSearch, SearchBatch, SearchOutcome, fitting_count};
use doppel_protocol::{Search, SearchResult, VerifiedPartner};

use crate::router::{Router, RouterError, version};

/// A search that was ordered and has no answer yet.
pub(in crate::router) struct PendingSearch {
    pub(in crate::router) page: PageId,
    pub(in crate::router) content: ContentHash,
    pub(in crate::router) search: Search,
    /// The node that stores the content, if the order named it.
    home: Option<HomeNode>,
    state: PendingState,
    /// Set if a limit ended the search in this round: whether the search had begun.
    unfinished: Option<bool>,
}

/// The node that stores the content of a search.
struct HomeNode {
    plan: PlanVersion,
    node: NodeId,
    /// The signature, until the first round is over or the queue needs the memory.
    signature: Option<Arc<Signature>>,
}

/// How far a search has come.
enum PendingState {
    /// No node has confirmed that it stores the page. The listed nodes do not store it.
    Open(Vec<NodeId>),
    /// No node stores the page with this content, so there is no answer.
    Absent,
    /// The home has answered. Some other nodes have not.
    Probing {
        plan: PlanVersion,
        subject: (Arc<Signature>, LengthVector),
        /// Nodes that have not answered yet.
        left: Vec<NodeId>,
        /// Partners by node.
        pairs: Vec<(NodeId, Vec<VerifiedPartner>)>,
        probed: u64,
    },
    /// All partners are known.
    Answered(Vec<VerifiedPartner>),
}

/// Searches that are made together.
pub(in crate::router) struct Round {
    plan: Arc<Plan>,
    searches: Vec<PendingSearch>,
    /// Whether the round has already stored the pages that were missing in the index.
    repaired: bool,
    counted: bool,
}

impl Round {
    pub(in crate::router) fn new(router: &Router, mut searches: Vec<PendingSearch>) -> Self {
        let plan = router.plan();
        searches.iter_mut().for_each(|pending| pending.begin(version(&plan)));
        Self { plan, searches, repaired: false, counted: false }
    }

    /// Makes the searches until each has its answer or has reached a limit, and delivers the answers. Returns
    /// the searches. Each says whether it is [unfinished](PendingSearch::unfinished).
    ///
    /// # Errors
    /// Fails if a node or tier 1 does not do its part now. The caller runs the round again.
    pub(in crate::router) fn run(&mut self, router: &Router) -> Result<Vec<PendingSearch>, RouterError> {
        for node in router.nodes.iter().map(|handle| handle.id) {
            self.search_at_home(router, node)?;
        }
        if !self.repaired {
            self.store_missing(router)?;
            self.repaired = true;
        }
        for node in router.nodes.iter().map(|handle| handle.id) {
            self.search_elsewhere(router, node)?;
        }
        self.answer(router)?;
        Ok(std::mem::take(&mut self.searches))
    }

    /// Has a node make searches within the limits of a pass.
    fn search_node(
        &self,
        router: &Router,
        node: NodeId,
        searches: Vec<NodeSearch>,
    ) -> Result<Vec<SearchOutcome>, RouterError> {
        let batch = SearchBatch { pass: Some(router.config.search_limits), searches };
        router.call(node, &self.plan, |node, call| node.search(call, batch))
    }

    /// Has a node search for the pages that it stores.
    fn search_at_home(&mut self, router: &Router, node: NodeId) -> Result<(), RouterError> {
        let is_due = |pending: &PendingSearch| match (&pending.state, &pending.home) {
            _ if pending.unfinished.is_some() => false,
            (PendingState::Open(_), Some(home)) => home.node == node,
            (PendingState::Open(without), None) => !without.contains(&node),
            _ => false,
        };
        let due: Vec<usize> = (0..self.searches.len()).filter(|at| is_due(&self.searches[*at])).collect();
        for chunk in due.chunks(BATCH_ORDERS_MAX) {
            let search = |at: &usize| {
                let PendingSearch { page, content, home, .. } = &self.searches[*at];
                let signature = home.as_ref().and_then(|home| home.signature.clone());
                NodeSearch::Own { page: *page, content: *content, signature }
            };
            let answers = self.search_node(router, node, chunk.iter().map(search).collect())?;
            for (at, answer) in chunk.iter().zip(answers) {
                self.searches[*at].take_home_answer(router, &self.plan, node, answer);
            }
        }
        Ok(())
    }

    /// Stores pages that the index should have but lacks. A search should find its page. If no node has the
    /// page, and tier 1 still has it with this content, then the index has lost an order. The round stores
    /// the page, and repeats the search.
    fn store_missing(&mut self, router: &Router) -> Result<(), RouterError> {
        let open: Vec<_> = self
            .searches
            .iter()
            .filter(|pending| pending.is_missing())
            .map(|pending| (pending.page, pending.content))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let stored = router.store_missing(&self.plan, &open)?;
        for pending in self.searches.iter_mut().filter(|pending| pending.is_missing()) {
            pending.home = None;
            let is_stored = stored.contains(&(pending.page, pending.content));
            pending.state = if is_stored { PendingState::Open(Vec::new()) } else { PendingState::Absent };
        }
        for node in router.nodes.iter().map(|handle| handle.id) {
            self.search_at_home(router, node)?;
        }
        Ok(())
    }

    /// Has a node search for pages that other nodes store.
    fn search_elsewhere(&mut self, router: &Router, node: NodeId) -> Result<(), RouterError> {
        let is_due = |pending: &PendingSearch| match &pending.state {
            PendingState::Probing { left, .. } => pending.unfinished.is_none() && left.contains(&node),
            _ => false,
        };
        let due: Vec<usize> = (0..self.searches.len()).filter(|at| is_due(&self.searches[*at])).collect();
        let mut rest = &due[..];
        while !rest.is_empty() {
            let chunk;
            (chunk, rest) = rest.split_at(self.searches_per_call(rest));
            let search = |at: &usize| match &self.searches[*at].state {
                PendingState::Probing { subject: (signature, lengths), .. } => {
                    Some(NodeSearch::Foreign { signature: Arc::clone(signature), lengths: *lengths })
                }
                _ => None,
            };
            let answers = self.search_node(router, node, chunk.iter().filter_map(search).collect())?;
            for (at, answer) in chunk.iter().zip(answers) {
                self.searches[*at].take_other_answer(node, answer);
            }
        }
        Ok(())
    }

    /// Number of the searches `due` that one call to another node may carry, with their signatures. At least
    /// one.
    fn searches_per_call(&self, due: &[usize]) -> usize {
        let size = |at: &usize| match &self.searches[*at].state {
            PendingState::Probing { subject: (signature, _), .. } => signature.as_bytes().len(),
            _ => 0,
        };
        fitting_count(due.iter().take(BATCH_ORDERS_MAX).map(size))
    }

    /// Delivers the answers, in the order of the searches.
    fn answer(&mut self, router: &Router) -> Result<(), RouterError> {
        router.check_running()?;
        // Counted before the delivery, so that a caller with all the answers finds them all in the load
        // report.
        if !self.counted {
            let finished = self.searches.iter().filter(|pending| pending.unfinished.is_none());
            finished.for_each(|pending| pending.count(router));
            self.counted = true;
        }
        let results: Vec<SearchResult> = self.searches.iter().filter_map(PendingSearch::result).collect();
        if !results.is_empty() {
            router.source.deliver(results)?;
        }
        Ok(())
    }
}

impl PendingSearch {
    pub(in crate::router) fn new(page: PageId, content: ContentHash, search: Search) -> Self {
        Self { page, content, search, home: None, state: PendingState::Open(Vec::new()), unfinished: None }
    }

    /// Answers the search without partners, and without making it.
    pub(in crate::router) fn without_partners(mut self) -> Self {
        self.state = PendingState::Answered(Vec::new());
        self
    }

    /// Notes that a node will store the content under this plan.
    pub(in crate::router) fn set_home(&mut self, plan: &Plan, node: NodeId, signature: &Arc<Signature>) {
        self.home = Some(HomeNode { plan: version(plan), node, signature: Some(Arc::clone(signature)) });
    }

    /// Prepares the search for a round. Results from under another plan are discarded.
    fn begin(&mut self, present: PlanVersion) {
        self.unfinished = None;
        self.home.take_if(|home| home.plan != present);
        match &self.state {
            PendingState::Open(without) if !without.is_empty() => self.state = PendingState::Open(Vec::new()),
            PendingState::Probing { plan, .. } if *plan != present => {
                self.state = PendingState::Open(Vec::new());
            }
            _ => {}
        }
    }

    /// Whether a limit ended the search in the last round: `Some(true)` if the search had begun, and
    /// `Some(false)` if it had not. `None` if no limit ended the search: the search has its answer, or no
    /// node stores its page.
    pub(in crate::router) fn unfinished(&self) -> Option<bool> {
        self.unfinished
    }

    /// Drops the signature while the search waits, to save memory. The home stores it.
    pub(in crate::router) fn forget_signature(&mut self) {
        if let Some(home) = &mut self.home {
            home.signature = None;
        }
    }

    /// Size of the signature that the search keeps, in bytes.
    pub(in crate::router) fn signature_bytes(&self) -> usize {
        let signature = self.home.as_ref().and_then(|home| home.signature.as_ref());
        signature.map_or(0, |signature| signature.as_bytes().len())
    }

    /// Whether every node that could store the page has said that it does not.
    fn is_missing(&self) -> bool {
        matches!(self.state, PendingState::Open(_)) && self.unfinished.is_none()
    }

    fn take_home_answer(&mut self, router: &Router, plan: &Plan, node: NodeId, answer: SearchOutcome) {
        self.state = match (answer, &mut self.state) {
            (SearchOutcome::Absent, PendingState::Open(without)) => {
                without.push(node);
                return;
            }
            (SearchOutcome::Unfinished { begun }, _) => {
                self.unfinished = Some(begun);
                return;
            }
            (SearchOutcome::Copy(pair), _) => PendingState::Answered(vec![pair]),
            (SearchOutcome::Compared { pairs, probed, subject: Some(subject) }, _) => {
                let mut left = router.nodes_to_probe(plan, &subject.1);
                left.retain(|other| *other != node);
                let (plan, pairs, probed) = (version(plan), vec![(node, pairs)], probed.into());
                PendingState::Probing { plan, subject, left, pairs, probed }
            }
            (SearchOutcome::Absent | SearchOutcome::Compared { .. }, _) => return,
        };
    }

    fn take_other_answer(&mut self, node: NodeId, answer: SearchOutcome) {
        let PendingState::Probing { left, pairs, probed, .. } = &mut self.state else { return };
        if let SearchOutcome::Unfinished { begun } = answer {
            self.unfinished = Some(begun);
            return;
        }
        left.retain(|other| *other != node);
        match answer {
            SearchOutcome::Absent | SearchOutcome::Unfinished { .. } => {}
            SearchOutcome::Copy(pair) => pairs.push((node, vec![pair])),
            SearchOutcome::Compared { pairs: more, probed: partitions, .. } => {
                *probed += u64::from(partitions);
                pairs.push((node, more));
            }
        }
    }

    fn result(&self) -> Option<SearchResult> {
        let pairs = match &self.state {
            _ if self.unfinished.is_some() => return None,
            PendingState::Open(_) | PendingState::Absent => return None,
            PendingState::Answered(pairs) => pairs.clone(),
            PendingState::Probing { pairs, .. } => {
                pairs.iter().flat_map(|(_, pairs)| pairs).copied().collect()
            }
        };
        Some(SearchResult { page: self.page, content: self.content, ticket: self.search.ticket, pairs })
    }

    /// Counts the search and the partitions and nodes that it reached.
    fn count(&self, router: &Router) {
        if let PendingState::Probing { pairs, probed, .. } = &self.state {
            router.counts.add(*probed, pairs.len() as u64);
        }
    }
}
