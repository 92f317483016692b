//! One round of searches: at home first, then elsewhere, then the answers.
//!
//! A page is searched for at home first, which says whether it is compared at all or is a copy; then on all other nodes that have a partition
//! which its bounding space meets. To another node than its home, it is a content that is stored elsewhere: insertion order, centers and
//! query order are per node.
//!
//! A round keeps what it has. If a node or tier 1 fails, the round is run again and goes on where it was. So of each search there is one
//! answer. A round is made under one plan. It ends when its searches have cost as much as they may: those without an answer go back to the
//! queue with what they have found.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, NodeId, PageId, PlanVersion};
use doppel_partitioning::{LengthVector, Plan};
use doppel_protocol::index_node::{BATCH_MAX, NodeSearch, SearchBatch, SearchOutcome, fitting};
use doppel_protocol::{Pair, Search, SearchResult};

use super::{Router, RouterError, version};

/// A search that is asked for.
pub(super) struct Asked {
    pub(super) page: PageId,
    pub(super) content: ContentHash,
    pub(super) search: Search,
    /// Where it is stored, if the order said so.
    home: Option<Home>,
    state: State,
    /// A limit was reached in this round; whether the search had begun.
    unfinished: Option<bool>,
}

/// The node that stores the content of a search.
struct Home {
    plan: PlanVersion,
    node: NodeId,
    /// Its signature, until the first round is over.
    signature: Option<Arc<Signature>>,
}

enum State {
    /// No node has said that it stores the page; these have said that they do not.
    Open(Vec<NodeId>),
    /// No node stores the page with that content, so there is no answer.
    Absent,
    /// Its home has answered; some of the other nodes have not.
    Probing {
        plan: PlanVersion,
        subject: (Arc<Signature>, LengthVector),
        left: Vec<NodeId>,
        /// By node.
        pairs: Vec<(NodeId, Vec<Pair>)>,
        probed: u64,
    },
    Answered(Vec<Pair>),
}

/// Searches that are made together.
pub(super) struct Round {
    plan: Arc<Plan>,
    asked: Vec<Asked>,
    /// Pages that the index should have had were stored, and searched for again.
    repaired: bool,
    counted: bool,
}

impl Round {
    pub(super) fn new(router: &Router, mut asked: Vec<Asked>) -> Self {
        let plan = router.plan();
        asked.iter_mut().for_each(|asked| asked.begin(version(&plan)));
        Self { plan, asked, repaired: false, counted: false }
    }

    /// Goes on until every search has its answer or has reached a limit. Hands over the answers, and returns the searches, each of which says
    /// whether it is [unfinished](Asked::unfinished).
    ///
    /// # Errors
    /// When a node or tier 1 does not do its part now. The round is run again then.
    pub(super) fn run(&mut self, router: &Router) -> Result<Vec<Asked>, RouterError> {
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
        Ok(std::mem::take(&mut self.asked))
    }

    /// Has a node make searches within the limits of a pass.
    fn ask(
        &self,
        router: &Router,
        node: NodeId,
        searches: Vec<NodeSearch>,
    ) -> Result<Vec<SearchOutcome>, RouterError> {
        let batch = SearchBatch { pass: Some(router.config.search_limits), searches };
        router.call(node, &self.plan, |node, call| node.search(call, batch))
    }

    /// Has a node search for the pages that are stored there.
    fn search_at_home(&mut self, router: &Router, node: NodeId) -> Result<(), RouterError> {
        let is_due = |asked: &Asked| match (&asked.state, &asked.home) {
            _ if asked.unfinished.is_some() => false,
            (State::Open(_), Some(home)) => home.node == node,
            (State::Open(without), None) => !without.contains(&node),
            _ => false,
        };
        let due: Vec<usize> = (0..self.asked.len()).filter(|at| is_due(&self.asked[*at])).collect();
        for some in due.chunks(BATCH_MAX) {
            let search = |at: &usize| {
                let Asked { page, content, home, .. } = &self.asked[*at];
                let signature = home.as_ref().and_then(|home| home.signature.clone());
                NodeSearch::Own { page: *page, content: *content, signature }
            };
            let answers = self.ask(router, node, some.iter().map(search).collect())?;
            for (at, answer) in some.iter().zip(answers) {
                self.asked[*at].at_home(router, &self.plan, node, answer);
            }
        }
        Ok(())
    }

    /// A deferred search should find its page. If it does not, and tier 1 still says that the page has this content,
    /// then the index has missed an order: the page is stored now, and the search is made again.
    fn store_missing(&mut self, router: &Router) -> Result<(), RouterError> {
        let open: Vec<_> = self
            .asked
            .iter()
            .filter(|asked| asked.is_missing())
            .map(|asked| (asked.page, asked.content))
            .collect();
        if open.is_empty() {
            return Ok(());
        }
        let stored = router.store_missing(&self.plan, &open)?;
        for asked in self.asked.iter_mut().filter(|asked| asked.is_missing()) {
            asked.home = None;
            let is_stored = stored.contains(&(asked.page, asked.content));
            asked.state = if is_stored { State::Open(Vec::new()) } else { State::Absent };
        }
        for node in router.nodes.iter().map(|handle| handle.id) {
            self.search_at_home(router, node)?;
        }
        Ok(())
    }

