//! One pass over a batch of orders: store, then search, then answer.
//!
//! All puts and removals come first, in order, then all searches (G4): whatever two pages arrive together, the later
//! search finds both stored, on whatever nodes. A page is searched for at home first, which says whether it is compared
//! at all or is a copy; then on all other nodes that have a partition which its bounding space meets. To another node
//! than its home, it is a content that is stored elsewhere: insertion order, centers and query order are per node.
//!
//! A pass keeps what it has. When a node or tier 1 fails, it is run again and goes on where it was; a node that was fed
//! anew meanwhile gets its orders again, and skips those it knows. So no order is lost, and of each search there is one
//! answer. A pass is made under one plan from its beginning to its end.

use std::sync::Arc;

use doppel_model::signature::Signature;
use doppel_model::{ContentHash, Epoch, Incarnation, NodeId, PageId, RangeId};
use doppel_partitioning::{LengthVector, Plan};
use doppel_protocol::index_node::{
    BATCH_MAX, NodeError, NodeOrder, NodeSearch, OrderBatch, SearchBatch, SearchOutcome, fitting,
};
use doppel_protocol::{IndexCommand, Orders, Pair, Search, SearchResult};

use super::{Router, RouterError, lock};

/// A pass that is under way.
pub(crate) struct Pass {
    plan: Arc<Plan>,
    range: RangeId,
    epoch: Epoch,
    /// Index of the last order before the pass, and of the last order of it.
    after: u64,
    through: u64,
    nodes: Vec<NodeWork>,
    asked: Vec<Asked>,
    /// Pages that the index should have had were stored, and searched for again.
    repaired: bool,
    counted: bool,
}

/// What a pass has for a node.
#[derive(Default)]
struct NodeWork {
    orders: Vec<(u64, NodeOrder)>,
    /// The incarnation that acknowledged the orders.
    stored: Option<Incarnation>,
}

/// A search that is asked for.
struct Asked {
    page: PageId,
    content: ContentHash,
    search: Search,
    /// Its signature, where the order brought it, and the node of its home.
    brought: Option<(Arc<Signature>, NodeId)>,
    state: State,
}

enum State {
    /// No node has said that it stores the page; these have said that they do not.
    Open(Vec<NodeId>),
    /// No node stores the page with that content, so there is no answer.
    Absent,
    /// Its home has answered; some of the other nodes have not.
    Probing {
        subject: (Arc<Signature>, LengthVector),
        left: Vec<NodeId>,
        /// By node.
        pairs: Vec<(NodeId, Vec<Pair>)>,
        probed: u64,
    },
    Answered(Vec<Pair>),
}

impl Pass {
    /// Over orders that are to be carried out now.
    pub(crate) fn new(router: &Router, orders: Orders) -> Self {
        let Orders { range, epoch, first, commands } = orders;
        let plan = router.plan();
        let through = (first + commands.len() as u64).saturating_sub(1);
        let mut pass = Self {
            after: first.saturating_sub(1),
            through,
            range,
            epoch,
            nodes: router.nodes.iter().map(|_| NodeWork::default()).collect(),
            asked: Vec::new(),
            plan,
            repaired: false,
            counted: false,
        };
        for (index, command) in (first..).zip(commands) {
            pass.take(router, index, command);
        }
        pass
    }

    /// Its number of orders.
    pub(crate) fn orders(&self) -> usize {
        (self.through - self.after) as usize
    }

    fn take(&mut self, router: &Router, index: u64, command: IndexCommand) {
        let open = State::Open(Vec::new());
        match command {
            IndexCommand::Put { page, signature, search } => {
                let content = signature.content();
                // Without tokens it is nobody's duplicate, and is not stored.
                if signature.tokens() == 0 {
                    let state = State::Answered(Vec::new());
                    self.asked.extend(search.map(|search| Asked {
                        page,
                        content,
                        search,
                        brought: None,
                        state,
                    }));
                    return;
                }
                let (node, home) = router.home(&self.plan, &signature);
                let brought = Some((Arc::clone(&signature), node));
                self.asked.extend(search.map(|search| Asked { page, content, search, brought, state: open }));
                self.nodes[node.index()].orders.push((index, NodeOrder::Put { page, signature, home }));
            }
            IndexCommand::Remove { page, content } => {
                // Nobody but the node itself knows whether it has the content.
                for work in &mut self.nodes {
                    work.orders.push((index, NodeOrder::Remove { page, content }));
                }
            }
            IndexCommand::Search { page, content, search } => {
                self.asked.push(Asked { page, content, search, brought: None, state: open });
            }
        }
    }

    /// Goes on until everything is answered, or a node knows a later owner of the range. Then the pass ends without
    /// answers: the later owner asks again for what is pending.
    ///
    /// # Errors
    /// When a node or tier 1 does not do its part now. The pass is run again then.
    pub(crate) fn run(&mut self, router: &Router) -> Result<(), RouterError> {
        match self.go_on(router) {
            Err(RouterError::Node(node, NodeError::StaleEpoch { present })) => {
                let (range, epoch, orders) = (self.range, self.epoch, self.orders());
                tracing::warn!(%node, range = range.0, %epoch, %present, orders, "orders of an earlier owner are dropped");
                router.release(range, present, self.through);
                Ok(())
            }
            run => run,
        }
    }