    /// Has a node search for the pages that are stored elsewhere.
    fn search_elsewhere(&mut self, router: &Router, node: NodeId) -> Result<(), RouterError> {
        let is_due = |asked: &Asked| match &asked.state {
            State::Probing { left, .. } => asked.unfinished.is_none() && left.contains(&node),
            _ => false,
        };
        let due: Vec<usize> = (0..self.asked.len()).filter(|at| is_due(&self.asked[*at])).collect();
        let mut rest = &due[..];
        while !rest.is_empty() {
            let some;
            (some, rest) = rest.split_at(self.fitting(rest));
            let search = |at: &usize| match &self.asked[*at].state {
                State::Probing { subject: (signature, lengths), .. } => {
                    Some(NodeSearch::Foreign { signature: Arc::clone(signature), lengths: *lengths })
                }
                _ => None,
            };
            let answers = self.ask(router, node, some.iter().filter_map(search).collect())?;
            for (at, answer) in some.iter().zip(answers) {
                self.asked[*at].elsewhere(node, answer);
            }
        }
        Ok(())
    }

    /// How many of these searches a call may bring to a node that does not have their signatures: at least one.
    fn fitting(&self, due: &[usize]) -> usize {
        let size = |at: &usize| match &self.asked[*at].state {
            State::Probing { subject: (signature, _), .. } => signature.as_bytes().len(),
            _ => 0,
        };
        fitting(due.iter().take(BATCH_MAX).map(size))
    }

    /// Hands the answers over, in the order in which they were asked for.
    fn answer(&mut self, router: &Router) -> Result<(), RouterError> {
        router.check_running()?;
        // Counted first: whoever has all the answers finds them all in the load report.
        if !self.counted {
            let finished = self.asked.iter().filter(|asked| asked.unfinished.is_none());
            finished.for_each(|asked| asked.count(router));
            self.counted = true;
        }
        let results: Vec<SearchResult> = self.asked.iter().filter_map(Asked::result).collect();
        if !results.is_empty() {
            router.source.deliver(results)?;
        }
        Ok(())
    }
}

impl Asked {
    pub(super) fn new(page: PageId, content: ContentHash, search: Search) -> Self {
        Self { page, content, search, home: None, state: State::Open(Vec::new()), unfinished: None }
    }

    /// The search has no partners and is not made.
    pub(super) fn without_partners(mut self) -> Self {
        self.state = State::Answered(Vec::new());
        self
    }

    /// A node is to store the content under a plan.
    pub(super) fn is_stored_at(&mut self, plan: &Plan, node: NodeId, signature: &Arc<Signature>) {
        self.home = Some(Home { plan: version(plan), node, signature: Some(Arc::clone(signature)) });
    }

    /// A round begins under a plan. What was found under another one is asked for again.
    fn begin(&mut self, present: PlanVersion) {
        self.unfinished = None;
        self.home.take_if(|home| home.plan != present);
        match &self.state {
            State::Open(without) if !without.is_empty() => self.state = State::Open(Vec::new()),
            State::Probing { plan, .. } if *plan != present => self.state = State::Open(Vec::new()),
            _ => {}
        }
    }

    /// Whether a limit was reached in the last round before the search had its answer, and if so, whether the search had begun.
    pub(super) fn unfinished(&self) -> Option<bool> {
        self.unfinished
    }

    /// While the search waits, its signature takes no memory here: its home has it.
    pub(super) fn forget_signature(&mut self) {
        if let Some(home) = &mut self.home {
            home.signature = None;
        }
    }

    /// Bytes of memory that the search's signature takes here.
    pub(super) fn signature_bytes(&self) -> usize {
        let signature = self.home.as_ref().and_then(|home| home.signature.as_ref());
        signature.map_or(0, |signature| signature.as_bytes().len())
    }

    /// Whether every node that was to store the page has said that it does not.
    fn is_missing(&self) -> bool {
        matches!(self.state, State::Open(_)) && self.unfinished.is_none()
    }

    fn at_home(&mut self, router: &Router, plan: &Plan, node: NodeId, answer: SearchOutcome) {
        self.state = match (answer, &mut self.state) {
            (SearchOutcome::Absent, State::Open(without)) => {
                without.push(node);
                return;
            }
            (SearchOutcome::Unfinished { begun }, _) => {
                self.unfinished = Some(begun);
                return;
            }
            (SearchOutcome::Copy(pair), _) => State::Answered(vec![pair]),
            (SearchOutcome::Compared { pairs, probed, subject: Some(subject) }, _) => {
                let mut left = router.nodes_to_probe(plan, &subject.1);
                left.retain(|other| *other != node);
                let (plan, pairs, probed) = (version(plan), vec![(node, pairs)], probed.into());
                State::Probing { plan, subject, left, pairs, probed }
            }
            (SearchOutcome::Absent | SearchOutcome::Compared { .. }, _) => return,
        };
    }

    fn elsewhere(&mut self, node: NodeId, answer: SearchOutcome) {
        let State::Probing { left, pairs, probed, .. } = &mut self.state else { return };
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
            State::Open(_) | State::Absent => return None,
            State::Answered(pairs) => pairs.clone(),
            State::Probing { pairs, .. } => pairs.iter().flat_map(|(_, pairs)| pairs).copied().collect(),
        };
        Some(SearchResult { page: self.page, content: self.content, ticket: self.search.ticket, pairs })
    }

    /// Counts what was compared, and where.
    fn count(&self, router: &Router) {
        if let State::Probing { pairs, probed, .. } = &self.state {
            router.counts.add(*probed, pairs.len() as u64);
        }
    }
}