    fn go_on(&mut self, router: &Router) -> Result<(), RouterError> {
        for node in router.nodes.iter().map(|handle| handle.id) {
            self.store(router, node)?;
        }
        router.release(self.range, self.epoch, self.through);
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
        self.answer(router)
    }

    /// Has a node carry out its orders, unless its present incarnation has done so.
    fn store(&mut self, router: &Router, node: NodeId) -> Result<(), RouterError> {
        let present = *lock(&router.handle(node).incarnation);
        let work = &mut self.nodes[node.index()];
        if present.is_some() && work.stored == present {
            return Ok(());
        }
        let mut after = self.after;
        let mut rest = &work.orders[..];
        loop {
            let some;
            (some, rest) = rest.split_at(bounded(rest));
            let last = some.last().filter(|_| !rest.is_empty()).map(|(index, _)| *index);
            let through = last.unwrap_or(self.through);
            let (range, epoch) = (self.range, self.epoch);
            let batch = OrderBatch { range, epoch, after, through, orders: some.to_vec() };
            let applied = router.call(node, &self.plan, |node, call| node.apply(call, batch))?;
            router.handle(node).told(&applied);
            after = through;
            if rest.is_empty() {
                work.stored = Some(applied.incarnation);
                return Ok(());
            }
        }
    }

    /// Has a node search for the pages that are stored there.
    fn search_at_home(&mut self, router: &Router, node: NodeId) -> Result<(), RouterError> {
        let is_due = |asked: &Asked| match (&asked.state, &asked.brought) {
            (State::Open(_), Some((_, home))) => *home == node,
            (State::Open(without), None) => !without.contains(&node),
            _ => false,
        };
        let due: Vec<usize> = (0..self.asked.len()).filter(|at| is_due(&self.asked[*at])).collect();
        for some in due.chunks(BATCH_MAX) {
            let search = |at: &usize| {
                let Asked { page, content, brought, .. } = &self.asked[*at];
                let signature = brought.as_ref().map(|(signature, _)| Arc::clone(signature));
                NodeSearch::Own { page: *page, content: *content, signature }
            };
            let batch = SearchBatch { pass: true, searches: some.iter().map(search).collect() };
            let answers = router.call(node, &self.plan, |node, call| node.search(call, batch))?;
            for (at, answer) in some.iter().zip(answers) {
                self.asked[*at].at_home(router, &self.plan, node, answer);
            }
        }
        Ok(())
    }

    /// A deferred search should find its page. If it does not, and tier 1 still says that the page has this content,
    /// then the index has missed an order: the page is stored now, and the search is made again.
    fn store_missing(&mut self, router: &Router) -> Result<(), RouterError> {
        let is_open = |asked: &&Asked| matches!(asked.state, State::Open(_));
        let open: Vec<_> =
            self.asked.iter().filter(is_open).map(|asked| (asked.page, asked.content)).collect();
        if open.is_empty() {
            return Ok(());
        }
        let stored = router.store_missing(&self.plan, &open)?;
        for asked in self.asked.iter_mut().filter(|asked| matches!(asked.state, State::Open(_))) {
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
            State::Probing { left, .. } => left.contains(&node),
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
            let batch = SearchBatch { pass: true, searches: some.iter().filter_map(search).collect() };
            let answers = router.call(node, &self.plan, |node, call| node.search(call, batch))?;
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
            self.asked.iter().for_each(|asked| asked.count(router));
            self.counted = true;
        }
        let results: Vec<SearchResult> = self.asked.iter().filter_map(Asked::result).collect();
        if !results.is_empty() {
            router.source.deliver(results)?;
        }
        // The pass is run again when repeats cannot be handed over.
        self.asked.clear();
        Ok(())
    }
}

impl Asked {
    fn at_home(&mut self, router: &Router, plan: &Plan, node: NodeId, answer: SearchOutcome) {
        self.state = match (answer, &mut self.state) {
            (SearchOutcome::Absent, State::Open(without)) => {
                without.push(node);
                return;
            }
            (SearchOutcome::Copy(pair), _) => State::Answered(vec![pair]),
            (SearchOutcome::Compared { pairs, probed, subject: Some(subject) }, _) => {
                let mut left = router.nodes_to_probe(plan, &subject.1);
                left.retain(|other| *other != node);
                State::Probing { subject, left, pairs: vec![(node, pairs)], probed: probed.into() }
            }
            (SearchOutcome::Absent | SearchOutcome::Compared { .. }, _) => return,
        };
    }

    fn elsewhere(&mut self, node: NodeId, answer: SearchOutcome) {
        let State::Probing { left, pairs, probed, .. } = &mut self.state else { return };
        left.retain(|other| *other != node);
        match answer {
            SearchOutcome::Absent => {}
            SearchOutcome::Copy(pair) => pairs.push((node, vec![pair])),
            SearchOutcome::Compared { pairs: more, probed: partitions, .. } => {
                *probed += u64::from(partitions);
                pairs.push((node, more));
            }
        }
    }

    fn result(&self) -> Option<SearchResult> {
        let pairs = match &self.state {
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

/// How many of the orders a call may bring: at least one, where there is one.
fn bounded(orders: &[(u64, NodeOrder)]) -> usize {
    let size = |(_, order): &(u64, NodeOrder)| match order {
        NodeOrder::Put { signature, .. } => signature.as_bytes().len(),
        NodeOrder::Remove { .. } => 0,
    };
    fitting(orders.iter().take(BATCH_MAX).map(size))
}
